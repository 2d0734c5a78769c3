// Waits for the tasks of a job array and finds out how each point ended.
#pragma once

#include "sim/cli/slurm_record.h"

// Fills in result, why and kept of the points. Returns the signal that ended the waiting, or 0 if every point has a
// result. Called between cli_interrupt_hold and cli_interrupt_release. false in *started_out: no memory, printed.
int cli_slurm_wait(const struct cli_slurm_record *record, struct cli_sweep *sweep, bool *started_out);
