#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "tests/shim/test.h"

static const struct report_fault pulled = {
    .series = "pio",
    .what = "a.E-b.W pulled",
    .happened = true,
    .at_ps = 12345678,
    .after_start_ps = 2345678,
    .back_ps = 13345678,
    .ends = {{"a.E", 100, 2, 17}, {"b.W", 7, 0, 1}},
};

TEST(FaultReport, TellsWhatEachEndLost)
{
    struct fixture fixture;
    fixture_create(&fixture);
    report_add_fault(fixture.report, &pulled);
    struct report_fault never = {
        .series = "pio", .what = "b.E-c.W pulled", .ends = {{"b.E", 3, 0, 0}, {"c.W", 0, 0, 0}}};
    report_add_fault(fixture.report, &never);
    char *text = fixture_printed(fixture.report, report_faults_print);
    EXPECT_CONTAINS(text, "that were queued or under way\nand lost");
    EXPECT_CONTAINS(text, "series  fault           from [us]   to [us]  end  sent  lost  dropped later\n"
                          "---------------------------------------------------------------------------\n"
                          "pio     a.E-b.W pulled   2.345678  3.345678  a.E   100     2             17\n"
                          "                                             b.W     7     0              1\n"
                          "pio     b.E-c.W pulled      never            b.E     3     0              0\n"
                          "                                             c.W     0     0              0\n");
    free(text);
    fixture_destroy(&fixture);
}

TEST(FaultReport, IsSilentWithoutFaults)
{
    struct fixture fixture;
    fixture_create(&fixture);
    char *text = fixture_printed(fixture.report, report_faults_print);
    EXPECT_STREQ(text, "");
    free(text);
    fixture_destroy(&fixture);
}

TEST(FaultReport, StandsInTheManifestUnderItsSeries)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    report_add_run(fixture.report, "dma", 5, 6, 7);
    report_add_run(fixture.report, "pio", 5, 6, 7);
    report_add_fault(fixture.report, &pulled);
    char error[256], directory[512];
    snprintf(directory, sizeof directory, "%s/out", fixture.directory);
    EXPECT_EQ(report_write(fixture.report, directory, fixture.input, error, sizeof error), SIM_OK);
    char *text = fixture_read(&fixture, "out", "manifest.yaml");
    EXPECT_CONTAINS(text, "  - series: \"pio\"\n    simulated_ps: 5\n    events: 6\n    rtl_cycles: 7\n"
                          "    faults:\n"
                          "      - fault: a.E-b.W pulled\n"
                          "        at_ps: 12345678\n"
                          "        after_start_ps: 2345678\n"
                          "        back_ps: 13345678\n"
                          "        ends:\n"
                          "          - {end: a.E, sent: 100, lost: 2, dropped: 17}\n"
                          "          - {end: b.W, sent: 7, lost: 0, dropped: 1}\n");
    free(text);
    fixture_destroy(&fixture);
}
