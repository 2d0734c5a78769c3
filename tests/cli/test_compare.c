// `tcasim compare` as a user calls it.
#include <stdio.h>
#include <stdlib.h>

#include "process.h"
#include "tests/shim/test.h"

#define SCENARIO                                                                                                       \
    "title: two nodes\n"                                                                                               \
    "nodes:\n"                                                                                                         \
    "  - {name: node, count: 2, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}}\n"                          \
    "cables:\n"                                                                                                        \
    "  - {from: node0.E, to: node1.W, preset: pearl-gen2-x8}\n"                                                        \
    "runs:\n"                                                                                                          \
    "  - {series: pio, workload: pingpong, method: pio, node: node0, peer: node1, bytes: [8 B, 64 B]}\n"

static void start(struct process *process)
{
    process_init(process);
    process_file_write(process, "f.yaml", SCENARIO);
    process_run(process, "run f.yaml --quiet --out a");
    process_run(process, "run f.yaml --quiet --out b --set nodes.*.host.poll=70_ns");
}

TEST(CompareCommand, ARunEqualsItself)
{
    struct process process;
    start(&process);
    process_run(&process, "compare a a");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    EXPECT_CONTAINS(process.output, "The scenarios are the same.");
    EXPECT_CONTAINS(process.output, "numbers, all are equal");
    process_fini(&process);
}

TEST(CompareCommand, NamesKeysCurvesAndNumbersThatDiffer)
{
    struct process process;
    start(&process);
    process_run(&process, "compare a b --out c");
    EXPECT_EQ(process.status, 1);
    EXPECT_CONTAINS(process.output, "nodes.0.host.poll  ");
    EXPECT_CONTAINS(process.output, "Numbers in rows that differ: ");
    EXPECT_CONTAINS(process.output, "Results: c\n");
    static const char *const files[] = {"c/keys.csv", "c/rows.csv", "c/counters.csv", "c/plot.gp", "c/plot.svg"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *text = process_file_read(&process, files[i]);
        EXPECT_NOT_NULL(text);
        free(text);
    }
    process_fini(&process);
}

TEST(CompareCommand, AllowsWhatWithinAllows)
{
    struct process process;
    start(&process);
    process_run(&process, "compare a b --within 1000_%");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "none differs by more than was allowed");
    process_run(&process, "compare a b --within 1000");
    EXPECT_EQ(process.status, 0);
    process_run(&process, "compare a b --within 2x");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "--within takes a percentage such as '3 %', not '2x'");
    process_fini(&process);
}

TEST(CompareCommand, RefusesWhatIsNoDirectoryOfResults)
{
    struct process process;
    start(&process);
    process_run(&process, "compare a");
    EXPECT_EQ(process.status, 2);
    process_run(&process, "compare a nowhere");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "nowhere has no data.csv");
    process_run(&process, "compare a f.yaml");
    EXPECT_EQ(process.status, 2);
    process_run(&process, "compare a b --out a");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "--out a: this is one of the directories that are compared");
    process_file_write(&process, "a/data.csv", "\"\n\n\n");
    process_run(&process, "compare a b");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "a/data.csv:1: a quote that is not closed");
    process_fini(&process);
}
