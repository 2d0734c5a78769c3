// What joins HCAs: InfiniBand cables and switches as a graph.
//
// A place is a node (its index) or a switch (SCN_IB_SWITCH). HCAs forward nothing, so ways lead through switches only.
// Leaves out: what a way costs.
#pragma once

#include "sim/scenario/scenario.h"

#define SCN_IB_NO_CABLE UINT32_MAX

const char *scn_ib_place_name(const struct scn_scenario *scenario, uint32_t place); // "" where there is none

// The cable with which a shortest way to a node begins, of several the first in the file; SCN_IB_NO_CABLE: there is no
// way. cables_out, if not NULL: how many cables the way has.
uint32_t scn_ib_first_cable(const struct scn_scenario *scenario, uint32_t from, uint32_t to_node, uint32_t *cables_out);
