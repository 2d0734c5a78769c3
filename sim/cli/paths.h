// The paths of the data files: under $TCASIM_HOME, which the wrapper sets, or else where the program was built or is
// installed.
#pragma once

#include <limits.h>

struct cli_paths {
    char configs[PATH_MAX];
    char reference[PATH_MAX];     // the published values
    char main_scenario[PATH_MAX]; // the scenario of `tcasim run` without a file
    char smallest_scenario[PATH_MAX];
    // For the benchmarks.
    char pingpong_scenario[PATH_MAX];
    char halo_scenario[PATH_MAX];
    char all_to_all_scenario[PATH_MAX];
    char gpu_scenario[PATH_MAX];
    char tca0_scenario[PATH_MAX], ibsim0_scenario[PATH_MAX];
    char scenarios[PATH_MAX]; // their folder
    char accuracy[PATH_MAX];  // the document on published rows
    char figures[PATH_MAX];   // a pattern for all figures
    char libraries[PATH_MAX]; // loaded by attached programs; beside the program
};

// A home that is too long is cut; opening a file under it then fails.
void cli_paths_find(struct cli_paths *paths);
