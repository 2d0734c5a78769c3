// The poll policy by itself: which writes an empty poll sees, and to which poll of its loop a thread is fast-forwarded.
// There is no simulator in these tests.
#include "sim/attach/poll_policy.h"
#include "tests/shim/test.h"

enum { WORD = 0x1000, OTHER_WORD = 0x2000 };

// A loop of two polls, 40 ns apart, in iterations of 100 ns.
static struct poll_loop two_polls(void)
{
    const struct attach_args_poll args = {
        .iterations = 1000,
        .iteration_ps = 100000,
        .polled = {.poll_count = 2,
                   .polls = {{.after_ps = 0, .bus_address = WORD}, {.after_ps = 40000, .bus_address = OTHER_WORD}}}};
    return poll_loop_of(&args, 0, 10000);
}

static bool write_to(struct poll_loop *loop, uint64_t address, const struct poll_region *region, int unrelated)
{
    return poll_loop_sees(loop, &(struct poll_write){.pinned = true,
                                                     .ignored = region == NULL,
                                                     .address = address,
                                                     .bytes = 8,
                                                     .region = region,
                                                     .unrelated = unrelated});
}

TEST(PollPolicy, APollSeesAWriteToItsWordAlsoWhereTheMemoryIsQuiet)
{
    struct poll_loop loop = two_polls();
    EXPECT_FALSE(write_to(&loop, 0x3000, NULL, 0));
    EXPECT_FALSE(loop.seen);
    EXPECT_TRUE(write_to(&loop, OTHER_WORD, NULL, 0));
    EXPECT_TRUE(loop.seen);
    EXPECT_EQ(loop.hit, 1u);
    EXPECT_TRUE(write_to(&loop, WORD, NULL, 0));
    EXPECT_EQ(loop.hit, 1u); // the first write decides
}

TEST(PollPolicy, AWriteIsSeenByTheNextPollOfTheWord)
{
    struct poll_loop loop = two_polls();
    (void)write_to(&loop, OTHER_WORD, NULL, 0);
    // Iterations begin at 0, 100 ns, ...; the second poll is at 40 ns, 140 ns, ...
    EXPECT_EQ(poll_loop_leave(&loop, 0, 30000, true), 0u);
    EXPECT_EQ(loop.skipped, 0u);
    EXPECT_EQ(poll_loop_leave(&loop, 0, 40000, true), 0u); // the write comes exactly at the time of the poll
    EXPECT_EQ(poll_loop_leave(&loop, 0, 41000, true), 100000u);
    EXPECT_EQ(loop.skipped, 1u);
    EXPECT_EQ(poll_loop_leave(&loop, 0, 540000, true), 500000u);
    EXPECT_EQ(loop.skipped, 5u);
}

TEST(PollPolicy, OfAStoreTheFirstPollBehindAChangedPageSeesIt)
{
    struct poll_loop loop = two_polls();
    loop.stored = 1u << 0 | 1u << 1;
    EXPECT_EQ(poll_loop_leave(&loop, 0, 20000, true), 0u); // by the second poll, at 40 ns
    EXPECT_EQ(loop.hit, 1u);
    EXPECT_EQ(poll_loop_leave(&loop, 0, 50000, true), 100000u); // by the first one, at 100 ns
    EXPECT_EQ(loop.hit, 0u);
}

TEST(PollPolicy, WithoutAnythingTheThreadGoesOnAtTheEndOfItsIterations)
{
    struct poll_loop loop = two_polls();
    EXPECT_EQ(poll_loop_end_ps(&loop, 1000, 3), 301000u);
    EXPECT_EQ(poll_loop_leave(&loop, 1000, 301000, false), 301000u);
    EXPECT_EQ(loop.skipped, 3u);
    // At most a second of simulated time, however many iterations are requested.
    EXPECT_EQ(poll_loop_end_ps(&loop, 0, UINT64_MAX), UINT64_C(1000000000000));
}

TEST(PollPolicy, ARegionOfUnrelatedWritesIsNotReadUntilOneIsUsed)
{
    const struct poll_region region = {.kind = 4, .number = 7};
    int unrelated = 0, writes = 0;
    struct poll_loop loop = two_polls();
    while (write_to(&loop, 0x8000, &region, unrelated) && writes < 1000) {
        enum poll_outcome outcome = POLL_OUTCOME_NONE;
        for (unsigned polls = 0; outcome == POLL_OUTCOME_NONE && polls < 10; polls++) {
            outcome = poll_loop_outcome(&loop, true); // the streak goes on: the write was unrelated
        }
        EXPECT_EQ(outcome, POLL_OUTCOME_UNRELATED);
        unrelated = poll_region_note(unrelated, outcome);
        writes++;
    }
    EXPECT_EQ(writes, 16);
    EXPECT_EQ(poll_loop_outcome(&loop, false), POLL_OUTCOME_USED); // the thread does something after a write
    unrelated = poll_region_note(unrelated, POLL_OUTCOME_USED);
    EXPECT_TRUE(write_to(&loop, 0x8000, &region, unrelated));
}

