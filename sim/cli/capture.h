// Standard output of programs, kept in memory and, where that is asked for, shown as it comes.
//
// What programs printed in a turn is shown after it: the order between programs is that of their turns, the same in
// each run, as it is where they write to one file themselves.
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

// From now on program `index` prints there. false: said why.
bool cli_captures_add(struct cli_captures *captures, struct cli_programs *programs, uint32_t index);

// Writes what has come since to standard output.
void cli_captures_show(struct cli_captures *captures);

// All that it printed, with a zero byte behind it; to be freed. NULL: it is not captured, or said why.
char *cli_captures_read(const struct cli_captures *captures, uint32_t index, size_t *length_out);
