// Sweeps: points run in parallel, are kept and merged, and are named when they fail.
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process.h"
#include "tests/shim/test.h"

#define RUNS                                                                                                           \
    "runs:\n"                                                                                                          \
    "  - {series: dma, workload: pingpong, method: register, node: node0, peer: node1,\n"                              \
    "     bytes: [8 B, 4 KiB], iterations: 2, warmup: 1}\n"
#define HEAD                                                                                                           \
    "# Question: does a sweep do what it says?\n"                                                                      \
    "title: A small sweep\n"                                                                                           \
    "topology: {kind: pair, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}, cable: pearl-gen2-x8}\n"
#define SWEEP "sweep: {nodes.*.board.clock: [125 MHz, 250 MHz], nodes.*.board.dmac_read_tags: [1, 16]}\n"
#define PLOT                                                                                                           \
    "plot:\n  - {title: a, x: bytes, y: latency_us}\n  - {title: b, x: sweep, y: bandwidth_GBps}\n"                    \
    "expect:\n  - {name: faster, value: {series: \"dma, 250 MHz, 16\", column: latency_us, at: 4 KiB},\n"              \
    "     over: {series: \"dma, 125 MHz, 16\", column: latency_us, at: 4 KiB}, max: 0.9}\n"

static void start(struct process *process, const char *text)
{
    process_init(process);
    process_file_write(process, "s.yaml", text);
}

TEST(SweepRun, MeasuresEveryCombinationOnceIntoOneTableAndOnePlot)
{
    struct process process;
    start(&process, HEAD SWEEP RUNS PLOT);
    process_run(&process, "run s.yaml --out out");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    EXPECT_CONTAINS(process.output, "Sweep: 4 points, 0 of them kept from an earlier run, 0 failed\n");
    EXPECT_CONTAINS(process.output, "1 expectation holds\n");
    char *data = process_file_read(&process, "out/data.csv");
    EXPECT_CONTAINS(data,
                    ",max_latency_us,sweep,nodes.*.board.clock,nodes.*.board.dmac_read_tags\n\"dma, 125 MHz, 1\",8,");
    EXPECT_CONTAINS(data, ",4,250 MHz,16\n");
    char *plot = process_file_read(&process, "out/plot.svg");
    EXPECT_CONTAINS(plot, "dma, 250 MHz, 16");
    EXPECT_CONTAINS(plot, "dma, 16, 4 KiB"); // a curve over the clock
    EXPECT_CONTAINS(plot, ">clock, dmac");   // gnuplot may split a text at an underscore
    char *script = process_file_read(&process, "out/plot.gp");
    EXPECT_CONTAINS(script, "set xlabel 'clock'\n");
    EXPECT_CONTAINS(script, "(int(($9 - 1) / 2) % 2 + 1)"); // the place of a point on it
    EXPECT_CONTAINS(script, "set xtics ('125 MHz' 1, '250 MHz' 2)\n");
    free(script);
    free(plot);
    free(data);
    process_fini(&process);
}

TEST(SweepRun, TakesPathsOfAnyLength)
{
    enum { ZEROS = 300 };
    struct process process;
    char text[2048];
    snprintf(text, sizeof text, HEAD "sweep: {runs.%0*d.iterations: [1, 2]}\n" RUNS, ZEROS, 0);
    start(&process, text);
    process_run(&process, "run s.yaml --out out");
    EXPECT_EQ(process.status, 0);
    char *data = process_file_read(&process, "out/data.csv");
    EXPECT_CONTAINS(data, "0.iterations\n");
    EXPECT_CONTAINS(data, ",2,2\n");
    free(data);
    process_fini(&process);
}

TEST(SweepRun, OfOneValueIsExplained)
{
    struct process process;
    start(&process, HEAD "sweep: {nodes.*.board.clock: [125 MHz, 250 MHz]}\n" RUNS);
    process_run(&process, "explain s.yaml --out out");
    EXPECT_EQ(process.status, 2);
    EXPECT_STREQ(process.errors, "tcasim: explain cannot run the 2 points of a sweep; select one with --set, for "
                                 "example --set 'nodes.*.board.clock=125 MHz'\n");
    process_run(&process, "explain s.yaml --out out --set nodes.*.board.clock=250_MHz");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "latency  ");
    process_fini(&process);
}

