#include <math.h>

#include "sim/report/value.h"
#include "fixture.h"
#include "tests/shim/test.h"

// In millionths; UINT64_MAX if nothing was found.
static uint64_t taken(const struct fixture *fixture, const struct scn_check *check)
{
    struct report_value value = report_value_take(fixture->report, check);
    return value.found ? (uint64_t)llround(value.value * 1e6) : UINT64_MAX;
}

static void takes(enum scn_take take, const char *column, uint64_t expected)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    const struct scn_check check = {.value = fixture_value("pio", column, take)};
    EXPECT_EQ(taken(&fixture, &check), expected);
    fixture_destroy(&fixture);
}

TEST(Values, MinimumMaximumMeanAndLastReduceTheRows)
{
    takes(SCN_TAKE_MIN, "latency_us", 1000000);
    takes(SCN_TAKE_MAX, "latency_us", 4000000);
    takes(SCN_TAKE_MEAN, "latency_us", 2333333);
    takes(SCN_TAKE_LAST, "latency_us", 4000000);
}

TEST(Values, EveryColumnHasItsUnit)
{
    takes(SCN_TAKE_MAX, "bytes", 4096000000);
    takes(SCN_TAKE_MAX, "bandwidth_GBps", 1024000);
    takes(SCN_TAKE_MAX, "descriptors", 1000000);
    takes(SCN_TAKE_MAX, "operations", 10000000);
    takes(SCN_TAKE_MIN, "min_latency_us", 999999);
    takes(SCN_TAKE_MAX, "max_latency_us", 4000001);
}

TEST(Values, ADifferenceSubtracts)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    struct scn_check check = {.value = fixture_value("pio", "latency_us", SCN_TAKE_MAX), .difference = true};
    check.over = fixture_value("pio", "latency_us", SCN_TAKE_MIN);
    EXPECT_EQ(taken(&fixture, &check), 3000000);
    check.over = fixture_value("nothing", "latency_us", SCN_TAKE_MIN);
    EXPECT_EQ(taken(&fixture, &check), UINT64_MAX);
    fixture_destroy(&fixture);
}

TEST(Values, ADifferenceHasTheUnitOfItsColumnAndARatioHasNone)
{
    struct scn_check check = {.value = fixture_value("pio", "latency_us", SCN_TAKE_MAX)};
    double scale;
    check.over = fixture_value("pio", "latency_us", SCN_TAKE_MIN);
    EXPECT_TRUE(!report_value_scale(&check, "us", &scale));
    check.difference = true;
    EXPECT_TRUE(report_value_scale(&check, "us", &scale));
}

TEST(Values, BandwidthIsRoundedHalfUp)
{
    struct fixture fixture;
    fixture_create(&fixture);
    // 10 x 1 B in 10 x 3 ps is 333.333... GB/s; 1 B in 2000000 us is half a millionth.
    fixture_row_add(&fixture, "pio", 1, 1, 3);
    fixture_row_add(&fixture, "pio", 1, 1, 2000000000);
    const struct report_column *column = report_column_find("bandwidth_GBps");
    EXPECT_EQ(column->micro(&fixture.report->points[0]), 333333333);
    EXPECT_EQ(column->micro(&fixture.report->points[1]), 1);
    fixture_destroy(&fixture);
}

TEST(Values, APointWithoutOperationsHasNoLatency)
{
    const struct report_point nothing = {.series = "pio", .bytes = 8};
    const char *const timed[] = {"latency_us", "bandwidth_GBps", "min_latency_us", "max_latency_us"};
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_TRUE(!report_column_has(report_column_find(timed[i]), &nothing));
        EXPECT_TRUE(isnan(report_column_value(report_column_find(timed[i]), &nothing)));
    }
    EXPECT_TRUE(report_column_has(report_column_find("operations"), &nothing));
}

