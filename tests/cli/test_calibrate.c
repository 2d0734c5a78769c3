// The command that searches values for published rows.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "tests/shim/test.h"

#define SCENARIO                                                                                                       \
    "# Question: how long does a message take?\n"                                                                      \
    "title: A small ping-pong\n"                                                                                       \
    "nodes:\n"                                                                                                         \
    "  - {name: node, count: 2, preset: ha-pacs-tca-2013}\n"                                                           \
    "cables:\n"                                                                                                        \
    "  - {from: node0.E, to: node1.W, preset: pearl-gen2-x8}\n"                                                        \
    "runs:\n"                                                                                                          \
    "  - {series: pio, workload: pingpong, method: pio, node: node0, peer: node1, bytes: [8 B], iterations: 2}\n"      \
    "  - {series: dma, workload: pingpong, method: register, node: node0, peer: node1, bytes: [8 B, 8 KiB],\n"         \
    "     iterations: 2, warmup: 1}\n"

#define COMPARE                                                                                                        \
    "compare:\n"                                                                                                       \
    "  - {id: H08, value: {series: pio, column: latency_us, take: min}}\n"                                             \
    "  - {id: H09, value: {series: dma, column: latency_us, take: min}}\n"                                             \
    "  - {id: H10, value: {series: dma, column: latency_us, at: 8 KiB}}\n"

#define FLUSH "  - {key: nodes.*.host.flush_wc, from: 30 ns, to: 120 ns, step: 5 ns, source: test}\n"
#define START "  - {key: nodes.*.board.dmac_start_cycles, from: 100, to: 300, step: 5, source: test}\n"

static void calibrate(struct process *process, const char *scenario, const char *calibration, const char *rest)
{
    char words[256];
    process_init(process);
    process_file_write(process, "small.yaml", scenario);
    process_file_write(process, "c.yaml", calibration);
    snprintf(words, sizeof words, "calibrate c.yaml --out out %s", rest);
    process_run(process, words);
}

static void expect_refused(const char *scenario, const char *calibration, const char *rest, const char *message)
{
    struct process process;
    calibrate(&process, scenario, calibration, rest);
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, message);
    EXPECT_EQ(process_entries(&process), 2); // it writes nothing
    process_fini(&process);
}

// Half a round trip takes 893 ns with a flush of 100 ns, and follows it in steps of the poll: 105 ns come nearest to
// 0.9 us.
TEST(CalibrateCommand, FindsTheValueThatMeetsARowBest)
{
    struct process process;
    calibrate(&process, SCENARIO COMPARE, "scenarios: [small.yaml]\nrows: [H08]\nkeys:\n" FLUSH, "--check twin");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    EXPECT_CONTAINS(process.output, "host.flush_wc  30 ns  120 ns  100 ns  105 ns\n");
    EXPECT_CONTAINS(process.output, "--set 'nodes.*.host.flush_wc=105 ns'\n");
    EXPECT_CONTAINS(process.output, "decides"); // H08 alone
    EXPECT_CONTAINS(process.output, "best, twin\n");
    EXPECT_CONTAINS(process.output, "Results: out\n");
    static const char *const names[] = {"out/points.csv", "out/rows.csv", "out/sensitivity.csv", "out/plot.gp",
                                        "out/plot.svg"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        TEST_TRACE("file %s", names[i]);
        char *text = process_file_read(&process, names[i]);
        EXPECT_NOT_NULL(text);
        free(text);
    }
    process_fini(&process);
}

TEST(CalibrateCommand, SaysWhatTheRowsCannotDecide)
{
    struct process process;
    calibrate(&process, SCENARIO COMPARE,
              "scenarios: [small.yaml]\nrows: [H09]\nkeys:\n" FLUSH START
              "  - {key: nodes.*.board.dmac_finish_cycles, from: 15, to: 25, step: 5, source: test}\n",
              "--check none");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "No row that decides depends on host.flush_wc: its value is the start's.\n");
    EXPECT_CONTAINS(process.output, "board.dmac_start_cycles and board.dmac_finish_cycles move the rows that decide in "
                                    "the same way");
    process_fini(&process);
}

TEST(CalibrateCommand, GivesTheSameBytesWithAnyNumberOfJobs)
{
    static const char *const jobs[] = {"--check none --jobs 1", "--check none --jobs 7"};
    char *points[2], *printed[2];
    for (unsigned i = 0; i < 2; i++) {
        struct process process;
        calibrate(&process, SCENARIO COMPARE, "scenarios: [small.yaml]\nkeys:\n" FLUSH START, jobs[i]);
        EXPECT_EQ(process.status, 0);
        points[i] = process_file_read(&process, "out/points.csv");
        printed[i] = strdup(process.output);
        process_fini(&process);
    }
    if (points[0] != NULL && points[1] != NULL) {
        EXPECT_STREQ(points[1], points[0]);
        EXPECT_STREQ(printed[1], printed[0]);
    }
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_NOT_NULL(points[i]);
        free(points[i]);
        free(printed[i]);
    }
}

TEST(CalibrateCommand, APointThatFailsIsNamedAndTheOthersCount)
{
    struct process process;
    calibrate(&process, SCENARIO COMPARE,
              "scenarios: [small.yaml]\nrows: [H08]\nkeys:\n"
              "  - {key: time_limit, from: 500 ns, to: 100 us, step: 500 ns, source: test}\n",
              "--check none");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.errors, "this point has no values: --set 'time_limit=500 ns'");
    EXPECT_CONTAINS(process.output, "The best point:");
    process_fini(&process);
}

TEST(CalibrateCommand, RefusesBeforeAnythingRuns)
{
    expect_refused(SCENARIO COMPARE, "scenarios: [small.yaml]\nrows: [H10]\nkeys:\n" FLUSH, "",
                   "row H10: its use is not `calibrate`: it never decides");
    expect_refused(SCENARIO COMPARE, "scenarios: [small.yaml]\nrows: [H01]\nkeys:\n" FLUSH, "",
                   "row H01: no scenario compares with it");
    expect_refused(SCENARIO COMPARE, "scenarios: [small.yaml]\nrows: [H99]\nkeys:\n" FLUSH, "",
                   "row H99: there is no such published row");
    expect_refused(SCENARIO, "scenarios: [small.yaml]\nkeys:\n" FLUSH, "",
                   "none of the scenarios compares with a published row");
    expect_refused(
        SCENARIO COMPARE,
        "scenarios: [small.yaml]\nkeys:\n  - {key: nodes.*.host.flush, from: 1, to: 2, step: 1, source: s}\n", "",
        "flush");
    expect_refused(SCENARIO COMPARE,
                   "scenarios: [small.yaml]\nkeys:\n"
                   "  - {key: nodes.*.board.dmac_read_tags, from: 16, to: 64, step: 16, source: s}\n",
                   "", "dmac_read_tags");
    expect_refused(SCENARIO COMPARE "sweep: {nodes.*.host.poll: [10 ns, 20 ns]}\n",
                   "scenarios: [small.yaml]\nkeys:\n" FLUSH, "", "a calibration takes scenarios without a sweep");
    expect_refused(SCENARIO COMPARE, "scenarios: [missing.yaml]\nkeys:\n" FLUSH, "", "missing.yaml");
    expect_refused(SCENARIO COMPARE, "scenarios: [small.yaml]\nkeys:\n" FLUSH, "--fidelity packets",
                   "--fidelity packets: expected rtl, twin or flow");
    expect_refused(SCENARIO COMPARE, "scenarios: [small.yaml]\nkeys:\n" FLUSH, "--points 0",
                   "--points 0: expected a number from 1 to 2000");
}
