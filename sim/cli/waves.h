// The waveform files of a run: <directory>/waves/<series>-<node>.fst. The folder belongs to the latest run alone, and
// an interrupted run takes with it what it has written.
#pragma once

#include "sim/scenario/scenario.h"

struct cli_waves {
    char *folder;
    char **files;
    unsigned count;
};

// Removes the waveforms of an earlier run into that directory of results.
void cli_waves_clear(const char *directory);

// An empty folder for those to come. False, after printing why, when it cannot be made.
bool cli_waves_init(struct cli_waves *waves, const char *directory);
// What sim/platform is given for a series; the caller frees.
char *cli_waves_prefix(struct cli_waves *waves, const struct scn_scenario *scenario, uint32_t run_index);
void cli_waves_fini(struct cli_waves *waves);
