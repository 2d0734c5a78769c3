// Each interposed call returns when the tables of tests/world/timely say, and they have a row for each of
// verbs-shim/world/calls.def.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/attach_fixture.h"
#include "timely/timely.h"

static const struct {
    enum timely_kind kind;
    const char *name;
} calls[] = {
#define CALL(name, function, trap, policy)      {TIMELY_CALL, #name},
#define FUNCTION(name, version, policy, number) {TIMELY_FUNCTION, #name},
#include "verbs-shim/world/calls.def"
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static bool is_call(enum timely_kind kind, const char *name)
{
    bool is = false;
    for (unsigned i = 0; i < CALLS && !is; i++) {
        is = calls[i].kind == kind && strcmp(calls[i].name, name) == 0;
    }
    return is;
}

static bool has_row(enum timely_kind kind, const char *name)
{
    bool has = false;
    for (unsigned i = 0; i < TIMELY_THEMES; i++) {
        for (unsigned row = 0; row < timely_themes[i]->count && !has; row++) {
            const struct timely_row *at = &timely_themes[i]->rows[row];
            has = at->kind == kind && strcmp(at->name, name) == 0;
        }
    }
    return has;
}

TEST(Timely, EveryInterposedCallHasARow)
{
    char without[8192] = "";
    for (unsigned i = 0; i < CALLS; i++) {
        if (!has_row(calls[i].kind, calls[i].name)) {
            snprintf(without + strlen(without), sizeof without - strlen(without), "%s %s\n",
                     calls[i].kind == TIMELY_CALL ? "CALL" : "FUNCTION", calls[i].name);
        }
    }
    EXPECT_STREQ(without, "");
}

TEST(Timely, EveryRowIsOfAnInterposedCall)
{
    for (unsigned i = 0; i < TIMELY_THEMES; i++) {
        for (unsigned row = 0; row < timely_themes[i]->count; row++) {
            const struct timely_row *at = &timely_themes[i]->rows[row];
            TEST_TRACE("%s of the theme %s", at->name, timely_themes[i]->name);
            EXPECT_EQ(is_call(at->kind, at->name), at->kind != TIMELY_LIBRARY);
        }
    }
}

// --- what the program saw -------------------------------------------------------------------------------------------

static char *output_of(const struct timely_theme *theme)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.library_directory = TCASIM_BINARY_DIR "/lib";
    attach_fixture_add(&fixture, 0, TCASIM_BINARY_DIR "/world/world_timely", theme->name, NULL);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(fixture.result.outside, 0);
    EXPECT_EQ(fixture.result.statuses[0], 0);
    char *text = attach_fixture_output(&fixture, 0);
    attach_fixture_fini(&fixture);
    return text;
}

// false: the program did not come so far.
static bool case_check(const char *text, const struct timely_theme *theme, unsigned row, struct timely_case one)
{
    struct timely_expected expected;
    char begin[TIMELY_LINE_BYTES];
    if (!timely_expect(&theme->rows[row], one, &expected)) {
        return true;
    }
    timely_line_begin(begin, theme, row, one);
    TEST_TRACE("%s", begin);
    const char *line = strstr(text, begin);
    long at_ns = 0, result = 0;
    if (!EXPECT_NOT_NULL(line) || !EXPECT_EQ(sscanf(line + strlen(begin), "%ld %ld", &at_ns, &result), 2)) {
        return false;
    }
    EXPECT_BETWEEN(at_ns, expected.at_us * 1000, expected.at_us * 1000 + expected.late_ns);
    EXPECT_EQ(result, expected.result);
    return true;
}

static void theme_check(const struct timely_theme *theme)
{
    char *text = output_of(theme);
    bool played = true;
    for (unsigned row = 0; row < theme->count; row++) {
        for (unsigned i = 0; i < TIMELY_WAYS * TIMELY_WAKERS * TIMELY_EPISODES && played; i++) {
            const struct timely_case one = {.way = (enum timely_way)(i / (TIMELY_WAKERS * TIMELY_EPISODES)),
                                            .waker = (enum timely_waker)(i / TIMELY_EPISODES % TIMELY_WAKERS),
                                            .episode = (enum timely_episode)(i % TIMELY_EPISODES)};
            played = case_check(text, theme, row, one);
        }
    }
    free(text);
}

TEST(Timely, WhoReadsOrWaitsForAChildGoesOnWhenThereIsOne)
{
    theme_check(&timely_reads);
}

TEST(Timely, WhoWritesGoesOnWhenThereIsRoom)
{
    theme_check(&timely_writes);
}

TEST(Timely, SystemCallsThatWaitReturnWhenTheyShould)
{
    theme_check(&timely_calls);
}

TEST(Timely, FunctionsThatWaitByASystemCallReturnWhenTheyShould)
{
    theme_check(&timely_library);
}

TEST(Timely, ClocksGoOnByTheTimeThatAProgramSleeps)
{
    theme_check(&timely_clocks);
}

TEST(Timely, TimersGoOffAtTheirTime)
{
    theme_check(&timely_timers);
}

TEST(Timely, HandlersRunWhenTheirSignalComesOrIsUnblocked)
{
    theme_check(&timely_signals);
}

TEST(Timely, TheEndOfADescriptorIsSeenAtOnce)
{
    theme_check(&timely_descriptors);
}

TEST(Timely, NewProcessesAndThreadsEndWhenTheyShould)
{
    theme_check(&timely_life);
}

TEST(Timely, NumbersAreTheRunsAndSignalsReachThemAtOnce)
{
    theme_check(&timely_ids);
}

TEST(Timely, NamesProcessorsAndSharedObjectsAreTheNodes)
{
    theme_check(&timely_hosts);
}

TEST(Timely, WhatProgramsReadAboutTheMachineIsTheNodes)
{
    theme_check(&timely_machine);
}

TEST(Timely, PathsAreTheNodesAndOnlyFifosWait)
{
    theme_check(&timely_paths);
}

TEST(Timely, CallsTellWhatTheyHaveMovedWhateverElseHappensMeanwhile)
{
    theme_check(&timely_streams);
}

TEST(Timely, FutexesWakeAndMoveTheirSleepersInOrder)
{
    theme_check(&timely_futexes);
}

TEST(Timely, LoopsOverMemoryAreLeftByTheStoreThatTheyWaitFor)
{
    theme_check(&timely_loops);
}

TEST(Timely, AsynchronousRequestsEndWhenTheirThreadOrTheirFileHasThem)
{
    theme_check(&timely_asynchronous);
}
