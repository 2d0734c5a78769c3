// The backend of an attached program, an operation at a time (backend_main.c).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/attach_fixture.h"
#include "verbs-shim/backend/backend.h"

static void expect_good(const struct attach_fixture *fixture)
{
    EXPECT_STREQ(fixture->result.text, "");
    EXPECT_EQ(fixture->result.outcome, SIM_RUN_DONE);
    for (uint32_t i = 0; i < fixture->count; i++) {
        TEST_TRACE("program %u", i);
        EXPECT_EQ(fixture->result.statuses[i], 0);
    }
}

static void expect_printed(const struct attach_fixture *fixture, uint32_t program, const char *expected)
{
    char *text = attach_fixture_output(fixture, program);
    EXPECT_STREQ(text, expected);
    free(text);
}

static void expect_of_one(const char *what, const char *expected)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    ASSERT_EQ(fixture.scenario->nodes[0].gpu_count, 2);
    attach_fixture_add(&fixture, 0, "backend", what, NULL);
    attach_fixture_run(&fixture);
    expect_good(&fixture);
    expect_printed(&fixture, 0, expected);
    attach_fixture_fini(&fixture);
}

// --- what is passed on ----------------------------------------------------------------------------------------------

static void polled_take(void *ctx, const volatile void *word, bool found)
{
    unsigned *counts = ctx; // empty polls, and those that found something
    EXPECT_EQ((uintptr_t)word, (uintptr_t)&counts[2]);
    counts[found ? 1 : 0]++;
}

TEST(AttachedBackend, TellsAnEmptyPollFromOneThatFound)
{
    static const struct backend_ops ops = {.polled = polled_take}, none = {0};
    unsigned counts[3] = {0};
    const struct backend backend = {&ops, counts}, without = {&none, counts};
    backend_polled(&backend, &counts[2], false);
    backend_polled(&backend, &counts[2], false);
    backend_polled(&backend, &counts[2], true);
    backend_polled(&without, &counts[2], true);
    EXPECT_EQ(counts[0], 2);
    EXPECT_EQ(counts[1], 1);
}

// --- time -----------------------------------------------------------------------------------------------------------

TEST(AttachedBackend, CostsWhatTheScenarioSaysOfTheHost)
{
    struct attach_fixture fixture;
    char expected[512];
    attach_fixture_init(&fixture);
    const struct scn_host *host = &fixture.scenario->nodes[0].host;
    const uint64_t copy_ps = 1000000 * SIM_PS_PER_US / host->copy_bytes_per_us;
    snprintf(expected, sizeof expected,
             "%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n%u\n", host->call_ps,
             host->load_ps, host->device_line_ps, host->lock_ps, copy_ps, host->interrupt_ps, 1000);
    attach_fixture_add(&fixture, 0, "backend", "costs", NULL);
    attach_fixture_run(&fixture);
    expect_good(&fixture);
    expect_printed(&fixture, 0, expected);
    attach_fixture_fini(&fixture);
}

TEST(AttachedBackend, AWaitForAWordEndsAtItsTimeLimitHoweverManyAlarmsAreDueMeanwhile)
{
    expect_of_one("alarm", "10 2\n");
}

// The processor time of a thread is that before the call and that after it.
TEST(AttachedBackend, ComputingIsPaidForOnceWhereItCostsTime)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.scenario->nodes[0].host.compute = SCN_COMPUTE_SCALED;
    fixture.scenario->nodes[0].host.compute_scale = 1;
    attach_fixture_add(&fixture, 0, "backend", "library", NULL);
    attach_fixture_run(&fixture);
    expect_good(&fixture);
    expect_printed(&fixture, 0, "1 1\n");
    attach_fixture_fini(&fixture);
}

// A program that looks at its memory and at a clock in turns. The store is made after 200 us.
TEST(AttachedBackend, WhoOnlyReadsAClockSeesItsMemoryNoOlderThanAMicrosecond)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 1, "word", "clock", NULL);
    attach_fixture_add(&fixture, 0, "word", "half", NULL);
    attach_fixture_run(&fixture);
    expect_good(&fixture);
    char *text = attach_fixture_output(&fixture, 0);
    EXPECT_BETWEEN(atoi(text), 200, 203);
    free(text);
    attach_fixture_fini(&fixture);
}

// A signal ends a wait if the program handles it (signal(7)): not if it ignores or blocks it.
TEST(AttachedBackend, SignalsThatTheProgramHandlesInterruptItsWaits)
{
    expect_of_one("signals", "handled in a sleep: 1 1\nhandled in a wait for a word: 1 1\nhandled, to go on: 1 0\n"
                             "ignored: 0 0\nblocked: 0 0\n");
}

// --- stores ---------------------------------------------------------------------------------------------------------

static void writes_count(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    if (strncmp(component, "node0.", 6) == 0 && strcmp(desc->name, "cpu_writes") == 0) {
        *(uint64_t *)ctx += value;
    }
}

