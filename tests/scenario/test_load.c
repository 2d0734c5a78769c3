#include "fixture.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static void load_full(struct fixture *fixture)
{
    fixture_load_file(fixture, FIXTURE_FULL, FIXTURE_CONFIGS, NULL);
    EXPECT_STREQ(fixture_message(fixture), "");
    ASSERT_EQ(fixture->status, SIM_OK);
}

TEST(Load, FillsTheTopOfAScenario)
{
    struct fixture fixture;
    load_full(&fixture);
    ASSERT_NOT_NULL(fixture.scenario);
    EXPECT_STREQ(fixture.scenario->name, "full");
    EXPECT_STREQ(fixture.scenario->title, "Ping-pong \"two\" nodes, CPU memory");
    EXPECT_EQ(fixture.scenario->seed, 7);
    EXPECT_EQ(fixture.scenario->time_limit_ps, 1000000000000);
    EXPECT_EQ(fixture.scenario->silence_limit_ps, 50000000000);
    fixture_fini(&fixture);
}

TEST(Load, ResolvesPresetsThenWith)
{
    struct fixture fixture;
    load_full(&fixture);
    ASSERT_NOT_NULL(fixture.scenario);
    const struct scn_node *nodes = fixture.scenario->nodes;
    EXPECT_EQ(fixture.scenario->node_count, 4);
    EXPECT_STREQ(nodes[1].name, "node1");
    EXPECT_STREQ(nodes[2].name, "ring0");
    EXPECT_STREQ(nodes[3].name, "ring1");
    EXPECT_STREQ(nodes[3].preset, "ha-pacs-tca-2013");
    EXPECT_EQ(nodes[0].host.mps_bytes, 256);
    EXPECT_EQ(nodes[1].host.poll_ps, 25000);
    EXPECT_EQ(nodes[1].board.dmac_read_tags, 8);
    EXPECT_EQ(nodes[1].board.fidelity, SCN_FIDELITY_TWIN);
    EXPECT_EQ(nodes[1].board.clock_mhz, 250);
    EXPECT_EQ(nodes[0].board.window_base, 0x8000000000);
    EXPECT_EQ(nodes[0].slot.lanes, 8);
    fixture_fini(&fixture);
}

TEST(Load, JoinsCablesToNodesAndPorts)
{
    struct fixture fixture;
    load_full(&fixture);
    ASSERT_NOT_NULL(fixture.scenario);
    const struct scn_cable *cables = fixture.scenario->cables;
    EXPECT_EQ(fixture.scenario->cable_count, 3);
    EXPECT_EQ(cables[0].to_node, 1);
    EXPECT_EQ(cables[0].to_port, SCN_PORT_W);
    EXPECT_EQ(cables[0].link.generation, 2);
    EXPECT_EQ(cables[0].link.flight_ps, 10000);
    EXPECT_EQ(cables[1].from_node, 2);
    EXPECT_EQ(cables[1].from_port, SCN_PORT_S);
    EXPECT_EQ(cables[1].link.generation, 3);
    EXPECT_EQ(cables[1].link.lanes, 4);
    EXPECT_EQ(cables[1].link.flight_ps, 1500);
    fixture_fini(&fixture);
}

TEST(Load, ExpandsListsOfRuns)
{
    struct fixture fixture;
    load_full(&fixture);
    ASSERT_NOT_NULL(fixture.scenario);
    const struct scn_run *runs = fixture.scenario->runs;
    EXPECT_EQ(fixture.scenario->run_count, 2);
    EXPECT_EQ(runs[0].bytes_count, 18);
    EXPECT_EQ(runs[0].bytes[17], 1048576);
    EXPECT_EQ(runs[0].peer, 1);
    EXPECT_EQ(runs[1].peer, SCN_NODE_NONE);
    EXPECT_EQ(runs[1].node, 3);
    EXPECT_EQ(runs[1].channel, 3);
    EXPECT_EQ(runs[1].bytes[2], 4000);
    EXPECT_EQ(runs[1].descriptors_count, 6);
    EXPECT_EQ(runs[1].descriptors[5], 1024);
    EXPECT_EQ(runs[1].iterations, 10);
    EXPECT_EQ(runs[1].method, SCN_METHOD_CHAIN_BOARD);
    fixture_fini(&fixture);
}

