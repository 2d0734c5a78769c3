// Which port of a node leads to which other node, in the driver's form. The routes are those of sim/scenario/routes.h.
#pragma once

#include "sim/scenario/scenario.h"
#include "verbs-shim/peach2/peach2_driver.h"

// PEACH2_NO_PORT for nodes without a route.
struct peach2_routing plat_routes_find(const struct scn_scenario *scenario, uint32_t node);

// Whether cables lead from one node to the other, over any number of nodes. A node is joined to itself.
bool plat_routes_joined(const struct scn_scenario *scenario, uint32_t a, uint32_t b);
