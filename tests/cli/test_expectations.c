// Expectations about programs and counters at the command line: run, exec, check; baseline files; JUnit XML.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "tests/shim/test.h"

#define HARDWARE                                                                                                       \
    "title: two nodes\n"                                                                                               \
    "nodes:\n"                                                                                                         \
    "  - {name: node, count: 2, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}}\n"                          \
    "cables:\n"                                                                                                        \
    "  - {from: node0.E, to: node1.W, preset: pearl-gen2-x8}\n"
#define PROGRAMS                                                                                                       \
    "programs:\n"                                                                                                      \
    "  - {name: server, node: node0, command: \"sh -c 'echo ready; echo took ${time} us'\"}\n"                         \
    "  - {node: node1, command: \"echo it took 9 us\"}\n"
#define TIME "parameters: [{name: time, value: \"1.5\"}]\n"

static void start(struct process *process, const char *expects)
{
    char text[4096];
    process_init(process);
    snprintf(text, sizeof text, HARDWARE TIME PROGRAMS "expect:\n%s", expects);
    process_file_write(process, "f.yaml", text);
}

static void ends_with(const char *expects, const char *words, int status, const char *errors)
{
    struct process process;
    start(&process, expects);
    process_file_write(&process, "said.txt", "it took 9 us\n");
    process_run(&process, words);
    EXPECT_EQ(process.status, status);
    EXPECT_STREQ(process.errors, errors);
    process_fini(&process);
}

#define HOLD                                                                                                           \
    "  - {program: server, match: 'took ([0-9.]+) us', max: 2}\n"                                                      \
    "  - {program: echo, equals: said.txt}\n"                                                                          \
    "  - {counter: node0.root_complex.cpu_refusals, max: 0}\n"
#define FAIL_BOUND "  - {program: server, match: 'took ([0-9.]+) us', max: 1}\n"

TEST(Expectations, ExecJudgesThem)
{
    ends_with(FAIL_BOUND, "exec f.yaml", 1,
              "expect 'server: took ([0-9.]+) us' does not hold: 1.5 is not at most 1, in line 2: took 1.5 us\n");
    ends_with("  - {program: echo, equals: said.txt}\n", "exec f.yaml", 0, "tcasim: 1 expectation holds\n");
    ends_with("  - {program: server, equals: said.txt}\n", "exec f.yaml", 1,
              "expect 'server: said.txt' does not hold: what 'server' printed is not said.txt\n"
              "  --- said.txt\n  +++ what server printed\n  @@ -1,1 +1,2 @@\n  -it took 9 us\n  +ready\n"
              "  +took 1.5 us\n");
}

TEST(Expectations, RunJudgesThemToo)
{
    ends_with(FAIL_BOUND, "run f.yaml --out out", 1,
              "expect 'server: took ([0-9.]+) us' does not hold: 1.5 is not at most 1, in line 2: took 1.5 us\n");
    ends_with("  - {program: echo, equals: said.txt}\n", "run f.yaml --out out", 0, "");
    ends_with("  - {program: echo, match: 'took ([0-9]+)', equals: 9}\n", "run f.yaml --out out --quiet", 0, "");
}

TEST(Expectations, OutputIsStillShownInItsOrder)
{
    struct process process;
    start(&process, "  - {program: server, match: 'took ([0-9.]+) us', max: 2}\n");
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.output, "ready\ntook 1.5 us\nit took 9 us\n");
    process_fini(&process);
}

// Also with a program without expectations, which writes to standard output directly.
TEST(Expectations, OutputIsShownInTheOrderOfSimulatedTime)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml",
                       HARDWARE
                       "programs:\n"
                       "  - {name: a, node: node0, command: \"sh -c 'echo 1; sleep 2; echo 4; sleep 2; echo 7'\"}\n"
                       "  - {name: b, node: node1, command: \"sh -c 'echo 2; sleep 3; echo 6'\"}\n"
                       "  - {name: c, node: node1, command: \"sh -c 'echo 3; sleep 2.5; echo 5'\"}\n"
                       "expect:\n"
                       "  - {program: a, match: '([0-9]+)', max: 7}\n"
                       "  - {program: b, match: '([0-9]+)', max: 6}\n");
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.output, "1\n2\n3\n4\n5\n6\n7\n");
    process_fini(&process);
}

TEST(Expectations, AWorseStatusWins)
{
    struct process process;
    start(&process, FAIL_BOUND);
    process_run(&process, "exec f.yaml --on node0 sh_-c_'exit_7'");
    EXPECT_EQ(process.status, 7);
    EXPECT_CONTAINS(process.errors, "does not hold");
    process_fini(&process);
}