TEST(Load, ReadsExpectationsAndTheirOpenBounds)
{
    struct fixture fixture;
    load_full(&fixture);
    ASSERT_NOT_NULL(fixture.scenario);
    const struct scn_check *expects = fixture.scenario->expects;
    EXPECT_EQ(fixture.scenario->expect_count, 6);
    EXPECT_STREQ(expects[0].id, "lowest");
    EXPECT_EQ(expects[0].value.bytes_min, 8);
    EXPECT_EQ(expects[0].value.bytes_max, 8);
    EXPECT_EQ(expects[0].value.descriptors_max, UINT64_MAX);
    EXPECT_EQ(expects[0].min, 0.8);
    EXPECT_EQ(expects[0].max, 1.1);
    EXPECT_TRUE(isinf(expects[1].min));
    EXPECT_EQ(expects[1].max, 3);
    EXPECT_EQ(expects[1].value.take, SCN_TAKE_MEAN);
    EXPECT_FALSE(expects[1].over.given);
    EXPECT_EQ(expects[1].line, 38);
    EXPECT_EQ(expects[1].column, 5);
    fixture_fini(&fixture);
}

TEST(Load, ReadsExpectationsAboutProgramsAndCounters)
{
    struct fixture fixture;
    double min, max;
    uint32_t count;
    char name[SCN_NAME_MAX];
    load_full(&fixture);
    ASSERT_NOT_NULL(fixture.scenario);
    const struct scn_check *expects = fixture.scenario->expects;
    EXPECT_EQ(scn_check_subject(&expects[2]), SCN_SUBJECT_SERIES);
    EXPECT_EQ(expects[2].observed.within_percent, 2.5);
    EXPECT_STREQ(expects[2].observed.of, "baseline.yaml");
    EXPECT_EQ(scn_check_subject(&expects[3]), SCN_SUBJECT_MATCH);
    scn_check_bounds(&expects[3], &min, &max);
    EXPECT_EQ(min, 3.5);
    EXPECT_EQ(max, 3.5);
    EXPECT_EQ(scn_check_subject(&expects[4]), SCN_SUBJECT_OUTPUT);
    EXPECT_STREQ(expects[4].observed.equals, "said.txt");
    EXPECT_EQ(scn_check_subject(&expects[5]), SCN_SUBJECT_COUNTER);
    EXPECT_STREQ(expects[5].observed.counter, "node0.memory.reads");
    scn_outside_name(fixture.scenario, 0, name);
    EXPECT_STREQ(name, "echo");
    EXPECT_EQ(scn_outside_find(fixture.scenario, "said", &count), 1);
    EXPECT_EQ(count, 1);
    EXPECT_CONTAINS(fixture.scenario->directory, "/tests/scenario/");
    fixture_fini(&fixture);
}

TEST(Load, ReadsComparisonsAndPanels)
{
    struct fixture fixture;
    load_full(&fixture);
    ASSERT_NOT_NULL(fixture.scenario);
    const struct scn_check *compares = fixture.scenario->compares;
    EXPECT_EQ(fixture.scenario->compare_count, 3);
    EXPECT_TRUE(compares[1].per_row && compares[1].over.given);
    EXPECT_EQ(compares[1].value.descriptors_min, 4);
    EXPECT_EQ(compares[1].value.descriptors_max, 4);
    EXPECT_EQ(compares[1].over.descriptors_max, 64);
    EXPECT_EQ(compares[1].over.take, SCN_TAKE_MAX);
    EXPECT_EQ(compares[2].first_reaching, 0.5);
    EXPECT_EQ(fixture.scenario->panel_count, 2);
    EXPECT_TRUE(!fixture.scenario->panels[0].x_log && fixture.scenario->panels[0].y_log);
    EXPECT_EQ(fixture.scenario->panels[0].x_max, 8192);
    EXPECT_STREQ(fixture.scenario->panels[1].x, "bytes");
    fixture_fini(&fixture);
}

TEST(Load, RemembersWhereAValueCameFrom)
{
    struct fixture fixture;
    load_full(&fixture);
    ASSERT_NOT_NULL(fixture.scenario);
    const struct scn_scenario *scenario = fixture.scenario;
    EXPECT_CONTAINS(scn_source(scenario, &scenario->nodes[0].host.mps_bytes), "hanawa2013 table 2");
    EXPECT_CONTAINS(scn_source(scenario, &scenario->nodes[0].host.memory_read_ps), "; range 100 ns to 200 ns");
    EXPECT_CONTAINS(scn_source(scenario, &scenario->nodes[1].host.poll_ps), "full.yaml:7:");
    EXPECT_STREQ(scn_source(scenario, &scenario->silence_limit_ps), "default");
    fixture_fini(&fixture);
}

