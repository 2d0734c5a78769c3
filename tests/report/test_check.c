#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"
#include "tests/shim/test.h"

static void note(void *ctx, unsigned line, unsigned column, const char *text)
{
    struct scn_messages *messages = ctx;
    messages->lines = realloc(messages->lines, (messages->count + 1) * sizeof *messages->lines);
    if (asprintf(&messages->lines[messages->count], "x.yaml:%u:%u: %s", line, column, text) >= 0) {
        messages->count++;
    }
}

static struct scn_messages mistakes(const struct fixture *fixture)
{
    struct scn_messages messages = {0};
    report_check_scenario(fixture->scenario, FIXTURE_REFERENCE, note, &messages);
    return messages;
}

static void mistake_is(const struct fixture *fixture, const char *expected)
{
    struct scn_messages messages = mistakes(fixture);
    EXPECT_EQ(messages.count, 1);
    if (messages.count > 0) {
        EXPECT_STREQ(messages.lines[0], expected);
    }
    scn_messages_free(&messages);
}

TEST(ScenarioCheck, AcceptsKnownIdsColumnsAndSeries)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_compare_add(&fixture, "H08", fixture_value("pio", "latency_us", SCN_TAKE_MIN));
    fixture_expect_add(&fixture, "bound", fixture_value("dma, \"fast\"", "bandwidth_GBps", SCN_TAKE_MAX), 0, 1);
    fixture_panel_add(&fixture, "bytes", "latency_us");
    struct scn_messages messages = mistakes(&fixture);
    EXPECT_EQ(messages.count, 0);
    scn_messages_free(&messages);
    fixture_destroy(&fixture);
}

TEST(ScenarioCheck, RefusesAnIdThatIsNotPublished)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_compare_add(&fixture, "H99", fixture_value("pio", "latency_us", SCN_TAKE_MIN));
    mistake_is(&fixture, "x.yaml:7:5: 'H99' is not in the table of published values");
    fixture_destroy(&fixture);
}

TEST(ScenarioCheck, RefusesAnUnknownColumn)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_compare_add(&fixture, "H08", fixture_value("pio", "latency_ns", SCN_TAKE_MIN));
    mistake_is(&fixture, "x.yaml:7:5: 'H08': 'latency_ns' is not a numeric column of data.csv (there are: bytes, "
                         "latency_us, bandwidth_GBps, descriptors, operations, min_latency_us, max_latency_us, ranks, "
                         "memory_MB, interval_low_us, interval_high_us)");
    fixture_destroy(&fixture);
}

TEST(ScenarioCheck, NamesTheLineOfAPanel)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_panel_add(&fixture, "bytes", "speed");
    fixture.scenario->panels[0].line = 9;
    fixture.scenario->panels[0].column = 3;
    struct scn_messages messages = mistakes(&fixture);
    ASSERT_EQ(messages.count, 1);
    EXPECT_CONTAINS(messages.lines[0], "x.yaml:9:3: 'speed's panel': 'speed' is not a numeric column of data.csv");
    scn_messages_free(&messages);
    fixture_destroy(&fixture);
}

TEST(ScenarioCheck, SaysNothingOfNamesThatAreMissing)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_compare_add(&fixture, "", fixture_value("", "", SCN_TAKE_MIN));
    fixture_panel_add(&fixture, "bytes", "");
    struct scn_messages messages = mistakes(&fixture);
    EXPECT_EQ(messages.count, 0);
    scn_messages_free(&messages);
    fixture_destroy(&fixture);
}

TEST(ScenarioCheck, RefusesAColumnThatTheUnitDoesNotFit)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_compare_add(&fixture, "H08", fixture_value("pio", "bandwidth_GBps", SCN_TAKE_MIN));
    mistake_is(&fixture, "x.yaml:7:5: 'H08' is published in us, which does not fit bandwidth_GBps");
    fixture_destroy(&fixture);
}

TEST(ScenarioCheck, RefusesToDivideLatencyByBandwidth)
{
    struct fixture fixture;
    fixture_create(&fixture);
    struct scn_check *check = fixture_compare_add(&fixture, "H05", fixture_value("pio", "latency_us", SCN_TAKE_MIN));
    check->over = fixture_value("pio", "bandwidth_GBps", SCN_TAKE_MAX);
    mistake_is(&fixture, "x.yaml:7:5: 'H05': latency_us cannot be divided by bandwidth_GBps");
    fixture_destroy(&fixture);
}

TEST(ScenarioCheck, RefusesAPanelOfNoColumn)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_panel_add(&fixture, "size", "latency_us");
    mistake_is(&fixture,
               "x.yaml:0:0: 'latency_us's panel': 'size' is not a numeric column of data.csv (there are: bytes, "
               "latency_us, bandwidth_GBps, descriptors, operations, min_latency_us, max_latency_us, ranks, memory_MB, "
               "interval_low_us, interval_high_us)");
    fixture_destroy(&fixture);
}

TEST(ScenarioCheck, RefusesAPanelOfNoSeries)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_panel_add(&fixture, "bytes", "latency_us");
    snprintf(fixture.scenario->panels[0].series, sizeof fixture.scenario->panels[0].series, "[p]*");
    mistake_is(&fixture, "x.yaml:0:0: 'latency_us's panel': series: '[p]*' matches no measured series");
    fixture_destroy(&fixture);
}

TEST(ScenarioCheck, ReportsEveryMistakeAtOnce)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_compare_add(&fixture, "H99", fixture_value("gpu", "latency", SCN_TAKE_MIN));
    fixture_panel_add(&fixture, "series", "latency_us");
    struct scn_messages messages = mistakes(&fixture);
    EXPECT_EQ(messages.count, 3);
    scn_messages_free(&messages);
    fixture_destroy(&fixture);
}
