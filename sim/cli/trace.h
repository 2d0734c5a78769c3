// Trace points as CSV: series, time_ps, component, point, then a column for each field that most points have, empty if
// a point has no such field or no value, and one column for all other fields (name=value); with causes also the number
// of the record and that of its cause. A file *.json gets trace events for Perfetto instead (sim/report/events_trace.h),
// with causes. Written under a temporary name and renamed at the end.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "sim/cli/options.h"
#include "sim/kernel/trace.h"
#include "sim/report/events_trace.h"

struct cli_trace {
    const char *path;
    const struct cli_list *only; // patterns; NULL or empty: everything
    const char *series;          // of the following trace points
    char *temporary;
    FILE *file;
    bool any;               // a trace point matched
    bool causes;            // wanted in the records
    events_trace_t *events; // NULL: the file is CSV
    // While records are left out: for the numbers of this series that of the record itself, or of the last one before
    // it on its path that is written; 0: none, UINT32_MAX: not known yet.
    uint32_t *written;
    size_t written_room;
    const char *written_series;
};

// False, after printing why, if the file cannot be written. cli_output_usable has been called before.
bool cli_trace_open(struct cli_trace *trace, const char *path, const struct cli_list *only, bool causes);
void cli_trace_write(struct cli_trace *trace, const struct sim_trace_record *record);
// keep: rename it to its name; otherwise remove it. False, after printing why, if it could not be completed.
bool cli_trace_close(struct cli_trace *trace, bool keep);
