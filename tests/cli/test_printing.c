// Programs as the source of results: `tcasim run` of a scenario whose programs print them.
#include <stdio.h>
#include <stdlib.h>

#include "process.h"
#include "tests/shim/test.h"

#define HEAD                                                                                                           \
    "# Question: does what a program prints become a result?\n"                                                        \
    "title: What a program prints\n"                                                                                   \
    "nodes: [{name: node, count: 2, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}}]\n"                     \
    "cables: [{from: node0.E, to: node1.W, preset: pearl-gen2-x8}]\n"
#define PARAMETERS "parameters: [{name: time, value: 1.5}]\n"
#define PROGRAM                                                                                                        \
    "programs:\n"                                                                                                      \
    "  - {node: node0, command: sh -c 'echo beside', status: 0}\n"                                                     \
    "  - node: node1\n"                                                                                                \
    "    command: sh -c 'echo \"# Size  Latency (us)\"; echo 8 ${time}; echo 16 ${TWO}'\n"                             \
    "    env: TWO=2.5\n"                                                                                               \
    "    results: {series: printed, format: osu}\n"

static void start(struct process *process, const char *text)
{
    process_init(process);
    process_file_write(process, "s.yaml", text);
}

TEST(Printing, RowsComparisonAndTextAreKept)
{
    struct process process;
    start(&process, HEAD PARAMETERS PROGRAM
          "expect: [{name: right, value: {series: printed, column: latency_us, take: max}, min: 2.5, max: 2.5}]\n"
          "compare: [{id: S05, value: {series: printed, column: latency_us, take: min}}]\n"
          "plot: [{title: Latency, y: latency_us}]\n");
    process_run(&process, "run s.yaml --out out");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    EXPECT_CONTAINS(process.output, "1 expectation holds");
    char *data = process_file_read(&process, "out/data.csv");
    EXPECT_CONTAINS(data, "\nprinted,8,1.500000,0.005333,1,1,1.500000,1.500000\nprinted,16,2.500000,");
    char *text = process_file_read(&process, "out/programs.txt");
    EXPECT_CONTAINS(text, "==> node0: sh -c echo beside <==\nbeside\n\n==> node1: sh -c echo \"# Size");
    EXPECT_CONTAINS(text, "\n8 1.5\n16 2.5\n");
    char *compare = process_file_read(&process, "out/compare.csv");
    EXPECT_CONTAINS(compare, "S05,");
    free(compare);
    free(text);
    free(data);
    process_fini(&process);
}

TEST(Printing, ASweepRunsTheProgramsForEachValueAndKeepsNone)
{
    struct process process;
    start(&process, HEAD PARAMETERS PROGRAM "sweep: {parameters.time.value: [1, 3]}\n");
    for (unsigned i = 0; i < 2; i++) {
        process_run(&process, "run s.yaml --out out");
        EXPECT_EQ(process.status, 0);
        EXPECT_CONTAINS(process.output, "Sweep: 2 points, 0 of them kept");
        char *data = process_file_read(&process, "out/data.csv");
        EXPECT_CONTAINS(data, "\n\"printed, 3\",8,3.000000,");
        free(data);
    }
    process_fini(&process);
}

static void fails(const char *program, int status, const char *error)
{
    struct process process;
    char text[2048];
    snprintf(text, sizeof text, HEAD PARAMETERS "programs: [{node: node0, %s}]\n", program);
    start(&process, text);
    process_run(&process, "run s.yaml --out out");
    EXPECT_EQ(process.status, status);
    EXPECT_CONTAINS(process.errors, error);
    process_fini(&process);
}

TEST(Printing, WhatGoesWrongIsToldInALine)
{
    fails("command: no-such-program, results: {series: s, format: csv}", 2,
          "no-such-program is not installed, or needs a program that is not installed\n");
    fails("command: sh -c no-such-program, results: {series: s, format: csv}", 2,
          "sh is not installed, or needs a program that is not installed\n");
    fails("command: echo hello, results: {series: s, format: csv}", 2,
          "s.yaml: series 's': echo: it printed no results\nhello\n");
    fails("command: 'false', results: {series: s, format: csv}", 1, "s.yaml: a program ended with 1\n");
    fails("command: 'echo ${nothing}', results: {series: s, format: csv}", 2,
          "${nothing}: neither a parameter or key of the scenario nor a variable of the environment has this name\n");
    fails("command: 'echo ${nodes.0.hots.memory}', results: {series: s, format: csv}", 2,
          "${nodes.0.hots.memory}: neither a parameter");
    fails("command: echo hello", 2,
          "it has no runs, and no program with results or expectations; `tcasim exec` runs programs on it");
}

TEST(Printing, KeysOfTheScenarioStandInCommandsToo)
{
    struct process process;
    start(&process, HEAD "programs: [{node: node0, command: \"echo 8 1 ${nodes.0.host.memory}\", results: {series: s,\n"
                         "  columns: bytes latency_us - -}}]\n");
    process_run(&process, "run s.yaml --out out");
    EXPECT_EQ(process.status, 0);
    char *text = process_file_read(&process, "out/programs.txt");
    EXPECT_CONTAINS(text, "\n8 1 8 GiB\n");
    free(text);
    process_fini(&process);
}
