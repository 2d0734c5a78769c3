// The job array of a sweep: which task measures which points, the batch script, and sbatch.
#pragma once

#include "sim/cli/slurm_record.h"

// Distributes the points that are not kept, in their order, over at most `tasks_max` tasks; no task has more than one
// point more than another. Returns the number of tasks.
uint32_t cli_slurm_tasks_make(struct cli_slurm_record *record, const struct cli_sweep *sweep, uint32_t tasks_max);

// Writes the script and submits it; the record gets the job. false: printed why, and no job was submitted.
bool cli_slurm_submit(struct cli_slurm_record *record, const struct cli_sweep *sweep, uint32_t tasks);

// Cancels the job. false: error says why.
bool cli_slurm_cancel(uint64_t job, char *error, size_t error_size);
