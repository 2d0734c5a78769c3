// The cables of the shapes of `topology:`, and which end of a cable is the root complex.
//
// E is an endpoint, W a root complex. S is the opposite of the port at the other end; between two S ports the end named
// under `from` is the root complex.
//
// Leaves out: the links of the cables, which are not changed; only the ends are set.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/scenario/scenario.h"

enum scn_topology {
    SCN_TOPOLOGY_PAIR,      // node 0 E to node 1 W
    SCN_TOPOLOGY_RING,      // node i E to node i+1 W, the last to the first
    SCN_TOPOLOGY_TWO_RINGS, // two rings of half the nodes each; S of node i joined to S of its opposite
    SCN_TOPOLOGY_SEPARATE   // no cables
};

// Sets the ends of the cables and returns their number. nodes must be one that the shape allows: 2; 2..16; even and
// 4..16. The first node has the index `first`; there are at most 24 cables.
uint32_t scn_topology_cables(enum scn_topology topology, uint32_t first, uint32_t nodes, struct scn_cable *cables);

// For a cable that joins an endpoint and a root complex: is `from` the root complex?
bool scn_cable_from_is_root(const struct scn_cable *cable);
