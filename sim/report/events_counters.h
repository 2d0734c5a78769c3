// The counters of a trace as trace events (events_trace.h), from the numbers of its records.
#pragma once

#include <stdbool.h>

#include "sim/kernel/trace.h"
#include "sim/report/events.h"

// What counters need of a record. A number that it does not have is SIM_TRACE_ABSENT, a name NULL.
struct events_counted {
    const char *point, *kind, *opcode; // static
    uint64_t bytes, requester, tag, qp, wr_id, took_ps;
    uint32_t lane;
    uint64_t begin_ps, end_ps; // of its slice
};

struct events_counted events_counted_of(const struct sim_trace_record *record, uint32_t lane);

// records: in the order of the trace. false: there is no memory.
bool events_counters_add(events_t *events, const struct events_counted *records, size_t count);
