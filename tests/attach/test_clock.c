// Real time decides nothing in a run, or the run reports that it did.
#include <stdlib.h>

#include "tests/support/attach_fixture.h"

static struct attach_run_result result_of(const char *what, const char *ms, uint64_t wall_limit_ms)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.wall_limit_ms = wall_limit_ms;
    attach_fixture_add(&fixture, 0, "late", what, ms, NULL);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(fixture.result.statuses[0], 0);
    attach_fixture_fini(&fixture);
    return fixture.result;
}

TEST(AttachedClock, AChildBeginsWhenItsParentTellsOfItHoweverLongThatComputes)
{
    const struct attach_run_result soon = result_of("computes", "0", 20000), late = result_of("computes", "900", 20000);
    EXPECT_EQ(late.hash, soon.hash);
    EXPECT_EQ(late.outside, 0);
}

TEST(AttachedClock, AChildThatDidNotWaitForItsSleepingParentIsTold)
{
    EXPECT_EQ(result_of("sleeps", "900", 20000).outside, ATTACH_RUN_OUTSIDE_CLOCK);
    EXPECT_EQ(result_of("sleeps", "0", 20000).outside, 0);
}

TEST(AttachedClock, AnEndThatTakesLongComesAtTheTimeOfOneThatDoesNot)
{
    const struct attach_run_result soon = result_of("ends", "0", 20000), late = result_of("ends", "400", 20000);
    EXPECT_EQ(late.hash, soon.hash);
    EXPECT_EQ(late.outside, 0);
}

TEST(AttachedClock, ALimitOfRealTimeThatEndsDaemonsIsTold)
{
    EXPECT_EQ(result_of("orphan", "0", 300).outside, ATTACH_RUN_OUTSIDE_CLOCK);
}

TEST(AttachedClock, AThreadIsAwaitedOnceAtWhateverCrossingItComes)
{
    EXPECT_EQ(result_of("threads", "0", 20000).outside, 0);
}
