// `sweep:` as points.
#include "fixture.h"

#include <string.h>

#define FIXTURE_CLOCK TCASIM_SOURCE_DIR "/scenarios/whatif/board-clock-125-250-500.yaml"

static void load(struct fixture *fixture, const char *sweep)
{
    const struct fixture_parts parts = {.top = sweep};
    fixture_load_parts(fixture, &parts);
}

static void refused(const char *sweep, const char *message)
{
    struct fixture fixture;
    load(&fixture, sweep);
    EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
    EXPECT_CONTAINS(fixture_message(&fixture), message);
    fixture_fini(&fixture);
}

TEST(Sweep, CombinesTheValuesOfItsKeys)
{
    struct fixture fixture;
    load(&fixture, "title: t\nsweep: {nodes.*.board.clock: [125 MHz, 250 MHz], seed: [1, 2, 3]}\n");
    ASSERT_EQ(fixture.status, SIM_OK);
    const struct scn_sweep *sweep = fixture.scenario->sweep;
    ASSERT_NOT_NULL(sweep);
    EXPECT_STREQ(sweep->title, "clock, seed");
    EXPECT_EQ(sweep->point_count, 6);
    EXPECT_STREQ(sweep->points[0].label, "125 MHz, 1");
    EXPECT_STREQ(sweep->points[1].label, "125 MHz, 2");
    EXPECT_STREQ(sweep->points[5].label, "250 MHz, 3");
    ASSERT_EQ(sweep->points[5].set_count, 2);
    EXPECT_STREQ(sweep->points[5].sets[0], "nodes.*.board.clock=250 MHz");
    EXPECT_STREQ(sweep->points[5].sets[1], "seed=3");
    fixture_fini(&fixture);
}

// A column of the results is not on the axis.
TEST(Sweep, HasItsFirstKeyOnTheAxisOfPlots)
{
    struct fixture fixture;
    load(&fixture,
         "title: t\nparameters: [{name: bytes, value: 8}]\n"
         "sweep: {parameters.bytes.value: [8, 64], nodes.*.board.clock: [125 MHz, 250 MHz], seed: [1, 2, 3]}\n");
    ASSERT_EQ(fixture.status, SIM_OK);
    const struct scn_sweep *sweep = fixture.scenario->sweep;
    ASSERT_NOT_NULL(sweep);
    EXPECT_STREQ(sweep->axis_title, "clock");
    EXPECT_STREQ(sweep->others_title, "seed");
    EXPECT_EQ(sweep->axis_count, 2u);
    EXPECT_EQ(sweep->axis_stride, 3u);
    EXPECT_STREQ(sweep->points[3].axis, "250 MHz");
    EXPECT_STREQ(sweep->points[3].others, "1");
    EXPECT_STREQ(sweep->points[8].axis, "125 MHz"); // of 64 bytes
    EXPECT_STREQ(sweep->points[8].others, "3");
    char series[SCN_NAME_MAX] = "dma, 125 MHz, 3";
    scn_sweep_series_group(sweep, 9, series);
    EXPECT_STREQ(series, "dma, 3");
    fixture_fini(&fixture);
    load(&fixture, "title: t\nsweep: {nodes.*.board.clock: [125 MHz], seed: [1, 2, 3]}\n");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_STREQ(fixture.scenario->sweep->axis_title, "seed"); // a single clock makes no axis
    fixture_fini(&fixture);
}

TEST(Sweep, OfAParameterCalledBytesIsNotInTheNamesOfSeries)
{
    struct fixture fixture;
    load(&fixture, "title: t\nparameters: [{name: bytes, value: 8}, {name: device, value: tca0}]\n"
                   "sweep: {parameters.device.value: [tca0, ibsim0], parameters.bytes.value: [8, 64]}\n");
    ASSERT_EQ(fixture.status, SIM_OK);
    const struct scn_sweep *sweep = fixture.scenario->sweep;
    ASSERT_NOT_NULL(sweep);
    EXPECT_STREQ(sweep->title, "device");
    EXPECT_STREQ(sweep->points[3].label, "ibsim0, 64");
    EXPECT_STREQ(sweep->points[3].curve, "ibsim0");
    char series[SCN_NAME_MAX];
    scn_sweep_series_make(fixture.scenario, "lat", 3, series, sizeof series);
    EXPECT_STREQ(series, "lat, ibsim0");
    scn_sweep_series_cut(sweep, 4, series);
    EXPECT_STREQ(series, "lat");
    fixture_fini(&fixture);
}

#define LETTERS_30    "abcdefghijklmnopqrstuvwxyzabcd"
#define LOCAL(series) "series: " series ", workload: local-dma, method: register, node: a, bytes: 8 B"

TEST(Sweep, MakesNamesOfSeriesThatFitIntoTheirField)
{
    struct fixture_parts parts = {.top = "title: t\nsweep: {seed: [5, 6]}", .run = LOCAL(LETTERS_30 LETTERS_30)};
    fixture_expect_accepted(&parts); // 60 letters and ", 5"
    parts.top = "title: t\nsweep: {seed: [5, 66]}";
    fixture_expect_refused(&parts, "sweep: the name '" LETTERS_30 LETTERS_30 ", 66' is longer than 63 bytes");
}

