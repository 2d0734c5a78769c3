// The waveform files of one series: <directory>/<series>-<node>.fst, known by name so that an interrupted run leaves no
// half of one behind.
#pragma once

#include "sim/scenario/scenario.h"

struct cli_waves {
    char *prefix; // what sim/platform is given
    char *files[2 * SCN_NODES_MAX];
    unsigned count;
};

void cli_waves_init(struct cli_waves *waves, const char *directory, const struct scn_scenario *scenario,
                    uint32_t run_index);
void cli_waves_fini(struct cli_waves *waves);
