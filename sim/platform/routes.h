// Which port of a node leads to which other node of its sub-cluster, in the driver's form.
#pragma once

#include "sim/scenario/routes.h"
#include "verbs-shim/peach2/peach2_driver.h"

// Nodes have their numbers in the window.
struct peach2_routing plat_routing_of(const struct scn_routes *routes, uint32_t node);
