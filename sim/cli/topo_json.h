// The fabric of a scenario as JSON: what `tcasim topo` prints, for other programs.
#pragma once

#include <stdio.h>

#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/routes.h"
#include "sim/scenario/scenario.h"

// {"name", "title", "nodes": [{"name", "preset", "board", "hca", "gpus"}], "cables": [{"root", "endpoint", "generation",
// "lanes", "flight_ps"}], "ib_switches": [...], "ib_cables": [...], "hops": [[...]], "ib_hops": [[...]]}. Hops are numbers
// of cables from the node of the row to that of the column, null where there is no way.
void topo_json_print(const struct scn_scenario *scenario, const struct scn_routes *routes,
                     const struct scn_ib_fabric *ib, FILE *out);
