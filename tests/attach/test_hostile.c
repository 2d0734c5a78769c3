// Nothing that a program does harms anybody but itself.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"

static void expect_harmless(unsigned seed)
{
    struct stage stage;
    char number[16];
    snprintf(number, sizeof number, "%u", seed);
    stage_init(&stage);
    stage_add(&stage, 0, "pair", "20", NULL);
    stage_add(&stage, 1, "pair", "20", NULL);
    stage_add(&stage, seed % 2, "fuzz", number, "400", NULL);
    stage_run(&stage);
    EXPECT_STREQ(stage.result.text, "");
    EXPECT_EQ(stage.result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(stage.result.statuses[0], 0);
    EXPECT_EQ(stage.result.statuses[1], 0);
    EXPECT_EQ(stage.result.statuses[2], 128 + 9);
    stage_fini(&stage);
}

static void expect_survived(unsigned seed)
{
    struct stage stage;
    char number[16];
    snprintf(number, sizeof number, "%u", seed);
    stage_init(&stage);
    stage_add(&stage, seed % 2, "fuzz", number, "600", "board", NULL);
    stage_run(&stage);
    EXPECT_STREQ(stage.result.text, "");
    EXPECT_EQ(stage.result.statuses[0], 128 + 9);
    stage_fini(&stage);
}

TEST(AttachedHostile, RandomRequestsAndRingsAndMessagesLeaveTheOthersAlone)
{
    for (unsigned seed = 0; seed < 10; seed++) {
        expect_harmless(seed);
    }
}

TEST(AttachedHostile, RandomStoresToTheBoardAsWellLeaveTheSimulatorAlone)
{
    for (unsigned seed = 100; seed < 110; seed++) {
        expect_survived(seed);
    }
}
