// The file of `--junit`: the suites of all scenarios, whichever process ran them.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/cli/paths.h"
#include "sim/report/junit.h"

struct cli_junit {
    const char *path; // NULL: no file was requested
    FILE *suites;     // where they are gathered; NULL: no file was requested
    char *text;
    size_t size;
};

// Checks that the file can be written. scenarios: it must not overwrite any of them. false: printed why.
bool cli_junit_begin(struct cli_junit *tests, const char *path, const char *const *scenarios, size_t count,
                     const struct cli_paths *paths);
// Writes the whole file, or keeps the existing one. false: printed why.
bool cli_junit_end(struct cli_junit *tests);
