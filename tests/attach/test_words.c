// Words of pinned memory: which writes are news, and waits that are over before they begin.
#include <stdlib.h>

#include "stage.h"

static int wakes(const char *argument)
{
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, 1, "quiet", argument, NULL);
    stage_add(&stage, 0, "quiet", NULL);
    stage_run(&stage);
    EXPECT_STREQ(stage.result.text, "");
    EXPECT_EQ(stage.result.statuses[0], 0);
    char *text = stage_output(&stage, 0);
    int count = atoi(text);
    free(text);
    stage_fini(&stage);
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
    struct stage stage;
    stage_init(&stage);
    stage_add(&stage, 0, "word", NULL);
    stage_run(&stage);
    char *text = stage_output(&stage, 0);
    EXPECT_EQ(stage.result.statuses[0], 0);
    EXPECT_STREQ(text, "0 1\n");
    free(text);
    stage_fini(&stage);
}

TEST(AttachedQuiet, WritesWakeNobodyWhoWaitsForEvents)
{
    EXPECT_EQ(wakes("events"), 1); // the deadline
}