// Returns the writes of node 0's processor that its root complex passed on.
static uint64_t stores(const char *what)
{
    struct attach_fixture fixture;
    uint64_t writes = 0;
    attach_fixture_init(&fixture);
    fixture.options.counter = writes_count;
    fixture.options.ctx = &writes;
    attach_fixture_add(&fixture, 1, "backend", what, NULL);
    attach_fixture_add(&fixture, 0, "backend", what, NULL);
    attach_fixture_run(&fixture);
    expect_good(&fixture);
    expect_printed(&fixture, 0, "0\n");
    attach_fixture_fini(&fixture);
    return writes;
}

// From the second word of a line of 64 B on: 600 stores of a word are 7 words of a line, 74 lines and a word; four
// stores of 40000 B, more than their list holds, are 7 words, 624 lines and a word each. What the boot has written is in both.
TEST(AttachedBackend, StoresBeyondTheRoomOfTheirListArriveAsTheyWereMadeAndLeaveLineByLine)
{
    uint64_t many = stores("many"), four_long = stores("long");
    EXPECT_EQ(four_long - many, 4 * 626 - 76);
}

// One call delivers a store to a GPU's window; without a store there is none.
TEST(AttachedBackend, WhatWasCopiedToAnyGpuIsSentWhenALibraryAsksForIt)
{
    expect_of_one("settle", "1 0\n1 0\n");
}

// --- GPUs and threads -----------------------------------------------------------------------------------------------

// The order, then: both GPUs gave out the same address, and a kernel gets all of an allocation and its second half, but
// neither a byte more nor as much from its middle on.
TEST(AttachedBackend, KernelsComputeInTheirOrderAndReachNoMoreThanTheirAllocation)
{
    expect_of_one("kernels", "abc 1 1 1 0 0\n");
}

TEST(AttachedBackend, AThreadOfALibraryCanBeStartedAgain)
{
    struct attach_fixture fixture;
    unsigned first = 0, second = 0;
    attach_fixture_init(&fixture);
    attach_fixture_add(&fixture, 0, "backend", "helper", NULL);
    attach_fixture_run(&fixture);
    expect_good(&fixture);
    char *text = attach_fixture_output(&fixture, 0);
    ASSERT_EQ(sscanf(text, "%u\n%u\n", &first, &second), 2);
    EXPECT_BETWEEN(first, 5, 10); // pauses of 1 us in 10 us
    EXPECT_BETWEEN(second, 5, 10);
    free(text);
    attach_fixture_fini(&fixture);
}

// --- the journal ----------------------------------------------------------------------------------------------------

static void summary_take(void *ctx, observe_t *observe)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    observe_summary_yaml(observe, out);
    (void)fclose(out);
    *(char **)ctx = text;
}

TEST(AttachedBackend, RecordsBeyondTheRoomBetweenTwoCallsAreKept)
{
    struct attach_fixture fixture;
    char *summary = NULL;
    attach_fixture_init(&fixture);
    fixture.options.summary = true;
    fixture.options.observed = summary_take;
    fixture.options.ctx = &summary;
    attach_fixture_add(&fixture, 0, "backend", "records", NULL);
    attach_fixture_run(&fixture);
    expect_good(&fixture);
    ASSERT_NOT_NULL(summary);
    EXPECT_CONTAINS(summary, "registrations: 2048\n");
    free(summary);
    attach_fixture_fini(&fixture);
}

struct said {
    unsigned freed, unmapped;
};

static void line_take(void *ctx, const char *line)
{
    struct said *said = ctx;
    said->freed += strstr(line, "was freed while it is registered") != NULL;
    said->unmapped += strstr(line, "was unmapped while it is registered") != NULL;
}

TEST(AttachedBackend, EachRegionIsReportedWhoseMemoryIsFreedOrUnmappedAndNoOther)
{
    struct attach_fixture fixture;
    struct said said = {0};
    attach_fixture_init(&fixture);
    fixture.options.check = true;
    fixture.options.diagnosis = line_take;
    fixture.options.ctx = &said;
    attach_fixture_add(&fixture, 0, "backend", "regions", NULL);
    attach_fixture_run(&fixture);
    expect_good(&fixture);
    expect_printed(&fixture, 0, "3\n");
    EXPECT_EQ(fixture.result.findings, 3);
    EXPECT_EQ(said.freed, 2);
    EXPECT_EQ(said.unmapped, 1);
    attach_fixture_fini(&fixture);
}

// The first and the last bytes, and not what is behind them. Not every machine lets a user have breakpoints.
TEST(AttachedBackend, AnAccessToTheEndsOfAWatchedBufferIsNoticed)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    fixture.options.check = true;
    attach_fixture_add(&fixture, 0, "backend", "watch", NULL);
    attach_fixture_run(&fixture);
    expect_good(&fixture);
    char *text = attach_fixture_output(&fixture, 0);
    if (strcmp(text, "none\n") != 0) {
        EXPECT_STREQ(text, "64: 1 1 0\n61: 1 1 0\n9: 1 1 0\n8: 1 1 0\n3: 1 1 0\n");
    }
    free(text);
    attach_fixture_fini(&fixture);
}
