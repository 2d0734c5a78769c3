// `tcasim exec --adversarial` and `--seeds` as a user calls them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "sim/cli/reproduction.h"
#include "tests/shim/test.h"

#define HARDWARE                                                                                                       \
    "title: two nodes\n"                                                                                               \
    "nodes:\n"                                                                                                         \
    "  - {name: node, count: 2, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}}\n"                          \
    "cables:\n"                                                                                                        \
    "  - {from: node0.E, to: node1.W, preset: pearl-gen2-x8}\n"

static void start(struct process *process)
{
    process_init(process);
    process_file_write(process, "f.yaml", HARDWARE);
}

static void expect_refused(const char *words, const char *text)
{
    struct process process;
    start(&process);
    process_run(&process, words);
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, text);
    process_fini(&process);
}

TEST(SeedsOption, NamesWhatIsWrongWithIt)
{
    expect_refused("exec f.yaml --on node0 true --seeds 3", "--seeds 3: expected two numbers, as in 1..200");
    expect_refused("exec f.yaml --on node0 true --seeds 3..2", "--seeds 3..2: expected two numbers");
    expect_refused("exec f.yaml --on node0 true --seeds 1..9000000", "at most 1000000");
    expect_refused("exec f.yaml --on node0 true --seeds 1..2 --jobs 0", "--jobs 0: expected a number from 1");
    expect_refused("exec f.yaml --on node0 true --jobs 2", "--jobs needs --seeds A..B");
    expect_refused("exec f.yaml --on node0 true --adversarial x", "--adversarial x: expected a seed");
    expect_refused("exec f.yaml --on node0 true --adversarial 18446744073709551616", // 2^64
                   "--adversarial 18446744073709551616: expected a seed");
    expect_refused("exec f.yaml --on node0 true --adversarial 1 --seeds 1..2",
                   "--seeds cannot be combined with --adversarial");
    expect_refused("exec f.yaml --on node0 true --seeds 1..2 --out out", "writes no files");
    expect_refused("exec f.yaml --on node0 true --adversarial 1 --functional", "cannot be combined with --functional");
    expect_refused("exec f.yaml --on nod0 true --seeds 1..2", "did you mean 'node0'?");
}

TEST(SeedsOption, DropsWhatRunsPrintThatEndWell)
{
    struct process process;
    start(&process);
    process_run(&process, "exec f.yaml --seeds 1..3 --jobs 2 --on node0 sh_-c_'echo_hello;echo_there_>&2'");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.output, "3 seeds, 0 failed\n");
    EXPECT_STREQ(process.errors, "");
    process_fini(&process);
}

TEST(SeedsOption, TakesARangeOfOneSeed)
{
    struct process process;
    start(&process);
    process_run(&process, "exec f.yaml --seeds 5..5 --on node0 false");
    EXPECT_EQ(process.status, 1);
    EXPECT_CONTAINS(process.output, "seed 5: status 1\n");
    EXPECT_STREQ(process.errors, "");
    process_fini(&process);
}

TEST(SeedsOption, TellsOfEachSeedThatFailsHowToRepeatIt)
{
    struct process process;
    start(&process);
    process_run(&process, "exec f.yaml --jobs 2 --seeds=7..8 --junit j.xml --on node0 sh_-c_'echo_hello;echo_there_>&2;exit_4'");
    EXPECT_EQ(process.status, 4);
    EXPECT_CONTAINS(process.output, "seed 7: status 4\n    there\n");
    EXPECT_CONTAINS(
        process.output,
        "  tcasim exec f.yaml --adversarial 8 --on node0 'sh -c '\\''echo hello;echo there >&2;exit 4'\\'''\n");
    EXPECT_CONTAINS(process.output, "2 seeds, 2 failed: 7 8\n");
    char *xml = process_file_read(&process, "j.xml");
    EXPECT_CONTAINS(xml, "tests=\"2\" failures=\"2\"");
    EXPECT_CONTAINS(xml, "name=\"seed 8\"");
    EXPECT_CONTAINS(xml, "--adversarial 8");
    free(xml);
    process_fini(&process);
}

TEST(SeedsOption, RunsTheCommandThatItPrints)
{
    char *argv[] = {"exec", "f.yaml", "--seeds", "1..9", "--jobs=3", "--junit", "j.xml", "--on", "n", "a b", "--", "--jobs", NULL};
    char **words = cli_reproduction(argv, 5);
    static const char *const expected[] = {"exec", "f.yaml", "--adversarial", "5", "--on", "n", "a b", "--", "--jobs"};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        EXPECT_STREQ(words[i], expected[i]);
    }
    EXPECT_NULL(words[sizeof expected / sizeof expected[0]]);
    cli_reproduction_free(words);
}