TEST(Values, AreNotTakenWhereARowHasNone)
{
    struct fixture fixture;
    const struct report_point nothing = {.series = "pio", .bytes = 16};
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    report_add_point(fixture.report, &nothing);
    struct scn_check check = {.value = fixture_value("pio", "latency_us", SCN_TAKE_MAX)};
    EXPECT_EQ(taken(&fixture, &check), UINT64_MAX);
    check.value = fixture_value("pio", "operations", SCN_TAKE_MIN);
    EXPECT_EQ(taken(&fixture, &check), 0);
    check.over = fixture_value("pio", "latency_us", SCN_TAKE_MAX);
    EXPECT_EQ(taken(&fixture, &check), UINT64_MAX);
    fixture_destroy(&fixture);
}

TEST(Values, SelectorsKeepRowsInTheirRangesOnly)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    fixture_row_add(&fixture, "pio", 64, 4, 9000000);
    struct scn_check check = {.value = fixture_value("pio", "latency_us", SCN_TAKE_MAX)};
    check.value.bytes_min = 64;
    check.value.bytes_max = 64;
    EXPECT_EQ(taken(&fixture, &check), 9000000);
    check.value.descriptors_max = 1;
    EXPECT_EQ(taken(&fixture, &check), 2000000);
    check.value.bytes_min = 65;
    EXPECT_EQ(taken(&fixture, &check), UINT64_MAX);
    fixture_destroy(&fixture);
}

TEST(Values, AreTakenFromRowsOfTheirNumberOfRanks)
{
    struct fixture fixture;
    fixture_create(&fixture);
    for (uint64_t ranks = 2; ranks <= 4; ranks++) {
        const struct report_point point = {
            .series = "pio", .bytes = 8, .operations = 1, .total_ps = ranks * 1000000, .ranks = ranks};
        report_add_point(fixture.report, &point);
    }
    struct scn_check check = {.value = fixture_value("pio", "latency_us", SCN_TAKE_MAX)};
    EXPECT_EQ(taken(&fixture, &check), 4000000);
    check.value.ranks = 3;
    EXPECT_EQ(taken(&fixture, &check), 3000000);
    fixture_destroy(&fixture);
}

TEST(Values, OverDividesTheReducedNumbers)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    const struct scn_check check = {.value = fixture_value("pio", "latency_us", SCN_TAKE_MAX),
                                    .over = fixture_value("dma, \"fast\"", "latency_us", SCN_TAKE_MIN)};
    EXPECT_EQ(taken(&fixture, &check), 2000000);
    fixture_destroy(&fixture);
}

TEST(Values, OverNothingIsNotFound)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    const struct scn_check check = {.value = fixture_value("pio", "latency_us", SCN_TAKE_MAX),
                                    .over = fixture_value("gpu", "latency_us", SCN_TAKE_MIN)};
    EXPECT_EQ(taken(&fixture, &check), UINT64_MAX);
    fixture_destroy(&fixture);
}

TEST(Values, PerRowDividesEachRowByItsPartner)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    fixture_row_add(&fixture, "pio", 16384, 1, 90000000); // a row without a partner
    struct scn_check check = {.value = fixture_value("pio", "latency_us", SCN_TAKE_MAX),
                              .over = fixture_value("dma, \"fast\"", "latency_us", SCN_TAKE_MAX),
                              .per_row = true};
    EXPECT_EQ(taken(&fixture, &check), 1333333);
    check.value.take = SCN_TAKE_MIN;
    EXPECT_EQ(taken(&fixture, &check), 500000);
    fixture_destroy(&fixture);
}

TEST(Values, PerRowPartnersHaveAsManyDescriptorsUnlessOverAsksForOthers)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_row_add(&fixture, "pio", 8192, 1, 4000000);
    fixture_row_add(&fixture, "pio", 8192, 2, 6000000);
    struct scn_check check = {.value = fixture_value("pio", "latency_us", SCN_TAKE_MAX),
                              .over = fixture_value("pio", "latency_us", SCN_TAKE_MAX),
                              .per_row = true};
    EXPECT_EQ(taken(&fixture, &check), 1000000);
    check.over.descriptors_max = 1;
    EXPECT_EQ(taken(&fixture, &check), 1500000);
    fixture_destroy(&fixture);
}