static void same(const struct process *process, const char *name)
{
    char one[64], two[64];
    snprintf(one, sizeof one, "one/%s", name);
    snprintf(two, sizeof two, "two/%s", name);
    char *a = process_file_read(process, one), *b = process_file_read(process, two);
    if (a == NULL || b == NULL || strcmp(a, b) != 0) {
        FAIL("%s differs", name);
    }
    free(a);
    free(b);
}

TEST(SweepRun, GivesTheSameBytesWithAnyNumberOfJobs)
{
    static const char *const names[] = {"data.csv", "counters.csv", "compare.csv",
                                        "plot.gp",  "plot.svg",     "manifest.yaml"};
    struct process process;
    start(&process, HEAD SWEEP RUNS PLOT);
    process_run(&process, "run s.yaml --quiet --jobs 1 --out one");
    EXPECT_EQ(process.status, 0);
    process_run(&process, "run s.yaml --quiet --jobs 4 --out two");
    EXPECT_EQ(process.status, 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        same(&process, names[i]);
    }
    process_fini(&process);
}

TEST(SweepRun, KeepsWhatWasMeasuredUnlessToldToStartAnew)
{
    struct process process;
    start(&process, HEAD SWEEP RUNS PLOT);
    process_run(&process, "run s.yaml --out one");
    process_run(&process, "run s.yaml --out one");
    EXPECT_CONTAINS(process.output, "4 points, 4 of them kept");
    process_run(&process, "run s.yaml --out one --set expect.0.max=0.1");
    EXPECT_CONTAINS(process.output, "4 points, 4 of them kept"); // a changed expectation needs no new measurement
    EXPECT_EQ(process.status, 1);
    process_run(&process, "run s.yaml --out one --fresh");
    EXPECT_CONTAINS(process.output, "4 points, 0 of them kept");
    process_fini(&process);
}

TEST(SweepRun, MeasuresOnlyTheValuesThatAreNew)
{
    struct process process;
    start(&process, HEAD "sweep: {nodes.*.board.clock: [125 MHz, 250 MHz]}\n" RUNS);
    process_run(&process, "run s.yaml");
    process_run(&process, "run s.yaml --set sweep={nodes.*.board.clock:_[250_MHz,_300_MHz]}");
    EXPECT_CONTAINS(process.output, "2 points, 1 of them kept");
    process_run(&process, "run s.yaml"); // 125 MHz was not in the latest results
    EXPECT_CONTAINS(process.output, "2 points, 1 of them kept");
    process_fini(&process);
}

