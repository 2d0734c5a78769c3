// Scenarios whose cables are pulled, through the program.
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "tests/shim/test.h"

#define PULLED TCASIM_SOURCE_DIR "/scenarios/fabric/cable-pulled.yaml"

TEST(FaultCommand, TheScenarioOfAPulledCableHoldsAndTellsWhatWasLost)
{
    struct process process;
    process_init(&process);
    process_run(&process, "run " PULLED " --set nodes.*.board.fidelity=twin --out out");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    EXPECT_CONTAINS(process.output, "Faults (time since");
    EXPECT_CONTAINS(process.output, "through the cable  node1.E-node2.W pulled");
    char *manifest = process_file_read(&process, "out/manifest.yaml");
    EXPECT_CONTAINS(manifest, "      - fault: node1.E-node2.W pulled\n        at_ps: ");
    EXPECT_CONTAINS(manifest, "{end: node1.E, sent: 1000, lost: ");
    char *counters = process_file_read(&process, "out/counters.csv");
    EXPECT_CONTAINS(counters, "through the cable,node1.E-node2.W.0,tlps_lost,TLPs,");
    EXPECT_CONTAINS(counters, "through the cable,node1.E-node2.W.0,down_at,ps,");
    free(manifest);
    free(counters);
    process_fini(&process);
}

TEST(FaultCommand, TellsWhenACableWasPutBack)
{
    static const char text[] =
        "title: t\n"
        "topology: {kind: ring, nodes: 4, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}},\n"
        "           cable: pearl-gen2-x8}\n"
        "faults: [{cable: {from: node2.E, to: node3.W}, at: 20 us, for: 30 us}]\n"
        "runs: [{series: pio, workload: pingpong, method: pio, node: node0, peer: node1, bytes: 8 B, iterations: "
        "50}]\n";
    struct process process;
    process_init(&process);
    process_file_write(&process, "back.yaml", text);
    process_run(&process, "run back.yaml --out out");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "pio     node2.E-node3.W pulled  20.000000  50.000000  node2.E");
    char *manifest = process_file_read(&process, "out/manifest.yaml");
    EXPECT_CONTAINS(manifest, "        back_ps: ");
    free(manifest);
    process_fini(&process);
}

TEST(FaultCommand, ThePulledCableIsTheSameToTheTwin)
{
    struct process process;
    process_init(&process);
    process_run(&process, "crosscheck " PULLED " --set runs.*.iterations=80");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, " 0 differ;");
    process_fini(&process);
}

TEST(FaultCommand, AProgramThatWaitsForWhatWasLostEndsWithThreeAndTheReason)
{
    static const char text[] = "title: t\n"
                               "topology: {kind: pair, preset: ha-pacs-tca-2013, cable: pearl-gen2-x8}\n"
                               "faults: [{cable: {from: node0.E, to: node1.W}, at: 20 us}]\n"
                               "runs:\n"
                               "  - {series: dma, workload: pingpong, method: register, node: node0, peer: node1,\n"
                               "     bytes: 64 B, iterations: 100}\n";
    struct process process;
    process_init(&process);
    process_file_write(&process, "waits.yaml", text);
    process_run(&process, "run waits.yaml --quiet");
    EXPECT_EQ(process.status, 3);
    EXPECT_STREQ(process.output, "");
    EXPECT_CONTAINS(process.errors, "node0 waits for node0.memory: word 0x");
    EXPECT_CONTAINS(process.errors, "dma     node0.E-node1.W pulled  20.000000  the end  node0.E");
    process_fini(&process);
}

TEST(FaultCommand, AProgramWhoseWaitsEndEndsWithOneAndTheReason)
{
    static const char text[] =
        "title: t\n"
        "topology: {kind: pair, preset: ha-pacs-tca-2013, cable: pearl-gen2-x8}\n"
        "faults: [{cable: {from: node0.E, to: node1.W}, at: 20 us}]\n"
        "runs:\n"
        "  - {series: tca, workload: tca-pingpong, method: chain-host, node: node0, peer: node1,\n"
        "     bytes: 64 B, iterations: 100}\n";
    struct process process;
    process_init(&process);
    process_file_write(&process, "waits.yaml", text);
    process_run(&process, "run waits.yaml");
    EXPECT_EQ(process.status, 1);
    EXPECT_CONTAINS(process.output, "Nothing was measured.");
    EXPECT_LACKS(process.output, "Results:");
    EXPECT_CONTAINS(process.errors, "of 64 B: tcaWaitDMARecvDesc: tag ");
    EXPECT_CONTAINS(process.errors, " within 1 s: check the sender");
    process_fini(&process);
}
