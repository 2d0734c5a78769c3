// Benchmarks of the simulator itself: a table of them. Each one fills rows, which are printed beside their limits.
#pragma once

#include <stdint.h>

#include "sim/cli/cli.h"
#include "sim/cli/paths.h"

// One measured number. A limit of 0 means no limit; at_least: good values are above the limit, not below.
struct cli_measure {
    const char *what;
    const char *unit;
    double value, limit;
    bool at_least;
};

#define CLI_MEASURES_MAX 8
struct cli_bench_result {
    struct cli_measure measures[CLI_MEASURES_MAX];
    unsigned count;
    char skipped[128]; // why it cannot be measured here (the function returns false); empty: it can
};

// False, after printing the reason, if it could not be measured.
typedef bool (*cli_benchmark_fn)(const struct cli_paths *paths, struct cli_bench_result *result);

struct cli_benchmark {
    const char *name;
    const char *doc;
    cli_benchmark_fn run;
};

void cli_measure_add(struct cli_bench_result *result, const char *what, const char *unit, double value, double limit,
                     bool at_least);

// Runs this same program with arguments (NULL-terminated, without the program's name) and discards its output.
struct cli_child {
    double seconds;      // start to exit
    double busy_seconds; // processor time
    double memory_mb;    // most resident memory
    int exit_status;     // 128 + signal if it was killed
};
#define CLI_CHILD_ARGUMENTS_MAX 64
bool cli_child_run(char *const *arguments, struct cli_child *child);
// The same with another program, found by its name; all that it prints is discarded. argv ends with NULL.
bool cli_program_run(char *const *argv, struct cli_child *child);

// Runs `tcasim run` with these arguments, which end with NULL, and discards its results. False: printed why.
bool cli_bench_run(char *const *arguments, struct cli_child *child);

// Removes a scratch folder with all that is in it.
void cli_bench_folder_remove(const char *folder);

// bench_smpi.c: the halo of 16 nodes on SimGrid's SMPI. False: SimGrid is not installed, or printed why.
bool cli_bench_smpi(const struct cli_paths *paths, struct cli_child *child);
