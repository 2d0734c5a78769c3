// A loop of empty polls that the simulator fast-forwards: it goes on at one of its own polls, and all of them count.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/attach_fixture.h"

static void summary_take(void *ctx, observe_t *observe)
{
    char **text = ctx;
    size_t bytes;
    FILE *out = open_memstream(text, &bytes);
    ASSERT_NOT_NULL(out);
    observe_summary_yaml(observe, out);
    fclose(out);
}

// What "phase" prints on node 1; the caller frees it. The summary is stored, unless that is NULL.
static char *printed(char polls[2], char **summary_out)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    if (summary_out != NULL) {
        fixture.options.summary = true;
        fixture.options.observed = summary_take;
        fixture.options.ctx = summary_out;
    }
    attach_fixture_add(&fixture, 1, "phase", polls, NULL);
    attach_fixture_add(&fixture, 0, "phase", polls, NULL);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.statuses[0], 0);
    char *text = attach_fixture_output(&fixture, 0);
    attach_fixture_fini(&fixture);
    return text;
}

static char one_poll[] = "1", two_polls[] = "2";

static void expect_whole_iterations(char polls[2])
{
    TEST_TRACE("%s polls of an iteration", polls);
    char *text = printed(polls, NULL);
    EXPECT_EQ(strspn(text, "0 "), 16); // in all eight rounds nothing beyond them
    free(text);
}

TEST(AttachedLoop, GoesOnAtTheEndOfOneOfItsIterationsHoweverFarItWasFastForwarded)
{
    expect_whole_iterations(one_poll);
    expect_whole_iterations(two_polls);
}

static void expect_polls_counted(char polls[2])
{
    TEST_TRACE("%s polls of an iteration", polls);
    char *summary = NULL, *text = printed(polls, &summary);
    ASSERT_NOT_NULL(summary);
    const char *key = "empty_polls: ", *counted = strstr(summary, key);
    ASSERT_NOT_NULL(counted);
    EXPECT_EQ(strtoull(counted + strlen(key), NULL, 10), strtoull(strrchr(text, ' '), NULL, 10));
    free(text);
    free(summary);
}

TEST(AttachedLoop, CountsThePollsThatItWasFastForwardedOver)
{
    expect_polls_counted(one_poll);
    expect_polls_counted(two_polls);
}
