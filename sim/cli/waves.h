// The waveform files of a run: <directory>/waves/<series>-<node>.fst. The folder contains only those of the latest run.
// An interrupted run removes the files that it has written.
#pragma once

#include "sim/scenario/scenario.h"

struct cli_waves {
    char *folder;
    char **files;
    unsigned count;
};

// Removes the waveforms of an earlier run from that directory of results.
void cli_waves_clear(const char *directory);

// Makes an empty folder. False, after printing why, if this fails.
bool cli_waves_init(struct cli_waves *waves, const char *directory);
// The prefix that sim/platform needs for a series; to be freed.
char *cli_waves_prefix(struct cli_waves *waves, const struct scn_scenario *scenario, uint32_t run_index);
void cli_waves_fini(struct cli_waves *waves);