// Empties the measurements of one of its points.
static void point_damage(const struct process *process, const char *directory)
{
    char pattern[256];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/%s/points/*.csv", process->directory, directory);
    ASSERT_EQ(glob(pattern, 0, NULL, &found), 0);
    process_file_write(process, found.gl_pathv[0] + strlen(process->directory) + 1, "");
    globfree(&found);
}

TEST(SweepRun, MeasuresAgainAfterAKeptPointThatCannotBeRead)
{
    struct process process;
    start(&process, HEAD "sweep: {nodes.*.board.clock: [125 MHz, 250 MHz]}\n" RUNS);
    process_run(&process, "run s.yaml --out out");
    EXPECT_EQ(process.status, 0);
    point_damage(&process, "out");
    process_run(&process, "run s.yaml --out out");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "2 points, 1 of them kept from an earlier run, 0 failed\n");
    process_fini(&process);
}

TEST(SweepRun, HoldsEveryPointToAnExpectationThatNamesNone)
{
    struct process process;
    start(&process,
          HEAD RUNS "expect:\n  - {name: quick, value: {series: dma, column: latency_us, at: 4 KiB}, max: 5}\n"
                    "compare:\n  - {id: H09, value: {series: dma, column: latency_us, take: min}}\n");
    process_run(&process, "run s.yaml --set sweep={nodes.*.board.clock:_[125_MHz,_250_MHz,_500_MHz]}");
    EXPECT_EQ(process.status, 1);
    EXPECT_CONTAINS(process.errors, "expect 'quick, 125 MHz' does not hold: ");
    EXPECT_CONTAINS(process.errors, "1 of 3 expectations does not hold\n");
    EXPECT_LACKS(process.errors, "quick, 250 MHz");
    EXPECT_CONTAINS(process.output, ", 500 MHz");
    char *compare = process_file_read(&process, "results/s/compare.csv");
    EXPECT_CONTAINS(compare, ", 125 MHz\",3.4");
    EXPECT_CONTAINS(compare, ", 500 MHz\",1.8");
    free(compare);
    process_fini(&process);
}

TEST(SweepRun, NamesAPointThatFailsAndGoesOnWithTheOthers)
{
    struct process process;
    start(&process, HEAD "sweep: {time_limit: [1 us, 1 s, 2 us]}\n" RUNS);
    process_run(&process, "run s.yaml --jobs 2");
    EXPECT_EQ(process.status, 3);
    EXPECT_CONTAINS(process.errors, "s.yaml (1 us): series 'dma' reached the time limit");
    EXPECT_CONTAINS(process.errors, "s.yaml: the point '2 us' failed\n");
    EXPECT_LACKS(process.errors, "the point '1 s'");
    char *data = process_file_read(&process, "results/s/data.csv");
    EXPECT_CONTAINS(data, "\"dma, 1 s\",8,");
    free(data);
    process_fini(&process);
}

TEST(SweepRun, NamesOnlyThePointsWhereAllFail)
{
    struct process process;
    start(&process, HEAD "sweep: {time_limit: [1 us, 2 us]}\n" RUNS);
    process_run(&process, "run s.yaml");
    EXPECT_EQ(process.status, 3);
    EXPECT_CONTAINS(process.errors, "s.yaml: the point '1 us' failed\n");
    EXPECT_LACKS(process.errors, "cannot write");
    process_fini(&process);
}

TEST(SweepRun, LeavesEarlierResultsIfItsPointsCannotBeKept)
{
    struct process process;
    start(&process, HEAD SWEEP RUNS);
    char path[sizeof process.directory + 8];
    snprintf(path, sizeof path, "%s/out", process.directory);
    ASSERT_EQ(mkdir(path, 0700), 0);
    process_file_write(&process, "out/data.csv", "earlier\n");
    process_file_write(&process, "out/points", "a file\n");
    process_run(&process, "run s.yaml --out out");
    EXPECT_EQ(process.status, 2);
    EXPECT_STREQ(process.errors, "tcasim: out/points: not a directory\n");
    char *data = process_file_read(&process, "out/data.csv");
    EXPECT_STREQ(data, "earlier\n");
    free(data);
    process_fini(&process);
}

TEST(SweepRun, GoesOnWhereItWasStopped)
{
    struct process process;
    start(&process, HEAD "sweep: {runs.0.iterations: [2, 20000000]}\n" RUNS);
    process_run_stopped(&process, "run s.yaml --jobs 1", SIGINT, "results/s/points/*.csv");
    EXPECT_EQ(process.status, 128 + SIGINT);
    EXPECT_CONTAINS(process.errors, "tcasim: interrupted; finished points are kept, and the same command continues "
                                    "from there\n");
    char *data = process_file_read(&process, "results/s/data.csv");
    EXPECT_NULL(data);
    free(data);
    process_run(&process, "run s.yaml --set sweep={runs.0.iterations:_[2,_3]}");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "2 points, 1 of them kept");
    process_fini(&process);
}

TEST(SweepRun, RefusesWhatItCannotDo)
{
    struct process process;
    start(&process, HEAD SWEEP RUNS);
    process_run(&process, "run s.yaml --trace t.csv");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "a sweep cannot be traced");
    process_run(&process, "run s.yaml --jobs 0");
    EXPECT_CONTAINS(process.errors, "--jobs 0: expected a number from 1 to 1024");
    process_run(&process, "run s.yaml --jobs 4294967297");
    EXPECT_CONTAINS(process.errors, "--jobs 4294967297: expected a number from 1 to 1024");
    process_run(&process, "run s.yaml --jobs x");
    EXPECT_CONTAINS(process.errors, "--jobs x: expected a number");
    EXPECT_EQ(process_entries(&process), 1);
    process_fini(&process);
}