static void count_visit(void *context, const char *path, const char *value, const char *source)
{
    unsigned *seen = context;
    *seen +=
        strcmp(path, "nodes.1.host.poll") == 0 && strcmp(value, "25 ns") == 0 && strstr(source, "full.yaml:7:") != NULL;
}

TEST(Load, VisitsEveryValueWithPathAndSource)
{
    struct fixture fixture;
    load_full(&fixture);
    ASSERT_NOT_NULL(fixture.scenario);
    unsigned seen = 0;
    scn_visit(fixture.scenario, count_visit, &seen);
    EXPECT_EQ(seen, 1);
    fixture_fini(&fixture);
}

TEST(Load, LeavesTheOutputAloneWhenAFileIsMissing)
{
    struct scn_load_options options = {.configs_dir = FIXTURE_CONFIGS};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    EXPECT_EQ(scn_load("/nowhere/x.yaml", &options, &scenario, &messages), SIM_ERR_IO);
    EXPECT_NULL(scenario);
    ASSERT_EQ(messages.count, 1);
    EXPECT_STREQ(messages.lines[0], "/nowhere/x.yaml: cannot be read: No such file or directory");
    scn_messages_free(&messages);
}

TEST(Load, RefusesAFolder)
{
    struct fixture fixture;
    fixture_load_file(&fixture, "/tmp", FIXTURE_CONFIGS, NULL);
    EXPECT_EQ(fixture.status, SIM_ERR_IO);
    EXPECT_STREQ(fixture_message(&fixture),
                 "cannot be read: Is a directory; name the files in it, such as FOLDER/*.yaml");
    fixture_fini(&fixture);
}

TEST(Load, SaysWhichPresetsWouldGiveWhatIsMissing)
{
    const struct fixture_parts parts = {.nodes = "[{name: node0, preset: ha-pacs-tca-2013}, {name: node1}]"};
    struct fixture fixture;
    fixture_load_parts(&fixture, &parts);
    EXPECT_STREQ(fixture_message(&fixture), "missing key 'host' in node; preset: gives all of them (there are: "
                                            "ha-pacs-tca-2013, ha-pacs-tca-2014, ppx, rx200-s7)");
    ASSERT_GT(fixture.messages.count, 1);
    EXPECT_LACKS(fixture.messages.lines[1], "preset:");
    fixture_fini(&fixture);
}

static void find_fault(void *check_ctx, const struct scn_scenario *scenario, scn_complain_fn complain,
                       void *complain_ctx)
{
    (void)check_ctx;
    complain(complain_ctx, 2, 7, scenario->runs[0].series);
}

TEST(Load, ReportsWhatTheCallerFindsAmongTheOtherMistakes)
{
    char folder[64], path[128];
    static const char text[] = "runs:\n  - {series: s}\nseed: x\n";
    const struct scn_load_options options = {.configs_dir = FIXTURE_CONFIGS, .check = find_fault};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    fixture_folder_create(folder);
    snprintf(path, sizeof path, "%s/case.yaml", folder);
    fixture_write(path, text, sizeof text - 1);
    EXPECT_EQ(scn_load(path, &options, &scenario, &messages), SIM_ERR_INVALID);
    ASSERT_GT(messages.count, 2);
    EXPECT_CONTAINS(messages.lines[messages.count - 2], "case.yaml:2:7: s");
    EXPECT_CONTAINS(messages.lines[messages.count - 1], "case.yaml:3:7: seed");
    scn_messages_free(&messages);
    fixture_folder_remove(folder);
}

TEST(Load, NamesAScenarioAfterAHiddenFileWithoutItsDot)
{
    char folder[64], path[128];
    static const char text[] = "title: t\nnodes: [{name: a, preset: ha-pacs-tca-2013}]\n";
    struct fixture fixture;
    fixture_folder_create(folder);
    snprintf(path, sizeof path, "%s/.tried.out.yaml", folder);
    fixture_write(path, text, sizeof text - 1);
    fixture_load_file(&fixture, path, FIXTURE_CONFIGS, NULL);
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_STREQ(fixture.scenario->name, "_tried.out");
    fixture_fini(&fixture);
    unlink(path);
    fixture_folder_remove(folder);
}

TEST(Load, FindsAProgramByItsGivenNameBeforeTheNameOfItsFile)
{
    const struct fixture_parts parts = {
        .rest = "programs: [{node: a, command: /bin/echo x}, {name: echo, node: b, command: /bin/true}]"};
    struct fixture fixture;
    uint32_t count = 0;
    fixture_load_parts(&fixture, &parts);
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(scn_outside_find(fixture.scenario, "echo", &count), 1);
    EXPECT_EQ(count, 1);
    fixture_fini(&fixture);
}
