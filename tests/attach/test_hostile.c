// A program can only harm itself.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/attach_fixture.h"

// How many random programs are tried; ./tcasim test --long tries more.
static unsigned programs(void)
{
    const char *more = getenv("TCASIM_HOSTILE_PROGRAMS");
    return more != NULL ? (unsigned)atoi(more) : 10;
}

static void nothing_traced(void *ctx, const struct sim_trace_record *record)
{
    const struct sim_trace_point *point = record->point;
    const uint64_t *values = record->values;
    for (unsigned i = 0; i < point->field_count; i++) {
        bool named = point->fields[i].form == SIM_TRACE_NAME && values[i] != SIM_TRACE_ABSENT;
        *(size_t *)ctx +=
            named ? strlen(point->fields[i].names[values[i]]) : strlen(record->component) + (size_t)record->time_ps % 2;
    }
}

static void nothing_said(void *ctx, const char *line)
{
    *(size_t *)ctx += strlen(line);
}

// Enables all readers of what programs report about themselves.
static void listen_to_all(struct attach_fixture *fixture, size_t *heard)
{
    fixture->options.trace = nothing_traced;
    fixture->options.diagnosis = nothing_said;
    fixture->options.summary = fixture->options.check = fixture->options.explain = true;
    fixture->options.select = (struct observe_selection){.opcodes = UINT32_MAX, .bytes = OBSERVE_ANY};
    fixture->options.ctx = heard;
}

static void expect_harmless(unsigned seed)
{
    struct attach_fixture fixture;
    char number[16];
    snprintf(number, sizeof number, "%u", seed);
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "pair", "20", NULL);
    attach_fixture_add(&fixture, 1, "pair", "20", NULL);
    attach_fixture_add(&fixture, seed % 2, "fuzz", number, "400", NULL);
    size_t heard = 0;
    if (seed % 2 == 1) {
        listen_to_all(&fixture, &heard);
    }
    attach_fixture_run(&fixture);
    if (seed % 2 == 1) {
        EXPECT_NE(heard, 0);
    } else {
        EXPECT_EQ(heard, 0);
    }
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(fixture.result.statuses[0], 0);
    EXPECT_EQ(fixture.result.statuses[1], 0);
    EXPECT_EQ(fixture.result.statuses[2], 128 + 9);
    attach_fixture_fini(&fixture);
}

static void expect_survived(unsigned seed)
{
    struct attach_fixture fixture;
    char number[16];
    snprintf(number, sizeof number, "%u", seed);
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, seed % 2, "fuzz", number, "600", "board", NULL);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.statuses[0], 128 + 9);
    attach_fixture_fini(&fixture);
}

// Another process asks for the board without success, and reads nothing of it, until the first process is done with it.
static void expect_out_of_reach(const char *holder)
{
    struct attach_fixture fixture;
    char expected[32];
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "board", holder, NULL);
    attach_fixture_add(&fixture, 0, "board", "ask", NULL);
    attach_fixture_run(&fixture);
    EXPECT_EQ(fixture.result.statuses[0], 0);
    snprintf(expected, sizeof expected, "%d %d %d 1\n0 0 0 0\n", -EBUSY, -EBUSY, -EINVAL);
    char *text = attach_fixture_output(&fixture, 1);
    EXPECT_STREQ(text, expected);
    free(text);
    attach_fixture_fini(&fixture);
}

TEST(AttachedHostile, TheBoardIsOutOfReachWhileAnotherProcessHasIt)
{
    expect_out_of_reach("hold");
}

TEST(AttachedHostile, TheBoardIsOutOfReachUntilItIsReleasedAsOftenAsItWasClaimed)
{
    expect_out_of_reach("close");
}

TEST(AttachedHostile, TheBoardOfAParentIsOutOfReachForItsChild)
{
    struct attach_fixture fixture;
    char expected[32];
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "board", "child", NULL);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.statuses[0], 0);
    snprintf(expected, sizeof expected, "%d %d %d 1\n", -EBUSY, -EBUSY, -EINVAL);
    char *text = attach_fixture_output(&fixture, 0);
    EXPECT_STREQ(text, expected);
    free(text);
    attach_fixture_fini(&fixture);
}

TEST(AttachedHostile, RandomRequestsAndRingsAndMessagesLeaveTheOthersAlone)
{
    for (unsigned seed = 0; seed < programs(); seed++) {
        expect_harmless(seed);
    }
}

TEST(AttachedHostile, RandomStoresToTheBoardAsWellLeaveTheSimulatorAlone)
{
    for (unsigned seed = 100; seed < 100 + programs(); seed++) {
        expect_survived(seed);
    }
}

// --- connections that do not keep to the rules ----------------------------------------------------------------------

// The program "rude" ends as it wants to while the pair exchanges its messages. A simulator that waited for it in real
// time would meet the test's time limit.
static void expect_unimpressed(const char *how, const char *count, const char *printed)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.wall_limit_ms = 3600000;
    attach_fixture_add(&fixture, 0, "pair", "20", NULL);
    attach_fixture_add(&fixture, 1, "pair", "20", NULL);
    attach_fixture_add(&fixture, 0, "rude", how, count, NULL);
    attach_fixture_run(&fixture);
    EXPECT_STREQ(fixture.result.text, "");
    EXPECT_EQ(fixture.result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(fixture.result.statuses[0], 0);
    EXPECT_EQ(fixture.result.statuses[1], 0);
    EXPECT_EQ(fixture.result.statuses[2], 128 + 9);
    char *text = attach_fixture_output(&fixture, 2);
    EXPECT_STREQ(text, printed);
    free(text);
    attach_fixture_fini(&fixture);
}

TEST(AttachedHostile, ConnectionsThatSayNothingAreNotWaitedForAndMaySpeakLater)
{
    expect_unimpressed("silent", "3", "1\n");
    expect_unimpressed("silent", "300", "1\n");
}

TEST(AttachedHostile, ChildrenThatNeverAttachAreNotWaitedForTillTheLimit)
{
    expect_unimpressed("child", "20", "20\n");
}

TEST(AttachedHostile, AProcessThatAttachesItselfAgainHarmsOnlyItself)
{
    expect_unimpressed("again", "1", "");
    expect_unimpressed("again", "200", "");
}

TEST(AttachedHostile, ASocketWhoseLastCloseWaitsIsClosedAside)
{
    expect_unimpressed("lingers", "3", "");
    expect_unimpressed("queues", "3", "");
}

// --- programs without end -------------------------------------------------------------------------------------------

static void expect_named(const char *how, const char *text)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.wall_limit_ms = 1000;
    attach_fixture_add(&fixture, 0, "rude", how, "0", NULL);
    attach_fixture_run(&fixture);
    EXPECT_TRUE(fixture.result.failed);
    EXPECT_CONTAINS(fixture.result.text, text);
    EXPECT_CONTAINS(fixture.result.text, "node0.process1.program2.thread0 (attached_rude, process ");
    attach_fixture_fini(&fixture);
}

TEST(AttachedHostile, AProgramThatAsksForEverForWhatTakesNoTimeIsNamed)
{
    expect_named("asks", "livelock: no simulated time has passed for ");
}

TEST(AttachedHostile, AProgramThatAnnouncesThreadsForEverIsNamed)
{
    expect_named("announces", "announces threads that do not come");
}

TEST(AttachedHostile, AProgramThatAnnouncesItsEndAndComputesIsNamed)
{
    expect_named("ends", "has said that it ends, and computes on since ");
}
