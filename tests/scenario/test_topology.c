// Nodes and cables that `topology:` makes, and what it refuses.
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/topology.h"

#define RUN "runs: [{series: s, workload: pingpong, method: pio, node: node0, peer: node1, bytes: 8 B}]\n"

static void load_with(struct fixture *fixture, const char *topology, const char *rest, const char *set)
{
    char text[2048];
    snprintf(text, sizeof text, "title: t\ntopology: %s\n" RUN "%s\n", topology, rest);
    fixture_load_text(fixture, text, set);
}

static void load(struct fixture *fixture, const char *shape)
{
    char topology[512];
    snprintf(topology, sizeof topology, "{%s, preset: ha-pacs-tca-2013, cable: pearl-gen2-x8}", shape);
    load_with(fixture, topology, "", NULL);
    EXPECT_STREQ(fixture_message(fixture), "");
}

static const char *first_line(const struct fixture *fixture)
{
    return fixture->messages.count > 0 ? fixture->messages.lines[0] : "";
}

static void refuse_topology(const char *topology, const char *message)
{
    struct fixture fixture;
    load_with(&fixture, topology, "", NULL);
    EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
    EXPECT_EQ(fixture.messages.count, 1);
    EXPECT_CONTAINS(fixture_message(&fixture), message);
    fixture_fini(&fixture);
}

static void refuse_shape(const char *shape, const char *message)
{
    char topology[512];
    snprintf(topology, sizeof topology, "{%s, preset: ha-pacs-tca-2013, cable: pearl-gen2-x8}", shape);
    refuse_topology(topology, message);
}

static void expect_cable(const struct scn_scenario *scenario, uint32_t index, uint32_t from, enum scn_port from_port,
                         uint32_t to, enum scn_port to_port)
{
    const struct scn_cable *cable = &scenario->cables[index];
    EXPECT_EQ(cable->from_node, from);
    EXPECT_EQ(cable->from_port, from_port);
    EXPECT_EQ(cable->to_node, to);
    EXPECT_EQ(cable->to_port, to_port);
}

TEST(Topology, PairIsOneCableFromEToW)
{
    struct fixture fixture;
    load(&fixture, "kind: pair");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->node_count, 2);
    EXPECT_EQ(fixture.scenario->cable_count, 1);
    expect_cable(fixture.scenario, 0, 0, SCN_PORT_E, 1, SCN_PORT_W);
    fixture_fini(&fixture);
}

TEST(Topology, RingLeadsEastAndBackToTheFirst)
{
    struct fixture fixture;
    load(&fixture, "kind: ring, nodes: 3");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->node_count, 3);
    EXPECT_EQ(fixture.scenario->cable_count, 3);
    expect_cable(fixture.scenario, 1, 1, SCN_PORT_E, 2, SCN_PORT_W);
    expect_cable(fixture.scenario, 2, 2, SCN_PORT_E, 0, SCN_PORT_W);
    fixture_fini(&fixture);
}

TEST(Topology, RingOfTwoHasTwoCables)
{
    struct fixture fixture;
    load(&fixture, "kind: ring, nodes: 2");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->cable_count, 2);
    expect_cable(fixture.scenario, 0, 0, SCN_PORT_E, 1, SCN_PORT_W);
    expect_cable(fixture.scenario, 1, 1, SCN_PORT_E, 0, SCN_PORT_W);
    fixture_fini(&fixture);
}

TEST(Topology, TwoRingsAreJoinedByTheirSPorts)
{
    struct fixture fixture;
    load(&fixture, "kind: two_rings, nodes: 8");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->node_count, 8);
    EXPECT_EQ(fixture.scenario->cable_count, 12);
    expect_cable(fixture.scenario, 3, 3, SCN_PORT_E, 0, SCN_PORT_W);
    expect_cable(fixture.scenario, 7, 7, SCN_PORT_E, 4, SCN_PORT_W);
    expect_cable(fixture.scenario, 8, 0, SCN_PORT_S, 4, SCN_PORT_S);
    expect_cable(fixture.scenario, 11, 3, SCN_PORT_S, 7, SCN_PORT_S);
    fixture_fini(&fixture);
}

