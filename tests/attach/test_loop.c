// Loops of looks in vain: what a thread's repetitions let it skip (verbs-shim/attach/loop.h).
#include <string.h>

#include "tests/shim/test.h"
#include "verbs-shim/attach/loop.h"

static struct loop loop;

static uint64_t look(uint64_t key)
{
    struct loop_look turn[LOOP_LOOKS_MAX];
    unsigned period;
    return loop_look(&loop, &(struct loop_look){.key = key, .own_ps = 20000}, turn, &period);
}

// Returns after how many looks the first turns were skipped; 0: none were.
static unsigned row(unsigned looks)
{
    for (unsigned i = 1; i <= looks; i++) {
        uint64_t turns = look(1);
        loop_skipped(&loop, 0, false);
        if (turns != 0) {
            return i;
        }
    }
    return 0;
}

static void learn(unsigned rows)
{
    for (unsigned i = 0; i < rows; i++) {
        (void)row(20);
        loop_end(&loop, true);
    }
}

TEST(AttachedLoops, AreExactForTheirFirstTurns)
{
    memset(&loop, 0, sizeof loop);
    EXPECT_EQ(row(255), 0);
    EXPECT_BETWEEN(row(10), 1, 2);
}

TEST(AttachedLoops, ThatAlwaysFoundSomethingAreKnownByTheirFirstLook)
{
    memset(&loop, 0, sizeof loop);
    learn(7);
    EXPECT_EQ(row(20), 0);
    loop_end(&loop, true);
    EXPECT_EQ(row(20), 1);
}

TEST(AttachedLoops, ThatWereGivenUpAreExactForTwiceAsLong)
{
    memset(&loop, 0, sizeof loop);
    learn(8);
    (void)row(1);
    loop_end(&loop, true);
    for (unsigned i = 0; i < 300; i++) {
        (void)look(1);
    }
    loop_end(&loop, false);
    EXPECT_EQ(row(599), 0);
}

TEST(AttachedLoops, OfSeveralLooksAreOneTurn)
{
    memset(&loop, 0, sizeof loop);
    struct loop_look turn[LOOP_LOOKS_MAX];
    unsigned period = 0;
    uint64_t turns = 0, looks = 0;
    while (turns == 0 && looks < 2000) {
        turns = loop_look(&loop, &(struct loop_look){.key = 1 + looks % 3, .own_ps = 10000, .place = looks % 3}, turn,
                          &period);
        loop_skipped(&loop, 0, false);
        looks++;
    }
    EXPECT_EQ(period, 3);
    EXPECT_BETWEEN(looks, 3 * 255, 3 * 258);
    EXPECT_EQ(turn[1].place, (turn[0].place + 1) % 3);
}

TEST(AttachedLoops, LookAtEverythingTwiceBeforeTheyAreLedOnAfterAWrite)
{
    memset(&loop, 0, sizeof loop);
    learn(8);
    EXPECT_EQ(look(1) != 0, true);
    loop_skipped(&loop, 5, true);
    EXPECT_EQ(look(1), 0);
    loop_skipped(&loop, 0, false);
    EXPECT_EQ(look(1), 0);
    loop_skipped(&loop, 0, false);
    EXPECT_EQ(look(1) != 0, true);
}