TEST(Expectations, ThoseAboutSeriesOfRunsAreMeasured)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml",
                       HARDWARE TIME PROGRAMS
                       "runs:\n"
                       "  - {series: s, workload: pingpong, method: pio, node: node0, peer: node1, bytes: 8 B}\n"
                       "expect:\n"
                       "  - {name: slow, value: {series: s, column: latency_us}, min: 100}\n");
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 1);
    EXPECT_CONTAINS(process.errors, "expect 'slow' does not hold: ");
    process_fini(&process);
}

TEST(Expectations, ThoseAboutResultsOfProgramsAreJudgedByExec)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml",
                       HARDWARE
                       "programs:\n"
                       "  - {node: node0, command: echo 8 1.5, results: {series: s, columns: bytes latency_us}}\n"
                       "expect:\n"
                       "  - {name: fast, value: {series: s, column: latency_us}, max: 1}\n");
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 1);
    EXPECT_STREQ(process.output, "8 1.5\n");
    EXPECT_STREQ(process.errors, "expect 'fast' does not hold: 1.5 is not at most 1\n");
    process_fini(&process);
}

TEST(Expectations, ASeriesThatOnlyDividesIsMeasured)
{
    struct process process;
    process_init(&process);
    process_file_write(
        &process, "f.yaml",
        HARDWARE "programs:\n"
                 "  - {node: node0, command: echo 8 1000, results: {series: program, columns: bytes latency_us}}\n"
                 "runs:\n"
                 "  - {series: run, workload: pingpong, method: pio, node: node0, peer: node1, bytes: 8 B}\n"
                 "expect:\n"
                 "  - {name: slower, value: {series: program, column: latency_us},\n"
                 "     over: {series: run, column: latency_us}, min: 10}\n");
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "tcasim: 1 expectation holds\n");
    process_fini(&process);
}

TEST(Expectations, HardwareIsLentWithoutThoseOfItsSeries)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "f.yaml",
                       HARDWARE
                       "runs:\n"
                       "  - {series: s, workload: pingpong, method: pio, node: node0, peer: node1, bytes: 8 B}\n"
                       "expect:\n"
                       "  - {name: slow, value: {series: s, column: latency_us}, min: 100}\n");
    process_run(&process, "exec f.yaml --on node0 true");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    process_fini(&process);
}

TEST(Expectations, OfASweepAreForRun)
{
    struct process process;
    process_init(&process);
    process_file_write(
        &process, "f.yaml",
        HARDWARE TIME
        "programs:\n"
        "  - {node: node0, command: \"echo 8 ${time}\", results: {series: s, columns: bytes latency_us}}\n"
        "sweep: {parameters.time.value: [\"1\", \"2\"]}\n"
        "expect:\n"
        "  - {name: fast, value: {series: s, column: latency_us}, max: 2}\n");
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 2);
    EXPECT_STREQ(process.errors,
                 "f.yaml:11:5: expect: 'fast' is about the points of sweep:, which `tcasim run` measures\n");
    process_run(&process, "run f.yaml --out out --junit j.xml");
    EXPECT_EQ(process.status, 0);
    char *text = process_file_read(&process, "j.xml");
    EXPECT_CONTAINS(text, "<testcase classname=\"f\" name=\"point 2\" file=\"f.yaml\" time=\"0\"/>");
    free(text);
    process_fini(&process);
}

TEST(Expectations, WithoutSimulatedTimeNothingIsJudgedAndThatIsSaid)
{
    ends_with(
        FAIL_BOUND, "exec f.yaml --functional", 0,
        "tcasim: f.yaml: with --functional its expectations are not judged, because there is no simulated time\n");
    ends_with(FAIL_BOUND, "exec f.yaml --functional --junit j.xml", 2,
              "tcasim: --junit cannot be combined with --functional, which judges no expectations\n");
    ends_with(FAIL_BOUND, "exec f.yaml --functional --update-baseline", 2,
              "tcasim: --update-baseline cannot be combined with --functional, which judges no expectations\n");
}

