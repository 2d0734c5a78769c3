// Routes between HCAs, through switches.
#include <string.h>

#include "fixture.h"
#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/links.h"

static struct scn_scenario fabric_scenario;

static struct scn_scenario *scenario_make(uint32_t nodes, uint32_t switches, const uint32_t (*ends)[2], uint32_t cables)
{
    memset(&fabric_scenario, 0, sizeof fabric_scenario);
    fabric_scenario.node_count = nodes;
    fabric_scenario.ib_switch_count = switches;
    for (uint32_t i = 0; i < switches; i++) {
        snprintf(fabric_scenario.ib_switches[i].name, SCN_NAME_MAX, "s%u", i);
    }
    for (uint32_t i = 0; i < cables; i++) {
        fabric_scenario.ib_cables[fabric_scenario.ib_cable_count++] =
            (struct scn_ib_cable){.from_node = ends[i][0], .to_node = ends[i][1]};
    }
    return &fabric_scenario;
}

// Two leaves below a spine; node 4 has no cable.
static struct scn_scenario *tree(void)
{
    static const uint32_t ends[][2] = {{0, SCN_IB_SWITCH(0)}, {SCN_IB_SWITCH(0), SCN_IB_SWITCH(2)},
                                       {1, SCN_IB_SWITCH(0)}, {SCN_IB_SWITCH(2), SCN_IB_SWITCH(1)},
                                       {SCN_IB_SWITCH(1), 2}, {3, SCN_IB_SWITCH(1)}};
    return scenario_make(5, 3, ends, sizeof ends / sizeof *ends);
}

// Nodes on a ring of switches, one at each.
static struct scn_scenario *ring(uint32_t switches)
{
    struct scn_scenario *scenario = scenario_make(switches, switches, NULL, 0);
    for (uint32_t i = 0; i < switches; i++) {
        scenario->ib_cables[scenario->ib_cable_count++] = (struct scn_ib_cable){i, SCN_IB_SWITCH(i), 0};
        scenario->ib_cables[scenario->ib_cable_count++] =
            (struct scn_ib_cable){SCN_IB_SWITCH(i), SCN_IB_SWITCH((i + 1) % switches), 0};
    }
    return scenario;
}

TEST(IbFabric, LeadsThroughSwitchesToTheNode)
{
    struct scn_ib_fabric *fabric = scn_ib_fabric_find(tree());
    EXPECT_EQ(scn_ib_cables(fabric, 0, 1), 2);
    EXPECT_EQ(scn_ib_cables(fabric, 0, 3), 4);
    EXPECT_EQ(scn_ib_port(fabric, 0, 1), 2);
    EXPECT_EQ(scn_ib_port(fabric, 0, 3), 1);
    EXPECT_EQ(scn_ib_port(fabric, 2, 0), 0);
    EXPECT_EQ(scn_ib_port(fabric, 1, 2), 1);
    EXPECT_FALSE(fabric->up_down);
    EXPECT_TRUE(fabric->safe);
    scn_ib_fabric_free(fabric);
}

TEST(IbFabric, HasNoWayToANodeWithoutACable)
{
    struct scn_ib_fabric *fabric = scn_ib_fabric_find(tree());
    EXPECT_EQ(scn_ib_cables(fabric, 0, 4), UINT32_MAX);
    EXPECT_EQ(scn_ib_cables(fabric, 4, 0), UINT32_MAX);
    EXPECT_EQ(scn_ib_port(fabric, 2, 4), SCN_IB_NO_PORT);
    EXPECT_EQ(scn_ib_cables(fabric, 0, 0), UINT32_MAX);
    scn_ib_fabric_free(fabric);
}

TEST(IbFabric, HasNoWayThroughAnHca)
{
    struct scn_scenario *scenario = tree();
    scenario->ib_cables[3] = (struct scn_ib_cable){.from_node = 1, .to_node = SCN_IB_SWITCH(1)};
    struct scn_ib_fabric *fabric = scn_ib_fabric_find(scenario);
    EXPECT_EQ(scn_ib_cables(fabric, 0, 3), UINT32_MAX);
    scn_ib_fabric_free(fabric);
}

TEST(IbFabric, JoinsTwoHcasByACable)
{
    static const uint32_t ends[][2] = {{0, 1}};
    struct scn_ib_fabric *fabric = scn_ib_fabric_find(scenario_make(2, 0, ends, 1));
    EXPECT_EQ(scn_ib_cables(fabric, 0, 1), 1);
    scn_ib_fabric_free(fabric);
}

// Two leaves with four nodes each below two spines.
TEST(IbFabric, SpreadsNodesOverEquallyShortRoutes)
{
    static const uint32_t ends[][2] = {{0, SCN_IB_SWITCH(0)},
                                       {1, SCN_IB_SWITCH(0)},
                                       {2, SCN_IB_SWITCH(0)},
                                       {3, SCN_IB_SWITCH(0)},
                                       {4, SCN_IB_SWITCH(1)},
                                       {5, SCN_IB_SWITCH(1)},
                                       {6, SCN_IB_SWITCH(1)},
                                       {7, SCN_IB_SWITCH(1)},
                                       {SCN_IB_SWITCH(0), SCN_IB_SWITCH(2)},
                                       {SCN_IB_SWITCH(0), SCN_IB_SWITCH(3)},
                                       {SCN_IB_SWITCH(1), SCN_IB_SWITCH(2)},
                                       {SCN_IB_SWITCH(1), SCN_IB_SWITCH(3)}};
    struct scn_ib_fabric *fabric = scn_ib_fabric_find(scenario_make(8, 4, ends, sizeof ends / sizeof *ends));
    for (uint32_t node = 0; node < 4; node++) {
        EXPECT_EQ(scn_ib_port(fabric, 0, 4 + node), 4 + node % 2);
        EXPECT_EQ(scn_ib_port(fabric, 1, node), 4 + node % 2);
    }
    EXPECT_TRUE(fabric->safe);
    scn_ib_fabric_free(fabric);
}

