// Checks whether a file that the user names may be written. An existing file is replaced, so it must be a regular file
// and none that the program reads.
#pragma once

#include <stdbool.h>

#include "sim/cli/paths.h"

// False, after printing why. scenario: the file of the current scenario.
bool cli_output_usable(const char *path, const char *scenario, const struct cli_paths *paths);
