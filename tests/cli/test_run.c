#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "tests/shim/test.h"

// Two nodes and a series of three sizes; cheap enough to be run many times.
static const char head[] = "# Question: does the program do what it says?\n"
                           "title: A small ping-pong\n"
                           "nodes:\n"
                           "  - {name: node0, preset: ha-pacs-tca-2013}\n"
                           "  - {name: node1, preset: ha-pacs-tca-2013}\n"
                           "cables:\n"
                           "  - {from: node0.E, to: node1.W, preset: pearl-gen2-x8}\n"
                           "runs:\n"
                           "  - {series: dma, workload: pingpong, method: register, node: node0, peer: node1,\n"
                           "     bytes: [8 B, 64 B, 256 B], iterations: 2, warmup: 1}\n"
                           "compare:\n"
                           "  - {id: H09, value: {series: dma, column: latency_us, take: min}}\n"
                           "plot:\n"
                           "  - {title: Latency, x: bytes, y: latency_us}\n"
                           "expect:\n";

static void scenario_write(const struct process *process, const char *name, const char *expect)
{
    char text[2048];
    snprintf(text, sizeof text, "%s%s", head, expect);
    process_file_write(process, name, text);
}

#define HOLDS "  - {name: sane, value: {series: dma, column: latency_us, take: min}, min: 0.1, max: 100}\n"
#define FAILS "  - {name: sane, value: {series: dma, column: latency_us, take: min}, max: 0.001}\n"

static void start(struct process *process)
{
    process_init(process);
    scenario_write(process, "good.yaml", HOLDS);
}

static void exists(const struct process *process, const char *name)
{
    char *text = process_file_read(process, name);
    if (text == NULL || text[0] == '\0') {
        FAIL("%s is missing or empty", name);
    }
    free(text);
}

static void same(const struct process *process, const char *one, const char *two)
{
    char *a = process_file_read(process, one);
    char *b = process_file_read(process, two);
    if (a == NULL || b == NULL || strcmp(a, b) != 0) {
        FAIL("%s and %s differ", one, two);
    }
    free(a);
    free(b);
}

TEST(RunCommand, WritesAndPrintsTheResults)
{
    struct process process;
    start(&process);
    process_run(&process, "run good.yaml");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    EXPECT_CONTAINS(process.output, "Latency");
    EXPECT_CONTAINS(process.output, "H09");
    EXPECT_CONTAINS(process.output, "ok: within 5 %");
    EXPECT_CONTAINS(process.output, "Results: results/good\nPage: results/good/report.html\n1 expectation holds\n");
    exists(&process, "results/good/data.csv");
    exists(&process, "results/good/counters.csv");
    exists(&process, "results/good/compare.csv");
    exists(&process, "results/good/plot.gp");
    exists(&process, "results/good/plot.svg");
    exists(&process, "results/good/resolved.yaml");
    exists(&process, "results/good/manifest.yaml");
    exists(&process, "results/good/report.html");
    process_fini(&process);
}

TEST(RunCommand, QuietPrintsNothing)
{
    struct process process;
    start(&process);
    process_run(&process, "run good.yaml --quiet --out out");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.output, "");
    EXPECT_STREQ(process.errors, "");
    exists(&process, "out/data.csv");
    process_fini(&process);
}

TEST(RunCommand, OutputWithoutATerminalHasNoControlCharacters)
{
    struct process process;
    start(&process);
    process_run(&process, "run good.yaml");
    EXPECT_NULL(strpbrk(process.output, "\r\033"));
    EXPECT_NULL(strpbrk(process.errors, "\r\033"));
    process_fini(&process);
}

TEST(RunCommand, AnExpectationThatDoesNotHoldEndsWithOneAndKeepsTheResults)
{
    struct process process;
    process_init(&process);
    scenario_write(&process, "fails.yaml", FAILS);
    process_run(&process, "run fails.yaml");
    EXPECT_EQ(process.status, 1);
    EXPECT_CONTAINS(process.errors, "expect 'sane' does not hold");
    exists(&process, "results/fails/data.csv");
    process_fini(&process);
}

