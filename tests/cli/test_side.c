// Several scenarios in parallel, and scenarios of nodes without a board.
#include <stdlib.h>

#include "process.h"
#include "tests/shim/test.h"

#define PAIR                                                                                                           \
    "# Question: does a scenario run beside others?\n"                                                                 \
    "title: A small pair\n"                                                                                            \
    "topology: {kind: pair, preset: ha-pacs-tca-2013, cable: pearl-gen2-x8}\n"                                         \
    "runs:\n"                                                                                                          \
    "  - {series: dma, workload: pingpong, method: register, node: node0, peer: node1, bytes: [8 B], iterations: 2}\n"
#define SWEEP "sweep: {nodes.*.host.poll: [20 ns, 40 ns]}\n"
#define GPUS                                                                                                           \
    "# Question: do two GPUs need a board?\n"                                                                          \
    "title: Two GPUs\n"                                                                                                \
    "nodes: [{name: n, host: {preset: xeon-e5-2670}, gpus: [{preset: k20}, {preset: k20}]}]\n"                         \
    "runs:\n"                                                                                                          \
    "  - {series: cuda, workload: cuda-pingpong, method: uva, node: n, from: gpu0, to: gpu1, bytes: [7 B, 100 KB]}\n"
#define FAILS "expect:\n  - {name: too fast, value: {series: cuda, column: latency_us}, max: 0.1}\n"

static void start(struct process *process)
{
    process_init(process);
    process_file_write(process, "a.yaml", PAIR);
    process_file_write(process, "b.yaml", GPUS FAILS);
    process_file_write(process, "c.yaml", PAIR SWEEP);
}

static void both_run(struct process *one, struct process *many, const char *alone, const char *beside, int status)
{
    start(one);
    start(many);
    process_run(one, alone);
    process_run(many, beside);
    EXPECT_EQ(one->status, status);
    EXPECT_EQ(many->status, status);
    EXPECT_STREQ(many->output, one->output);
    EXPECT_STREQ(many->errors, one->errors);
}

TEST(SideBySide, ScenariosPrintAndWriteTheSameInTheirOrder)
{
    struct process one, many;
    both_run(&one, &many, "run a.yaml b.yaml c.yaml --out out --jobs 1", "run a.yaml b.yaml c.yaml --out out --jobs 3",
             1);
    EXPECT_CONTAINS(many.errors, "'too fast' does not hold");
    EXPECT_CONTAINS(one.output, "0 of 1, NOT: too fast\n");
    EXPECT_CONTAINS(one.output, "c         dma, 20 ns  rtl");
    char *alone = process_file_read(&one, "out/c/data.csv"), *beside = process_file_read(&many, "out/c/data.csv");
    EXPECT_STREQ(beside, alone);
    free(alone);
    free(beside);
    process_fini(&one);
    process_fini(&many);
}

// More processes than scenarios: those of the sweep are measured in parallel, too.
TEST(SideBySide, ScenariosShareTheProcesses)
{
    struct process one, many;
    both_run(&one, &many, "run c.yaml a.yaml --out out --jobs 1", "run c.yaml a.yaml --out out --jobs 5", 0);
    process_fini(&one);
    process_fini(&many);
}

TEST(SetCommand, PassesOverNodesWithoutABoard)
{
    struct process process;
    start(&process);
    process_run(&process, "run a.yaml b.yaml --out out --jobs 2 --quiet --set nodes.*.board.fidelity=twin");
    EXPECT_EQ(process.status, 1); // the expectation of b does not hold
    EXPECT_STREQ(process.output, "");
    char *resolved = process_file_read(&process, "out/a/resolved.yaml");
    EXPECT_CONTAINS(resolved, "fidelity: twin");
    free(resolved);
    process_run(&process, "run b.yaml --out again --set nodes.n.board.fidelity=twin");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "'board' is not given");
    process_fini(&process);
}

TEST(SideBySide, TheSummaryNamesBothKindsOfBoardsWhereBothAreUsed)
{
    struct process process;
    start(&process);
    process_run(&process, "run a.yaml c.yaml --out out --set nodes.node1.board.fidelity=twin");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "\na         dma         both\n");
    EXPECT_CONTAINS(process.output, "\nc         dma, 20 ns  both\n");
    process_fini(&process);
}

TEST(SideBySide, AScenarioThatFailsBeforeOthersDecidesTheStatus)
{
    struct process process;
    start(&process);
    process_run(&process, "run b.yaml a.yaml --out out --jobs 1 --quiet");
    EXPECT_EQ(process.status, 1);
    process_run(&process, "run b.yaml a.yaml --out out --jobs 2 --quiet");
    EXPECT_EQ(process.status, 1);
    process_fini(&process);
}
