// Loops of empty polls: which polls a thread may skip, given its repetitions (verbs-shim/attach/loop.h).
#include <string.h>

#include "tests/shim/test.h"
#include "verbs-shim/attach/loop.h"

static struct loop loop;

static uint64_t poll(uint64_t key)
{
    struct loop_poll iteration[LOOP_POLLS_MAX];
    unsigned period;
    return loop_poll_note(&loop, &(struct loop_poll){.key = key, .own_ps = 20000}, iteration, &period);
}

// Returns the number of polls after which the first iterations were skipped; 0: none were skipped.
static unsigned streak(unsigned polls)
{
    for (unsigned i = 1; i <= polls; i++) {
        uint64_t iterations = poll(1);
        loop_skipped(&loop, 0, false);
        if (iterations != 0) {
            return i;
        }
    }
    return 0;
}

static void learn(unsigned streaks)
{
    for (unsigned i = 0; i < streaks; i++) {
        (void)streak(20);
        loop_end(&loop, true);
    }
}

TEST(AttachedLoops, AreExactForTheirFirstIterations)
{
    memset(&loop, 0, sizeof loop);
    EXPECT_EQ(streak(255), 0);
    EXPECT_BETWEEN(streak(10), 1, 2);
}

TEST(AttachedLoops, ThatAlwaysFoundSomethingAreKnownByTheirFirstPoll)
{
    memset(&loop, 0, sizeof loop);
    learn(7);
    EXPECT_EQ(streak(20), 0);
    loop_end(&loop, true);
    EXPECT_EQ(streak(20), 1);
}

TEST(AttachedLoops, ThatWereGivenUpAreExactForTwiceAsLong)
{
    memset(&loop, 0, sizeof loop);
    learn(8);
    (void)streak(1);
    loop_end(&loop, true);
    for (unsigned i = 0; i < 300; i++) {
        (void)poll(1);
    }
    loop_end(&loop, false);
    EXPECT_EQ(streak(599), 0);
}

TEST(AttachedLoops, OfSeveralPollsAreOneIteration)
{
    memset(&loop, 0, sizeof loop);
    struct loop_poll iteration[LOOP_POLLS_MAX];
    unsigned period = 0;
    uint64_t iterations = 0, polls = 0;
    while (iterations == 0 && polls < 2000) {
        iterations =
            loop_poll_note(&loop, &(struct loop_poll){.key = 1 + polls % 3, .own_ps = 10000, .bus_address = polls % 3},
                           iteration, &period);
        loop_skipped(&loop, 0, false);
        polls++;
    }
    EXPECT_EQ(period, 3);
    EXPECT_BETWEEN(polls, 3 * 255, 3 * 258);
    EXPECT_EQ(iteration[1].bus_address, (iteration[0].bus_address + 1) % 3);
}

TEST(AttachedLoops, PollEverythingTwiceBeforeTheyAreFastForwardedAfterAWrite)
{
    memset(&loop, 0, sizeof loop);
    learn(8);
    EXPECT_NE(poll(1), 0);
    loop_skipped(&loop, 5, true);
    EXPECT_EQ(poll(1), 0);
    loop_skipped(&loop, 0, false);
    EXPECT_EQ(poll(1), 0);
    loop_skipped(&loop, 0, false);
    EXPECT_NE(poll(1), 0);
}

// Between the polls of an iteration the thread reads memory that others write to, and no poll names it.
TEST(AttachedLoops, OfAProcessThatSharesMemoryAreSkippedWhenOneKnowsWhatTheyRead)
{
    memset(&loop, 0, sizeof loop);
    learn(8);
    loop.shares = true;
    EXPECT_EQ(poll(1), 0); // it might be skipped; its reads up to the next poll are noted
    EXPECT_TRUE(loop_learns(&loop));
    loop_skipped(&loop, 0, false);
    EXPECT_EQ(poll(1), 0);
    EXPECT_FALSE(loop_learns(&loop));
    loop_skipped(&loop, 0, false);
    EXPECT_GT(poll(1), 0);
}

// The 1st, 2nd, 4th, 8th ... skip after which nothing was written.
TEST(AttachedLoops, ThatGoOnForLongLearnTheirPagesAgainMoreAndMoreRarely)
{
    const struct loop_pages pages = {0};
    unsigned learned = 0, skips = 0;
    memset(&loop, 0, sizeof loop);
    learn(8);
    loop.shares = true;
    while (skips < 100) {
        bool before = loop_learns(&loop);
        uint64_t iterations = poll(1);
        learned += loop_learns(&loop) && !before;
        if (before && !loop_learns(&loop)) {
            struct loop_pages others = pages;
            others.list[others.count++] = UINT64_C(4096) * learned; // others each time: nothing is kept
            loop_pages_learned(&loop, &others);
        }
        skips += iterations != 0;
        loop_skipped(&loop, iterations, false);
    }
    EXPECT_BETWEEN(learned, 7, 8); // before the first skip, and after 1, 2, 4, 8, 16, 32 and 64
}

TEST(AttachedLoops, EndWhereAnotherProcessHasStoredWhatTheyRead)
{
    memset(&loop, 0, sizeof loop);
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_EQ(streak(20), 0);
        loop_stored(&loop);
    }
    EXPECT_EQ(loop.iterations, 0);
    EXPECT_BETWEEN(streak(20), 2, 4); // trusted, and polls twice by itself
}

TEST(AttachedLoops, ThatReadAClockAreLateByOnePercent)
{
    memset(&loop, 0, sizeof loop);
    struct loop_poll iteration[LOOP_POLLS_MAX];
    unsigned period;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t iterations =
            loop_poll_note(&loop, &(struct loop_poll){.key = 1, .own_ps = 10000, .clock = true}, iteration, &period);
        EXPECT_LE(iterations, loop.iterations / 100);
        loop_skipped(&loop, iterations, false);
    }
    EXPECT_GT(loop.iterations, 1000000);
}