TEST(Topology, RepeatsASubCluster)
{
    struct fixture fixture;
    load_with(
        &fixture,
        "{kind: two_rings, nodes: 16, sub_clusters: 4, preset: ha-pacs-tca-2014, "
        "with: {hca: {preset: connectx3-qdr}}, cable: pearl-gen2-x8, ib_fabric: {kind: fat_tree, switch: qdr-36}}",
        "", NULL);
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->node_count, 64);
    EXPECT_EQ(fixture.scenario->cable_count, 96);
    expect_cable(fixture.scenario, 24, 16, SCN_PORT_E, 17, SCN_PORT_W);
    expect_cable(fixture.scenario, 95, 55, SCN_PORT_S, 63, SCN_PORT_S);
    EXPECT_STREQ(fixture.scenario->nodes[63].name, "node63");
    fixture_fini(&fixture);
}

TEST(Topology, RefusesSubClustersThatAreTooManyOrApart)
{
    static const char nodes[] = "preset: ha-pacs-tca-2014, with: {hca: {preset: connectx3-qdr}}, cable: pearl-gen2-x8";
    static const struct {
        const char *shape, *message;
    } cases[] = {
        {"kind: ring, nodes: 16, sub_clusters: 65", "sub_clusters: 1040 nodes; a scenario has at most 1024"},
        {"kind: ring, nodes: 17, sub_clusters: 2", "nodes: 17 nodes; a sub-cluster has at most 16"},
        {"kind: ring, nodes: 8, sub_clusters: 2", "no cables lead from 'node0' to 'node8'"},
        {"kind: ring, nodes: 4, sub_clusters: 0", "sub_clusters: 0 is out of range (1 .. 1024)"},
        {"kind: separate, nodes: 4", "cable: separate nodes have no cables of boards"},
        {"kind: ring, nodes: 4, ib_switch: qdr-36, ib_fabric: {kind: fat_tree, switch: qdr-36}",
         "'ib_fabric' and 'ib_switch' exclude each other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture;
        char topology[512];
        TEST_TRACE("%s", cases[i].shape);
        snprintf(topology, sizeof topology, "{%s, %s}", cases[i].shape, nodes);
        load_with(&fixture, topology, "", NULL);
        EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
        EXPECT_CONTAINS(first_line(&fixture), cases[i].message);
        fixture_fini(&fixture);
    }
}

TEST(Topology, GivesEveryNodeAndCableItsPresetAndOverrides)
{
    struct fixture fixture;
    load_with(&fixture,
              "{kind: ring, nodes: 16, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}, "
              "cable: {preset: pearl-gen2-x8, with: {lanes: x4}}}",
              "", NULL);
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    const struct scn_node *last = &fixture.scenario->nodes[15];
    EXPECT_STREQ(last->name, "node15");
    EXPECT_STREQ(last->preset, "ha-pacs-tca-2013");
    EXPECT_EQ(last->board.fidelity, SCN_FIDELITY_TWIN);
    EXPECT_EQ(last->host.mps_bytes, 256);
    EXPECT_EQ(fixture.scenario->cables[15].link.lanes, 4);
    EXPECT_EQ(fixture.scenario->cables[15].link.flight_ps, 15000);
    fixture_fini(&fixture);
}

TEST(Topology, CallsNodesByTheGivenNames)
{
    struct fixture fixture;
    load_with(
        &fixture,
        "{kind: ring, nodes: 3, names: [node0, tcag-0003, node1], preset: ha-pacs-tca-2013, cable: pearl-gen2-x8}", "",
        NULL);
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_STREQ(fixture.scenario->nodes[1].name, "tcag-0003");
    EXPECT_EQ(fixture.scenario->runs[0].peer, 2); // node1 is the third of the ring
    fixture_fini(&fixture);
}

TEST(Topology, JoinsTheHcasOfItsNodesAtASwitch)
{
    struct fixture fixture, again;
    load_with(&fixture,
              "{kind: two_rings, nodes: 16, preset: ha-pacs-tca-2014, with: {hca: {preset: connectx3-qdr}}, "
              "cable: pearl-gen2-x8, ib_switch: qdr-36, ib_flight: 40 ns}",
              "", NULL);
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->ib_switch_count, 1);
    EXPECT_STREQ(fixture.scenario->ib_switches[0].name, "switch");
    ASSERT_EQ(fixture.scenario->ib_cable_count, 16);
    EXPECT_EQ(fixture.scenario->ib_cables[15].from_node, 15);
    EXPECT_EQ(fixture.scenario->ib_cables[15].to_node, SCN_IB_SWITCH(0));
    EXPECT_EQ(fixture.scenario->ib_cables[15].flight_ps, 40000);
    char *text = fixture_resolved(fixture.scenario);
    fixture_load_text(&again, text, NULL);
    EXPECT_STREQ(fixture_message(&again), "");
    free(text);
    fixture_fini(&again);
    fixture_fini(&fixture);
}

