// One point of a sweep.
#pragma once

#include "sim/cli/engine.h"

// Begins a sweep without names and results of its points, which are measured into that folder of the results. asked: of
// the job's scenario, or draws of it. false: printed why.
bool cli_sweep_init(struct cli_sweep *sweep, const struct cli_job *job, const struct scn_sweep *asked,
                    const char *folder);
// sweep.c: names its points and measures what is missing. Files of other points in the folder are removed.
enum cli_engine_end cli_sweep_measure(struct cli_sweep *sweep, struct cli_progress *progress);
void cli_sweep_fini(struct cli_sweep *sweep);

// i: from 0. NULL: printed why.
struct scn_scenario *cli_sweep_point_load(const struct cli_sweep *sweep, uint32_t i);
const char *cli_sweep_label(const struct cli_sweep *sweep, uint32_t i);
// "FILE.yaml (LABEL)", until the next call.
const char *cli_sweep_point_title(const struct cli_sweep *sweep, uint32_t i);
// Names it, into the sweep. false: printed why.
bool cli_sweep_point_name(struct cli_sweep *sweep, uint32_t i);

// Measures it in this process and writes its files. scenario: of the point.
enum cli_exit cli_sweep_point_measure(const struct cli_sweep *sweep, uint32_t i, struct scn_scenario *scenario);

// `tcasim run --point K[:NAME]`: measures one point of the job's sweep in this process and keeps it as any run of the
// sweep does. NAME: the point is refused if its name is another, so if the program or a file it reads was changed.
enum cli_exit cli_point_run(const struct cli_job *job, const char *given);
