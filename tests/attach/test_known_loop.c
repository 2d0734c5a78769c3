// Known loops by themselves: at which poll a thread goes on. There is no simulator in these tests.
#include "sim/attach/known_loop.h"
#include "sim/attach/poll_policy.h"
#include "tests/shim/test.h"

enum { WORD = 0x1000, OTHER_WORD = 0x2000, VARIABLE = 0x40007000, COUNTER = 0x8000, START = 5000000 };

// Two polls, 40 ns apart, in iterations of 100 ns, that began at START. It reads a variable, too.
static struct known_loop *two_polls(uint64_t iterations)
{
    static struct attach_slot slot;
    static struct known_loop loop;
    const struct attach_args_poll args = {.iterations = iterations, .iteration_ps = 100000};
    slot.loop_poll_count = 2;
    slot.loop_polls[0] = (struct attach_iteration_poll){.after_ps = 0, .bus_address = WORD};
    slot.loop_polls[1] = (struct attach_iteration_poll){.after_ps = 40000, .bus_address = OTHER_WORD};
    slot.loop_word_count = 1;
    slot.loop_words[0] = (struct attach_loop_word){.address = VARIABLE, .mask = UINT64_MAX};
    slot.loop_changes = (struct attach_loop_changes){.count = 2, .addresses = {COUNTER, COUNTER + 64}};
    known_loop_take(&loop, &args, &slot);
    return &loop;
}

static bool written(struct known_loop *loop, bool pinned, uint64_t address, uint64_t at_ps)
{
    return known_loop_written(loop, &(struct poll_write){.pinned = pinned, .address = address, .bytes = 8}, at_ps);
}

static void expect_at(const struct known_loop *loop, uint64_t seen_ps, unsigned hit, bool own)
{
    EXPECT_EQ(loop->seen_ps, seen_ps);
    EXPECT_EQ(loop->hit, hit);
    EXPECT_EQ(loop->own, own);
}

TEST(KnownLoop, GoesOnAtThePollThatIsCarriedOutWhenSomethingComes)
{
    struct known_loop *loop = two_polls(1000);
    known_loop_start(loop, START, 1000);
    EXPECT_TRUE(written(loop, true, OTHER_WORD, START + 300001));
    expect_at(loop, START + 340000, 1, true); // the second poll, which reads that word
    EXPECT_EQ(known_loop_iterations(loop), 3u);
}

TEST(KnownLoop, GoesOnAtAnotherPollThatFindsNothing)
{
    struct known_loop *loop = two_polls(1000);
    known_loop_start(loop, START, 1000);
    EXPECT_TRUE(written(loop, true, WORD, START + 300001));
    expect_at(loop, START + 340000, 1, false);
}

TEST(KnownLoop, APollSeesWhatComesAtItsVeryEnd)
{
    struct known_loop *loop = two_polls(1000);
    known_loop_start(loop, START, 1000);
    EXPECT_TRUE(written(loop, true, WORD, START + 200000));
    expect_at(loop, START + 200000, 0, true);
    EXPECT_EQ(known_loop_iterations(loop), 2u);
}

TEST(KnownLoop, SeesWhatComesWhileItsFirstPollIsPaidFor)
{
    struct known_loop *loop = two_polls(1000);
    EXPECT_TRUE(written(loop, true, WORD, START - 1000));
    known_loop_start(loop, START, 1000);
    expect_at(loop, START, 0, true);
    loop = two_polls(1000);
    EXPECT_TRUE(written(loop, true, OTHER_WORD, START - 1000));
    known_loop_start(loop, START, 1000);
    expect_at(loop, START, 0, false);
}

// Of which the word is at the beginning, in the middle and at the end.
TEST(KnownLoop, SeesAWriteOfAnyLengthThatCoversAWord)
{
    static const uint32_t lengths[] = {8, 0x10, 0x1008, 0x9000, 0x50000, 0x1000000};
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const uint64_t before[] = {0, lengths[i] / 2, lengths[i] - 1};
        for (unsigned k = 0; k < sizeof before / sizeof before[0]; k++) {
            struct known_loop *loop = two_polls(1000);
            known_loop_start(loop, START, 1000);
            const struct poll_write write = {.address = VARIABLE - before[k], .bytes = lengths[i]};
            EXPECT_TRUE(known_loop_written(loop, &write, START + 1));
        }
    }
}

TEST(KnownLoop, SeesTheWordsThatItReadsAndNoOthers)
{
    struct known_loop *loop = two_polls(1000);
    known_loop_start(loop, START, 1000);
    EXPECT_FALSE(written(loop, false, VARIABLE + 8, START + 1));
    EXPECT_FALSE(written(loop, false, VARIABLE - 8, START + 1));
    EXPECT_FALSE(written(loop, true, VARIABLE, START + 1)); // another memory
    EXPECT_FALSE(written(loop, false, WORD, START + 1));
    EXPECT_TRUE(written(loop, false, VARIABLE + 7, START + 100001));
    expect_at(loop, START + 140000, 1, false);
}

TEST(KnownLoop, ChangesTheBytesThatItNames)
{
    struct known_loop *loop = two_polls(1000);
    EXPECT_TRUE(known_loop_changes(loop, COUNTER, 1));
    EXPECT_TRUE(known_loop_changes(loop, COUNTER + 63, 2));
    EXPECT_FALSE(known_loop_changes(loop, COUNTER + 8, 56));
    EXPECT_FALSE(known_loop_changes(loop, VARIABLE, 8));
    loop->changes.count = ATTACH_LOOP_CHANGES + 1; // not all are named
    EXPECT_TRUE(known_loop_changes(loop, VARIABLE, 8));
}

