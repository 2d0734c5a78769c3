// What Slurm says about the tasks of a job array. squeue is asked first, because the controller always knows a job that
// has not ended; tasks that it has forgotten are looked up in the accounting (sacct), where that is on.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_slurm_life {
    CLI_SLURM_FORGOTTEN, // Slurm does not know the task (any more)
    CLI_SLURM_WAITING,
    CLI_SLURM_RUNNING,
    CLI_SLURM_ENDED
};

struct cli_slurm_task {
    enum cli_slurm_life life;
    char state[24];  // "PENDING", "CANCELLED"
    char reason[48]; // "Resources", "NonZeroExitCode"; "" for none
};

// Fills in tasks[0] to [count - 1], which are tasks 1 to count of the array. false: no answer; error says why.
bool cli_slurm_states_read(uint64_t job, struct cli_slurm_task *tasks, uint32_t count, char *error, size_t error_size);

enum cli_slurm_job { CLI_SLURM_JOB_ENDED, CLI_SLURM_JOB_ALIVE, CLI_SLURM_JOB_UNKNOWN };
// Has a task that has not ended? UNKNOWN: Slurm gives no answer.
enum cli_slurm_job cli_slurm_job_look(uint64_t job);

// Lines of squeue ("3|RUNNING|None") and of sacct ("12_3|CANCELLED by 0", "12_[4-8,10%2]|PENDING") into the tasks that
// are not known yet. Lines that are of no task are ignored. Exposed for tests.
void cli_slurm_squeue_parse(char *text, struct cli_slurm_task *tasks, uint32_t count);
void cli_slurm_sacct_parse(char *text, struct cli_slurm_task *tasks, uint32_t count);
