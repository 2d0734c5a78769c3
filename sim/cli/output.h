// Files of results and of output. Before a run: can what the user names be written after it? An existing file is
// replaced, so it must be a regular file and none that the program reads.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/cli/paths.h"

// False, after printing why. scenario: the file of the current scenario.
bool cli_output_usable(const char *path, const char *scenario, const struct cli_paths *paths);

// The directory and those above it may be missing: they are created with the results. False, after printing why.
bool cli_output_directory_usable(const char *directory);

// A file without a name, in memory: what a child leaves to its parent. NULL: there cannot be one.
FILE *cli_scratch_open(void);
// Copies it, from its beginning.
void cli_output_copy(FILE *from, FILE *to);
