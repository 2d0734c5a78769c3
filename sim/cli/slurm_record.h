// The folder `slurm/` of a sweep's results: the record of the submitted job array until a run has collected it, the
// batch script, and the log and the exit status of each point that a task ran.
//
// The names of logs and statuses begin with the number of the job, so that a task of an earlier job that still ends is
// not mistaken for one of this job.
#pragma once

#include <stdint.h>

#include "sim/cli/engine.h"

struct cli_slurm_record {
    uint64_t job;
    bool detached;
    char program[REPORT_HASH_MAX]; // that submitted it
    char sweep[REPORT_HASH_MAX];   // the hash of all names of the sweep's points
    uint32_t *tasks;               // of each point of the sweep: its task of the array, 0 for none
    uint32_t count;                // of points
};

#define CLI_SLURM_SCRIPT "batch.sh"

// Paths in the folder; false: too long.
bool cli_slurm_path(const struct cli_job *job, const char *name, char path[PATH_MAX]);
// "<job>-<point><suffix>", of a point from 0.
void cli_slurm_file(uint64_t job, uint32_t point, const char *suffix, char *name, size_t size);

// A record for this program and this sweep, without a job. false: printed why.
bool cli_slurm_record_init(struct cli_slurm_record *record, const struct cli_sweep *sweep);
void cli_slurm_record_fini(struct cli_slurm_record *record);

enum cli_slurm_found { CLI_SLURM_FOUND, CLI_SLURM_NONE, CLI_SLURM_BAD };
// BAD: printed why. FOUND: to be released with fini.
enum cli_slurm_found cli_slurm_record_read(struct cli_slurm_record *record, const struct cli_job *job);
bool cli_slurm_record_write(const struct cli_slurm_record *record, const struct cli_job *job);
void cli_slurm_record_remove(const struct cli_job *job);

// Removes what other jobs left, the script, and the folder if nothing is left in it. job: 0 for none.
void cli_slurm_folder_tidy(const struct cli_job *sweep, uint64_t job);

// No job that an earlier run submitted is still running in these results. false: printed why.
bool cli_slurm_folder_free(const struct cli_sweep *sweep);
