#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

static void load(struct fixture *fixture, const char *set)
{
    fixture_load_file(fixture, FIXTURE_FULL, FIXTURE_CONFIGS, set);
}

static void expect_refused(const char *set, const char *text)
{
    struct fixture fixture;
    char line[512];
    load(&fixture, set);
    snprintf(line, sizeof line, "--set %s: %s", set, text);
    EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
    ASSERT_EQ(fixture.messages.count, 1);
    EXPECT_STREQ(fixture.messages.lines[0], line);
    fixture_fini(&fixture);
}

TEST(Set, ChangesOneValueOfOneNode)
{
    struct fixture fixture;
    load(&fixture, "nodes.0.host.poll=30 ns");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->nodes[0].host.poll_ps, 30000);
    EXPECT_EQ(fixture.scenario->nodes[1].host.poll_ps, 25000);
    EXPECT_STREQ(scn_source(fixture.scenario, &fixture.scenario->nodes[0].host.poll_ps),
                 "--set nodes.0.host.poll=30 ns");
    fixture_fini(&fixture);
}

TEST(Set, ChangesAllNodesWithAStar)
{
    struct fixture fixture;
    load(&fixture, "nodes.*.board.dmac_read_tags=5");
    ASSERT_EQ(fixture.status, SIM_OK);
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_EQ(fixture.scenario->nodes[i].board.dmac_read_tags, 5);
    }
    fixture_fini(&fixture);
}

#define TWO_RINGS                                                                                                      \
    "title: t\n"                                                                                                       \
    "topology: {kind: ring, nodes: 2, sub_clusters: 2, preset: ha-pacs-tca-2014, cable: pearl-gen2-x8,\n"              \
    "           with: {hca: {preset: connectx3-qdr}}, ib_switch: qdr-36}\n"

TEST(Set, ChangesTheNodesOfASubCluster)
{
    static const struct {
        const char *set;
        bool changed[4];
    } cases[] = {{"sub_clusters.0.fidelity=flow", {true, true, false, false}},
                 {"sub_clusters.1.fidelity=flow", {false, false, true, true}},
                 {"sub_clusters.*.fidelity=flow", {true, true, true, true}},
                 {"sub_clusters.1.board.fidelity=flow", {false, false, true, true}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TEST_TRACE("set %s", cases[i].set);
        struct fixture fixture;
        fixture_load_text(&fixture, TWO_RINGS, cases[i].set);
        EXPECT_STREQ(fixture_message(&fixture), "");
        ASSERT_EQ(fixture.status, SIM_OK);
        for (unsigned node = 0; node < 4; node++) {
            EXPECT_EQ(fixture.scenario->nodes[node].board.fidelity,
                      cases[i].changed[node] ? SCN_FIDELITY_FLOW : SCN_FIDELITY_RTL);
        }
        fixture_fini(&fixture);
    }
}

TEST(Set, RefusesSubClustersThatThereAreNot)
{
    static const struct {
        const char *set, *message;
    } cases[] = {{"sub_clusters.2.fidelity=flow", "'sub_clusters.2': expected 0 to 1, or *"},
                 {"sub_clusters.x.fidelity=flow", "'sub_clusters.x': expected 0 to 1, or *"},
                 {"sub_clusters.0=flow", "a key must follow 'sub_clusters.0'"},
                 {"sub_clusters.0.host.pol=1 ns", "unknown key 'pol' (did you mean 'poll'?)"},
                 {"sub_clusters.0.fidelity=fast", "fidelity: 'fast' is none of rtl, twin, flow"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        struct fixture fixture;
        fixture_load_text(&fixture, TWO_RINGS, cases[i].set);
        snprintf(line, sizeof line, "--set %s: %s", cases[i].set, cases[i].message);
        EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
        ASSERT_EQ(fixture.messages.count, 1);
        EXPECT_STREQ(fixture.messages.lines[0], line);
        fixture_fini(&fixture);
    }
}

TEST(Set, LeavesOutEntriesWithoutTheObjectWithAStar)
{
    static const char text[] = "title: t\nnodes: [{name: a, preset: rx200-s7}, {name: b, preset: ha-pacs-tca-2013}]\n";
    struct fixture fixture;
    fixture_load_text(&fixture, text, "nodes.*.board.dmac_read_tags=5");
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_FALSE(fixture.scenario->nodes[0].board.given);
    EXPECT_EQ(fixture.scenario->nodes[1].board.dmac_read_tags, 5);
    fixture_fini(&fixture);
    fixture_load_text(&fixture, text, "nodes.a.board.dmac_read_tags=5");
    EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
    ASSERT_EQ(fixture.messages.count, 1);
    EXPECT_STREQ(fixture.messages.lines[0], "--set nodes.a.board.dmac_read_tags=5: 'board' is not given");
    fixture_fini(&fixture);
}

TEST(Set, ReachesCablesRunsAndTheTop)
{
    static const char *const sets[] = {
        "cables.*.lanes=x1",        "runs.0.iterations=5", "seed=3",
        "runs.1.bytes=[8 B, 16 B]", "title=a: b",          "runs.0.bytes={from: 8 B, to: 64 B, factor: 2}"};
    struct scn_load_options options = {.configs_dir = FIXTURE_CONFIGS, .sets = sets, .set_count = 6};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    ASSERT_EQ(scn_load(FIXTURE_FULL, &options, &scenario, &messages), SIM_OK);
    EXPECT_EQ(scenario->cables[1].link.lanes, 1);
    EXPECT_EQ(scenario->runs[0].iterations, 5);
    EXPECT_EQ(scenario->runs[0].bytes_count, 4);
    EXPECT_EQ(scenario->runs[1].bytes[1], 16);
    EXPECT_EQ(scenario->seed, 3);
    EXPECT_STREQ(scenario->title, "a: b");
    scn_free(scenario);
}

TEST(Set, FindsEntriesOfAListByName)
{
    struct fixture fixture;
    load(&fixture, "nodes.ring1.host.poll=30 ns");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->nodes[3].host.poll_ps, 30000);
    EXPECT_NE(fixture.scenario->nodes[2].host.poll_ps, 30000);
    fixture_fini(&fixture);
    load(&fixture, "runs.DMA CPU-CPU.iterations=5");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->runs[0].iterations, 5);
    fixture_fini(&fixture);
}

