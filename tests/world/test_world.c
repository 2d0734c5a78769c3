// Programs that know nothing of the simulator: what they see of time, of each other and of their children.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"

#define WORLD TCASIM_BINARY_DIR "/world/world_"

static void set_up(struct stage *stage)
{
    stage_init(stage);
    stage->options.library_directory = TCASIM_BINARY_DIR "/lib";
}

// Runs what is on the stage; every program is to end with 0.
static void play(struct stage *stage)
{
    stage_run(stage);
    EXPECT_STREQ(stage->result.text, "");
    EXPECT_EQ(stage->result.outcome, SIM_RUN_DONE);
    for (uint32_t i = 0; i < stage->count; i++) {
        EXPECT_EQ(stage->result.statuses[i], 0);
    }
}

// The number after a line's first word; the first such line after *text.
static long number_of(const char **text, const char *word)
{
    char line[64];
    snprintf(line, sizeof line, "%s ", word);
    const char *at = strstr(*text, line);
    EXPECT_TRUE(at != NULL);
    *text = at != NULL ? at + strlen(line) : *text;
    return at != NULL ? strtol(*text, NULL, 10) : -1;
}

static char *output_alone(const char *program)
{
    struct stage stage;
    set_up(&stage);
    stage_add(&stage, 0, program, NULL);
    play(&stage);
    char *text = stage_output(&stage, 0);
    stage_fini(&stage);
    return text;
}

TEST(World, SleepsAndTimersTakeTheSimulatedTimeTheyAskFor)
{
    char *text = output_alone(WORLD "clocks");
    const char *at = text;
    EXPECT_EQ(number_of(&at, "nanosleep"), 2000000);
    EXPECT_EQ(number_of(&at, "usleep"), 1500);
    EXPECT_EQ(number_of(&at, "alarm"), 3000000);
    EXPECT_EQ(number_of(&at, "setitimer"), 700);
    EXPECT_EQ(number_of(&at, "timerfd"), 200);
    EXPECT_BETWEEN(number_of(&at, "timerfd"), 299, 300);
    EXPECT_EQ(number_of(&at, "alarms"), 2);
    free(text);
}

TEST(World, TheTimeStampCounterGoesAsTheClocks)
{
    char *text = output_alone(WORLD "clocks");
    const char *at = text;
    EXPECT_BETWEEN(number_of(&at, "cycles"), 2799, 2801); // a million a second
    EXPECT_EQ(number_of(&at, "time"), 0);
    free(text);
}

TEST(World, ConstructorsOfLibrariesSeeTheSimulatedTimeStampCounter)
{
    char *text = output_alone(WORLD "early");
    const char *at = text;
    EXPECT_BETWEEN(number_of(&at, "later"), 0, 100);
    free(text);
}

TEST(World, ProgramsOnTwoNodesTalkOverTcpByHostName)
{
    struct stage stage;
    set_up(&stage);
    stage.options.together = false;
    stage_add(&stage, 0, WORLD "talk", "listen", NULL);
    stage_add(&stage, 1, WORLD "talk", "node0", NULL);
    play(&stage);
    char *text = stage_output(&stage, 1);
    const char *at = text;
    EXPECT_CONTAINS(text, "on node1");
    for (int i = 0; i < 10; i++) {
        EXPECT_BETWEEN(number_of(&at, "at"), 1000 * (2 * i + 1), 1000 * (2 * i + 1) + 30);
    }
    free(text);
    stage_fini(&stage);
}

TEST(World, ThreadsTakeTurnsOverAConditionVariable)
{
    char *text = output_alone(WORLD "threads");
    EXPECT_CONTAINS(text, "turns 20");
    const char *at = strstr(text, "turns");
    EXPECT_BETWEEN(number_of(&at, "in"), 2000, 2010);
    EXPECT_CONTAINS(text, "timeout 1");
    EXPECT_BETWEEN(number_of(&at, "in"), 5000000, 5000010);
    free(text);
}

static uint64_t hash_alone(const char *program, const char *argument)
{
    struct stage stage;
    set_up(&stage);
    stage_add(&stage, 0, program, argument, NULL);
    play(&stage);
    uint64_t hash = stage.result.hash;
    stage_fini(&stage);
    return hash;
}

TEST(World, ThreadsEndAtTheSameTimesInEveryRun)
{
    EXPECT_EQ(hash_alone(WORLD "threads", "join"), hash_alone(WORLD "threads", "join"));
}

TEST(World, ChildrenAreWaitedForInSimulatedTime)
{
    char *text = output_alone(WORLD "family");
    EXPECT_CONTAINS(text, "told\nfork 7 at 300");
    EXPECT_CONTAINS(text, "exec 5 at 2003\n");
    EXPECT_CONTAINS(text, "system 3 at 3003\n");
    free(text);
}

TEST(World, NumbersOfProcessesFitTogetherAndAreTheSameInEveryRun)
{
    char *first = output_alone(WORLD "numbers"), *second = output_alone(WORLD "numbers");
    EXPECT_CONTAINS(first, "process 4194305\n");
    EXPECT_CONTAINS(first, "child ");
    EXPECT_STREQ(first, second);
    free(first);
    free(second);
}

TEST(World, AProgramsHandlerOfTrapsSeesItsOwnAlone)
{
    free(output_alone(WORLD "trap"));
}
