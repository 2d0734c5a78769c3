// Words of pinned memory: which writes count, and waits whose condition holds before they begin.
#include <stdlib.h>

#include "tests/support/attach_fixture.h"

static int wakes(const char *argument)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 1, "ignored", argument, NULL);
    attach_fixture_add(&fixture, 0, "ignored", NULL);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.statuses[0], 0);
    char *text = attach_fixture_output(&fixture, 0);
    int count = atoi(text);
    free(text);
    attach_fixture_fini(&fixture);
    return count;
}

TEST(AttachedQuiet, MemoryWakesNobodyAndTheWordBehindItDoes)
{
    EXPECT_EQ(wakes(NULL), 1);
}

TEST(AttachedQuiet, MemoryOfWhichNothingWasSaidWakesWithEachWrite)
{
    EXPECT_EQ(wakes("aloud"), 21);
}

TEST(AttachedWord, ThatIsThereCostsALookAndNoCrossing)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "word", NULL);
    attach_fixture_run(&fixture);
    char *text = attach_fixture_output(&fixture, 0);
    EXPECT_EQ(fixture.result.statuses[0], 0);
    EXPECT_STREQ(text, "0 1\n");
    free(text);
    attach_fixture_fini(&fixture);
}

TEST(AttachedQuiet, WritesWakeNobodyWhoWaitsForEvents)
{
    EXPECT_EQ(wakes("events"), 1); // the deadline
}

// Node 0 writes the upper half of a word after 200 us; node 1 tells when it came.
static void expect_half_comes(const char *killed, int status)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 1, "word", "half", NULL);
    attach_fixture_add(&fixture, 0, "word", "half", killed, NULL);
    attach_fixture_run(&fixture);
    char *text = attach_fixture_output(&fixture, 0);
    EXPECT_EQ(fixture.result.statuses[0], 0);
    EXPECT_EQ(fixture.result.statuses[1], status);
    EXPECT_BETWEEN(atoi(text), 200, 202);
    free(text);
    attach_fixture_fini(&fixture);
}

TEST(AttachedWord, IsWokenByAWriteOfItsUpperHalf)
{
    expect_half_comes(NULL, 0);
}

TEST(AttachedLife, WhatAProgramStoredBeforeItWasKilledArrives)
{
    expect_half_comes("killed", 128 + 9);
}
