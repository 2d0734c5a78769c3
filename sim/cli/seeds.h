// `exec` under an adversary: with one seed, or with many side by side as children of this process.
#pragma once

#include "sim/attach/attach_run.h"
#include "sim/cli/cli.h"
#include "sim/report/junit.h"

// What the command line asks for; NULL: not given.
struct cli_seeds_options {
    const char *adversarial; // a seed
    const char *seeds;       // "A..B"
    const char *jobs;
};

// Puts the seed into the run's options. writes_files: the run is to leave files, which many runs cannot. false: said
// why.
bool cli_seeds_read(const struct cli_seeds_options *given, bool writes_files, struct attach_run_options *run);

// Runs all seeds. What runs print that end well is dropped; of others the first lines of standard error are printed,
// and the command that repeats the run, in the order of seeds; each seed is a testcase of junit. argv: of the command
// that asks for it. Returns the worst exit status.
int cli_seeds_run(const struct cli_seeds_options *given, char **argv, junit_t *junit);