// The preset of the board has a fidelity of its own.
TEST(Set, GivesBoardsTheFidelityOfTheFileUnlessItGivesThemAnother)
{
    static const char text[] =
        "title: t\nfidelity: flow\nnodes:\n"
        "  - {name: a, preset: ha-pacs-tca-2013}\n"
        "  - {name: b, preset: ha-pacs-tca-2013, with: {board: {fidelity: rtl}}}\n"
        "cables: [{from: a.E, to: b.W, preset: pearl-gen2-x8}]\n"
        "runs: [{series: s, workload: pingpong, method: register, node: a, peer: b, bytes: [8 B], iterations: 1}]\n";
    static const struct {
        const char *set;
        enum scn_fidelity fidelities[2];
    } cases[] = {{NULL, {SCN_FIDELITY_FLOW, SCN_FIDELITY_RTL}},
                 {"nodes.*.preset=ha-pacs-tca-2014", {SCN_FIDELITY_FLOW, SCN_FIDELITY_RTL}},
                 {"nodes.a.board.fidelity=twin", {SCN_FIDELITY_TWIN, SCN_FIDELITY_RTL}},
                 {"fidelity=twin", {SCN_FIDELITY_TWIN, SCN_FIDELITY_TWIN}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture;
        fixture_load_text(&fixture, text, cases[i].set);
        ASSERT_EQ(fixture.status, SIM_OK);
        for (unsigned node = 0; node < 2; node++) {
            EXPECT_EQ(fixture.scenario->nodes[node].board.fidelity, cases[i].fidelities[node]);
        }
        fixture_fini(&fixture);
    }
}

TEST(Set, ReplacesAPresetUnderWhatTheFilePutsOverIt)
{
    struct fixture fixture;
    load(&fixture, "nodes.*.preset=ha-pacs-tca-2014");
    ASSERT_EQ(fixture.status, SIM_OK);
    const struct scn_node *nodes = fixture.scenario->nodes;
    EXPECT_EQ(nodes[0].board.dmac_start_cycles, nodes[1].board.dmac_start_cycles);
    EXPECT_NE(nodes[0].board.dmac_start_cycles, 205);
    EXPECT_EQ(nodes[1].board.dmac_read_tags, 8);
    EXPECT_EQ(nodes[1].board.fidelity, SCN_FIDELITY_TWIN);
    EXPECT_EQ(nodes[1].host.poll_ps, 25000);
    EXPECT_STREQ(nodes[3].name, "ring1");
    EXPECT_STREQ(nodes[3].preset, "ha-pacs-tca-2014");
    fixture_fini(&fixture);
}

TEST(Set, ReplacesThePresetOfAPart)
{
    struct fixture fixture;
    load(&fixture, "nodes.node1.board.preset=peach2-production");
    ASSERT_EQ(fixture.status, SIM_OK);
    const struct scn_node *nodes = fixture.scenario->nodes;
    EXPECT_EQ(nodes[0].board.dmac_start_cycles, 205);
    EXPECT_NE(nodes[1].board.dmac_start_cycles, 205);
    EXPECT_EQ(nodes[1].board.dmac_read_tags, 8);
    fixture_fini(&fixture);
    load(&fixture, "cables.0.preset=slot-gen2-x8");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->cables[0].link.flight_ps, 10000);
    fixture_fini(&fixture);
}

