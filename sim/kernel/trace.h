// Trace points: named instants with a few numbers, from verb to wire. Without a sink a point costs one branch.
#pragma once

#include <stdbool.h>

#include "sim/kernel/sim.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SIM_TRACE_FIELDS_MAX 16
#define SIM_TRACE_ABSENT     UINT64_MAX // a field without a value in this record

// The format of a number.
enum sim_trace_form { SIM_TRACE_DECIMAL, SIM_TRACE_HEX, SIM_TRACE_NAME };

struct sim_trace_field {
    const char *name; // "address"
    enum sim_trace_form form;
    const char *const *names; // SIM_TRACE_NAME: by value
};

struct sim_trace_point {
    const char *name; // "tlp_sent"
    const struct sim_trace_field *fields;
    unsigned field_count; // at most SIM_TRACE_FIELDS_MAX
    const char *doc;
};

// values: one for each of point->fields, in their order.
typedef void (*sim_trace_sink_fn)(void *ctx, uint64_t time_ps, const char *component,
                                  const struct sim_trace_point *point, const uint64_t *values);

// One sink at a time; NULL removes it.
void sim_trace_set_sink(sim_t *sim, sim_trace_sink_fn sink, void *ctx);
// Is there a sink? For callers that need work to collect the values.
bool sim_trace_wanted(const sim_t *sim);
void sim_trace(sim_t *sim, const char *component, const struct sim_trace_point *point, const uint64_t *values);

#ifdef __cplusplus
}
#endif
