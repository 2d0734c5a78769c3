// The series of a scenario in parallel: the same results, output and judgement as one after the other.
#include <stdio.h>
#include <stdlib.h>

#include "process.h"
#include "tests/shim/test.h"

#define HEAD                                                                                                           \
    "# Question: do series in parallel give the same?\n"                                                               \
    "title: Series\n"                                                                                                  \
    "topology: {kind: pair, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}, cable: pearl-gen2-x8}\n"
#define SHORT(name)                                                                                                    \
    "  - {series: " name ", workload: pingpong, method: register, node: node0, peer: node1, bytes: [8 B, 64 KiB],\n"   \
    "     iterations: 2}\n"
#define LONG(name)                                                                                                     \
    "  - {series: " name ", workload: pingpong, method: register, node: node0, peer: node1, bytes: 8 B,\n"             \
    "     iterations: 1000}\n"
#define WITH_TIMEOUT(name)                                                                                             \
    "  - {series: " name ", workload: tca-pingpong, method: chain-host, node: node0, peer: node1, bytes: 8 B,\n"       \
    "     iterations: 1000}\n"

static void both_run(struct process *one, struct process *many, const char *scenario)
{
    process_init(one);
    process_init(many);
    process_file_write(one, "s.yaml", scenario);
    process_file_write(many, "s.yaml", scenario);
    process_run(one, "run s.yaml --out out --junit tests.xml --jobs 1");
    process_run(many, "run s.yaml --out out --junit tests.xml --jobs 4");
}

static void same_expect(const struct process *one, const struct process *many, const char *name)
{
    char *alone = process_file_read(one, name), *abreast = process_file_read(many, name);
    EXPECT_EQ(alone == NULL, abreast == NULL);
    if (alone != NULL && abreast != NULL) {
        EXPECT_STREQ(abreast, alone);
    }
    free(alone);
    free(abreast);
}

static void all_same_expect(const struct process *one, const struct process *many)
{
    static const char *const files[] = {"data.csv", "counters.csv", "compare.csv", "manifest.yaml", "resolved.yaml"};
    EXPECT_EQ(many->status, one->status);
    EXPECT_STREQ(many->output, one->output);
    EXPECT_STREQ(many->errors, one->errors);
    for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "out/%s", files[i]);
        same_expect(one, many, path);
    }
    same_expect(one, many, "tests.xml");
}

TEST(SeriesInParallel, GiveTheSameResultsInTheirOrder)
{
    struct process one, many;
    // The first one takes longest, so it ends last.
    both_run(&one, &many, HEAD "runs:\n" LONG("a") SHORT("b") SHORT("c") SHORT("d") SHORT("e") SHORT("f"));
    EXPECT_EQ(one.status, 0);
    EXPECT_CONTAINS(one.output, "bytes");
    all_same_expect(&one, &many);
    process_fini(&one);
    process_fini(&many);
}

// The second one does not come to its end in that time; what the third one found is not told.
TEST(SeriesInParallel, EndWithTheFirstThatGetsStuck)
{
    struct process one, many;
    both_run(&one, &many, HEAD "time_limit: 500 us\nruns:\n" SHORT("a") LONG("b") LONG("c") SHORT("d"));
    EXPECT_EQ(one.status, 3);
    EXPECT_CONTAINS(many.errors, "series 'b' reached the time limit");
    EXPECT_LACKS(many.errors, "series 'c'");
    all_same_expect(&one, &many);
    char *tests = process_file_read(&many, "tests.xml");
    EXPECT_CONTAINS(tests, "series b");
    EXPECT_LACKS(tests, "series d");
    free(tests);
    process_fini(&one);
    process_fini(&many);
}

#define STUCK(name)                                                                                                    \
    "  - {series: " name ", workload: pingpong, method: register, node: node0, peer: node1, bytes: 8 B,\n"             \
    "     iterations: 10000}\n"
#define ENDLESS(name)                                                                                                  \
    "  - {series: " name ", workload: local-dma, method: chain-host, node: node0, bytes: 8 B,\n"                       \
    "     descriptors: [8], iterations: 100000000}\n"

// Nobody waits for those behind it: the last one would take hours.
TEST(SeriesInParallel, EndThoseBehindOneThatIsStuck)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "s.yaml",
                       HEAD "faults: [{cable: {from: node0.E, to: node1.W}, at: 20 us}]\n"
                            "runs:\n" STUCK("a") ENDLESS("b") ENDLESS("c"));
    process_run(&process, "run s.yaml --out out --jobs 2");
    EXPECT_EQ(process.status, 3);
    EXPECT_CONTAINS(process.errors, "series 'a' got stuck");
    EXPECT_LACKS(process.errors, "'b'");
    EXPECT_LACKS(process.errors, "signal");
    process_fini(&process);
}

TEST(SeriesInParallel, PrintNothingOrJsonAsOneAfterTheOther)
{
    struct process one, many;
    both_run(&one, &many, HEAD "runs:\n" SHORT("'a, with a comma'") SHORT("b") SHORT("c"));
    process_run(&one, "run s.yaml --out out --json --jobs 1");
    process_run(&many, "run s.yaml --out out --json --jobs 3");
    EXPECT_CONTAINS(many.output, "a, with a comma");
    all_same_expect(&one, &many);
    process_run(&many, "run s.yaml --out out --quiet --jobs 3");
    EXPECT_STREQ(many.output, "");
    process_fini(&one);
    process_fini(&many);
}

// A pulled cable: the first series ends before it, the second fails, the third still runs.
TEST(SeriesInParallel, GoOnAfterOneThatFails)
{
    struct process one, many;
    both_run(&one, &many,
             HEAD "faults: [{cable: {from: node0.E, to: node1.W}, at: 300 us}]\n"
                  "runs:\n" SHORT("a") WITH_TIMEOUT("b") SHORT("c"));
    EXPECT_EQ(one.status, 1);
    EXPECT_CONTAINS(many.errors, "series 'b' failed");
    all_same_expect(&one, &many);
    char *manifest = process_file_read(&many, "out/manifest.yaml");
    EXPECT_CONTAINS(manifest, "node0.E-node1.W pulled");
    free(manifest);
    process_fini(&one);
    process_fini(&many);
}