TEST(Expectations, WhatCannotBeIsToldBeforeTheRun)
{
    ends_with("  - {counter: node0.root_complex.cpu_refusal, max: 0}\n", "check f.yaml", 2,
              "f.yaml:11:5: counter: no component has 'node0.root_complex.cpu_refusal' (did you mean "
              "'node0.root_complex.cpu_refusals'?)\n");
    ends_with("  - {counter: node7.hca.retries, max: 0}\n", "exec f.yaml", 2,
              "f.yaml:11:5: counter: no component has 'node7.hca.retries'; counters.csv of a run lists them\n");
    ends_with("  - {counter: node0.root_complex.cpu_refusals, equals: 2 * node0.hca.retry}\n", "check f.yaml", 2,
              "f.yaml:11:5: counter: no component has 'node0.hca.retry'; counters.csv of a run lists them\n");
    ends_with("  - {program: echo, equals: no.txt}\n", "run f.yaml", 2,
              "f.yaml:11:5: equals: no.txt cannot be read: No such file or directory\n");
    ends_with("  - {program: servr, equals: said.txt}\n", "exec f.yaml", 2,
              "f.yaml:11:15: program: no program is called 'servr' (did you mean 'server'?)\n");
}

TEST(Expectations, ACounterOnlyProgramsMakeFailsAtTheRunWithNamesThatAreNear)
{
    struct process process;
    start(&process, "  - {counter: node0.core7.poll_turns, max: 0}\n");
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 1);
    EXPECT_CONTAINS(process.errors, "does not hold: no component has a counter 'node0.core7.poll_turns'\n"
                                    "  Similar names:\n    node0.core.poll_turns\n");
    process_fini(&process);
}

#define OF "  - {name: time, program: server, match: 'took ([0-9.]+) us', within: 5 %, of: base.yaml}\n"

TEST(Baselines, AreRecordedAndHeldAgainst)
{
    struct process process;
    start(&process, OF);
    process_run(&process, "exec f.yaml");
    EXPECT_EQ(process.status, 1);
    EXPECT_STREQ(process.errors, "expect 'time' does not hold: there is no baseline file base.yaml; the same command "
                                 "with --update-baseline makes it\n");
    process_run(&process, "exec f.yaml --update-baseline");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "tcasim: 1 expectation holds\nbase.yaml: 'time' of f: [1.5], new\n");
    process_run(&process, "exec f.yaml --set parameters.time.value=1.56");
    EXPECT_EQ(process.status, 0);
    process_run(&process, "run f.yaml --out out --set parameters.time.value=1.6");
    EXPECT_EQ(process.status, 1);
    EXPECT_CONTAINS(process.errors, "1.6 is not within 5 % of 1.5 in base.yaml: +6.67 %, in line 2: took 1.6 us");
    process_run(&process, "run f.yaml --out out --set parameters.time.value=1.6 --update-baseline");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "base.yaml: 'time' of f: [1.5] -> [1.6] (+6.67 %)\n");
    process_fini(&process);
}

TEST(Baselines, AreNotRecordedOfARunThatFailed)
{
    struct process process;
    start(&process, OF FAIL_BOUND);
    process_run(&process, "exec f.yaml --update-baseline");
    EXPECT_EQ(process.status, 1);
    EXPECT_CONTAINS(process.errors, "f.yaml: no baseline file is written, because something else in the run failed");
    EXPECT_NULL(process_file_read(&process, "base.yaml"));
    process_run(&process, "exec f.yaml --update-baseline --on node1 false");
    EXPECT_NULL(process_file_read(&process, "base.yaml"));
    process_fini(&process);
}

TEST(Baselines, NothingToRecordIsAMistake)
{
    ends_with("  - {program: echo, equals: said.txt}\n", "exec f.yaml --update-baseline", 2,
              "tcasim: 1 expectation holds\n"
              "tcasim: f.yaml: --update-baseline: no expectation has of: with a baseline file\n");
}

// Parallel runs write to one file.
TEST(Baselines, OfSeveralScenariosShareAFile)
{
    struct process process;
    start(&process, OF);
    char *text = process_file_read(&process, "f.yaml");
    process_file_write(&process, "g.yaml", text);
    process_file_write(&process, "h.yaml", text);
    free(text);
    process_run(&process, "run g.yaml h.yaml f.yaml --out out --jobs 3 --update-baseline --quiet --junit j.xml");
    EXPECT_EQ(process.status, 0);
    text = process_file_read(&process, "base.yaml");
    ASSERT_NOT_NULL(text);
    EXPECT_CONTAINS(text, "- scenario: \"f\"\n  expect: \"time\"\n  numbers: [1.5]\n- scenario: \"g\"");
    EXPECT_CONTAINS(text, "- scenario: \"h\"\n  expect: \"time\"\n  numbers: [1.5]\n");
    free(text);
    text = process_file_read(&process, "j.xml");
    ASSERT_NOT_NULL(text);
    const char *g = strstr(text, "<testsuite name=\"g\""), *h = strstr(text, "<testsuite name=\"h\"");
    const char *f = strstr(text, "<testsuite name=\"f\"");
    EXPECT_NOT_NULL(g);
    EXPECT_GT(h, g);
    EXPECT_GT(f, h);
    free(text);
    process_fini(&process);
}

