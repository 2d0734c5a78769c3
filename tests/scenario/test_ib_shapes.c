// Switches and cables of `ib_fabric:`, with numbers computed by hand.
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/ib_shapes.h"

static struct scn_ib_layout layout;
static char why[SCN_WHY_MAX];

static bool lay(struct scn_ib_shape shape)
{
    why[0] = '\0';
    shape.radix = shape.radix != 0 ? shape.radix : 36;
    return scn_ib_shape_lay(&shape, &layout, why);
}

// The fabric of the layout, as a scenario would have it.
static struct scn_ib_fabric *fabric_of(uint32_t nodes)
{
    struct scn_scenario *scenario = calloc(1, sizeof *scenario);
    scenario->node_count = nodes;
    scenario->ib_switch_count = layout.switch_count;
    scenario->ib_cable_count = layout.cable_count;
    for (uint32_t i = 0; i < layout.cable_count; i++) {
        scenario->ib_cables[i] = (struct scn_ib_cable){layout.cables[i].from, layout.cables[i].to, 0};
    }
    for (uint32_t i = 0; i < nodes; i++) {
        scenario->nodes[i].name[0] = 'n';
    }
    for (uint32_t i = 0; i < layout.switch_count; i++) {
        scenario->ib_switches[i].name[0] = 's';
    }
    struct scn_ib_fabric *fabric = scn_ib_fabric_find(scenario);
    free(scenario);
    return fabric;
}

// Every two nodes reach each other over at most `most` cables, on routes that are safe.
static void expect_reached(uint32_t nodes, uint32_t radix, uint32_t most, bool up_down)
{
    struct scn_ib_fabric *fabric = fabric_of(nodes);
    uint32_t farthest = 0;
    EXPECT_TRUE(fabric->safe);
    EXPECT_EQ(fabric->up_down, up_down);
    for (uint32_t i = 0; i < fabric->switch_count; i++) {
        EXPECT_LE(scn_ib_port_count(fabric, i), radix);
    }
    for (uint32_t from = 0; from < nodes; from++) {
        for (uint32_t to = 0; to < nodes; to++) {
            uint32_t cables = from != to ? scn_ib_cables(fabric, from, to) : 0;
            farthest = cables > farthest ? cables : farthest;
        }
    }
    EXPECT_EQ(farthest, most);
    scn_ib_fabric_free(fabric);
}

TEST(FatTree, HasAsManyCablesUpAsNodes)
{
    ASSERT_TRUE(lay((struct scn_ib_shape){.nodes = 64}));
    EXPECT_EQ(layout.switch_count, 4 + 2); // leaves of 18 nodes; 72 cables up to spines of 36 ports
    EXPECT_EQ(layout.cable_count, 64 + 4 * 18);
    EXPECT_STREQ(layout.names[4], "spine0");
    expect_reached(64, 36, 4, false);
}

TEST(FatTree, HasFewerCablesUpWithOversubscription)
{
    ASSERT_TRUE(lay((struct scn_ib_shape){.nodes = 64, .oversubscription = 3}));
    EXPECT_EQ(layout.switch_count, 3 + 1); // leaves of 27 nodes with 9 cables up
    EXPECT_EQ(layout.cable_count, 64 + 3 * 9);
    expect_reached(64, 36, 4, false);
}

TEST(FatTree, HasThreeLevelsForAThousandNodes)
{
    ASSERT_TRUE(lay((struct scn_ib_shape){.nodes = 1024}));
    EXPECT_EQ(layout.switch_count, 57 + 4 * 18 + 36); // pods of 15 leaves; each middle switch has 15 cables up
    EXPECT_EQ(layout.cable_count, 1024 + 57 * 18 + 4 * 18 * 15);
    expect_reached(1024, 36, 6, false);
}

TEST(FatTree, IsOneSwitchForFewNodes)
{
    ASSERT_TRUE(lay((struct scn_ib_shape){.nodes = 16}));
    EXPECT_EQ(layout.switch_count, 1);
    EXPECT_EQ(layout.cable_count, 16);
    expect_reached(16, 36, 2, false);
}

TEST(FatTree, SpreadsTheNodesOfALeafOverItsCablesUp)
{
    uint32_t count[36] = {0};
    ASSERT_TRUE(lay((struct scn_ib_shape){.nodes = 72}));
    struct scn_ib_fabric *fabric = fabric_of(72);
    for (uint32_t node = 18; node < 72; node++) { // those of the other leaves
        count[scn_ib_port(fabric, 0, node)]++;
    }
    for (uint32_t port = 0; port < 36; port++) {
        EXPECT_EQ(count[port], port < 18 ? 0 : 3);
    }
    scn_ib_fabric_free(fabric);
}

