#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "sim/report/bands.h"
#include "sim/report/interval.h"
#include "tests/shim/test.h"

enum { DRAWS = 100 };

// A hundred draws, of which number d takes 1 us and d ns for 8 B; a key follows d, another one does not.
static void draws_add(report_interval_t *interval)
{
    for (unsigned i = 0; i < DRAWS; i++) {
        struct fixture draw;
        fixture_create(&draw);
        fixture_compare_add(&draw, "H08", fixture_value("pio", "latency_us", SCN_TAKE_MIN));
        unsigned d = i * 37 % DRAWS; // in any order
        fixture_row_add(&draw, "pio", 8, 1, 1000000 + d * 1000);
        fixture_row_add(&draw, "pio", 64, 1, 2000000);
        const double values[] = {i * 61 % DRAWS, 5.0 * d};
        EXPECT_TRUE(report_interval_add(interval, draw.report, values));
        fixture_destroy(&draw);
    }
}

static void intervals_make(struct fixture *fixture)
{
    static const char *const keys[] = {"host.x.poll", "host.x.load"};
    fixture_create(fixture);
    fixture_compare_add(fixture, "H08", fixture_value("pio", "latency_us", SCN_TAKE_MIN));
    fixture_row_add(fixture, "pio", 8, 1, 1050000);
    fixture_row_add(fixture, "pio", 64, 1, 2000000);
    report_interval_t *interval = report_interval_create(fixture->report, keys, 2, DRAWS);
    draws_add(interval);
    report_interval_end(interval, "");
    report_interval_destroy(interval);
}

TEST(Interval, IsWhatFiveAndNinetyFivePerCentOfTheDrawsAreBelow)
{
    struct fixture fixture;
    intervals_make(&fixture);
    const struct report_bands *bands = fixture.report->bands;
    ASSERT_NOT_NULL(bands);
    EXPECT_EQ(bands->draws, DRAWS);
    EXPECT_LT(fabs(bands->points[0].low - 1.005), 1e-9);
    EXPECT_LT(fabs(bands->points[0].high - 1.094), 1e-9);
    EXPECT_LT(fabs(bands->points[1].low - 2.0), 1e-9);
    EXPECT_LT(fabs(bands->points[1].high - 2.0), 1e-9);
    ASSERT_EQ(bands->compare_count, 1);
    EXPECT_LT(fabs(bands->compares[0].low - 1.005), 1e-9);
    EXPECT_LT(fabs(bands->compares[0].high - 1.094), 1e-9);
    fixture_destroy(&fixture);
}

TEST(Interval, NamesTheKeyThatMovesTheResult)
{
    struct fixture fixture;
    intervals_make(&fixture);
    const struct report_band *moved = &fixture.report->bands->points[0];
    ASSERT_GE(moved->key_count, 1);
    EXPECT_STREQ(moved->widest[0].key, "host.x.load");
    EXPECT_LT(fabs(moved->widest[0].square - 1), 1e-9);
    EXPECT_EQ(fixture.report->bands->points[1].key_count, 0); // nothing moves it
    fixture_destroy(&fixture);
}

TEST(Interval, HoldsAPublishedValueThatItOverlaps)
{
    static const struct {
        const char *value;
        bool holds;
    } cases[] = {{"1.0", true},    {"2.0", true},   {"0.99", false},   {"2.01", false},    {"2.005", false},
                 {"0.8", false},   {"2.04", false}, {"2", true},       {"2.2", false},     {"0.94", false},
                 {"1.99", true},   {"3", false},    {"0.5-1.5", true}, {"2.5-3.5", false}, {"0.5-3.5", true},
                 {"2.1-3", false}, {"fast", false}, {"<1.5", true}};
    const struct report_band band = {.low = 1, .high = 2};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct report_reference reference = {.value = cases[i].value,
                                                   .published = report_published_parse(cases[i].value)};
        TEST_TRACE("%s", cases[i].value);
        EXPECT_EQ(report_band_holds(&band, &reference), cases[i].holds);
    }
}

TEST(Interval, LeavesADrawWithOtherRowsOut)
{
    static const char *const keys[] = {"host.x.poll"};
    static const double value = 1;
    struct fixture fixture, draw;
    fixture_create(&fixture);
    fixture_row_add(&fixture, "pio", 8, 1, 1000000);
    report_interval_t *interval = report_interval_create(fixture.report, keys, 1, 2);
    fixture_create(&draw);
    EXPECT_FALSE(report_interval_add(interval, draw.report, &value)); // none
    fixture_row_add(&draw, "pio", 16, 1, 1000000);
    EXPECT_FALSE(report_interval_add(interval, draw.report, &value)); // of other bytes
    fixture_destroy(&draw);
    report_interval_destroy(interval);
    fixture_destroy(&fixture);
}

static void file_is(const struct fixture *fixture, const char *name, const char *expected)
{
    char directory[512], error[256] = "";
    snprintf(directory, sizeof directory, "%s/out", fixture->directory);
    EXPECT_EQ(report_write(fixture->report, directory, fixture->input, error, sizeof error), SIM_OK);
    char *text = fixture_read(fixture, "out", name);
    EXPECT_STREQ(text, expected);
    free(text);
}

TEST(Interval, IsInTheTables)
{
    struct fixture fixture;
    intervals_make(&fixture);
    file_is(&fixture, "data.csv",
            "series,bytes,latency_us,bandwidth_GBps,descriptors,operations,min_latency_us,max_latency_us,"
            "interval_low_us,interval_high_us\n"
            "pio,8,1.050000,0.007619,1,10,1.049999,1.050001,1.005000,1.094000\n"
            "pio,64,2.000000,0.032000,1,10,1.999999,2.000001,2.000000,2.000000\n");
    file_is(&fixture, "compare.csv",
            "id,what,simulated,published,unit,error_percent,use,doubt,interval_low,interval_high,inside\n"
            "H08,pingpong_latency_pio_cpu_cpu,1.050000,0.9,us,16.67,calibrate,,1.005000,1.094000,no\n");
    fixture_destroy(&fixture);
}
