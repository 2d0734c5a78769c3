// Reads a scenario and checks all of it.
#pragma once

#include "sim/cli/options.h"
#include "sim/cli/paths.h"
#include "sim/scenario/scenario.h"

// NULL: every mistake was printed to standard error, one a line. Otherwise to be freed with scn_free.
struct scn_scenario *cli_scenario_load(const char *path, const struct cli_paths *paths, const struct cli_list *sets);

// One point of the sweep of a scenario that was loaded before. NULL: printed why. sets_used: NULL, or as in
// struct scn_load_options.
struct scn_scenario *cli_point_load(const char *path, const struct cli_paths *paths, const struct cli_list *sets,
                                    const struct scn_sweep_point *point, bool *sets_used);
