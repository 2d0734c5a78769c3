// The routes through the fabric of a scenario: which port of a node leads to which other node.
//
// A route is a shortest path; of equally short ones S is preferred to E, and E to W. On two rings this means: cross S
// first, then follow the ring. A board routes by destination alone, so the rest of a route is the route of each node on
// it.
//
// Leaves out: the registers of a board that hold routes (verbs-shim). Cables must have been checked: each has two good
// ends, and each port is used once.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/scenario/scenario.h"

#define SCN_NO_PORT          0xffu
#define SCN_UNREACHED        UINT32_MAX
#define SCN_ROUTE_RANGES_MAX 2 // ranges of nodes that the registers of a board have for each cable port

struct scn_routes {
    uint32_t node_count;
    uint8_t ports[SCN_NODES_MAX][SCN_NODES_MAX]; // [node][target]; SCN_NO_PORT: no route, or the node itself
    uint32_t hops[SCN_NODES_MAX][SCN_NODES_MAX]; // cables on the route; SCN_UNREACHED: no route
};

void scn_routes_find(const struct scn_scenario *scenario, struct scn_routes *routes_out);

// The node at the other end of a port's cable, and the port there; SCN_NODE_NONE: no cable. port_out may be NULL.
uint32_t scn_routes_neighbour(const struct scn_scenario *scenario, uint32_t node, enum scn_port port,
                              enum scn_port *port_out);

// How many ranges of consecutive nodes a port leads to.
uint32_t scn_routes_ranges(const struct scn_routes *routes, uint32_t node, enum scn_port port);

// Rings: the E port of each node leads to the W port of the next one, and from the last node back to the first.
struct scn_rings {
    uint32_t count;
    uint32_t sizes[SCN_NODES_MAX];
    uint32_t nodes[SCN_NODES_MAX][SCN_NODES_MAX]; // [ring], eastward from the node with the lowest number
    uint32_t ring_of[SCN_NODES_MAX];              // SCN_NODE_NONE: the node is on no ring
};

void scn_rings_find(const struct scn_scenario *scenario, struct scn_rings *rings_out);

// cycle.c: false: packets on the routes may wait for one another in a cycle, and text names its channels. Each
// direction of a ring is one channel: the board's bubble rule (docs/decisions/0005) keeps its packets moving as long as
// packets can leave it.
bool scn_routes_are_safe(const struct scn_scenario *scenario, const struct scn_routes *routes, char *text,
                         size_t text_size);
