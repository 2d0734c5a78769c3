// Intervals: draws are points like those of a sweep, and say how far a result can be trusted.
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "tests/shim/test.h"

#define HEAD                                                                                                           \
    "# Question: how far can a latency be trusted?\n"                                                                  \
    "title: A ping-pong\n"                                                                                             \
    "topology: {kind: pair, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}, cable: pearl-gen2-x8}\n"
#define RUNS                                                                                                           \
    "runs:\n"                                                                                                          \
    "  - {series: dma, workload: pingpong, method: register, node: node0, peer: node1,\n"                              \
    "     bytes: [8 B, 4 KiB], iterations: 2, warmup: 1}\n"
#define COMPARE "compare:\n  - {id: H09, value: {series: dma, column: latency_us, take: min}}\n"
#define PLOT    "plot:\n  - {title: a, x: bytes, y: latency_us}\n  - {title: b, x: bytes, y: bandwidth_GBps}\n"

static void run(struct process *process, const char *text, const char *words)
{
    process_init(process);
    process_file_write(process, "s.yaml", text);
    process_run(process, words);
}

TEST(IntervalRun, GivesEveryRowAndEveryComparisonAnInterval)
{
    struct process process;
    run(&process, HEAD RUNS COMPARE PLOT, "run s.yaml --interval 20 --out out");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    EXPECT_CONTAINS(process.output, "Intervals: 5 to 95 % of 20 draws");
    EXPECT_CONTAINS(process.output, "inside"); // H09 sets a parameter in each draw
    char *data = process_file_read(&process, "out/data.csv"), *table = process_file_read(&process, "out/interval.csv"),
         *compare = process_file_read(&process, "out/compare.csv"), *plot = process_file_read(&process, "out/plot.gp");
    EXPECT_CONTAINS(data, ",interval_low_us,interval_high_us\n");
    EXPECT_CONTAINS(table, "\ndma,8,1,0,");
    EXPECT_CONTAINS(table, "\ndma,4096,1,0,");
    EXPECT_CONTAINS(compare, ",interval_low,interval_high,inside\n");
    EXPECT_CONTAINS(compare, ",yes\n");
    EXPECT_CONTAINS(plot, "with filledcurves");
    free(data);
    free(table);
    free(compare);
    free(plot);
    process_fini(&process);
}

TEST(IntervalRun, HasTheSameBytesHoweverManyRunBesideEachOther)
{
    struct process process;
    run(&process, HEAD RUNS, "run s.yaml --interval 20 --jobs 1 --quiet --out one");
    EXPECT_EQ(process.status, 0);
    process_run(&process, "run s.yaml --interval 20 --jobs 3 --quiet --out three");
    EXPECT_EQ(process.status, 0);
    process_run(&process, "run s.yaml --interval 20 --quiet --out three"); // from what was kept
    EXPECT_EQ(process.status, 0);
    char *one = process_file_read(&process, "one/interval.csv"),
         *three = process_file_read(&process, "three/interval.csv");
    EXPECT_STREQ(one, three);
    free(one);
    free(three);
    process_run(&process, "run s.yaml --quiet --out one"); // without intervals
    EXPECT_NULL(process_file_read(&process, "one/interval.csv"));
    process_fini(&process);
}

// A faster board is told apart in every draw; what a run does not use, in none.
TEST(IntervalRun, OfASweepComparesInTheSameDraw)
{
    struct process process;
    run(&process, HEAD "sweep: {nodes.*.board.clock: [125 MHz, 250 MHz]}\n" RUNS, "run s.yaml --interval 20 --out out");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(
        process.output,
        "first point, in the same draw: of 2, 0 are the same in nearly all draws, and 0 are not told apart by");
    process_fini(&process);
    run(&process, HEAD "sweep: {nodes.*.host.interrupt: [1 us, 2 us]}\n" RUNS, "run s.yaml --interval 20 --out out");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "of 2, 2 are the same in nearly all draws, and 0 are not told apart");
    process_fini(&process);
}

TEST(IntervalRun, TakesANumberOfDrawsThatThereAre)
{
    static const struct {
        const char *words, *error;
    } cases[] = {
        {"run s.yaml --interval 19", "--interval 19: expected a number of draws, 20 to 10000"},
        {"run s.yaml --interval=x", "--interval x: expected a number of draws, 20 to 10000"},
        {"run s.yaml --interval 9999", "draws, and not 9999"},
        {"run s.yaml --interval --trace t.csv", "--interval runs a scenario many times; it takes no --trace"},
        {"run s.yaml --interval --trace-rtl", "--interval runs a scenario many times; it takes no --trace-rtl"},
        {"run s.yaml --interval --engine slurm --detach",
         "--interval runs a scenario many times; it takes no --detach"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct process process;
        TEST_TRACE("%s", cases[i].words);
        run(&process, HEAD RUNS, cases[i].words);
        EXPECT_EQ(process.status, 2);
        EXPECT_CONTAINS(process.errors, cases[i].error);
        EXPECT_EQ(process_entries(&process), 1); // nothing ran
        process_fini(&process);
    }
}

// Neither a key that the sweep sets itself, nor one of a preset that the scenario does not use, moves a result.
TEST(IntervalRun, NamesNoKeyThatIsNotDrawn)
{
    struct process process;
    run(&process, HEAD "sweep: {presets.host.xeon-e5-2670.poll: [10 ns, 40 ns]}\n" RUNS,
        "run s.yaml --interval 60 --quiet --out out");
    EXPECT_EQ(process.status, 0);
    char *table = process_file_read(&process, "out/interval.csv");
    EXPECT_LACKS(table, "host.xeon-e5-2670.poll");
    EXPECT_LACKS(table, "hca.");
    EXPECT_LACKS(table, "fpga.");
    free(table);
    process_fini(&process);
}
