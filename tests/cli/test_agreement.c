// What `tcasim crosscheck` lets pass and what it does not.
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
    const struct plat_point point = {"s", 64, 1, 10, 1000000, 100000, 100000};
    *pair = (struct pair){.points = {point, point}, .counters = {{"board", &tlps, 7}, {"board", &tlps, 7}}};
    pair->rtl = (struct agreement_side){&pair->points[0], 1, &pair->counters[0], 1};
    pair->twin = (struct agreement_side){&pair->points[1], 1, &pair->counters[1], 1};
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
