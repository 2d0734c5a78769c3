// Sums of counters in expectations.
#include "fixture.h"

#include "sim/scenario/sum.h"

TEST(Sums, AreTakenApart)
{
    const char *text = "node0.E-node1.W.0.tlps_sent + 3 - *.replays";
    struct scn_term term;
    ASSERT_TRUE(scn_sum_next(&text, &term));
    EXPECT_STREQ(term.name, "node0.E-node1.W.0.tlps_sent");
    EXPECT_FALSE(term.minus || term.is_number);
    ASSERT_TRUE(scn_sum_next(&text, &term));
    EXPECT_TRUE(term.is_number);
    EXPECT_FALSE(term.minus);
    EXPECT_EQ(term.number, 3);
    ASSERT_TRUE(scn_sum_next(&text, &term));
    EXPECT_TRUE(term.minus);
    EXPECT_STREQ(term.name, "*.replays");
    EXPECT_FALSE(scn_sum_next(&text, &term));
}

TEST(Sums, MayHaveFactors)
{
    const char *text = "*.x - 256 * *.y_z + 2 * 3";
    struct scn_term term;
    ASSERT_TRUE(scn_sum_next(&text, &term));
    EXPECT_EQ(term.number, 1);
    ASSERT_TRUE(scn_sum_next(&text, &term));
    EXPECT_STREQ(term.name, "*.y_z");
    EXPECT_EQ(term.number, 256);
    EXPECT_TRUE(term.minus);
    ASSERT_TRUE(scn_sum_next(&text, &term));
    EXPECT_TRUE(term.is_number);
    EXPECT_EQ(term.number, 6);
}

TEST(Sums, AreRefusedIfATermCannotBeACounter)
{
    static const char *const good[] = {"a.b", "1", "-2", "a.b + 1", "a-b.c - 1.5", "256 * a.b - 2 * c.d"};
    static const char *const bad[] = {"",         "a",   "a.b+c.d",   "a.b + ",   "a.b + c", "a.b  + c.d",
                                      "a.b, c.d", " + ", "a.b * c.d", "256 *a.b", "2 * c"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        TEST_TRACE("'%s'", good[i]);
        EXPECT_TRUE(scn_sum_is_valid(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        TEST_TRACE("'%s'", bad[i]);
        EXPECT_FALSE(scn_sum_is_valid(bad[i]));
    }
}

TEST(Sums, MeanAllCountersThatAPatternMatches)
{
    const char *one = "node0.hca.retries", *all = "*.retries";
    struct scn_term term;
    ASSERT_TRUE(scn_sum_next(&one, &term));
    EXPECT_TRUE(scn_term_matches(&term, "node0.hca.retries"));
    EXPECT_FALSE(scn_term_matches(&term, "node1.hca.retries"));
    ASSERT_TRUE(scn_sum_next(&all, &term));
    EXPECT_TRUE(scn_term_matches(&term, "node1.hca.retries"));
    EXPECT_FALSE(scn_term_matches(&term, "node1.hca.retries_left"));
}