TEST(FatTree, RefusesMoreNodesThanItsLevelsReach)
{
    EXPECT_FALSE(lay((struct scn_ib_shape){.nodes = 649, .levels = 2}));
    EXPECT_STREQ(why, "649 nodes need 37 leaves, too many for 2 levels of 36 ports");
    EXPECT_TRUE(lay((struct scn_ib_shape){.nodes = 648, .levels = 2}));
    EXPECT_FALSE(lay((struct scn_ib_shape){.nodes = 37, .levels = 1}));
    EXPECT_STREQ(why, "37 nodes need 2 leaves, too many for 1 level of 36 ports");
    EXPECT_FALSE(lay((struct scn_ib_shape){.nodes = 1024, .radix = 8}));
    EXPECT_STREQ(why, "1024 nodes need 256 leaves, too many for 3 levels of 8 ports");
    EXPECT_FALSE(lay((struct scn_ib_shape){.nodes = 64, .nodes_per_switch = 20}));
    EXPECT_STREQ(why, "a leaf needs 40 ports, of 36");
    EXPECT_FALSE(lay((struct scn_ib_shape){.nodes = 64, .oversubscription = 36}));
    EXPECT_STREQ(why, "an oversubscription of 36 leaves no port of 36 for a cable up");
}

TEST(Dragonfly, JoinsAnyTwoGroups)
{
    const struct scn_ib_shape shape = {
        .kind = SCN_IB_KIND_DRAGONFLY, .nodes = 72, .nodes_per_switch = 2, .group_switches = 4, .global_links = 2};
    ASSERT_TRUE(lay(shape));
    EXPECT_EQ(layout.switch_count, 9 * 4);
    EXPECT_EQ(layout.cable_count, 72 + 9 * 6 + 36); // 8 global cables of each group, one to each other group
    EXPECT_STREQ(layout.names[35], "group8-3");
    bool joined[9][9] = {{false}};
    for (uint32_t i = 72 + 9 * 6; i < layout.cable_count; i++) {
        uint32_t from = (layout.cables[i].from - SCN_IB_SWITCH(0)) / 4,
                 to = (layout.cables[i].to - SCN_IB_SWITCH(0)) / 4;
        EXPECT_FALSE(joined[from][to]);
        joined[from][to] = joined[to][from] = true;
    }
    for (uint32_t i = 0; i < 81; i++) {
        EXPECT_EQ(joined[i / 9][i % 9], i / 9 != i % 9);
    }
}

TEST(Dragonfly, HasUpDownRoutesAsShortestOnesHaveACycle)
{
    ASSERT_TRUE(lay((struct scn_ib_shape){
        .kind = SCN_IB_KIND_DRAGONFLY, .nodes = 256, .nodes_per_switch = 4, .group_switches = 8, .global_links = 4}));
    expect_reached(256, 36, 7, true);
}

TEST(Dragonfly, RefusesMoreGroupsThanItsCablesReach)
{
    struct scn_ib_shape shape = {
        .kind = SCN_IB_KIND_DRAGONFLY, .nodes = 73, .nodes_per_switch = 2, .group_switches = 4, .global_links = 2};
    EXPECT_FALSE(lay(shape));
    EXPECT_STREQ(why, "73 nodes need 10 groups; the 8 global cables of a group reach 8 others");
    shape.radix = 6;
    shape.nodes = 72;
    EXPECT_FALSE(lay(shape));
    EXPECT_STREQ(why, "a switch needs 7 ports, of 6");
}

TEST(Torus, IsClosedInEveryDimension)
{
    ASSERT_TRUE(
        lay((struct scn_ib_shape){.kind = SCN_IB_KIND_TORUS, .nodes = 256, .size = {4, 4, 4}, .dimensions = 3}));
    EXPECT_EQ(layout.switch_count, 64);
    EXPECT_EQ(layout.cable_count, 256 + 3 * 64);
    EXPECT_STREQ(layout.names[63], "switch-3-3-3");
    struct scn_ib_fabric *fabric = fabric_of(256);
    for (uint32_t i = 0; i < 64; i++) {
        EXPECT_EQ(scn_ib_port_count(fabric, i), 4 + 6);
    }
    EXPECT_TRUE(fabric->up_down);
    EXPECT_TRUE(fabric->safe);
    scn_ib_fabric_free(fabric);
}

TEST(Torus, HasOneCableBetweenTwoSwitches)
{
    ASSERT_TRUE(lay((struct scn_ib_shape){.kind = SCN_IB_KIND_TORUS, .nodes = 4, .size = {2, 1, 2}, .dimensions = 3}));
    EXPECT_EQ(layout.cable_count, 4 + 4);
    expect_reached(4, 36, 4, false);
}

