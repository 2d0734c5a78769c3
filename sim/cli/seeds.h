// `exec` under an adversary: with one seed, or with many as parallel children of this process.
#pragma once

#include "sim/attach/attach_run.h"
#include "sim/cli/cli.h"
#include "sim/report/junit.h"

// Options of the command line; NULL: not given.
struct cli_seeds_options {
    const char *adversarial; // a seed
    const char *seeds;       // "A..B"
    const char *jobs;
};

// Puts the seed into the run's options. writes_files: the run writes files, which is not possible with many seeds.
// false: printed why.
bool cli_seeds_read(const struct cli_seeds_options *given, bool writes_files, struct attach_run_options *run);

// Runs all seeds. The output of successful runs is discarded. For each failed run, in the order of seeds, it prints the
// first lines of standard error and the command that repeats the run. Each seed is a testcase of junit. argv: of the
// current command. Returns the worst exit status.
int cli_seeds_run(const struct cli_seeds_options *given, char **argv, junit_t *junit);