TEST(Topology, RefusesNamesAndSwitchesThatDoNotFit)
{
    static const char nodes[] = "kind: ring, nodes: 3, preset: ha-pacs-tca-2013, cable: pearl-gen2-x8";
    static const struct {
        const char *more, *message;
    } cases[] = {
        {"names: [a, b]", "names: 2 for 3 nodes"},
        {"names: node0", "names: expected a list, found a single value"},
        {"names: [node0, node1, node1]", "node1"},
        {"names: [node0, node1, {}]", "name: expected a text, found a mapping"},
        {"ib_switch: qdr-36", "HCA"},
        {"ib_switch: no-such", "no-such"},
        {"ib_flight: 40 ns", "'ib_flight' needs 'ib_switch' beside it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture;
        char topology[512];
        snprintf(topology, sizeof topology, "{%s, %s}", nodes, cases[i].more);
        load_with(&fixture, topology, "", NULL);
        EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
        EXPECT_CONTAINS(first_line(&fixture), cases[i].message);
        fixture_fini(&fixture);
    }
    struct fixture both;
    load_with(
        &both,
        "{kind: ring, nodes: 3, preset: ha-pacs-tca-2014, with: {hca: {preset: connectx3-qdr}}, cable: pearl-gen2-x8, "
        "ib_switch: qdr-36}",
        "ib_switches: [{name: s, preset: qdr-36}]", NULL);
    EXPECT_CONTAINS(first_line(&both), "'ib_switches' and 'ib_switch' exclude each other: ib_switch makes the switch");
    fixture_fini(&both);
}

TEST(Topology, IsWrittenOutInTheResolvedText)
{
    struct fixture fixture, again;
    load(&fixture, "kind: two_rings, nodes: 4");
    ASSERT_EQ(fixture.status, SIM_OK);
    char *text = fixture_resolved(fixture.scenario);
    EXPECT_LACKS(text, "topology");
    EXPECT_CONTAINS(text, "  - name: \"node3\"\n");
    EXPECT_CONTAINS(text, "  - from: node1.S\n    to: node3.S\n    generation: Gen2\n");
    fixture_load_text(&again, text, NULL);
    EXPECT_STREQ(fixture_message(&again), "");
    ASSERT_EQ(again.status, SIM_OK);
    again.scenario->directory = fixture.scenario->directory; // the other scenario is in another folder
    EXPECT_MEMEQ(again.scenario, fixture.scenario, sizeof *fixture.scenario);
    free(text);
    fixture_fini(&again);
    fixture_fini(&fixture);
}

TEST(Topology, TakesItsKeysFromTheCommandLine)
{
    struct fixture fixture;
    static const char ring[] = "{kind: ring, nodes: 8, preset: ha-pacs-tca-2013, cable: pearl-gen2-x8}";
    load_with(&fixture, ring, "", "topology.nodes=5");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->node_count, 5);
    fixture_fini(&fixture);
    load_with(&fixture, ring, "", "topology.with={board: {fidelity: twin}}");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->nodes[7].board.fidelity, SCN_FIDELITY_TWIN);
    fixture_fini(&fixture);
    load_with(&fixture, ring, "", "topology.nodes=17");
    EXPECT_CONTAINS(first_line(&fixture), "--set topology.nodes=17: nodes: 17 nodes; a sub-cluster has at most 16");
    fixture_fini(&fixture);
    load_with(&fixture, ring, "", "topology.size=3");
    EXPECT_CONTAINS(first_line(&fixture), "--set topology.size=3: unknown key 'size'");
    fixture_fini(&fixture);
    load_with(&fixture, ring, "", "topology.kind.nodes=3");
    EXPECT_CONTAINS(fixture_message(&fixture), "'kind' has no keys");
    fixture_fini(&fixture);
    load_with(&fixture, ring, "", "cables.*.lanes=x1");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->cables[7].link.lanes, 1);
    fixture_fini(&fixture);
}

