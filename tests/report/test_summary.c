// The table at the end of a run of several scenarios.
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "observe.h"
#include "sim/report/summary.h"
#include "tests/shim/test.h"

// Prints the summary of the report, judged or not; to be freed.
static char *printed(const report_t *report, bool judged, bool always)
{
    struct report_outcomes outcomes = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *rows = tmpfile(), *out = open_memstream(&text, &size);
    if (rows == NULL || out == NULL) {
        sim_panic("test", "no scratch file");
    }
    if (judged) {
        report_outcomes_make(report, 0, &outcomes);
    }
    report_summary_write(report, judged ? &outcomes : NULL, rows);
    report_summary_print(rows, always, out);
    report_outcomes_free(&outcomes);
    fclose(rows);
    fclose(out);
    return text;
}

static void start(struct fixture *fixture)
{
    fixture_create(fixture);
    snprintf(fixture->scenario->name, sizeof fixture->scenario->name, "s");
    report_add_run(fixture->report, "pio", 5, 6, 7);
    report_describe_run(fixture->report, "twin", "tca0");
    report_add_run(fixture->report, "dma", 5, 6, 7);
    report_add_counter(fixture->report, "pio", "a.slot.0", "tlps_corrupted", "TLPs", 2);
    report_add_counter(fixture->report, "pio", "a.slot.1", "tlps_corrupted", "TLPs", 1);
    report_add_counter(fixture->report, "pio", "a.slot.1", "naks", "DLLPs", 3);
    report_add_counter(fixture->report, "dma", "a.slot.1", "tlps_corrupted", "TLPs", 0);
    report_add_counter(fixture->report, "dma", "a.slot.1", "naks", "DLLPs", 0);
}

TEST(Summary, SaysWhatWasInjectedAndWhatHeldInEachSeries)
{
    struct fixture fixture;
    start(&fixture);
    observe_add(&fixture, NULL, NULL, "a.slot.1.naks")->max = 2;
    observe_add(&fixture, NULL, NULL, "a.slot.1.naks")->max = 3;
    fixture.scenario->outside_count = 0;
    char *text = printed(fixture.report, true, false);
    EXPECT_STREQ(text, "\nSummary\n"
                       "scenario  series  boards  device  injected          effects  expectations that hold\n"
                       "-----------------------------------------------------------------------------------\n"
                       "s         pio     twin    tca0    3 TLPs corrupted  3 NAKs   1 of 2, NOT: it\n"
                       "          dma                                                all 2\n");
    free(text);
    fixture_destroy(&fixture);
}

TEST(Summary, AddsLostAcksAndLostNaks)
{
    struct fixture fixture;
    fixture_create(&fixture);
    report_add_run(fixture.report, "pio", 5, 6, 7);
    report_add_counter(fixture.report, "pio", "a.slot.0", "acks_lost", "DLLPs", 2);
    report_add_counter(fixture.report, "pio", "a.slot.0", "naks_lost", "DLLPs", 3);
    char *text = printed(fixture.report, true, false);
    EXPECT_CONTAINS(text, "  5 ACKs, NAKs lost\n");
    free(text);
    fixture_destroy(&fixture);
}

TEST(Summary, JudgesEachPointOfASweepByItsOwnResults)
{
    static const struct scn_sweep_point points[] = {{.label = "125 MHz", .curve = "125 MHz"},
                                                    {.label = "250 MHz", .curve = "250 MHz"}};
    static const struct scn_sweep sweep = {.title = "clock", .points = points, .point_count = 2};
    struct fixture fixture;
    fixture_create(&fixture);
    fixture.scenario->sweep = &sweep;
    report_add_run(fixture.report, "pio, 125 MHz", 5, 6, 7);
    report_add_run(fixture.report, "pio, 250 MHz", 5, 6, 7);
    fixture_row_add(&fixture, "pio, 125 MHz", 8, 1, 2000000);
    fixture_row_add(&fixture, "pio, 250 MHz", 8, 1, 1000000);
    fixture_expect_add(&fixture, "fast", fixture_value("pio", "latency_us", SCN_TAKE_MAX), 0, 1.5);
    char *text = printed(fixture.report, true, true), *slow = strstr(text, "pio, 125 MHz"),
         *fast = strstr(text, "pio, 250 MHz");
    EXPECT_CONTAINS(slow, "  0 of 1, NOT: fast, 125 MHz\n");
    EXPECT_CONTAINS(fast, "  all 1\n");
    free(text);
    fixture_destroy(&fixture);
}

TEST(Summary, NamesSeriesThatFailed)
{
    struct fixture fixture;
    start(&fixture);
    report_add_failure(fixture.report, "dma", "the workload failed");
    report_add_failure(fixture.report, "point", "the point failed");
    char *text = printed(fixture.report, false, false);
    EXPECT_CONTAINS(text, "3 NAKs   not judged\n");
    EXPECT_CONTAINS(text, "  dma                                                the workload failed\n");
    EXPECT_CONTAINS(text, "  point                                              the point failed\n");
    free(text);
    fixture_destroy(&fixture);
}

TEST(Summary, IsPrintedWithoutFaultsOnlyIfAskedFor)
{
    struct fixture fixture;
    fixture_create(&fixture);
    report_add_run(fixture.report, "pio", 5, 6, 7);
    char *without = printed(fixture.report, true, false), *with = printed(fixture.report, true, true);
    EXPECT_STREQ(without, "");
    EXPECT_CONTAINS(with, "pio");
    free(without);
    free(with);
    fixture_destroy(&fixture);
}
