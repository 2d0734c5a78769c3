#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

TEST(Print, PutsTheCurvesSideBySide)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    fixture_panel_add(&fixture, "bytes", "latency_us");
    char *text = fixture_printed(fixture.report, report_print);
    EXPECT_STREQ(text, "An example's title\n"
                       "\n"
                       "Latency [µs]\n"
                       "bytes    pio  dma, \"fast\"\n"
                       "-------------------------\n"
                       "    8  1.000        2.000\n"
                       "   64  2.000        2.000\n"
                       "   4K  4.000        3.000\n");
    free(text);
    fixture_destroy(&fixture);
}

TEST(Print, ShowsLatencyAndBandwidthWithoutPanels)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    char *text = fixture_printed(fixture.report, report_print);
    EXPECT_CONTAINS(text, "Latency [µs]\n");
    EXPECT_CONTAINS(text, "Bandwidth [GB/s]\n");
    free(text);
    fixture_destroy(&fixture);
}

TEST(Print, PutsSimulatedBesidePublished)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    fixture_compare_add(&fixture, "H08", fixture_value("pio", "latency_us", SCN_TAKE_MIN));
    fixture_compare_add(&fixture, "H16", fixture_value("gpu", "latency_us", SCN_TAKE_MIN));
    char *text = fixture_printed(fixture.report, report_print);
    const char *table = strstr(text, "Simulated");
    EXPECT_STREQ(table,
                 "Simulated against published\n"
                 "id   what                          simulated  published  unit    error        use\n"
                 "---------------------------------------------------------------------------------------\n"
                 "H08  pingpong_latency_pio_cpu_cpu      1.000        0.9  us    +11.1 %  near  calibrate\n"
                 "H16  latency_order_gpu_gpu              none      order  -                    predict\n"
                 "ok: within 5 % of the published value; near: within 15 %; off: farther. Inside a published range "
                 "or bound\n(2-8, <1, >3) the error is +0.0 %; outside it is the distance to the nearest end.\n");
    free(text);
    fixture_destroy(&fixture);
}

TEST(Print, GivesLongSeriesNamesALegend)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_row_add(&fixture, "a series with a name of some length, too long to stand", 8, 1, 1000);
    fixture_row_add(&fixture, "another series whose name is as long as that of the first", 8, 1, 1000);
    char *text = fixture_printed(fixture.report, report_print);
    EXPECT_CONTAINS(text, "  (2) another series");
    EXPECT_CONTAINS(text, "bytes    (1)    (2)\n");
    free(text);
    fixture_destroy(&fixture);
}

TEST(Print, SaysThatNothingWasMeasured)
{
    struct fixture fixture;
    fixture_create(&fixture);
    char *text = fixture_printed(fixture.report, report_print);
    EXPECT_CONTAINS(text, "Nothing was measured.");
    free(text);
    fixture_destroy(&fixture);
}
