// Routes through fabrics, with hop counts computed by hand.
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/routes.h"
#include "sim/scenario/topology.h"

#define LOCAL     "series: s, workload: local-dma, method: register, node: n0, bytes: 8 B"
#define E_W(a, b) "{from: n" #a ".E, to: n" #b ".W, preset: pearl-gen2-x8}"
#define S_S(a, b) "{from: n" #a ".S, to: n" #b ".S, preset: pearl-gen2-x8}"
#define COUNT(n)  "[{name: n, count: " #n ", preset: ha-pacs-tca-2013}]"

static struct scn_scenario *scenario_make(enum scn_topology topology, uint32_t nodes)
{
    struct scn_scenario *scenario = calloc(1, sizeof *scenario);
    scenario->node_count = nodes;
    scenario->cable_count = scn_topology_cables(topology, 0, nodes, scenario->cables);
    return scenario;
}

static uint32_t max_hops(const struct scn_routes *routes, uint32_t *sum_out)
{
    uint32_t most = 0;
    *sum_out = 0;
    for (uint32_t a = 0; a < routes->node_count; a++) {
        for (uint32_t b = 0; b < routes->node_count; b++) {
            *sum_out += scn_routes_hops(routes, a, b);
            most = scn_routes_hops(routes, a, b) > most ? scn_routes_hops(routes, a, b) : most;
        }
    }
    return most;
}

// From one node to all: a ring of 8 has 1 1 2 2 3 3 4 = 16 hops, two rings of 4 have 1 1 2 and 1 2 2 3 = 12.
TEST(Hops, AreThoseOfTheShapes)
{
    static const struct {
        enum scn_topology topology;
        uint32_t nodes, most, sum_of_one;
    } cases[] = {
        {SCN_TOPOLOGY_PAIR, 2, 1, 1},        {SCN_TOPOLOGY_RING, 2, 1, 1},       {SCN_TOPOLOGY_RING, 3, 1, 2},
        {SCN_TOPOLOGY_RING, 4, 2, 4},        {SCN_TOPOLOGY_RING, 5, 2, 6},       {SCN_TOPOLOGY_RING, 8, 4, 16},
        {SCN_TOPOLOGY_RING, 15, 7, 56},      {SCN_TOPOLOGY_RING, 16, 8, 64},     {SCN_TOPOLOGY_TWO_RINGS, 4, 2, 4},
        {SCN_TOPOLOGY_TWO_RINGS, 6, 2, 7},   {SCN_TOPOLOGY_TWO_RINGS, 8, 3, 12}, {SCN_TOPOLOGY_TWO_RINGS, 10, 3, 17},
        {SCN_TOPOLOGY_TWO_RINGS, 16, 5, 40},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scn_scenario *scenario = scenario_make(cases[i].topology, cases[i].nodes);
        struct scn_routes *routes = scn_routes_find(scenario);
        uint32_t sum = 0;
        EXPECT_EQ(max_hops(routes, &sum), cases[i].most);
        EXPECT_EQ(sum, cases[i].sum_of_one * cases[i].nodes);
        scn_routes_free(routes);
        free(scenario);
    }
}

static void expect_ports(const struct scn_routes *routes, uint32_t node, const char *ports)
{
    static const char letters[] = "NEWS";
    for (uint32_t i = 0; i < routes->node_count; i++) {
        uint8_t number = scn_routes_port(routes, node, i);
        char port = number == SCN_NO_PORT ? '-' : letters[number];
        EXPECT_EQ(port, ports[i]);
    }
}

TEST(Routes, GoEastWhenBothWaysAroundARingAreEqual)
{
    struct scn_scenario *scenario = scenario_make(SCN_TOPOLOGY_RING, 8);
    struct scn_routes *routes = scn_routes_find(scenario);
    expect_ports(routes, 0, "-EEEEWWW");
    expect_ports(routes, 5, "EEWWW-EE");
    scn_routes_free(routes);
    free(scenario);
}

TEST(Routes, CrossToTheOtherRingFirst)
{
    struct scn_scenario *scenario = scenario_make(SCN_TOPOLOGY_TWO_RINGS, 8);
    struct scn_routes *routes = scn_routes_find(scenario);
    expect_ports(routes, 1, "W-EESSSS");
    expect_ports(routes, 6, "SSSSEW-E");
    scn_routes_free(routes);
    free(scenario);
}

