// Trace points as CSV: series, time_ps, component, point, then a column for each field that most points have, empty if
// a point has no such field or no value, and one column for all other fields (name=value). Written under a temporary
// name and renamed at the end.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "sim/cli/options.h"
#include "sim/kernel/trace.h"

struct cli_trace {
    const char *path;
    const struct cli_list *only; // patterns; NULL or empty: everything
    const char *series;          // of the following trace points
    char *temporary;
    FILE *file;
    bool any; // a trace point matched
};

// False, after printing why, if the file cannot be written. cli_output_usable has been called before.
bool cli_trace_open(struct cli_trace *trace, const char *path, const struct cli_list *only);
// A sink for sim_trace; ctx is the struct cli_trace.
void cli_trace_write(void *ctx, uint64_t time_ps, const char *component, const struct sim_trace_point *point,
                     const uint64_t *values);
// keep: rename it to its name; otherwise remove it. False, after printing why, if it could not be completed.
bool cli_trace_close(struct cli_trace *trace, bool keep);
