// Expectations about sums of counters, of every series and of a sweep.
#include "fixture.h"
#include "observe.h"
#include "tests/shim/test.h"

static void link_add(struct fixture *fixture, const char *series, uint64_t sent, uint64_t received)
{
    report_add_counter(fixture->report, series, "a.E-b.W.0", "tlps_sent", "TLPs", sent);
    report_add_counter(fixture->report, series, "a.E-b.W.1", "tlps_sent", "TLPs", 5);
    report_add_counter(fixture->report, series, "a.E-b.W.1", "tlps_received", "TLPs", received);
}

static struct scn_check *expect_add(struct fixture *fixture, const char *counter, const char *equals)
{
    fixture_create(fixture);
    struct scn_check *check = observe_add(fixture, NULL, NULL, counter);
    fixture->scenario->outside_count = 0;
    snprintf(check->observed.equals, sizeof check->observed.equals, "%s", equals);
    return check;
}

TEST(ExpectSum, MustEqualTheOtherSumInEachSeries)
{
    struct fixture fixture;
    expect_add(&fixture, "a.E-b.W.0.tlps_sent - 1", "a.E-b.W.1.tlps_received");
    link_add(&fixture, "pio", 3, 2);
    observe_is(&fixture, "");
    link_add(&fixture, "dma", 12345678901, 12345678901);
    observe_is(&fixture, "12345678900 is not 12345678901 (a.E-b.W.0.tlps_sent - 1 is not a.E-b.W.1.tlps_received), "
                         "in series 'dma'");
    fixture_destroy(&fixture);
}

TEST(ExpectSum, AddsUpAllCountersThatAPatternMatches)
{
    struct fixture fixture;
    expect_add(&fixture, "*.tlps_sent", "8");
    link_add(&fixture, "pio", 3, 2);
    observe_is(&fixture, "");
    fixture.scenario->expects[0].observed.equals[0] = '9';
    observe_is(&fixture, "8 is not 9, in series 'pio'");
    snprintf(fixture.scenario->expects[0].observed.equals, SCN_TEXT_MAX, "4 * a.E-b.W.1.tlps_received");
    observe_is(&fixture, "");
    snprintf(fixture.scenario->expects[0].observed.equals, SCN_TEXT_MAX, "10 - 3 * *.tlps_received");
    observe_is(&fixture, "8 is not 4 (*.tlps_sent is not 10 - 3 * *.tlps_received), in series 'pio'");
    fixture_destroy(&fixture);
}

TEST(ExpectSum, IsOnlyOfTheSeriesThatItNames)
{
    struct fixture fixture;
    struct scn_check *check = expect_add(&fixture, "a.E-b.W.0.tlps_sent", "3");
    snprintf(check->observed.series, sizeof check->observed.series, "pio");
    link_add(&fixture, "pio", 3, 2);
    link_add(&fixture, "dma", 4, 2);
    observe_is(&fixture, "");
    snprintf(check->observed.series, sizeof check->observed.series, "dma");
    observe_is(&fixture, "4 is not 3, in series 'dma'");
    snprintf(check->observed.series, sizeof check->observed.series, "nothing");
    observe_is(&fixture, "there are no counters of a series 'nothing'");
    fixture_destroy(&fixture);
}

TEST(ExpectSum, OfASweepIsJudgedForEachValue)
{
    static const struct scn_sweep_point points[] = {{.label = "1", .curve = "1"}, {.label = "2", .curve = "2"}};
    static const struct scn_sweep sweep = {.title = "n", .points = points, .point_count = 2};
    struct fixture fixture;
    struct scn_check *check = expect_add(&fixture, "a.E-b.W.0.tlps_sent", "3");
    snprintf(check->observed.series, sizeof check->observed.series, "pio");
    fixture.scenario->sweep = &sweep;
    link_add(&fixture, "pio, 1", 3, 2);
    link_add(&fixture, "pion, 1", 5, 2);
    link_add(&fixture, "pio, 2", 4, 2);
    observe_is(&fixture, "4 is not 3, in series 'pio, 2'");
    fixture.scenario->sweep = NULL;
    fixture_destroy(&fixture);
}

TEST(ExpectSum, MayBeTheSimulatedTime)
{
    struct fixture fixture;
    expect_add(&fixture, "simulation.simulated_ps", "700");
    link_add(&fixture, "pio", 3, 2);
    report_add_run(fixture.report, "pio", 700, 1, 0);
    observe_is(&fixture, "");
    report_add_run(fixture.report, "dma", 701, 1, 0);
    link_add(&fixture, "dma", 3, 2);
    observe_is(&fixture, "701 is not 700, in series 'dma'");
    fixture_destroy(&fixture);
}

TEST(ExpectSum, OfACounterThatDoesNotExistFails)
{
    struct fixture fixture;
    expect_add(&fixture, "a.E-b.W.0.tlps_sent", "*.tlps_seen + 1");
    link_add(&fixture, "pio", 3, 2);
    observe_is(&fixture, "no component has a counter '*.tlps_seen'\nSimilar names:\n  a.E-b.W.0.tlps_sent\n"
                         "  a.E-b.W.1.tlps_sent\n  a.E-b.W.1.tlps_received\n");
    fixture_destroy(&fixture);
}
