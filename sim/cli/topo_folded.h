// The texts of `tcasim topo` for many nodes: sub-clusters and switches that are alike, and follow one another, are one
// line.
#pragma once

#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/routes.h"

void topo_sub_clusters_print(const struct scn_scenario *scenario, const struct scn_routes *routes);
void topo_switches_print(const struct scn_scenario *scenario, const struct scn_ib_fabric *ib);
// How many cables the routes between nodes have, and what kind of routes they are.
void topo_ib_routes_print(const struct scn_scenario *scenario, const struct scn_ib_fabric *ib);
