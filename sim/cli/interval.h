// `tcasim run --interval`: the scenario again with other values of the presets, as points of a sweep that --jobs, Slurm and an
// interrupted run treat alike; and what that says of each result.
//
// The values are those of configs/draws.csv: of each draw every value with a range, and what the published rows then set
// (scenarios/calibrate/draws.py). Values that a scenario or --set gives itself stay.
#pragma once

#include "sim/cli/job.h"
#include "sim/cli/progress.h"

#define CLI_DRAWS_FOLDER "draws" // of the results: their points
#define CLI_DRAWS_ALL    UINT32_MAX

// A number, or "": CLI_DRAWS_ALL; 0: printed why. option: its name, for the message.
uint32_t cli_interval_count(const char *option, const char *given);

struct cli_draws;
// So many draws from the beginning of the table. NULL: printed why.
struct cli_draws *cli_draws_read(const struct cli_job *job, uint32_t count);
void cli_draws_free(struct cli_draws *draws); // NULL is allowed
uint32_t cli_draws_count(const struct cli_draws *draws);
// Their points: each of the scenario's in each draw.
const struct scn_sweep *cli_draws_asked(const struct cli_draws *draws);

// Measures the draws of the job and gives the report, which has the scenario's own results, its intervals.
enum cli_exit cli_interval_measure(const struct cli_job *job, report_t *report, struct cli_progress *progress);