TEST(Topology, IsNotInventedByTheCommandLine)
{
    struct fixture fixture;
    fixture_load_file(&fixture, FIXTURE_FULL, FIXTURE_CONFIGS, "topology.nodes=4");
    EXPECT_STREQ(first_line(&fixture), "--set topology.nodes=4: 'topology' is not given");
    fixture_fini(&fixture);
}

TEST(Topology, RefusesShapesThatCannotBe)
{
    refuse_shape("kind: star, nodes: 4", "kind: 'star' is none of pair, ring, two_rings");
    refuse_shape("kind: pair, nodes: 3", "nodes: 3 nodes; a pair has 2");
    refuse_shape("kind: ring, nodes: 1", "nodes: 1 nodes; a ring has 2 or more");
    refuse_shape("kind: ring, nodes: 17", "nodes: 17 nodes; a sub-cluster has at most 16, as its window of 512 GiB has "
                                          "room for no more");
    refuse_shape("kind: two_rings, nodes: 7",
                 "nodes: 7 nodes; two_rings needs an even number, half of them on each ring");
    refuse_shape("kind: two_rings, nodes: 2", "nodes: 2 nodes; two_rings needs at least 4, two on each ring");
    refuse_shape("kind: ring, nodes: [4]", "nodes: expected a single value, found a list");
}

TEST(Topology, RefusesMissingAndUnknownKeys)
{
    refuse_topology("{kind: ring, preset: ha-pacs-tca-2013, cable: pearl-gen2-x8}", "missing key 'nodes' in topology");
    refuse_topology("{nodes: 4, preset: ha-pacs-tca-2013, cable: pearl-gen2-x8}", "missing key 'kind' in topology");
    refuse_topology("{kind: pair, cable: pearl-gen2-x8}", "missing key 'preset' in topology");
    refuse_topology("{kind: pair, preset: ha-pacs-tca-2013}", "missing key 'cable' in topology");
    refuse_topology("[pair]", "topology: expected a mapping, found a list");
    refuse_shape("kind: pair, node: 2", "unknown key 'node' (did you mean 'nodes'?)");
    refuse_topology("{kind: pair, preset: ha-pacs-tca-2013, cable: [pearl-gen2-x8]}",
                    "preset: expected a name, found a list");
}

TEST(Topology, ReportsAMistakeOfEveryNodeOnce)
{
    refuse_topology("{kind: ring, nodes: 8, preset: ha-pacs-tca, cable: pearl-gen2-x8}",
                    "unknown node preset 'ha-pacs-tca'");
    refuse_topology("{kind: ring, nodes: 8, preset: ha-pacs-tca-2013, cable: pearl}", "unknown link preset 'pearl'");
    refuse_topology("{kind: ring, nodes: 8, preset: ha-pacs-tca-2013, cable: pearl-gen2-x8, with: {host: {pol: 1 ns}}}",
                    "unknown key 'pol' (did you mean 'poll'?)");
}

TEST(Topology, OneSideOfEachCableIsTheRootComplex)
{
    static const struct {
        enum scn_port from, to;
        bool from_is_root;
    } cases[] = {
        {SCN_PORT_E, SCN_PORT_W, false}, {SCN_PORT_W, SCN_PORT_E, true},  {SCN_PORT_S, SCN_PORT_E, true},
        {SCN_PORT_E, SCN_PORT_S, false}, {SCN_PORT_S, SCN_PORT_W, false}, {SCN_PORT_W, SCN_PORT_S, true},
        {SCN_PORT_S, SCN_PORT_S, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct scn_cable cable = {.from_port = cases[i].from, .to_port = cases[i].to};
        EXPECT_EQ(scn_cable_from_is_root(&cable), cases[i].from_is_root);
    }
}
