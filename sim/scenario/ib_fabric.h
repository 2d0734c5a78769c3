// The InfiniBand fabric as a graph: HCAs and switches, joined by cables.
//
// A vertex is a node (its index) or a switch (SCN_IB_SWITCH). HCAs forward nothing, so routes lead through switches
// only.
// Leaves out: the time of a route.
#pragma once

#include "sim/scenario/scenario.h"

#define SCN_IB_NO_CABLE UINT32_MAX

const char *scn_ib_vertex_name(const struct scn_scenario *scenario, uint32_t vertex); // "" if the vertex does not exist

// The first cable of a shortest route to a node; of several the first in the file. SCN_IB_NO_CABLE: there is no route.
// cables_out, if not NULL: the number of cables of the route.
uint32_t scn_ib_first_cable(const struct scn_scenario *scenario, uint32_t from, uint32_t to_node, uint32_t *cables_out);
