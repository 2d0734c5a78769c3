// The routes through the cables of boards: which port of a node leads to which other node.
//
// Nodes that cables join, over any number of nodes, are a sub-cluster and share the addresses of one window, in which
// they are numbered in the order of the scenario's nodes. A node without cables is a sub-cluster of its own; but up to 16
// boards in a scenario without any cable of boards are one, as if its cables were unplugged: they have numbers and no
// routes.
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
#define SCN_PORTS            4

// A port's cable.
struct scn_plug {
    uint32_t node; // at the other end; SCN_NODE_NONE: the port has no cable
    uint32_t cable;
    enum scn_port port; // at the other end
};

// Nodes have their numbers in the window.
struct scn_sub_cluster {
    bool joined;         // by cables, or one node
    uint32_t node_count; // more than SCN_WINDOW_NODES_MAX: there are no routes, and nodes[] is the first ones
    uint32_t nodes[SCN_WINDOW_NODES_MAX];
    uint8_t ports[SCN_WINDOW_NODES_MAX][SCN_WINDOW_NODES_MAX]; // [from][to]; SCN_NO_PORT: no route, or the node itself
    uint8_t hops[SCN_WINDOW_NODES_MAX][SCN_WINDOW_NODES_MAX];  // cables on the route
};

struct scn_routes {
    uint32_t node_count, sub_cluster_count;
    struct scn_sub_cluster *sub_clusters; // in the order of their first nodes
    uint32_t *sub_cluster_of;             // of each node
    uint32_t *numbers;                    // of each node in its window
    struct scn_plug (*plugs)[SCN_PORTS];  // of each node
};

// To be freed with scn_routes_free. The scenario is no longer needed.
struct scn_routes *scn_routes_find(const struct scn_scenario *scenario);
void scn_routes_free(struct scn_routes *routes);

// SCN_NO_PORT: no route, or the node itself.
uint8_t scn_routes_port(const struct scn_routes *routes, uint32_t from, uint32_t to);
// The number of cables on the route; SCN_UNREACHED: there is none.
uint32_t scn_routes_hops(const struct scn_routes *routes, uint32_t from, uint32_t to);
// Whether cables lead from one node to the other. A node is joined to itself.
bool scn_routes_joined(const struct scn_routes *routes, uint32_t a, uint32_t b);

// The number of sub-clusters; nodes without cables count as one each.
uint32_t scn_routes_parts(const struct scn_routes *routes);

// The node at the other end of a port's cable, and the port there; SCN_NODE_NONE: no cable. port_out may be NULL.
uint32_t scn_routes_neighbour(const struct scn_routes *routes, uint32_t node, enum scn_port port,
                              enum scn_port *port_out);

// How many ranges of consecutive numbers of nodes a port leads to.
uint32_t scn_routes_ranges(const struct scn_routes *routes, uint32_t node, enum scn_port port);

// Rings of one sub-cluster: the E port of each node leads to the W port of the next one, and from the last node back to
// the first. Nodes have their numbers in the window.
struct scn_rings {
    uint32_t count;
    uint32_t sizes[SCN_WINDOW_NODES_MAX];
    uint32_t nodes[SCN_WINDOW_NODES_MAX][SCN_WINDOW_NODES_MAX]; // [ring], eastward from the lowest number
    uint32_t ring_of[SCN_WINDOW_NODES_MAX];                     // SCN_NODE_NONE: the node is on no ring
};

void scn_rings_find(const struct scn_routes *routes, uint32_t sub_cluster, struct scn_rings *rings_out);

// cycle.c: false: packets on the routes may wait for one another in a cycle, and text names its channels. Each
// direction of a ring is one channel: the board's bubble rule (docs/decisions/0005) keeps its packets moving as long as
// packets can leave it.
bool scn_routes_are_safe(const struct scn_scenario *scenario, const struct scn_routes *routes, char *text,
                         size_t text_size);
