// Standard output of programs, kept in memory and, if requested, shown as it comes.
//
// The output of a scheduling slot is shown after it. So the order between programs is the order of their slots: the
// same in each run, and the same as if they wrote to one file themselves.
#pragma once

#include <stddef.h>

#include "sim/cli/programs.h"

struct cli_capture {
    int file; // without a name; -1: the program's output is not captured
    char path[32];
    size_t shown; // bytes
};

struct cli_captures {
    struct cli_capture items[ATTACH_RUN_PROGRAMS_MAX];
    bool any;
};

void cli_captures_init(struct cli_captures *captures);
void cli_captures_fini(struct cli_captures *captures);

// Redirects the output of program `index` from now on. false: printed why.
bool cli_captures_add(struct cli_captures *captures, struct cli_programs *programs, uint32_t index);

// Writes the output since the last call to standard output.
void cli_captures_show(struct cli_captures *captures);

// The whole output, with a zero byte after it; to be freed. NULL: it is not captured, or printed why.
char *cli_captures_read(const struct cli_captures *captures, uint32_t index, size_t *length_out);
