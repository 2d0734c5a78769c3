// Points of a sweep: kept as files, named by what determines their results, and merged.
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "sim/report/points.h"
#include "tests/shim/test.h"

static const char *const sets_of[] = {"nodes.*.board.clock=125 MHz"};
static const struct scn_sweep_point points[] = {{"125 MHz", "125 MHz", "125 MHz", "", sets_of, 1},
                                                {"250 MHz", "250 MHz", "250 MHz", "", sets_of, 1}};
static const struct scn_sweep sweep = {.title = "clock",
                                       .axis_title = "clock",
                                       .others_title = "",
                                       .axis_count = 2,
                                       .axis_stride = 1,
                                       .points = points,
                                       .point_count = 2};

static void written(struct fixture *fixture)
{
    char error[256] = "";
    fixture_create(fixture);
    fixture_row_add(fixture, "dma, \"fast\"", 8, 2, 2000000);
    report_add_counter(fixture->report, "pio", "node0.board", "tlps_sent", "TLPs", 7);
    report_add_run(fixture->report, "pio", 1000, 20, 3);
    EXPECT_EQ(report_point_write(fixture->report, fixture->directory, "a", error, sizeof error), SIM_OK);
    EXPECT_STREQ(error, "");
}

TEST(Points, ComeBackAsTheyWere)
{
    struct fixture first, second;
    written(&first);
    fixture_create(&second);
    second.scenario->sweep = &sweep;
    EXPECT_EQ(report_point_add(second.report, first.directory, "a", 2), SIM_OK);
    ASSERT_EQ(second.report->point_count, 1);
    const struct report_point *a = &first.report->points[0], *b = &second.report->points[0];
    EXPECT_STREQ(b->series, "dma, \"fast\", 250 MHz");
    EXPECT_EQ(b->sweep, 2);
    EXPECT_EQ(b->bytes, a->bytes);
    EXPECT_EQ(b->descriptors, a->descriptors);
    EXPECT_EQ(b->operations, a->operations);
    EXPECT_EQ(b->total_ps, a->total_ps);
    EXPECT_EQ(b->min_ps, a->min_ps);
    EXPECT_EQ(b->max_ps, a->max_ps);
    ASSERT_EQ(second.report->counter_count, 1);
    EXPECT_STREQ(second.report->counters[0].series, "pio, 250 MHz");
    EXPECT_EQ(second.report->counters[0].value, 7);
    EXPECT_EQ(second.report->runs[0].rtl_cycles, 3);
    fixture_destroy(&first);
    fixture_destroy(&second);
}

TEST(Points, TellWhatTheirFaultsDid)
{
    struct fixture first, second;
    char error[256] = "";
    const struct report_fault pulled = {"pio", "a.E-b.W", true, 77, 66, 88, {{"a.E", 100, 2, 17}, {"b.W", 7, 0, 1}}};
    fixture_create(&first);
    report_add_fault(first.report, &pulled);
    EXPECT_EQ(report_point_write(first.report, first.directory, "a", error, sizeof error), SIM_OK);
    fixture_create(&second);
    second.scenario->sweep = &sweep;
    EXPECT_EQ(report_point_add(second.report, first.directory, "a", 2), SIM_OK);
    ASSERT_EQ(second.report->fault_count, 1);
    const struct report_fault *fault = &second.report->faults[0];
    EXPECT_STREQ(fault->series, "pio, 250 MHz");
    EXPECT_STREQ(fault->what, "a.E-b.W");
    EXPECT_EQ(fault->back_ps, 88);
    EXPECT_TRUE(fault->happened);
    EXPECT_EQ(fault->at_ps, 77);
    EXPECT_EQ(fault->after_start_ps, 66);
    EXPECT_STREQ(fault->ends[1].name, "b.W");
    EXPECT_EQ(fault->ends[0].dropped, 17);
    EXPECT_EQ(fault->ends[1].sent, 7);
    fixture_destroy(&first);
    fixture_destroy(&second);
}

TEST(Points, WithoutTheirScenarioDoNotExist)
{
    struct fixture fixture;
    char path[256];
    written(&fixture);
    EXPECT_TRUE(report_point_exists(fixture.directory, "a"));
    snprintf(path, sizeof path, "%s/a.yaml", fixture.directory);
    FILE *file = fopen(path, "w"); // empty
    fclose(file);
    EXPECT_FALSE(report_point_exists(fixture.directory, "a"));
    fixture_destroy(&fixture);
}

TEST(Points, ThatAreNotWholeAreRefused)
{
    struct fixture first, second;
    char path[256];
    written(&first);
    fixture_create(&second);
    second.scenario->sweep = &sweep;
    snprintf(path, sizeof path, "%s/a.csv", first.directory);
    FILE *file = fopen(path, "w");
    fputs("point,pio,8,1,10,100,9,11\n", file);
    fclose(file);
    EXPECT_EQ(report_point_add(second.report, first.directory, "a", 1), SIM_ERR_INVALID);
    EXPECT_EQ(report_point_add(second.report, first.directory, "b", 1), SIM_ERR_INVALID);
    file = fopen(path, "w"); // its end is there, but not all fields of its record
    fputs("point,pio,8,1,10,100,9,11\nend\n", file);
    fclose(file);
    EXPECT_EQ(report_point_add(second.report, first.directory, "a", 1), SIM_ERR_INVALID);
    EXPECT_FALSE(report_point_exists(first.directory, "a"));
    EXPECT_EQ(second.report->point_count, 0);
    fixture_destroy(&first);
    fixture_destroy(&second);
}

TEST(Points, AreNamedByWhatDecidesOverTheirMeasurements)
{
    struct fixture fixture;
    char before[REPORT_POINT_NAME_MAX], after[REPORT_POINT_NAME_MAX];
    fixture_create(&fixture);
    EXPECT_EQ(report_point_name(fixture.scenario, before), SIM_OK);
    fixture_expect_add(&fixture, "bound", fixture_value("pio", "latency_us", SCN_TAKE_MIN), 0, 1);
    fixture_panel_add(&fixture, "bytes", "latency_us");
    EXPECT_EQ(report_point_name(fixture.scenario, after), SIM_OK);
    EXPECT_STREQ(after, before);
    fixture.scenario->runs[0].iterations = 77;
    EXPECT_EQ(report_point_name(fixture.scenario, after), SIM_OK);
    EXPECT_STRNE(after, before);
    EXPECT_EQ(strlen(after), 64);
    fixture_destroy(&fixture);
}
