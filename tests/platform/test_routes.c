// The routing registers that the driver sets, followed from board to board as a packet would be.
#include "sim/platform/routes.h"

#include <stdlib.h>
#include <string.h>

#include "sim/scenario/routes.h"
#include "sim/scenario/topology.h"
#include "tests/shim/test.h"
#include "tests/support/platform_fixture.h"

#define BLOCK_BOARD 3

enum { PORT_HOST, PORT_E, PORT_W, PORT_S, PORT_BOARD, PORT_NONE };

struct fabric {
    struct scn_scenario *scenario;
    struct scn_routes *found;
    struct peach2_route routes[SCN_WINDOW_NODES_MAX][PEACH2_ROUTES_MAX];
};

static void fabric_create(struct fabric *fabric, enum scn_topology topology, uint32_t nodes)
{
    fabric->scenario = platform_fixture_line(nodes);
    fabric->scenario->cable_count = scn_topology_cables(topology, 0, nodes, fabric->scenario->cables);
    fabric->found = scn_routes_find(fabric->scenario);
    for (uint32_t node = 0; node < nodes; node++) {
        const struct peach2_routing routing = plat_routing_of(fabric->found, node);
        EXPECT_EQ(peach2_routes_make(&routing, fabric->routes[node]), 0);
    }
}

static void fabric_destroy(struct fabric *fabric)
{
    scn_routes_free(fabric->found);
    platform_fixture_free(fabric->scenario);
}

// The board's rule: the lowest enabled entry whose bounds contain the masked offset.
static unsigned lookup(const struct peach2_route routes[PEACH2_ROUTES_MAX], uint64_t offset)
{
    for (unsigned i = 0; i < PEACH2_ROUTES_MAX; i++) {
        uint64_t masked = offset & routes[i].mask;
        if (routes[i].enabled && masked >= routes[i].lower && masked <= routes[i].upper) {
            return routes[i].port;
        }
    }
    return PORT_NONE;
}

// Follows a packet from a node to an offset and returns the number of cables. *port_out: where it left the fabric.
static uint32_t follow(const struct fabric *fabric, uint32_t node, uint64_t offset, uint32_t *node_out,
                       unsigned *port_out)
{
    uint32_t hops = 0;
    enum scn_port came_from = SCN_PORT_N;
    for (; hops < SCN_WINDOW_NODES_MAX; hops++) {
        unsigned port = lookup(fabric->routes[node], offset);
        *node_out = node;
        *port_out = port;
        if (port < PORT_E || port > PORT_S || (hops > 0 && port == (unsigned)came_from)) {
            return hops;
        }
        node = scn_routes_neighbour(fabric->found, node, (enum scn_port)port, &came_from);
        if (node == SCN_NODE_NONE) {
            *port_out = PORT_NONE;
            return hops;
        }
    }
    return hops;
}

static uint32_t around(uint32_t from, uint32_t to, uint32_t nodes)
{
    uint32_t east = (to + nodes - from) % nodes;
    return east < nodes - east ? east : nodes - east;
}

static uint32_t expected_hops(enum scn_topology topology, uint32_t nodes, uint32_t from, uint32_t to)
{
    if (topology != SCN_TOPOLOGY_TWO_RINGS) {
        return from == to ? 0 : around(from, to, nodes);
    }
    uint32_t half = nodes / 2, crossing = (from < half) != (to < half);
    return crossing + (from % half == to % half ? 0 : around(from % half, to % half, half));
}

static void expect_arrival(const struct fabric *fabric, uint32_t from, uint32_t to, uint64_t in_node, unsigned port,
                           uint32_t hops)
{
    uint32_t at = SCN_NODE_NONE;
    unsigned left = PORT_NONE;
    EXPECT_EQ(follow(fabric, from, (uint64_t)to << PEACH2_NODE_BITS | in_node, &at, &left), hops);
    EXPECT_EQ(at, to);
    EXPECT_EQ(left, port);
}

static void expect_all_arrive(enum scn_topology topology, uint32_t nodes)
{
    static const uint64_t last_of_host = (1ull << PEACH2_BLOCK_BITS) - 1,
                          board = (uint64_t)BLOCK_BOARD << PEACH2_BLOCK_BITS;
    struct fabric fabric;
    fabric_create(&fabric, topology, nodes);
    for (uint32_t from = 0; from < nodes; from++) {
        for (uint32_t to = 0; to < nodes; to++) {
            uint32_t hops = expected_hops(topology, nodes, from, to);
            expect_arrival(&fabric, from, to, 0, PORT_HOST, hops);
            expect_arrival(&fabric, from, to, last_of_host, PORT_HOST, hops);
            expect_arrival(&fabric, from, to, board | 0x8000, PORT_BOARD, hops);
        }
    }
    fabric_destroy(&fabric);
}