TEST(RunCommand, BadInputEndsWithTwoAndWritesNothing)
{
    struct process process;
    start(&process);
    process_file_write(&process, "bad.yaml", "title: t\nnodse: 3\nruns: 4\n");
    process_run(&process, "run good.yaml bad.yaml missing.yaml .");
    EXPECT_EQ(process.status, 2);
    EXPECT_STREQ(process.output, "");
    EXPECT_CONTAINS(process.errors, "bad.yaml:2:1: ");
    EXPECT_CONTAINS(process.errors, "bad.yaml:3:");
    EXPECT_CONTAINS(process.errors, "missing.yaml: ");
    EXPECT_EQ(process_entries(&process), 2);
    process_fini(&process);
}

TEST(RunCommand, AnUnknownIdOrColumnIsBadInput)
{
    struct process process;
    process_init(&process);
    scenario_write(&process, "bad.yaml", "  - {name: x, value: {series: dma, column: speed}, min: 1}\n");
    process_run(&process, "run bad.yaml --set compare.0.id=H99");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "speed");
    EXPECT_EQ(process_entries(&process), 1);
    process_fini(&process);
}

TEST(RunCommand, ASimulationThatReachesItsTimeLimitEndsWithThreeAndNamesWhoWaits)
{
    struct process process;
    process_init(&process);
    scenario_write(&process, "short.yaml", HOLDS "time_limit: 1 us\n");
    process_run(&process, "run short.yaml");
    EXPECT_EQ(process.status, 3);
    EXPECT_CONTAINS(process.errors, "reached the time limit");
    EXPECT_CONTAINS(process.errors, " waits for ");
    EXPECT_EQ(process_entries(&process), 1);
    process_fini(&process);
}

TEST(RunCommand, TwoRunsGiveTheSameBytes)
{
    static const char *const names[] = {"data.csv", "counters.csv",  "compare.csv",  "plot.gp",
                                        "plot.svg", "resolved.yaml", "manifest.yaml"};
    struct process process;
    start(&process);
    process_run(&process, "run good.yaml --out one");
    process_run(&process, "run good.yaml --out two");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char one[64];
        char two[64];
        snprintf(one, sizeof one, "one/%s", names[i]);
        snprintf(two, sizeof two, "two/%s", names[i]);
        same(&process, one, two);
    }
    process_fini(&process);
}

TEST(RunCommand, TheResolvedScenarioGivesTheSameData)
{
    struct process process;
    start(&process);
    process_run(&process, "run good.yaml --out one --quiet");
    process_run(&process, "run one/resolved.yaml --out two");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    same(&process, "one/data.csv", "two/data.csv");
    same(&process, "one/counters.csv", "two/counters.csv");
    same(&process, "one/resolved.yaml", "two/resolved.yaml");
    process_fini(&process);
}

TEST(RunCommand, SetOverridesAKey)
{
    struct process process;
    start(&process);
    process_run(&process, "run good.yaml --set runs.0.bytes=[16_B] --out out");
    EXPECT_EQ(process.status, 0);
    char *data = process_file_read(&process, "out/data.csv");
    EXPECT_CONTAINS(data, "\ndma,16,");
    EXPECT_LACKS(data, "\ndma,8,");
    free(data);
    process_run(&process, "run good.yaml --set runs.0.byts=[16_B] --out none");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "byts");
    process_fini(&process);
}

TEST(RunCommand, SeveralFilesGetADirectoryEachAndTheWorstStatusWins)
{
    struct process process;
    start(&process);
    scenario_write(&process, "fails.yaml", FAILS);
    process_run(&process, "run fails.yaml good.yaml --out out");
    EXPECT_EQ(process.status, 1);
    exists(&process, "out/good/data.csv");
    exists(&process, "out/fails/data.csv");
    process_fini(&process);
}