TEST(Rings, AreFoundEastward)
{
    struct scn_scenario *scenario = scenario_make(SCN_TOPOLOGY_TWO_RINGS, 6);
    struct scn_routes *routes = scn_routes_find(scenario);
    struct scn_rings rings;
    scn_rings_find(routes, 0, &rings);
    scn_routes_free(routes);
    EXPECT_EQ(rings.count, 2);
    EXPECT_EQ(rings.sizes[1], 3);
    EXPECT_EQ(rings.nodes[1][0], 3);
    EXPECT_EQ(rings.nodes[1][2], 5);
    EXPECT_EQ(rings.ring_of[4], 1);
    scenario->cables[0].to_port = SCN_PORT_S; // no ring any more
    scenario->cables[6].from_port = SCN_PORT_W;
    routes = scn_routes_find(scenario);
    scn_rings_find(routes, 0, &rings);
    scn_routes_free(routes);
    EXPECT_EQ(rings.count, 1);
    EXPECT_EQ(rings.ring_of[0], SCN_NODE_NONE);
    free(scenario);
}

TEST(Deadlock, CannotBeInAnyGeneratedShape)
{
    char circle[256];
    for (uint32_t nodes = 2; nodes <= SCN_WINDOW_NODES_MAX; nodes++) {
        for (enum scn_topology topology = SCN_TOPOLOGY_RING; topology <= SCN_TOPOLOGY_TWO_RINGS; topology++) {
            if (topology == SCN_TOPOLOGY_TWO_RINGS && (nodes % 2 != 0 || nodes < 4)) {
                continue;
            }
            struct scn_scenario *scenario = scenario_make(topology, nodes);
            struct scn_routes *routes = scn_routes_find(scenario);
            EXPECT_TRUE(scn_routes_are_safe(scenario, routes, circle, sizeof circle));
            scn_routes_free(routes);
            free(scenario);
        }
    }
}

static void accept(const char *nodes, const char *cables)
{
    const struct fixture_parts parts = {.nodes = nodes, .cables = cables, .run = LOCAL};
    fixture_expect_accepted(&parts);
}

static void refuse(const char *nodes, const char *cables, const char *message)
{
    const struct fixture_parts parts = {.nodes = nodes, .cables = cables, .run = LOCAL};
    fixture_expect_refused(&parts, message);
}

TEST(Deadlock, IsRefusedWhereACircleGoesThroughAnSPort)
{
    accept(COUNT(5), "[" E_W(0, 1) ", " E_W(1, 2) ", " E_W(2, 3) ", " E_W(3, 4) ", " E_W(4, 0) "]");
    refuse(
        COUNT(5), "[" E_W(0, 1) ", " E_W(1, 2) ", " E_W(2, 3) ", " E_W(3, 4) ", " S_S(4, 0) "]",
        "cables: full buffers can wait for one another in a circle (n0.E to n1.W, n1.E to n2.W, n2.E to n3.W, n3.E to "
        "n4.W, n4.S to n0.S, n0.E to n1.W); close circles with E and W ports only, and join two rings by an S cable at "
        "every node");
}

TEST(Deadlock, IsRefusedWhereOneRingIsLeftForTheOtherAndBack)
{
    accept(COUNT(6), "[" E_W(0, 1) ", " E_W(1, 2) ", " E_W(2, 0) ", " E_W(3, 4) ", " E_W(4, 5) ", " E_W(5, 3) ", " S_S(
                         0, 3) ", " S_S(1, 4) ", " S_S(2, 5) "]");
    refuse(
        COUNT(6),
        "[" E_W(0, 1) ", " E_W(1, 2) ", " E_W(2, 0) ", " E_W(3, 4) ", " E_W(4, 5) ", " E_W(5, 3) ", " S_S(0, 3) "]",
        "cables: full buffers can wait for one another in a circle (n0.S to n3.S, the ring of n3 eastward, n3.S to "
        "n0.S, the ring of n0 eastward, n0.S to n3.S); close circles with E and W ports only, and join two rings by an "
        "S cable at every node");
}

TEST(Deadlock, CannotBeOnALine)
{
    accept(COUNT(4), "[" E_W(0, 1) ", " S_S(1, 2) ", " E_W(2, 3) "]");
}

TEST(Fabric, ReachesEveryNode)
{
    accept(COUNT(3), "[" E_W(0, 1) ", " E_W(1, 2) "]");
    refuse(COUNT(3), "[" E_W(0, 1) "]", "no cables lead from 'n0' to 'n2'; join it to the others or leave it out");
    accept(COUNT(3), "[]");
}

TEST(Fabric, NeedsNoMoreThanTwoRangesOfNodesAPort)
{
    accept(COUNT(6), "[" E_W(1, 0) ", " E_W(0, 2) ", " E_W(2, 3) ", " E_W(3, 4) ", " E_W(4, 5) "]");
    refuse(
        COUNT(7), "[" E_W(5, 3) ", " E_W(3, 1) ", " E_W(1, 0) ", " E_W(0, 2) ", " E_W(2, 4) ", " E_W(4, 6) "]",
        "cables: port n0.E leads to 3 separate ranges of nodes, a board holds 2; list the nodes in the order in which "
        "the cables join them");
}
