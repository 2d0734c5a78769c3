#include "fixture.h"

#include <string.h>

#include "sim/scenario/names.h"

TEST(Names, DistanceCountsInsertionsDeletionsAndReplacements)
{
    EXPECT_EQ(scn_names_distance("poll", "poll"), 0);
    EXPECT_EQ(scn_names_distance("pol", "poll"), 1);
    EXPECT_EQ(scn_names_distance("kitten", "sitting"), 3);
    EXPECT_EQ(scn_names_distance("", "abc"), 3);
}

TEST(Names, DistanceOfAVeryLongNameIsBeyondEverything)
{
    char longer[200];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    EXPECT_EQ(scn_names_distance(longer, "a"), SIZE_MAX);
}

TEST(Names, NearestIsTheClosestOfThoseOffered)
{
    struct scn_nearest nearest;
    scn_nearest_init(&nearest, "memory_raed");
    scn_nearest_offer(&nearest, "memory");
    scn_nearest_offer(&nearest, "memory_write");
    scn_nearest_offer(&nearest, "memory_read");
    EXPECT_STREQ(nearest.name, "memory_read");
}

TEST(Names, NearestIsNothingWhenAllAreFar)
{
    struct scn_nearest nearest;
    scn_nearest_init(&nearest, "colour");
    scn_nearest_offer(&nearest, "memory");
    scn_nearest_offer(&nearest, "x");
    EXPECT_NULL(nearest.name);
}

TEST(Names, NearestIsNothingWhenTwoAreEquallyNear)
{
    struct scn_nearest nearest;
    scn_nearest_init(&nearest, "node7");
    scn_nearest_offer(&nearest, "node0");
    scn_nearest_offer(&nearest, "node1");
    EXPECT_NULL(nearest.name);
}

TEST(Names, PlainOnesHoldNoPathAndNoSpace)
{
    EXPECT_TRUE(scn_name_is_plain("xeon-e5_2670", false));
    EXPECT_TRUE(scn_name_is_plain("v1.2", true));
    EXPECT_FALSE(scn_name_is_plain("v1.2", false));
    EXPECT_FALSE(scn_name_is_plain("../x", true));
    EXPECT_FALSE(scn_name_is_plain("a/b", true));
    EXPECT_FALSE(scn_name_is_plain("", true));
}