TEST(JunitOption, HasACaseForEachStatusAndExpectation)
{
    struct process process;
    start(&process, HOLD FAIL_BOUND);
    process_file_write(&process, "said.txt", "it took 9 us\n");
    process_run(&process, "exec f.yaml --junit j.xml --on node1 false");
    EXPECT_EQ(process.status, 1);
    char *text = process_file_read(&process, "j.xml");
    ASSERT_NOT_NULL(text);
    EXPECT_CONTAINS(text, "<testsuite name=\"f\" tests=\"7\" failures=\"2\" errors=\"0\" skipped=\"0\" time=\"0\">");
    EXPECT_CONTAINS(text, "name=\"node1: false ends with 0\" file=\"f.yaml\" time=\"0\">\n      <failure message=\"it "
                          "ended with 1\" type=\"expectation\">");
    EXPECT_CONTAINS(text, "name=\"echo: said.txt\" file=\"f.yaml\" line=\"12\" time=\"0\"/>");
    EXPECT_CONTAINS(text, "<failure message=\"1.5 is not at most 1, in line 2: took 1.5 us\"");
    free(text);
    process_fini(&process);
}

TEST(JunitOption, IsTheSameInEveryRun)
{
    struct process process;
    start(&process, HOLD FAIL_BOUND);
    process_file_write(&process, "said.txt", "it took 9 us\n");
    process_run(&process, "exec f.yaml --junit a.xml");
    process_run(&process, "exec f.yaml --junit b.xml");
    char *a = process_file_read(&process, "a.xml"), *b = process_file_read(&process, "b.xml");
    ASSERT_NOT_NULL(a);
    ASSERT_NOT_NULL(b);
    EXPECT_STREQ(a, b);
    free(a);
    free(b);
    process_fini(&process);
}

TEST(JunitOption, OfARunThatGotStuckSkipsItsExpectations)
{
    struct process process;
    start(&process, FAIL_BOUND);
    process_run(&process,
                "exec f.yaml --junit j.xml --wall-limit 1 --on node1 cat_/dev/null --on node0 sh_-c_'kill_-STOP_$$'");
    EXPECT_EQ(process.status, 3);
    char *text = process_file_read(&process, "j.xml");
    ASSERT_NOT_NULL(text);
    EXPECT_CONTAINS(text, "name=\"simulation\" file=\"f.yaml\" time=\"0\">\n      <error message=\"the simulation did "
                          "not complete\" type=\"simulation\">");
    EXPECT_CONTAINS(text, "name=\"server: took ([0-9.]+) us\" file=\"f.yaml\" line=\"11\" time=\"0\">\n      <skipped "
                          "message=\"the simulation did not complete\"/>");
    free(text);
    process_fini(&process);
}

// One program crashed, and the other waits for it.
TEST(JunitOption, OfARunThatGotStuckSaysWhoCrashed)
{
    struct process process;
    start(&process, FAIL_BOUND);
    process_run(&process, "exec f.yaml --junit j.xml --wall-limit 1 --on node1 sh_-c_'kill_-SEGV_$$' --on node0 "
                          "sh_-c_'kill_-STOP_$$'");
    EXPECT_EQ(process.status, 3);
    char *text = process_file_read(&process, "j.xml");
    ASSERT_NOT_NULL(text);
    EXPECT_CONTAINS(text, "was killed by signal 11 (SIGSEGV)");
    EXPECT_CONTAINS(text, "<failure message=\"it ended with 139\"");
    free(text);
    process_fini(&process);
}

TEST(JunitOption, DoesNotOverwriteTheScenario)
{
    struct process process;
    start(&process, HOLD);
    process_file_write(&process, "said.txt", "it took 9 us\n");
    process_run(&process, "exec f.yaml --junit f.yaml");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "cannot write f.yaml: it is the scenario itself");
    process_run(&process, "run f.yaml --junit no/j.xml");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "cannot write no/j.xml: its folder does not exist");
    process_fini(&process);
}
