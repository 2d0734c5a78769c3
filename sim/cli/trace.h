// Trace points as CSV: series, time_ps, component, point, then a column for each field that most points have, empty
// where a point has no such field or no value, and one for all others (name=value). Written beside the file and renamed
// at the end.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "sim/cli/options.h"
#include "sim/kernel/trace.h"

struct cli_trace {
    const char *path;
    const struct cli_list *only; // patterns; NULL or empty: everything
    const char *series;          // of what comes next
    char *temporary;
    FILE *file;
    bool any; // a trace point was wanted
};

// False, after printing why, when the file cannot be written. cli_output_usable has been asked before.
bool cli_trace_open(struct cli_trace *trace, const char *path, const struct cli_list *only);
// A sink for sim_trace; ctx is the struct cli_trace.
void cli_trace_write(void *ctx, uint64_t time_ps, const char *component, const struct sim_trace_point *point,
                     const uint64_t *values);
// keep: rename it into place; otherwise remove it. False, after printing why, when it could not be completed.
bool cli_trace_close(struct cli_trace *trace, bool keep);
