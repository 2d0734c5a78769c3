// The run token goes the same way however the real machine runs the programs: on one processor or two, stopped or
// killed.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/attach_fixture.h"

// Long enough for the simulator and the programs to use different processors.
static char rounds[] = "250";

static uint64_t hash_of(void (*add)(struct attach_fixture *fixture))
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    add(&fixture);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.outcome, SIM_RUN_DONE);
    EXPECT_GT(fixture.result.calls, 1000);
    EXPECT_EQ(fixture.result.statuses[0], 0);
    attach_fixture_fini(&fixture);
    return fixture.result.hash;
}

static void pairs_add(struct attach_fixture *fixture)
{
    attach_fixture_add(fixture, 0, "pair", rounds, NULL);
    attach_fixture_add(fixture, 1, "pair", rounds, NULL);
}

static uint64_t hash_on_one_processor(void (*add)(struct attach_fixture *fixture))
{
    cpu_set_t before, one;
    EXPECT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    uint64_t hash = hash_of(add);
    EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    return hash;
}

TEST(AttachedTurn, GoesTheSameWayOnOneProcessorAsOnSeveral)
{
    EXPECT_EQ(hash_on_one_processor(pairs_add), hash_of(pairs_add));
}

static void any_add(struct attach_fixture *fixture)
{
    fixture->options.any_cpu = true;
    pairs_add(fixture);
}

TEST(AttachedTurn, GoesTheSameWayWhereTheMachineChoosesTheProcessors)
{
    EXPECT_EQ(hash_of(any_add), hash_of(pairs_add));
}

static void stopped_add(struct attach_fixture *fixture)
{
    attach_fixture_add(fixture, 0, "pair", rounds, "30", NULL);
    attach_fixture_add(fixture, 1, "pair", rounds, "20", NULL);
}

TEST(AttachedTurn, GoesTheSameWayWhereProgramsAreStoppedAtAnyMoment)
{
    EXPECT_EQ(hash_of(stopped_add), hash_of(pairs_add));
}

TEST(AttachedTurn, GoesOnWhereTheOneThatLooksForItIsKilled)
{
    for (unsigned i = 0; i < 6; i++) {
        struct attach_fixture fixture;
        char us[16];
        snprintf(us, sizeof us, "%u", 40000 + i * 13331);
        attach_fixture_init(&fixture);
        attach_fixture_add(&fixture, 0, "victim", us, NULL);
        attach_fixture_add(&fixture, 1, "pair", rounds, NULL);
        attach_fixture_run(&fixture);
        EXPECT_STREQ(fixture.result.text, "");
        EXPECT_EQ(fixture.result.statuses[0], 128 + 9);
        EXPECT_BETWEEN(fixture.result.statuses[1], 0, 1); // its waits have deadlines
        attach_fixture_fini(&fixture);
    }
}

TEST(AttachedTurn, LeavesTheProcessorsToTheCallerAsTheyWere)
{
    cpu_set_t before, after;
    EXPECT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    (void)hash_of(pairs_add);
    EXPECT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
}