TEST(Torus, RefusesWhatDoesNotFit)
{
    struct scn_ib_shape shape = {.kind = SCN_IB_KIND_TORUS, .nodes = 64};
    EXPECT_FALSE(lay(shape));
    EXPECT_STREQ(why, "a torus needs size:, the number of switches in each dimension");
    shape.dimensions = 2;
    shape.size[0] = shape.size[1] = 3;
    shape.nodes_per_switch = 7;
    EXPECT_FALSE(lay(shape));
    EXPECT_STREQ(why, "64 nodes, 7 at a switch, need more than the 9 switches of size:");
    shape.nodes_per_switch = 34;
    EXPECT_FALSE(lay(shape));
    EXPECT_STREQ(why, "a switch needs 38 ports, of 36");
    shape.size[0] = shape.size[1] = 33;
    EXPECT_FALSE(lay(shape));
    EXPECT_STREQ(why, "1089 switches and 0 cables; a scenario has at most 1024 and 4096");
}

#define HCAS "title: t\ntopology: {kind: separate, preset: rx200-s7, nodes: %u, ib_fabric: %s}\n%s"

static void load(struct fixture *fixture, uint32_t nodes, const char *fabric, const char *more)
{
    char text[2048];
    snprintf(text, sizeof text, HCAS, nodes, fabric, more);
    fixture_load_text(fixture, text, NULL);
}

TEST(IbFabricKeys, MakeSwitchesAndCables)
{
    struct fixture fixture, again;
    load(&fixture, 40, "{kind: fat_tree, switch: {preset: qdr-36, with: {latency: 150 ns}}, flight: 30 ns, levels: 2}",
         "");
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->ib_switch_count, 3 + 2);
    EXPECT_STREQ(fixture.scenario->ib_switches[3].name, "spine0");
    EXPECT_EQ(fixture.scenario->ib_switches[4].latency_ps, 150000);
    EXPECT_EQ(fixture.scenario->ib_cable_count, 40 + 54);
    EXPECT_EQ(fixture.scenario->ib_cables[93].flight_ps, 30000);
    char *text = fixture_resolved(fixture.scenario);
    fixture_load_text(&again, text, NULL);
    EXPECT_STREQ(fixture_message(&again), "");
    free(text);
    fixture_fini(&again);
    fixture_fini(&fixture);
}

TEST(IbFabricKeys, RefuseWhatDoesNotBelongTogether)
{
    static const struct {
        const char *fabric, *more, *message;
    } cases[] = {
        {"torus", "", "ib_fabric: expected a mapping, found a single value"},
        {"{switch: qdr-36}", "", "missing key 'kind' in ib_fabric"},
        {"{kind: torus, size: [2, 2]}", "", "missing key 'switch' in ib_fabric"},
        {"{kind: mesh, switch: qdr-36}", "", "kind: 'mesh' is none of fat_tree, dragonfly, torus"},
        {"{kind: torus, switch: qdr-36, levels: 2, size: [2, 2]}", "", "levels: a torus has no such key"},
        {"{kind: fat_tree, switch: qdr-36, size: [2, 2]}", "", "size: a fat_tree has no such key"},
        {"{kind: torus, switch: qdr-36, size: [1, 1, 1, 1, 1, 2]}", "", "size: 6 dimensions, at most 5 are possible"},
        {"{kind: fat_tree, switch: {preset: qdr-36, with: {ports: 8}}, radix: 9}", "",
         "radix: 9 ports; a switch has 8"},
        {"{kind: fat_tree, switch: qdr-36, level: 2}", "", "unknown key 'level' (did you mean 'levels'?)"},
        {"{kind: fat_tree, switch: no-such}", "", "no-such"},
        {"{kind: torus, switch: qdr-36, size: [2, 2], nodes_per_switch: 2}", "",
         "ib_fabric: 16 nodes, 2 at a switch, need more than the 4 switches of size:"},
        {"{kind: fat_tree, switch: qdr-36}", "ib_cables: []", "'ib_cables' and 'ib_fabric' exclude each other"},
        {"{kind: torus, switch: qdr-36, size: [4, 4]}", "ib_routing: shortest",
         "ib_routing: on shortest routes full buffers can wait for one another in a circle"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture;
        TEST_TRACE("%s", cases[i].fabric);
        load(&fixture, 16, cases[i].fabric, cases[i].more);
        EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
        EXPECT_CONTAINS(fixture_message(&fixture), cases[i].message);
        fixture_fini(&fixture);
    }
}
