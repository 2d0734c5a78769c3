// Which port of a node leads to which other node, as the driver takes it. The ways are those of sim/scenario/routes.h.
#pragma once

#include "sim/scenario/scenario.h"
#include "verbs-shim/peach2/peach2_driver.h"

// Nodes without a way get PEACH2_NO_PORT.
struct peach2_routing plat_routes_find(const struct scn_scenario *scenario, uint32_t node);

// Are the two nodes joined at all, by any number of cables? A node is joined to itself.
bool plat_routes_joined(const struct scn_scenario *scenario, uint32_t a, uint32_t b);
