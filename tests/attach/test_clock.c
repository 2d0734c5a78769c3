// Real time decides nothing of a run, or the run says that it did.
#include <stdlib.h>

#include "stage.h"

static struct attach_run_result result_of(const char *what, const char *ms, uint64_t wall_limit_ms)
{
    struct stage stage;
    stage_init(&stage);
    stage.options.wall_limit_ms = wall_limit_ms;
    stage_add(&stage, 0, "late", what, ms, NULL);
    stage_run(&stage);
    EXPECT_STREQ(stage.result.text, "");
    EXPECT_EQ(stage.result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(stage.result.statuses[0], 0);
    stage_fini(&stage);
    return stage.result;
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

TEST(AttachedClock, AThreadIsAwaitedOnceAtWhateverCrossingItComes)
{
    EXPECT_EQ(result_of("threads", "0", 20000).outside, 0);
}
