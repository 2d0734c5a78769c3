// Whether a file that a user asks for may be written: what exists under its name is replaced, so it must be an ordinary
// file and nothing that the program reads.
#pragma once

#include <stdbool.h>

#include "sim/cli/paths.h"

// False, after printing why. scenario: the file that is run.
bool cli_output_usable(const char *path, const char *scenario, const struct cli_paths *paths);
