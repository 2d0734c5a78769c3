// The command that compares the twin with the RTL.
#include <stdio.h>
#include <string.h>

#include "process.h"
#include "tests/shim/test.h"

static const char scenario[] = "# Question: does the twin do what the RTL does?\n"
                               "title: A small ping-pong\n"
                               "nodes:\n"
                               "  - {name: node, count: 2, preset: ha-pacs-tca-2013}\n"
                               "cables:\n"
                               "  - {from: node0.E, to: node1.W, preset: pearl-gen2-x8}\n"
                               "runs:\n"
                               "  - {series: dma, workload: pingpong, method: register, node: node0, peer: node1,\n"
                               "     bytes: [8 B, 4 KiB], iterations: 2, warmup: 1}\n"
                               "  - {series: pio, workload: pingpong, method: pio, node: node0, peer: node1,\n"
                               "     bytes: [8 B], iterations: 2}\n";

TEST(CrosscheckCommand, ComparesEverySeriesOnBothKindsOfBoard)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "small.yaml", scenario);
    process_run(&process, "crosscheck small.yaml");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    EXPECT_CONTAINS(process.output, "small.yaml: dma\n");
    EXPECT_CONTAINS(process.output, "small.yaml: pio\n");
    EXPECT_CONTAINS(process.output, "small.yaml: 3 points");
    EXPECT_CONTAINS(process.output, " 0 differ;");
    EXPECT_EQ(process_entries(&process), 1); // it writes nothing
    process_fini(&process);
}

TEST(CrosscheckCommand, TakesOverrides)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "small.yaml", scenario);
    process_run(&process, "crosscheck small.yaml --set nodes.*.host.mps=128_B");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, " 0 differ;");
    process_fini(&process);
}

TEST(CrosscheckCommand, RefusesWhatIsNoScenario)
{
    struct process process;
    process_init(&process);
    process_run(&process, "crosscheck nothing.yaml");
    EXPECT_EQ(process.status, 2);
    process_run(&process, "crosscheck");
    EXPECT_EQ(process.status, 2);
    process_fini(&process);
}

TEST(CrosscheckCommand, RunsEveryPointOfASweep)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "small.yaml", scenario);
    process_run(&process, "crosscheck small.yaml --set sweep={nodes.*.host.mps:_[128_B,_256_B]}");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "small.yaml (128 B): pio\n");
    EXPECT_CONTAINS(process.output, "small.yaml (256 B): dma\n");
    EXPECT_CONTAINS(process.output, "small.yaml: 6 points");
    process_fini(&process);
}

TEST(CrosscheckCommand, ComparesHowASeriesGetsStuck)
{
    struct process process;
    process_init(&process);
    char text[1024];
    snprintf(text, sizeof text, "%sfaults: [{cable: {from: node0.E, to: node1.W}, at: 1 us}]\n", scenario);
    process_file_write(&process, "small.yaml", text);
    process_run(&process, "crosscheck small.yaml");
    EXPECT_EQ(process.status, 3);
    EXPECT_CONTAINS(process.output, "small.yaml: dma\n  both: got stuck:\n");
    EXPECT_CONTAINS(process.output, "small.yaml: pio\n  both: got stuck:\n");
    EXPECT_CONTAINS(process.output, " 0 differ;");
    process_fini(&process);
}

TEST(CrosscheckCommand, ShowsCountsOfTimeOnlyIfAsked)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "small.yaml", scenario);
    process_run(&process, "crosscheck small.yaml --against flow --within 50_% --set runs.0.bytes=[64_KiB]");
    EXPECT_EQ(process.status, 0);
    EXPECT_NULL(strstr(process.output, "node0.slot.0.wire_bytes_sent"));
    EXPECT_CONTAINS(process.output, " estimates and counts of what takes time have other values; 0 differ;");
    process_run(&process, "crosscheck small.yaml --against flow --within 50 --all --set runs.0.bytes=[64_KiB]");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "node0.slot.0.wire_bytes_sent");
    process_fini(&process);
}

TEST(CrosscheckCommand, RefusesAFidelity)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "small.yaml", scenario);
    process_run(&process, "crosscheck small.yaml --set nodes.node0.board.fidelity=rtl");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "--set nodes.node0.board.fidelity=rtl: crosscheck runs all boards on one fidelity");
    process_run(&process, "crosscheck small.yaml --set sweep={fidelity:_[twin,_flow]}");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "fidelity");
    process_run(&process, "crosscheck small.yaml --set nodes.*.board={fidelity:_twin}");
    EXPECT_EQ(process.status, 2);
    process_run(&process, "crosscheck small.yaml --within 0x3");
    EXPECT_EQ(process.status, 2);
    process_run(&process, "crosscheck small.yaml --within 101");
    EXPECT_EQ(process.status, 2);
    process_fini(&process);
}