TEST(Set, PutsOtherValuesOverAPresetThatIsSetBehindThem)
{
    static const char *const sets[] = {"nodes.0.board.dmac_start_cycles=7", "nodes.0.preset=ha-pacs-tca-2014"};
    const struct scn_load_options options = {.configs_dir = FIXTURE_CONFIGS, .sets = sets, .set_count = 2};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    ASSERT_EQ(scn_load(FIXTURE_FULL, &options, &scenario, &messages), SIM_OK);
    EXPECT_EQ(scenario->nodes[0].board.dmac_start_cycles, 7);
    EXPECT_STREQ(scenario->nodes[0].preset, "ha-pacs-tca-2014");
    scn_free(scenario);
}

TEST(Set, TakesAWholePreset)
{
    struct fixture fixture;
    load(&fixture, "nodes.1.host={preset: xeon-e5-2670, with: {poll: 40 ns}}");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->nodes[1].host.poll_ps, 40000);
    EXPECT_EQ(fixture.scenario->nodes[1].host.mps_bytes, 256);
    fixture_fini(&fixture);
}

TEST(Set, RefusesUnknownPaths)
{
    expect_refused("nodes.0.host.pol=20 ns", "unknown key 'pol' (did you mean 'poll'?)");
    expect_refused("node.0.host.poll=20 ns", "unknown key 'node' (did you mean 'nodes'?)");
    expect_refused("host.poll=20 ns", "unknown key 'host' in scenario (did you mean 'nodes.*.host.poll'?)");
    expect_refused("iterations=3", "unknown key 'iterations' in scenario (did you mean 'runs.*.iterations'?)");
    expect_refused("nodes.9.host.poll=20 ns", "'nodes.9': expected 0 to 3, a name, or *");
    expect_refused("nodes.x.host.poll=20 ns", "'nodes.x': expected 0 to 3, a name, or *");
    expect_refused("nodes.0=1", "a key must follow 'nodes.0'");
    expect_refused("nodes=1", "an index or * must follow 'nodes'");
    expect_refused("cables.9.lanes=x1", "'cables.9': expected 0 to 2, or *");
    expect_refused("nodes.0.with.host.poll=1 ns", "leave 'with' out: --set goes over presets by itself");
    expect_refused("nodes.0.preset=ha-pacs", "unknown node preset 'ha-pacs' (there are: ha-pacs-tca-2013, "
                                             "ha-pacs-tca-2014, ppx, rx200-s7)");
    expect_refused("runs.0.preset=x", "unknown key 'preset' in run");
    expect_refused("seed.x=1", "'seed' has no keys");
    expect_refused("expect.0.over.take=max", "'over' is not given");
    expect_refused("seed", "expected path=value");
    expect_refused("=1", "expected path=value");
}

static void expect_no_entry(const char *set)
{
    struct fixture fixture;
    fixture_load_text(&fixture, "title: t\nnodes: [{name: a, count: 1, preset: ha-pacs-tca-2013}]\n", set);
    EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
    char *lines = fixture_lines(&fixture);
    EXPECT_CONTAINS(lines, ": the list 'faults' is empty, and --set adds no entries: the file must give them\n");
    free(lines);
    fixture_fini(&fixture);
}

TEST(Set, EmptiesAListThatMayBeEmpty)
{
    struct fixture fixture;
    fixture_load_file(&fixture, FIXTURE_FULL, FIXTURE_CONFIGS, NULL);
    EXPECT_GT(fixture.scenario->expect_count, 0);
    fixture_fini(&fixture);
    fixture_load_file(&fixture, FIXTURE_FULL, FIXTURE_CONFIGS, "expect=[]");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->expect_count, 0);
    fixture_fini(&fixture);
    expect_refused("nodes=[]", "an index or * must follow 'nodes'");
}

TEST(Set, AddsNoEntriesToAList)
{
    expect_no_entry("faults=[{cable: {from: a.E, to: b.W}, at: 1 us}]");
    expect_no_entry("faults.0.at=1 us");
}

TEST(Set, RefusesBadValues)
{
    expect_refused("nodes.*.host.poll=20", "poll: '20' needs a unit (ps, ns, us, ms, s)");
    expect_refused("nodes.0.board.dmac_read_tags=33", "dmac_read_tags: 33 is out of range (1 .. 32)");
    expect_refused("cables.0.lanes=x3", "lanes: 'x3' is none of x1, x2, x4, x8, x16");
    expect_refused("seed=", "the value is empty");
    expect_refused("seed=[1", "not YAML: a ',' is missing here, or the ']' before it");
    expect_refused("nodes.0.host=3", "host: expected a mapping, found a single value");
    expect_refused("runs.0.peer=node9", "peer: unknown node 'node9' (there are: node0, node1, ring0, ring1)");
}

TEST(Set, IsHeldToTheRulesBetweenKeys)
{
    expect_refused("runs.0.peer=node0", "peer: a pingpong needs another node than 'node0'");
}