TEST(Sweep, TakesKeysUnderZipSideBySide)
{
    struct fixture fixture;
    load(&fixture, "title: t\nsweep: {zip: {cables.*.generation: [Gen2, Gen3], nodes.*.slot.generation: [Gen2, Gen3], "
                   "seed: [1, 2]}}\n");
    ASSERT_EQ(fixture.status, SIM_OK);
    const struct scn_sweep *sweep = fixture.scenario->sweep;
    EXPECT_EQ(sweep->point_count, 2);
    EXPECT_STREQ(sweep->points[1].label, "Gen3, 2");
    EXPECT_EQ(sweep->points[1].set_count, 3);
    fixture_fini(&fixture);
}

TEST(Sweep, GivesItsSeriesTheNamesOfItsPoints)
{
    const char *sweep = "title: t\nsweep: {seed: [5, 6]}\n";
    struct fixture_parts parts = {.top = sweep,
                                  .rest = "expect: [{name: e, max: 1, value: {series: 's, 6', "
                                          "column: latency_us}}]"};
    char series[SCN_NAME_MAX] = "s, 6";
    struct fixture fixture;
    fixture_expect_accepted(&parts);
    parts.rest = "expect: [{name: e, max: 1, value: {series: 's, 7', column: latency_us}}]";
    fixture_expect_refused(&parts, "series: no run is called 's, 7'");
    load(&fixture, sweep);
    ASSERT_EQ(fixture.status, SIM_OK);
    scn_sweep_series_cut(fixture.scenario->sweep, 2, series);
    EXPECT_STREQ(series, "s");
    fixture_fini(&fixture);
}

TEST(Sweep, LoadsEachOfItsPoints)
{
    static const char *const sets[] = {"seed=9"};
    const struct scn_load_options options = {.configs_dir = FIXTURE_CONFIGS, .sets = sets, .set_count = 1};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL, *point = NULL;
    ASSERT_EQ(scn_load(FIXTURE_CLOCK, &options, &scenario, &messages), SIM_OK);
    ASSERT_EQ(scn_load_point(FIXTURE_CLOCK, &options, &scenario->sweep->points[2], &point, &messages), SIM_OK);
    EXPECT_EQ(point->nodes[1].board.clock_mhz, 500);
    EXPECT_EQ(point->seed, 9);
    EXPECT_NULL(point->sweep);
    scn_free(point);
    scn_free(scenario);
}

// Loads the scenario of board clocks with one or two settings, of which the second may be NULL.
static enum sim_status load_clock(const char *set, const char *second, struct scn_scenario **scenario_out,
                                  char text[256])
{
    const char *const sets[] = {set, second};
    const struct scn_load_options options = {
        .configs_dir = FIXTURE_CONFIGS, .sets = sets, .set_count = second != NULL ? 2 : 1};
    struct scn_messages messages = {0};
    enum sim_status status = scn_load(FIXTURE_CLOCK, &options, scenario_out, &messages);
    snprintf(text, 256, "%s", messages.count > 0 ? messages.lines[0] : "");
    scn_messages_free(&messages);
    return status;
}

TEST(Sweep, CollapsesToTheValueThatASettingGives)
{
    struct scn_scenario *scenario = NULL;
    char text[256];
    ASSERT_EQ(load_clock("nodes.*.board.clock=200 MHz", NULL, &scenario, text), SIM_OK);
    ASSERT_NOT_NULL(scenario->sweep);
    EXPECT_EQ(scenario->sweep->point_count, 1);
    EXPECT_STREQ(scenario->sweep->points[0].label, "200 MHz");
    EXPECT_STREQ(scenario->sweep->points[0].sets[0], "nodes.*.board.clock=200 MHz");
    EXPECT_EQ(scenario->expect_count, 0); // all are about other points
    EXPECT_CONTAINS(text, "name points that --set leaves out");
    scn_free(scenario);
}

// The first expectation is about 125 MHz; the others divide numbers of 500 MHz by those of 250 MHz.
TEST(Sweep, LeavesOutExpectationsWhoseDivisorIsLeftOut)
{
    struct scn_scenario *scenario = NULL;
    char text[256];
    ASSERT_EQ(load_clock("nodes.*.board.clock=500 MHz", NULL, &scenario, text), SIM_OK);
    EXPECT_EQ(scenario->sweep->point_count, 1);
    EXPECT_EQ(scenario->expect_count, 0);
    EXPECT_CONTAINS(text, "sweep: 3 of expect: and compare: name points that --set leaves out");
    scn_free(scenario);
}

static enum sim_status load_zip(const char *seed, const char *limit, struct scn_scenario **scenario_out, char text[256])
{
    const char *const sets[] = {"sweep={zip: {seed: [1, 2], time_limit: [1 s, 2 s]}}", seed, limit};
    const struct scn_load_options options = {.configs_dir = FIXTURE_CONFIGS, .sets = sets, .set_count = 3};
    struct scn_messages messages = {0};
    enum sim_status status = scn_load(FIXTURE_CLOCK, &options, scenario_out, &messages);
    snprintf(text, 256, "%s", messages.count > 0 ? messages.lines[0] : "");
    scn_messages_free(&messages);
    return status;
}