TEST(RouteRegisters, LeadEveryPairOfNodesOfAPairAlongTheShortestWay)
{
    expect_all_arrive(SCN_TOPOLOGY_PAIR, 2);
}

TEST(RouteRegisters, LeadEveryPairOfNodesOfAnyRingAlongTheShortestWay)
{
    for (uint32_t nodes = 2; nodes <= SCN_WINDOW_NODES_MAX; nodes++) {
        expect_all_arrive(SCN_TOPOLOGY_RING, nodes);
    }
}

TEST(RouteRegisters, LeadEveryPairOfNodesOfAnyTwoRingsAlongTheShortestWay)
{
    for (uint32_t nodes = 4; nodes <= SCN_WINDOW_NODES_MAX; nodes += 2) {
        expect_all_arrive(SCN_TOPOLOGY_TWO_RINGS, nodes);
    }
}

TEST(RouteRegisters, TakeNothingForNodesThatAreNotThere)
{
    struct fabric fabric;
    fabric_create(&fabric, SCN_TOPOLOGY_RING, 5);
    for (uint32_t node = 0; node < 5; node++) {
        EXPECT_EQ(lookup(fabric.routes[node], 5ull << PEACH2_NODE_BITS), PORT_NONE);
        EXPECT_EQ(lookup(fabric.routes[node], 15ull << PEACH2_NODE_BITS), PORT_NONE);
    }
    fabric_destroy(&fabric);
}

static void expect_ports(const struct scn_scenario *scenario, uint32_t node, const uint8_t *ports, uint32_t count)
{
    struct scn_routes *routes = scn_routes_find(scenario);
    struct peach2_routing routing = plat_routing_of(routes, node);
    EXPECT_EQ(routing.node, node);
    EXPECT_EQ(routing.node_count, count);
    for (uint32_t i = 0; i < PEACH2_NODES_MAX; i++) {
        if (i != node) {
            EXPECT_EQ(routing.port_of_node[i], i < count ? ports[i] : PEACH2_NO_PORT);
        }
    }
    scn_routes_free(routes);
}

TEST(Routes, LeadAlongALine)
{
    struct scn_scenario *scenario = platform_fixture_line(4);
    const uint8_t first[] = {0, 1, 1, 1}, third[] = {2, 2, 0, 1};
    expect_ports(scenario, 0, first, 4);
    expect_ports(scenario, 2, third, 4);
    platform_fixture_free(scenario);
}

TEST(Routes, TakeTheShorterWayAroundARingAndEastWhenBothAreEqual)
{
    struct scn_scenario *scenario = platform_fixture_line(4);
    scenario->cables[scenario->cable_count++] =
        (struct scn_cable){.from_node = 3, .to_node = 0, .from_port = SCN_PORT_E, .to_port = SCN_PORT_W};
    const uint8_t first[] = {0, 1, 1, 2};
    expect_ports(scenario, 0, first, 4);
    platform_fixture_free(scenario);
}

TEST(Routes, UseAnSCableWhereItIsNotLonger)
{
    struct scn_scenario *scenario = platform_fixture_line(4);
    scenario->cables[scenario->cable_count++] =
        (struct scn_cable){.from_node = 0, .to_node = 3, .from_port = SCN_PORT_S, .to_port = SCN_PORT_S};
    const uint8_t first[] = {0, 1, 3, 3};
    expect_ports(scenario, 0, first, 4);
    platform_fixture_free(scenario);
}

TEST(Routes, NumberTheNodesOfEachSubClusterFrom0)
{
    struct scn_scenario *scenario = platform_fixture_line(5);
    scenario->cables[1] = scenario->cables[3]; // of nodes 3 and 4; node 2 is alone
    scenario->cable_count = 2;
    struct scn_routes *routes = scn_routes_find(scenario);
    const struct peach2_routing alone = plat_routing_of(routes, 2), last = plat_routing_of(routes, 4);
    EXPECT_EQ(alone.node, 0);
    EXPECT_EQ(alone.node_count, 1);
    EXPECT_EQ(last.node, 1);
    EXPECT_EQ(last.node_count, 2);
    EXPECT_EQ(last.port_of_node[0], SCN_PORT_W);
    EXPECT_EQ(routes->sub_cluster_count, 3);
    EXPECT_TRUE(scn_routes_joined(routes, 0, 1));
    EXPECT_FALSE(scn_routes_joined(routes, 1, 2));
    EXPECT_TRUE(scn_routes_joined(routes, 2, 2));
    EXPECT_EQ(scn_routes_hops(routes, 1, 3), SCN_UNREACHED);
    scn_routes_free(routes);
    platform_fixture_free(scenario);
}