TEST(Values, FirstReachingGivesTheSmallestSize)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    struct scn_check check = {.value = fixture_value("pio", "latency_us", SCN_TAKE_MAX),
                              .over = fixture_value("pio", "latency_us", SCN_TAKE_MAX),
                              .first_reaching = 0.5};
    EXPECT_EQ(taken(&fixture, &check), 64000000);
    check.first_reaching = 1.1;
    EXPECT_EQ(taken(&fixture, &check), UINT64_MAX);
    fixture_destroy(&fixture);
}

TEST(Values, LastReachingGivesTheLargestSize)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_row_add(&fixture, "pio", 4096, 1, 2000000);
    fixture_row_add(&fixture, "pio", 8192, 1, 2000000);
    fixture_row_add(&fixture, "pio", 16384, 1, 2000000);
    fixture_row_add(&fixture, "dma", 4096, 1, 9000000);
    fixture_row_add(&fixture, "dma", 8192, 1, 2000000);
    fixture_row_add(&fixture, "dma", 16384, 1, 1000000);
    struct scn_check check = {.value = fixture_value("dma", "latency_us", SCN_TAKE_MAX),
                              .over = fixture_value("pio", "latency_us", SCN_TAKE_MAX),
                              .per_row = true,
                              .last_reaching = 1.0};
    EXPECT_EQ(taken(&fixture, &check), 8192000000ull);
    check.last_reaching = 5.0;
    EXPECT_EQ(taken(&fixture, &check), UINT64_MAX);
    fixture_destroy(&fixture);
}

TEST(Values, RowsOfASeriesStayTogether)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_row_add(&fixture, "pio", 8, 1, 1000);
    fixture_row_add(&fixture, "dma", 8, 1, 1000);
    fixture_row_add(&fixture, "pio", 16, 1, 1000);
    EXPECT_STREQ(fixture.report->points[1].series, "pio");
    EXPECT_EQ(fixture.report->points[1].bytes, 16);
    EXPECT_STREQ(fixture.report->points[2].series, "dma");
    fixture_destroy(&fixture);
}

static void scale_is(const struct scn_check *check, const char *unit, double expected)
{
    double scale = 0.0;
    EXPECT_TRUE(report_value_scale(check, unit, &scale));
    EXPECT_EQ(scale, expected);
}

// MB/s are those of perftest, 2^20 bytes per second.
TEST(Values, PublishedUnitsAreConvertedTo)
{
    struct scn_check check = {.value = fixture_value("pio", "bandwidth_GBps", SCN_TAKE_MAX)};
    scale_is(&check, "GB/s", 1.0);
    scale_is(&check, "MB/s", 1e9 / 1048576.0);
    check.first_reaching = 0.5;
    scale_is(&check, "KB", 1.0 / 1024);
    check.first_reaching = 0.0;
    check.over.given = true;
    scale_is(&check, "ratio", 1.0);
}

TEST(Values, UnitsThatDoNotFitAreRefused)
{
    struct scn_check check = {.value = fixture_value("pio", "latency_us", SCN_TAKE_MAX)};
    double scale;
    EXPECT_FALSE(report_value_scale(&check, "GB/s", &scale));
    EXPECT_FALSE(report_value_scale(&check, "ratio", &scale));
    check.over.given = true;
    EXPECT_FALSE(report_value_scale(&check, "us", &scale));
}

static void label_is(uint64_t bytes, const char *expected)
{
    char label[REPORT_LABEL_MAX];
    report_bytes_label(bytes, label);
    EXPECT_STREQ(label, expected);
}

TEST(Labels, SizesAreShort)
{
    label_is(0, "0");
    label_is(8, "8");
    label_is(1023, "1023");
    label_is(1024, "1K");
    label_is(1536, "1.5K");
    label_is(4096, "4K");
    label_is(1048576, "1M");
    label_is(1023 * 1024, "1023K");
    label_is(512ULL << 30, "512G");
}
