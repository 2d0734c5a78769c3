// Random numbers of the kernel, in whatever way a program asks for them (random_main.c).
#include <stdlib.h>
#include <string.h>

#include "tests/support/attach_fixture.h"

static char *random_numbers(uint64_t seed)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.library_directory = TCASIM_BINARY_DIR "/lib";
    fixture.scenario->seed = seed;
    attach_fixture_add(&fixture, 0, TCASIM_BINARY_DIR "/world/world_random", NULL);
    attach_fixture_add(&fixture, 1, TCASIM_BINARY_DIR "/world/world_random", NULL);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(fixture.result.statuses[0], 0);
    EXPECT_EQ(fixture.result.statuses[1], 0);
    char *text = attach_fixture_output(&fixture, 0), *other = attach_fixture_output(&fixture, 1);
    EXPECT_STRNE(text, other);
    free(other);
    attach_fixture_fini(&fixture);
    return text;
}

// The part behind the first blank of each line, in any two lines.
static unsigned equal_lines(const char *text)
{
    unsigned equal = 0;
    for (const char *at = strchr(text, ' '); at != NULL; at = strchr(at + 1, ' ')) {
        size_t bytes = strcspn(at, "\n") + 1;
        for (const char *other = strchr(at + 1, ' '); other != NULL; other = strchr(other + 1, ' ')) {
            equal += strncmp(at, other, bytes) == 0;
        }
    }
    return equal;
}

static unsigned lines_of(const char *text)
{
    unsigned lines = 0;
    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

// 15 of the program, 6 each of its child and of what replaces that.
TEST(World, RandomNumbersOfTheKernelAreTheRunsOwn)
{
    char *one = random_numbers(1), *again = random_numbers(1), *two = random_numbers(2);
    EXPECT_STREQ(one, again);
    EXPECT_EQ(lines_of(one), 15 + 2 * 6);
    EXPECT_EQ(equal_lines(one), 1); // the child has its parent's auxiliary vector
    EXPECT_STRNE(one, two);
    EXPECT_CONTAINS(one, "shares 1\n");
    EXPECT_CONTAINS(one, "twice 0 outside 0\n");
    free(one);
    free(again);
    free(two);
}
