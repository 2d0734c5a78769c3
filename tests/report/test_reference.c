#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/report/compare.h"
#include "sim/report/reference.h"
#include "fixture.h"
#include "tests/shim/test.h"

// In hundredths of a percent, as compare.csv shows it.
static int64_t error_of(const char *published, double simulated)
{
    struct report_published parsed = report_published_parse(published);
    double percent = -1e9;
    EXPECT_TRUE(report_published_error(&parsed, simulated, &percent));
    return llround(percent * 100);
}

static void error_is(const char *published, double simulated, int64_t expected)
{
    EXPECT_BETWEEN(error_of(published, simulated), expected, expected);
}

TEST(Published, NumbersGiveTheirRelativeError)
{
    error_is("3.3", 3.3, 0);
    error_is("3.3", 3.63, 1000);
    error_is("2.4", 2.28, -500);
    error_is("1590", 1589, -6);
}

TEST(Published, RangesGiveNoErrorInside)
{
    error_is("1.30-1.40", 1.30, 0);
    error_is("1.30-1.40", 1.35, 0);
    error_is("2-8", 8, 0);
}

TEST(Published, RangesGiveTheErrorToTheNearestEnd)
{
    error_is("2-8", 10, 2500);
    error_is("2-8", 1, -5000);
    error_is("2.3-2.5", 2.185, -500);
}

TEST(Published, BoundsGiveNoErrorOnTheirSide)
{
    error_is("<5.0", 4.2, 0);
    error_is(">=0.9", 0.95, 0);
    error_is("<=5.0", 5.0, 0);
}

TEST(Published, BoundsGiveTheErrorBeyond)
{
    error_is("<5.0", 5.5, 1000);
    error_is(">=0.9", 0.45, -5000);
}

TEST(Published, TextsGiveNoError)
{
    static const char *const texts[] = {"order", "about equal", "-", "", "5.6 5.7 6.0 6.6", "3.7 / 1.4", "1.2.3",
                                        "8-2",   "480 KB",      "1-", "<", "inf", "nan", "-3"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct report_published parsed = report_published_parse(texts[i]);
        double percent = 0.0;
        if (report_published_error(&parsed, 1.0, &percent)) {
            FAIL("'%s' was taken for a number", texts[i]);
        }
    }
}

// "ok" within 5 %, "near" within 15 %, "off" beyond.
TEST(Comparison, IsMarkedByItsErrorInEitherDirection)
{
    static const struct {
        double percent;
        const char *mark;
    } cases[] = {{0, "ok"},    {5, "ok"},     {-5, "ok"},  {6, "near"},  {-6, "near"},
                 {15, "near"}, {-15, "near"}, {16, "off"}, {-16, "off"}, {-50, "off"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TEST_TRACE("%g %%", cases[i].percent);
        struct report_reference reference = {.use = "predict"};
        const struct report_comparison comparison = {
            .reference = &reference, .has_error = true, .error_percent = cases[i].percent};
        EXPECT_STREQ(report_comparison_mark(&comparison), cases[i].mark);
        reference.use = "disputed";
        EXPECT_STREQ(report_comparison_mark(&comparison), "");
    }
}

TEST(References, TheProjectsTableIsReadWhole)
{
    static const char *const uses[] = {"calibrate", "predict", "disputed", "context"};
    struct report_references references = {0};
    ASSERT_EQ(report_references_read(&references, FIXTURE_REFERENCE), SIM_OK);
    const struct report_reference *found = report_references_find(&references, "H08");
    ASSERT_NOT_NULL(found);
    EXPECT_STREQ(found->value, "0.9");
    EXPECT_STREQ(found->unit, "us");
    EXPECT_STREQ(found->use, "calibrate");
    EXPECT_STREQ(found->doubt, "");
    EXPECT_NULL(report_references_find(&references, "H00"));
    EXPECT_NOT_NULL(report_references_find(&references, "K11"));
    for (size_t i = 0; i < references.count; i++) {
        const struct report_reference *row = &references.rows[i];
        TEST_TRACE("%s", row->id);
        const char *use = "another";
        for (size_t k = 0; k < sizeof uses / sizeof uses[0]; k++) {
            use = strcmp(row->use, uses[k]) == 0 ? uses[k] : use;
        }
        EXPECT_STREQ(row->use, use);
        if (strcmp(use, "disputed") == 0) {
            EXPECT_STRNE(row->doubt, ""); // a published value is doubted for a reason
        }
    }
    report_references_free(&references);
}

TEST(References, AMissingTableIsAnInputError)
{
    struct report_references references = {0};
    EXPECT_EQ(report_references_read(&references, "/nonexistent/papers.csv"), SIM_ERR_IO);
    EXPECT_EQ(report_references_read(&references, "/"), SIM_ERR_IO);
}

TEST(References, ATableWithAnotherHeadIsRefused)
{
    struct fixture fixture;
    fixture_create(&fixture);
    struct report_references references = {0};
    EXPECT_EQ(report_references_read(&references, fixture.input), SIM_ERR_INVALID);
    fixture_destroy(&fixture);
}