TEST(RunCommand, TwoFilesOfOneNameAreRefused)
{
    struct process process;
    start(&process);
    process_run(&process, "run good.yaml ./good.yaml");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "would both write to results/good");
    EXPECT_EQ(process_entries(&process), 1);
    process_fini(&process);
}

TEST(RunCommand, AFileInPlaceOfTheDirectoryIsRefusedBeforeTheRun)
{
    struct process process;
    start(&process);
    process_run(&process, "run good.yaml --out good.yaml");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "is not a directory");
    process_run(&process, "run good.yaml --out good.yaml/deeper");
    EXPECT_EQ(process.status, 2);
    process_fini(&process);
}

TEST(RunCommand, ADirectoryThatMayNotBeWrittenIsRefusedBeforeTheRun)
{
    struct process process;
    start(&process);
    process_run(&process, "run good.yaml --out /proc/tcasim");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "/proc/tcasim");
    EXPECT_STREQ(process.output, "");
    process_fini(&process);
}

TEST(RunCommand, TheManifestNamesWhatWasSet)
{
    struct process process;
    start(&process);
    process_run(&process, "run good.yaml --quiet --set nodes.node1.host.poll=30_ns --out out");
    EXPECT_EQ(process.status, 0);
    char *manifest = process_file_read(&process, "out/manifest.yaml");
    EXPECT_CONTAINS(manifest, "set:\n  - \"nodes.node1.host.poll=30 ns\"\n");
    free(manifest);
    process_fini(&process);
}

TEST(CheckCommand, ReportsColumnsAmongTheOtherMistakes)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "bad.yaml", "title: t\nruns:\n  - {series: s}\nplot:\n  - {title: p, y: speed}\n");
    process_run(&process, "check bad.yaml");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "bad.yaml:3:5: missing key 'workload' in run\n");
    EXPECT_CONTAINS(process.errors,
                    "bad.yaml:5:5: 'p': 'speed' is not a numeric column of data.csv (there are: bytes,");
    process_fini(&process);
}

TEST(CheckCommand, SaysThatThereAreNoMistakes)
{
    struct process process;
    start(&process);
    process_run(&process, "check good.yaml");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.output, "1 scenario, no mistakes\n");
    process_fini(&process);
}

TEST(CheckCommand, TakesAKeyByItsOldNameWithAWarning)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "old.yaml",
                       "title: t\n"
                       "nodes: [{name: n, count: 2, preset: ha-pacs-tca-2013}]\n"
                       "cables: [{from: n0.E, to: n1.W, preset: pearl-gen2-x8}]\n"
                       "runs:\n"
                       "  - {series: s, program: pingpong, method: register, node: n0, peer: n1, bytes: 8 B}\n");
    process_run(&process, "check old.yaml --set runs.*.program=tca-pingpong --set runs.*.method=chain-board");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "old.yaml:5:17: warning: 'program' is called 'workload' now\n"
                                 "--set runs.*.program=tca-pingpong: warning: 'program' is called 'workload' now\n");
    process_run(&process, "run old.yaml --quiet --out out --set runs.*.iterations=1");
    EXPECT_EQ(process.status, 0);
    char *resolved = process_file_read(&process, "out/resolved.yaml");
    EXPECT_CONTAINS(resolved, "workload: pingpong");
    free(resolved);
    process_fini(&process);
}

TEST(CheckCommand, SaysOkOrEveryMistake)
{
    struct process process;
    start(&process);
    process_file_write(&process, "bad.yaml", "title: t\nnodse: 3\nruns: 4\n");
    process_run(&process, "check good.yaml bad.yaml");
    EXPECT_EQ(process.status, 2);
    EXPECT_STREQ(process.output, "2 scenarios, 1 with mistakes\n");
    EXPECT_CONTAINS(process.errors, "bad.yaml:2:1: ");
    EXPECT_EQ(process_entries(&process), 2);
    process_fini(&process);
}