TEST(KnownLoop, CatchesUpWithItsLastPollBeforeNow)
{
    struct known_loop *loop = two_polls(1000);
    EXPECT_FALSE(known_loop_catch_up(loop, START + 50000)); // its first poll is not paid for yet
    known_loop_start(loop, START, 1000);
    EXPECT_FALSE(known_loop_catch_up(loop, START)); // this poll ends now
    EXPECT_TRUE(known_loop_catch_up(loop, START + 1));
    expect_at(loop, START, 0, false);
    EXPECT_EQ(known_loop_iterations(loop), 0u);
}

TEST(KnownLoop, CatchesUpWithAnyPollOfAnIteration)
{
    struct known_loop *loop = two_polls(1000);
    known_loop_start(loop, START, 1000);
    EXPECT_TRUE(known_loop_catch_up(loop, START + 340000));
    expect_at(loop, START + 300000, 0, false);
    EXPECT_EQ(known_loop_iterations(loop), 3u);
    loop = two_polls(1000);
    known_loop_start(loop, START, 1000);
    EXPECT_TRUE(known_loop_catch_up(loop, START + 340001));
    expect_at(loop, START + 340000, 1, false);
    EXPECT_FALSE(known_loop_catch_up(loop, START + 500000)); // it goes on there already
}

TEST(KnownLoop, GoesOnEarlyToThePollThatSeesWhatHasCome)
{
    struct known_loop *loop = two_polls(1000);
    known_loop_start(loop, START, 1000);
    EXPECT_TRUE(written(loop, true, WORD, START + 120000));
    EXPECT_TRUE(known_loop_catch_up(loop, START + 130000));
    EXPECT_TRUE(loop->early);
    expect_at(loop, START + 140000, 1, false);
    loop = two_polls(1000);
    EXPECT_TRUE(
        written(loop, true, WORD, START - 1000)); // its first poll is the one that sees it: nothing was made since
    known_loop_start(loop, START, 1000);
    EXPECT_FALSE(known_loop_catch_up(loop, START + 1));
    EXPECT_FALSE(loop->early);
}

TEST(KnownLoop, TheFirstOfTwoDecides)
{
    struct known_loop *loop = two_polls(1000);
    known_loop_start(loop, START, 1000);
    known_loop_sees(loop, START + 150000);
    expect_at(loop, START + 200000, 0, false);
    EXPECT_TRUE(written(loop, true, WORD, START + 190000)); // while the same poll is carried out
    expect_at(loop, START + 200000, 0, true);
}

TEST(KnownLoop, EndsAfterItsIterations)
{
    struct known_loop *loop = two_polls(7);
    known_loop_start(loop, START, 7);
    expect_at(loop, START + 700000, 0, false);
    EXPECT_EQ(known_loop_iterations(loop), 7u);
}

TEST(KnownLoop, PollsThatAreMadeOnceEndWithTheLastOne)
{
    struct known_loop *loop = two_polls(0);
    known_loop_start(loop, START, 0);
    expect_at(loop, START + 40000, 1, false);
    EXPECT_TRUE(written(loop, true, OTHER_WORD, START + 30000));
    expect_at(loop, START + 40000, 1, true);
    loop = two_polls(0);
    known_loop_start(loop, START, 0);
    EXPECT_TRUE(written(loop, true, OTHER_WORD, START));
    expect_at(loop, START, 0, false);
}

TEST(KnownLoop, OnlyOneThatPollsByCallsIsWokenByOtherPrograms)
{
    struct known_loop *loop = two_polls(1000000);
    known_loop_start(loop, START, 1000000);
    EXPECT_FALSE(known_loop_woken(loop, START + 150000));
    EXPECT_GE(loop->seen_ps, START + UINT64_C(100000000000));
    loop->outside = true;
    known_loop_start(loop, START, 1000000);
    EXPECT_LE(loop->seen_ps, START + UINT64_C(1000000000)); // then the kernel is asked again
    EXPECT_TRUE(known_loop_woken(loop, START + 150000));
    expect_at(loop, START + 200000, 0, false);
}

TEST(KnownLoop, NumbersOfAHostileProgramAreBounded)
{
    static struct attach_slot slot;
    static struct known_loop loop;
    const struct attach_args_poll args = {.iterations = UINT64_MAX, .iteration_ps = 0};
    slot.loop_poll_count = slot.loop_word_count = slot.loop_changes.count = UINT32_MAX;
    slot.loop_polls[0] = (struct attach_iteration_poll){.after_ps = UINT64_MAX};
    known_loop_take(&loop, &args, &slot);
    known_loop_start(&loop, START, UINT64_MAX);
    EXPECT_EQ(loop.poll_count, 1u);
    EXPECT_EQ(loop.word_count, 0u);
    EXPECT_TRUE(known_loop_changes(&loop, VARIABLE, 8));
    EXPECT_LE(loop.seen_ps, START + UINT64_C(2000000000000));
    known_loop_sees(&loop, START + 1);
    EXPECT_GE(loop.seen_ps, START + UINT64_C(1));
    EXPECT_LE(loop.seen_ps, START + UINT64_C(2));
}
