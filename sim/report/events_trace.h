// Records of a trace as trace events for Perfetto: a slice for each record, a flow from its cause to it, and counters.
//
// A call of a program lasts from its beginning to its end, a TLP or packet from its sending until it is received, an
// item of a queue from its begin to its end; all other records are instants, slices without a duration. Counters: what
// is in flight from an end of a link, bytes of reads that an end has requested and not received, and send requests of a
// queue pair that have not completed.
#pragma once

#include "sim/kernel/trace.h"
#include "sim/report/events.h"

typedef struct events_trace events_trace_t;

enum sim_status events_trace_create(events_trace_t **trace_out);
void events_trace_destroy(events_trace_t *trace);

// series: equal numbers in different series are different records. cause: as record->cause, or another one.
void events_trace_add(events_trace_t *trace, const char *series, const struct sim_trace_record *record, uint32_t cause);

// At the end. SIM_ERR_NO_MEMORY: nothing useful was written.
enum sim_status events_trace_write(events_trace_t *trace, FILE *out);