TEST(PollPolicy, WhatAThreadDoesAfterAPollSawAWriteTellsNothingOfOtherRegions)
{
    const struct poll_region region = {.kind = 4, .number = 7};
    struct poll_loop loop = two_polls();
    EXPECT_TRUE(write_to(&loop, 0x8000, &region, 0));
    EXPECT_TRUE(write_to(&loop, WORD, NULL, 0));
    EXPECT_EQ(poll_loop_outcome(&loop, false), POLL_OUTCOME_NONE);
}

TEST(PollPolicy, AWriteBurstToOneRegionIsOneWrite)
{
    const struct poll_region region = {.kind = 4, .number = 7};
    struct poll_loop loop = two_polls();
    EXPECT_TRUE(write_to(&loop, 0x8000, &region, 0));
    EXPECT_EQ(poll_loop_outcome(&loop, true), POLL_OUTCOME_NONE);
    EXPECT_TRUE(write_to(&loop, 0x8008, &region, 0)); // does not restart the count
    unsigned polls = 1;
    while (poll_loop_outcome(&loop, true) == POLL_OUTCOME_NONE && polls < 100) {
        polls++;
    }
    EXPECT_EQ(polls + 1, 5u); // both polls twice, and one more
}

TEST(PollPolicy, AnotherPollersTurnsAreLookedAtLateByAnEighthOfTheWait)
{
    struct poll_loop loop = two_polls();
    poll_loop_continue(&loop, &loop, false, false, 0);
    EXPECT_TRUE(poll_loop_others(&loop, false, 1000)); // the other thread did something: at once
    EXPECT_FALSE(poll_loop_others(&loop, true, 1100));
    EXPECT_TRUE(poll_loop_others(&loop, true, 1200));
    EXPECT_FALSE(poll_loop_others(&loop, true, 1300));
}

TEST(PollPolicy, ALoopOverWordsEndsWithAWriteToOneAlone)
{
    const struct attach_args_poll args = {
        .iterations = UINT64_MAX,
        .polled = {.word_count = 2,
                   .words = {{.address = WORD, .bytes = 4, .pinned = 1}, {.address = 0x7000, .bytes = 8}}}};
    struct poll_loop loop = poll_loop_of(&args, 25000, 10000);
    EXPECT_EQ(loop.iteration_ps, 25000u);
    EXPECT_EQ(poll_loop_end_ps(&loop, 5, 1), UINT64_MAX);
    EXPECT_FALSE(write_to(&loop, WORD + 4, NULL, 0));
    EXPECT_FALSE(write_to(&loop, 0x7000, NULL, 0)); // pinned memory at this bus address is another word
    EXPECT_TRUE(write_to(&loop, WORD + 3, NULL, 0));
}

TEST(PollPolicy, AWordIsSeenInALargerWriteThatBeginsBeforeIt)
{
    const struct attach_args_poll args = {
        .polled = {.word_count = 1, .words = {{.address = WORD, .bytes = 4, .pinned = 1}}}};
    struct poll_loop loop = poll_loop_of(&args, 25000, 10000);
    struct poll_write write = {.pinned = true, .address = WORD - 60, .bytes = 60};
    EXPECT_FALSE(poll_loop_sees(&loop, &write));
    write.bytes = 61;
    EXPECT_TRUE(poll_loop_sees(&loop, &write));
}

TEST(PollPolicy, NumbersOfAHostileProgramAreBounded)
{
    struct attach_args_poll args = {.iterations = UINT64_MAX, .iteration_ps = UINT64_MAX};
    args.polled.poll_count = UINT32_MAX;
    struct poll_loop loop = poll_loop_of(&args, 0, 10000);
    EXPECT_EQ(loop.poll_count, 0u);
    EXPECT_EQ(loop.iteration_ps, 1000000000u);
    EXPECT_GT(poll_loop_end_ps(&loop, UINT64_C(1) << 61, UINT64_MAX), UINT64_C(1) << 61);
    args = (struct attach_args_poll){.iteration_ps = 1};
    args.polled.word_count = UINT32_MAX;
    loop = poll_loop_of(&args, 0, 10000);
    EXPECT_EQ(loop.word_count, 0u);
    EXPECT_TRUE(loop.any_pinned);
    EXPECT_EQ(loop.iteration_ps, 10000u);
}
