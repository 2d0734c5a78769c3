// Trace points as CSV: time_ps,component,point,a_name,a,b_name,b. Written beside the file and renamed at the end.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "sim/cli/cli.h"
#include "sim/kernel/trace.h"

struct cli_trace {
    const char *path;
    char *temporary;
    FILE *file;
};

// False, after printing why, when the file cannot be written.
bool cli_trace_open(struct cli_trace *trace, const char *path);
// A sink for sim_trace; ctx is the struct cli_trace.
void cli_trace_write(void *ctx, uint64_t time_ps, const char *component, const struct sim_trace_point *point,
                     uint64_t a, uint64_t b);
// keep: rename it into place; otherwise remove it. False, after printing why, when it could not be completed.
bool cli_trace_close(struct cli_trace *trace, bool keep);
