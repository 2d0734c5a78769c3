// Nothing that a program does harms anybody but itself.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"

static void nothing_traced(void *ctx, uint64_t time_ps, const char *component, const struct sim_trace_point *point,
                           const uint64_t *values)
{
    for (unsigned i = 0; i < point->field_count; i++) {
        bool named = point->fields[i].form == SIM_TRACE_NAME && values[i] != SIM_TRACE_ABSENT;
        *(size_t *)ctx += named ? strlen(point->fields[i].names[values[i]]) : strlen(component) + (size_t)time_ps % 2;
    }
}

static void nothing_said(void *ctx, const char *line)
{
    *(size_t *)ctx += strlen(line);
}

// Everybody who reads what programs say that they do.
static void listen_to_all(struct stage *stage, size_t *heard)
{
    stage->options.trace = nothing_traced;
    stage->options.diagnosis = nothing_said;
    stage->options.summary = stage->options.check = stage->options.explain = true;
    stage->options.select = (struct observe_selection){.opcodes = UINT32_MAX, .bytes = OBSERVE_ANY};
    stage->options.ctx = heard;
}

static void expect_harmless(unsigned seed)
{
    struct stage stage;
    char number[16];
    snprintf(number, sizeof number, "%u", seed);
    stage_init(&stage);
    stage_add(&stage, 0, "pair", "20", NULL);
    stage_add(&stage, 1, "pair", "20", NULL);
    stage_add(&stage, seed % 2, "fuzz", number, "400", NULL);
    size_t heard = 0;
    if (seed % 2 == 1) {
        listen_to_all(&stage, &heard);
    }
    stage_run(&stage);
    EXPECT_EQ(heard != 0, seed % 2 == 1);
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

// Another process asks for it in vain, and reads nothing of it, until the first has ended.
TEST(AttachedHostile, TheBoardIsOutOfReachWhileAnotherProcessHasIt)
{
    struct stage stage;
    char expected[32];
    stage_init(&stage);
    stage_add(&stage, 0, "board", "hold", NULL);
    stage_add(&stage, 0, "board", "ask", NULL);
    stage_run(&stage);
    EXPECT_EQ(stage.result.statuses[0], 0);
    snprintf(expected, sizeof expected, "%d %d\n0 0\n", -EBUSY, -EINVAL);
    char *text = stage_output(&stage, 1);
    EXPECT_STREQ(text, expected);
    free(text);
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
