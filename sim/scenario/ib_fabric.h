// The InfiniBand fabric as a graph: HCAs and switches, joined by cables; and the routes through it.
//
// A vertex is a node (its index) or a switch (SCN_IB_SWITCH). HCAs forward nothing, so routes lead through switches
// only. Switches route by destination alone. As OpenSM does, a switch sends packets to a node through one of the ports
// that begin a route of the chosen kind; of several, through the one that leads to the fewest nodes so far, in the
// order of nodes, and of these the one with the lowest number.
//
// Kinds of routes: shortest ones; or up*/down*, which never turn up after they went down. Up is towards a root: the
// switch with the smallest sum of distances to the others, of several the first. A switch from which a route leads only
// down to the node takes the shortest such route, every other one the shortest route through a switch above it.
//
// Leaves out: virtual lanes, and the time of a route.
#pragma once

#include "sim/scenario/scenario.h"

#define SCN_IB_NO_PORT 0xffu

// A cable of a switch's port, or of an HCA.
struct scn_ib_plug {
    uint32_t vertex; // at the other end; SCN_NODE_NONE: no cable
    uint32_t cable;
    uint8_t port; // at the other end, if it is a switch
};

struct scn_ib_fabric {
    uint32_t node_count, switch_count;
    struct scn_ib_plug *hcas;  // of each node
    uint32_t *first;           // of each switch its first port in plugs; one more than there are switches
    struct scn_ib_plug *plugs; // of the ports of switches, which are numbered in the order of the cables
    // Of each switch, the root's first: in the order of the distance from the root of its part of the fabric.
    uint32_t *order, *position;
    uint8_t *parent_ports; // of each switch, towards its root in the spanning tree; SCN_IB_NO_PORT: it is a root
    bool up_down;          // the routes are up*/down*
    bool safe;             // packets on the routes never wait for one another in a cycle
    uint8_t *ports;        // routes: [switch][node]; SCN_IB_NO_PORT: none
};

// Cables with an end that does not exist are left out. To be freed with scn_ib_fabric_free; the scenario is no longer
// needed.
struct scn_ib_fabric *scn_ib_fabric_find(const struct scn_scenario *scenario);
void scn_ib_fabric_free(struct scn_ib_fabric *fabric);

// The port of a switch through which packets to a node leave; SCN_IB_NO_PORT: there is no route.
uint8_t scn_ib_port(const struct scn_ib_fabric *fabric, uint32_t ib_switch, uint32_t node);
uint32_t scn_ib_port_count(const struct scn_ib_fabric *fabric, uint32_t ib_switch);
const struct scn_ib_plug *scn_ib_plug(const struct scn_ib_fabric *fabric, uint32_t ib_switch, uint32_t port);

// The number of cables on the route between two nodes; UINT32_MAX: there is none.
uint32_t scn_ib_cables(const struct scn_ib_fabric *fabric, uint32_t from, uint32_t to);

// The port of each switch that leads to the node in the spanning tree, on which packets to groups are forwarded;
// SCN_IB_NO_PORT: none.
void scn_ib_tree_ports(const struct scn_ib_fabric *fabric, uint32_t node, uint8_t *ports_out);

// ib_cycle.c: false: packets on the routes may wait for one another's buffers in a cycle, and text names its cables.
bool scn_ib_is_safe(const struct scn_ib_fabric *fabric, const struct scn_scenario *scenario, char *text,
                    size_t text_size);

const char *scn_ib_vertex_name(const struct scn_scenario *scenario, uint32_t vertex); // "" if the vertex does not exist
