// What `tcasim crosscheck` accepts as equal and what it does not.
#include "sim/cli/agreement.h"

#include <stdlib.h>

#include "tests/shim/test.h"

static const struct sim_counter_desc tlps = {"tlps_sent", "TLPs", ""};
static const struct sim_counter_desc polls = {"poll_turns", "turns", ""};
static const struct sim_counter_desc wire = {"wire_bytes_sent", "bytes", ""};

struct pair {
    struct plat_point points[2];
    struct agreement_counter counters[2];
    struct agreement_side rtl, twin;
    struct agreement agreement;
    char *printed;
};

// Two equal sides of one point and one counter.
static void start(struct pair *pair)
{
    const struct plat_point point = {"s", 64, 1, 10, 1000000, 100000, 100000, 0, 0};
    *pair = (struct pair){.points = {point, point},
                          .counters = {{"board", &tlps, 7}, {"board", &tlps, 7}},
                          .agreement.rule = &agreement_of_twins};
    pair->rtl = (struct agreement_side){&pair->points[0], 1, &pair->counters[0], 1, ""};
    pair->twin = (struct agreement_side){&pair->points[1], 1, &pair->counters[1], 1, ""};
}

static void expect_wrong(struct pair *pair, size_t wrong)
{
    size_t size = 0;
    FILE *out = open_memstream(&pair->printed, &size);
    agreement_compare(&pair->rtl, &pair->twin, &pair->agreement, out);
    fclose(out);
    EXPECT_EQ(pair->agreement.wrong, wrong);
    if (wrong > 0) {
        EXPECT_CONTAINS(pair->printed, "DIFFERS");
    }
    free(pair->printed);
}

TEST(Agreement, HoldsForEqualSides)
{
    struct pair pair;
    start(&pair);
    expect_wrong(&pair, 0);
    EXPECT_EQ(pair.agreement.points, 1);
    EXPECT_EQ(pair.agreement.counters, 1);
}

TEST(Agreement, EndsBeyondOnePercentOfABandwidth)
{
    struct pair pair;
    start(&pair);
    pair.points[1].total_ps = 1009000;
    expect_wrong(&pair, 0);
    start(&pair);
    pair.points[1].total_ps = 1011000;
    expect_wrong(&pair, 1);
    start(&pair);
    pair.points[1].total_ps = 989000;
    expect_wrong(&pair, 1);
}

TEST(Agreement, EndsBeyondTwoPercentOfAnExtremeLatency)
{
    struct pair pair;
    start(&pair);
    pair.points[1].min_ps = 98100;
    pair.points[1].max_ps = 101900;
    expect_wrong(&pair, 0);
    start(&pair);
    pair.points[1].min_ps = 97900;
    expect_wrong(&pair, 1);
    start(&pair);
    pair.points[1].max_ps = 102100;
    expect_wrong(&pair, 1);
}

TEST(Agreement, EndsAtAnyDifferenceOfWhatMoved)
{
    struct pair pair;
    start(&pair);
    pair.points[1].bytes++;
    expect_wrong(&pair, 1);
    start(&pair);
    pair.points[1].operations++;
    expect_wrong(&pair, 1);
    start(&pair);
    pair.counters[1].value++;
    expect_wrong(&pair, 1);
}

TEST(Agreement, EndsWhereAPointOrACounterIsMissing)
{
    struct pair pair;
    start(&pair);
    pair.twin.point_count = 0;
    expect_wrong(&pair, 1);
    start(&pair);
    pair.rtl.counter_count = 0;
    expect_wrong(&pair, 1);
    start(&pair);
    pair.counters[1].component = "host";
    expect_wrong(&pair, 1);
}

TEST(Agreement, ShowsButDoesNotHoldWhatFollowsFromLatencies)
{
    struct pair pair;
    start(&pair);
    pair.counters[0] = (struct agreement_counter){"host", &polls, 5};
    pair.counters[1] = (struct agreement_counter){"host", &polls, 6};
    expect_wrong(&pair, 0);
    start(&pair);
    pair.counters[0] = (struct agreement_counter){"link", &wire, 5};
    pair.counters[1] = (struct agreement_counter){"link", &wire, 6};
    expect_wrong(&pair, 0);
}

TEST(Agreement, EndsWhereOnlyOneSideFails)
{
    struct pair pair;
    start(&pair);
    pair.rtl.ending = pair.twin.ending = "got stuck:\nnode0 waits";
    expect_wrong(&pair, 0);
    start(&pair);
    pair.twin.ending = "got stuck:\nnode0 waits";
    expect_wrong(&pair, 1);
}

TEST(Agreement, HoldsThePointsThatWereNotMeasuredOnEither)
{
    struct pair pair;
    start(&pair);
    pair.points[0].operations = pair.points[1].operations = 0;
    expect_wrong(&pair, 0);
    start(&pair);
    pair.points[1].operations = 0;
    expect_wrong(&pair, 1);
}

// A node whose core has polled so many times, and a counter of the packets that passed.
static void expect_polled(uint64_t rtl_polls, uint64_t twin_polls, const char *component, uint64_t rtl, uint64_t twin,
                          size_t wrong)
{
    static const struct sim_counter_desc loads = {"poll_loads", "turns", ""};
    struct agreement_counter a[] = {{"n.core", &loads, rtl_polls}, {(char *)component, &tlps, rtl}};
    struct agreement_counter b[] = {{"n.core", &loads, twin_polls}, {(char *)component, &tlps, twin}};
    struct pair pair;
    start(&pair);
    pair.rtl.counters = a;
    pair.twin.counters = b;
    pair.rtl.counter_count = pair.twin.counter_count = 2;
    expect_wrong(&pair, wrong);
}

TEST(Agreement, LetsThePacketsOfPollingLoadsPassAndNoOther)
{
    expect_polled(5, 8, "n.slot.0", 100, 103, 0);
    expect_polled(8, 5, "n.slot.0", 103, 100, 0);
    expect_polled(5, 8, "n.slot.0", 100, 104, 1);
    expect_polled(5, 8, "n.slot.0", 103, 100, 1);
    expect_polled(5, 8, "m.slot.0", 100, 103, 1);
    expect_polled(5, 8, "n.E-m.W.0", 100, 103, 1);
}

TEST(Agreement, EndsTheCommandWithOneWhereSomethingDiffers)
{
    const struct agreement same = {.points = 3, .counters = 5}, different = {.points = 3, .counters = 5, .wrong = 1};
    EXPECT_EQ(agreement_exit(&same, CLI_EXIT_OK), 0);
    EXPECT_EQ(agreement_exit(&different, CLI_EXIT_OK), 1);
    EXPECT_EQ(agreement_exit(&same, CLI_EXIT_STUCK), 3);
    EXPECT_EQ(agreement_exit(&different, CLI_EXIT_INPUT), 2);
}
