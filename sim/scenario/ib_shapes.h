// The switches and cables of the shapes of `ib_fabric:`, between the HCAs of nodes 0, 1, ...
//
// Node i is at leaf switch i / nodes_per_switch. Ports of a switch are its nodes, then its other cables.
//
// Fat tree: leaves, above them spines; with three levels leaves and middle switches form pods, and middle switch i of
// every pod is below the same spines. A leaf has one cable up for each `oversubscription` nodes, a middle switch as many
// up as down. With few nodes there are fewer switches above.
//
// Dragonfly: groups of switches; within a group each switch has a cable to each other one. The global cables of a group
// lead to the other groups in turn, the same number to each.
//
// Torus: a grid of switches, closed in every dimension; two switches that are neighbours on both sides have one cable.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/scenario/limits.h"
#include "sim/scenario/units.h"

enum scn_ib_kind { SCN_IB_KIND_FAT_TREE, SCN_IB_KIND_DRAGONFLY, SCN_IB_KIND_TORUS };

#define SCN_IB_DIMENSIONS_MAX 5

// 0: not given, so that a default follows from the others.
struct scn_ib_shape {
    enum scn_ib_kind kind;
    uint32_t nodes, radix; // radix: ports of a switch
    uint32_t nodes_per_switch;
    uint32_t levels, oversubscription;                // of a fat tree
    uint32_t group_switches, global_links;            // of a dragonfly: switches of a group, global cables of a switch
    uint32_t size[SCN_IB_DIMENSIONS_MAX], dimensions; // of a torus
};

struct scn_ib_layout {
    uint32_t switch_count, cable_count;
    char names[SCN_IB_SWITCHES_MAX][SCN_NAME_MAX / 2];
    struct {
        uint32_t from, to; // a node, or SCN_IB_SWITCH(i)
    } cables[SCN_IB_CABLES_MAX];
};

// False: the shape is impossible, why is the reason.
bool scn_ib_shape_lay(const struct scn_ib_shape *shape, struct scn_ib_layout *layout_out, char why[SCN_WHY_MAX]);