TEST(IbFabric, HasACycleOnShortestRoutesOfARing)
{
    char circle[256];
    struct scn_scenario *scenario = ring(5);
    scenario->ib_routing = SCN_IB_ROUTING_SHORTEST;
    struct scn_ib_fabric *fabric = scn_ib_fabric_find(scenario);
    EXPECT_FALSE(fabric->safe);
    EXPECT_FALSE(scn_ib_is_safe(fabric, scenario, circle, sizeof circle));
    EXPECT_STREQ(circle, "s0 to s1 to s2 to s3 to s4 to s0");
    EXPECT_EQ(scn_ib_cables(fabric, 1, 3), 4);
    scn_ib_fabric_free(fabric);
}

// s0 is the root, s1 and s4 are next to it, s3 is below s2 in the order.
TEST(IbFabric, TurnsUpOnlyBeforeItGoesDown)
{
    struct scn_ib_fabric *fabric = scn_ib_fabric_find(ring(5));
    EXPECT_TRUE(fabric->up_down);
    EXPECT_TRUE(fabric->safe);
    EXPECT_EQ(scn_ib_cables(fabric, 2, 3), 3);
    EXPECT_EQ(scn_ib_cables(fabric, 1, 3), 4);
    EXPECT_EQ(scn_ib_cables(fabric, 2, 4), 5); // by s1 and s0, as s3 is below both s2 and s4
    EXPECT_EQ(scn_ib_cables(fabric, 0, 2), 4);
    scn_ib_fabric_free(fabric);
}

TEST(IbFabric, ReachesEveryNodeByUpDownRoutesOnAnyRing)
{
    for (uint32_t switches = 2; switches <= 20; switches++) {
        TEST_TRACE("%u switches", switches);
        struct scn_scenario *scenario = ring(switches);
        scenario->ib_routing = SCN_IB_ROUTING_UP_DOWN;
        struct scn_ib_fabric *fabric = scn_ib_fabric_find(scenario);
        EXPECT_TRUE(fabric->safe);
        for (uint32_t i = 0; i < switches * switches; i++) {
            if (i / switches != i % switches) {
                EXPECT_NE(scn_ib_cables(fabric, i / switches, i % switches), UINT32_MAX);
            }
        }
        scn_ib_fabric_free(fabric);
    }
}

TEST(IbFabric, HasATreeForGroupsOnARing)
{
    uint8_t ports[5];
    struct scn_ib_fabric *fabric = scn_ib_fabric_find(ring(5));
    scn_ib_tree_ports(fabric, 2, ports); // s2 is below s1, s3 below s4, both below s0
    EXPECT_EQ(scn_ib_plug(fabric, 2, ports[2])->vertex, 2);
    EXPECT_EQ(scn_ib_plug(fabric, 1, ports[1])->vertex, SCN_IB_SWITCH(2));
    EXPECT_EQ(scn_ib_plug(fabric, 0, ports[0])->vertex, SCN_IB_SWITCH(1));
    EXPECT_EQ(scn_ib_plug(fabric, 4, ports[4])->vertex, SCN_IB_SWITCH(0));
    EXPECT_EQ(scn_ib_plug(fabric, 3, ports[3])->vertex, SCN_IB_SWITCH(4));
    scn_ib_fabric_free(fabric);
}

TEST(IbFabric, NumbersTheNamesOfCablesWithTheSameEnds)
{
    struct fixture fixture;
    fixture_load_text(
        &fixture,
        "title: t\nnodes: [{name: n, count: 2, host: {preset: xeon-e5-2680v2}, hca: {preset: connectx3-qdr}}]\n"
        "ib_switches: [{name: s0, preset: qdr-36}, {name: s1, preset: qdr-36}]\n"
        "ib_cables:\n  - {from: n0, to: s0, flight: 75 ns}\n  - {from: n1, to: s1, flight: 75 ns}\n"
        "  - {from: s0, to: s1, flight: 75 ns}\n  - {from: s0, to: s1, flight: 75 ns}\n  - {from: s0, to: s1, flight: "
        "75 ns}\nruns: []\n",
        NULL);
    ASSERT_EQ(fixture.status, SIM_OK);
    static const char *const names[] = {"n0.hca-s0.ib", "n1.hca-s1.ib", "s0.ib-s1.ib", "s0.ib-s1.ib#2",
                                        "s0.ib-s1.ib#3"};
    for (uint32_t i = 0; i < fixture.scenario->ib_cable_count; i++) {
        char name[SCN_LINK_NAME_MAX];
        scn_ib_cable_name(fixture.scenario, i, name);
        EXPECT_STREQ(name, names[i]);
    }
    fixture_fini(&fixture);
}