TEST(Sweep, CollapsesKeysUnderZipToOnePosition)
{
    struct scn_scenario *scenario = NULL;
    char text[256];
    ASSERT_EQ(load_zip("seed=2", "time_limit=2 s", &scenario, text), SIM_OK);
    EXPECT_EQ(scenario->sweep->point_count, 1);
    EXPECT_STREQ(scenario->sweep->points[0].label, "2, 2 s");
    scn_free(scenario);
    EXPECT_EQ(load_zip("seed=1", "time_limit=2 s", &scenario, text), SIM_ERR_INVALID);
    EXPECT_CONTAINS(text, "sweep: 'time_limit' changes together with other keys; --set time_limit=2 s is at another "
                          "position than the others");
}

TEST(Sweep, RefusesASettingOfAPartOfASweptKey)
{
    struct scn_scenario *scenario = NULL;
    char text[256];
    EXPECT_EQ(load_clock("nodes.0.board.clock=200 MHz", NULL, &scenario, text), SIM_ERR_INVALID);
    EXPECT_CONTAINS(text, "'nodes.*.board.clock' is swept, and would overwrite --set nodes.0.board.clock=200 MHz");
}

// The setting of the point comes after that of the user, for the same nodes.
TEST(Sweep, OfPresetsMayBeSet)
{
    static const char text[] =
        "title: t\n"
        "nodes: [{name: node, count: 2, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}}]\n"
        "cables: [{from: node0.E, to: node1.W, preset: pearl-gen2-x8}]\n"
        "sweep: {nodes.*.preset: [ha-pacs-tca-2013, ha-pacs-tca-2014]}\n"
        "runs: [{series: s, workload: pingpong, method: register, node: node0, peer: node1, bytes: 8 B}]\n";
    struct fixture fixture;
    fixture_load_text(&fixture, text, "nodes.*.preset=ha-pacs-tca-2014");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->sweep->point_count, 1);
    EXPECT_EQ(fixture.scenario->nodes[0].board.fidelity, SCN_FIDELITY_TWIN);
    fixture_fini(&fixture);
}

TEST(Sweep, IsNoneIfItIsEmpty)
{
    const char *text =
        "title: t\nnodes: [{name: node, count: 2, preset: ha-pacs-tca-2013}]\ncables: [{from: node0.E, to: node1.W, "
        "preset: pearl-gen2-x8}]\nsweep: {seed: [1, 2]}\n"
        "runs: [{series: s, workload: pingpong, method: register, node: node0, peer: node1, bytes: 8 B}]\n";
    struct fixture fixture;
    fixture_load_text(&fixture, text, "sweep={}");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_NULL(fixture.scenario->sweep);
    EXPECT_EQ(fixture.scenario->seed, 1);
    fixture_fini(&fixture);
}

TEST(Sweep, RefusesWhatIsNoListOfValues)
{
    refused("title: t\nsweep: 3\n", "sweep: expected a mapping of paths to lists, found a single value");
    refused("title: t\nsweep: {seed: 3}\n", "sweep: 'seed' needs a list of single values");
    refused("title: t\nsweep: {seed: []}\n", "sweep: 'seed' needs a list of single values");
    refused("title: t\nsweep: {seed: [[1]]}\n", "sweep: 'seed' needs a list of single values");
    refused("title: t\nsweep: {zip: [1]}\n", "sweep: zip: expected a mapping of paths to lists, found a list");
    refused("title: t\nsweep: {zip: {seed: [1, 2], time_limit: [1 s]}}\n",
            "sweep: 'time_limit' has 1 value, 'seed' beside it has 2");
    refused("title: t\nsweep: {zip: {}}\n", "sweep: zip: expected a mapping of paths to lists, found nothing");
    refused("title: t\nsweep: {sweep: [1, 2]}\n", "sweep: 'sweep' cannot be swept: a sweep has no sweep within");
    refused("title: t\nsweep: {runs.*.series: [a, b]}\n",
            "sweep: 'runs.*.series' cannot be swept: series are named by their runs, and each point adds its value");
    refused("title: t\nsweep: {programs.*.results.series: [a, b]}\n",
            "sweep: 'programs.*.results.series' cannot be swept: series are named by their runs, and each point adds "
            "its value");
    refused("title: t\nsweep: {seed: [1, 1]}\n", "sweep: two points are called '1'");
}

TEST(Sweep, RefusesPointsThatAreNoScenarios)
{
    refused("title: t\nsweep: {nodes.*.board.clok: [1 MHz]}\n",
            "sweep: 1 MHz: --set nodes.*.board.clok=1 MHz: unknown key 'clok' (did you mean 'clock'?)");
    refused("title: t\nsweep: {seed: [1, x]}\n", "sweep: x: --set seed=x: seed: ");
    refused("title: t\nsweep: {nodes.*.board.dmac_read_tags: [16, 33]}\n", "33 is out of range (1 .. 32)");
}
