// The file of `--junit`: suites of one scenario after the other, whichever process ran them.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "sim/cli/paths.h"
#include "sim/report/junit.h"

struct cli_junit {
    const char *path; // NULL: none is asked for
    FILE *suites;     // where they are gathered; NULL: none is asked for
    char *text;
    size_t size;
};

// Looks whether the file can be written; of which scenarios: none of them may be overwritten. false: said why.
bool cli_junit_begin(struct cli_junit *tests, const char *path, const char *const *scenarios, size_t count,
                     const struct cli_paths *paths);
// Writes the file as a whole, or leaves the one that is there. false: said why.
bool cli_junit_end(struct cli_junit *tests);
