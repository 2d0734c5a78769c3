// The ways through the fabric of a scenario: which port of a node leads to which other node.
//
// The way is the shortest one; of equally short ones S goes before E and E before W. On two rings that means: cross S
// first, then follow the ring. A board looks at the destination alone, so from every node that a way passes it goes on
// as if it started there.
//
// Leaves out: how a board's registers say it (verbs-shim). Cables must have been checked: two good ends each, and each
// port used once.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/scenario/scenario.h"

#define SCN_NO_PORT          0xffu
#define SCN_UNREACHED        UINT32_MAX
#define SCN_ROUTE_RANGES_MAX 2 // ranges of nodes that the registers of a board have for each cable port

struct scn_routes {
    uint32_t node_count;
    uint8_t ports[SCN_NODES_MAX][SCN_NODES_MAX]; // [node][target]; SCN_NO_PORT: no way, or the node itself
    uint32_t hops[SCN_NODES_MAX][SCN_NODES_MAX]; // cables on the way; SCN_UNREACHED
};

void scn_routes_find(const struct scn_scenario *scenario, struct scn_routes *routes_out);

// The node at the other end of a port's cable, and the port there; SCN_NODE_NONE: no cable. port_out may be NULL.
uint32_t scn_routes_neighbour(const struct scn_scenario *scenario, uint32_t node, enum scn_port port,
                              enum scn_port *port_out);

// How many ranges of consecutive nodes a port leads to.
uint32_t scn_routes_ranges(const struct scn_routes *routes, uint32_t node, enum scn_port port);

// Rings: nodes whose E ports lead to the next one's W port, and from the last back to the first.
struct scn_rings {
    uint32_t count;
    uint32_t sizes[SCN_NODES_MAX];
    uint32_t nodes[SCN_NODES_MAX][SCN_NODES_MAX]; // [ring], eastward from the node with the lowest number
    uint32_t ring_of[SCN_NODES_MAX];              // SCN_NODE_NONE: the node is on no ring
};

void scn_rings_find(const struct scn_scenario *scenario, struct scn_rings *rings_out);

// cycle.c: can ways wait for one another in a circle? Each direction of a ring is one place to wait in: the board's
// bubble rule (docs/decisions/0005) keeps it moving as long as those that leave it can. If they can, text names the
// places of the circle and false is returned.
bool scn_routes_are_safe(const struct scn_scenario *scenario, const struct scn_routes *routes, char *text,
                         size_t text_size);
