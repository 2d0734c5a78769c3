// `expect:` after the run: numbers of series, and bounds.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"
#include "sim/report/expect.h"
#include "tests/shim/test.h"

static void outcomes_are(const struct fixture *fixture, unsigned failing, const char *expected)
{
    struct report_outcomes outcomes;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    report_outcomes_make(fixture->report, 0, &outcomes);
    report_outcomes_print(&outcomes, out);
    fclose(out);
    EXPECT_EQ(outcomes.failed, failing);
    EXPECT_STREQ(text, expected);
    report_outcomes_free(&outcomes);
    free(text);
}

static void expect_prints(double min, double max, const char *equals, unsigned failing, const char *expected)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    struct scn_check *check =
        fixture_expect_add(&fixture, "fast", fixture_value("pio", "latency_us", SCN_TAKE_MIN), min, max);
    snprintf(check->observed.equals, sizeof check->observed.equals, "%s", equals);
    outcomes_are(&fixture, failing, expected);
    fixture_destroy(&fixture);
}

TEST(Expect, HoldsOnItsBounds)
{
    expect_prints(1.0, 1.0, "", 0, "");
    expect_prints(-INFINITY, 1.5, "", 0, "");
    expect_prints(0.5, INFINITY, "", 0, "");
    expect_prints(-INFINITY, INFINITY, "1", 0, "");
}

TEST(Expect, SaysByHowMuchItFails)
{
    expect_prints(2, 3, "", 1, "expect 'fast' does not hold: 1 is not within 2 .. 3\n");
    expect_prints(-INFINITY, 0.9, "", 1, "expect 'fast' does not hold: 1 is not at most 0.9\n");
    expect_prints(1.1, INFINITY, "", 1, "expect 'fast' does not hold: 1 is not at least 1.1\n");
    expect_prints(-INFINITY, INFINITY, "1.5", 1, "expect 'fast' does not hold: 1 is not 1.5\n");
}

TEST(Expect, NamesTheRowInWhichNothingWasMeasured)
{
    struct fixture fixture;
    const struct report_point nothing = {.series = "pio", .bytes = 16};
    fixture_create(&fixture);
    report_add_point(fixture.report, &nothing);
    fixture_expect_add(&fixture, "fast", fixture_value("pio", "latency_us", SCN_TAKE_MAX), -INFINITY, 9);
    outcomes_are(&fixture, 1, "expect 'fast' does not hold: nothing was measured in 'pio' at 16 B\n");
    fixture_destroy(&fixture);
}

TEST(Expect, FailsWhenNothingWasMeasured)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_expect_add(&fixture, "fast", fixture_value("pio", "latency_us", SCN_TAKE_MIN), 0, 9);
    outcomes_are(&fixture, 1, "expect 'fast' does not hold: no row of the results matches\n");
    fixture_destroy(&fixture);
}

TEST(Expect, JudgesTheSizesOfASweepOnceAsOneCurve)
{
    static const struct scn_sweep_point points[] = {{.label = "125 MHz, 8 B", .curve = "125 MHz"},
                                                    {.label = "125 MHz, 64 B", .curve = "125 MHz"}};
    static const struct scn_sweep sweep = {.title = "clock, bytes", .points = points, .point_count = 2};
    struct fixture fixture;
    fixture_create(&fixture);
    fixture.scenario->sweep = &sweep;
    fixture_row_add(&fixture, "pio, 125 MHz", 8, 1, 1000000);
    fixture_row_add(&fixture, "pio, 125 MHz", 64, 1, 2000000);
    fixture_expect_add(&fixture, "fast", fixture_value("pio", "latency_us", SCN_TAKE_MAX), 0, 1.5);
    outcomes_are(&fixture, 1, "expect 'fast, 125 MHz' does not hold: 2 is not within 0 .. 1.5\n");
    fixture_destroy(&fixture);
}

TEST(Expect, LeavesOutSeriesWhereTheyAreNotAskedFor)
{
    struct fixture fixture;
    struct report_outcomes outcomes;
    fixture_create(&fixture);
    fixture_expect_add(&fixture, "fast", fixture_value("pio", "latency_us", SCN_TAKE_MIN), 0, 9);
    report_outcomes_make(fixture.report, REPORT_EXPECT_NO_SERIES, &outcomes);
    EXPECT_EQ(outcomes.count, 0);
    report_outcomes_free(&outcomes);
    fixture_destroy(&fixture);
}
