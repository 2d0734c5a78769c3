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

// What a sink gets. The numbers connect records with their causes while those are recorded (cause.h), otherwise they are
// 0. They are unique, and may be in another order than the records.
struct sim_trace_record {
    uint64_t time_ps;
    const char *component;
    const struct sim_trace_point *point;
    const uint64_t *values; // one for each of point->fields, in their order
    uint32_t number, cause; // cause: the number of the last record on the critical path to this one; 0: none is known
};
typedef void (*sim_trace_sink_fn)(void *ctx, const struct sim_trace_record *record);

// One sink at a time; NULL removes it.
void sim_trace_set_sink(sim_t *sim, sim_trace_sink_fn sink, void *ctx);
// Is there a sink? For callers that need work to collect the values.
bool sim_trace_wanted(const sim_t *sim);
// values: see struct sim_trace_record.
void sim_trace(sim_t *sim, const char *component, const struct sim_trace_point *point, const uint64_t *values);
// A record of something that has a cause of its own, not that of the running code. What follows from it continues from
// `to`.
void sim_trace_between(sim_t *sim, const char *component, const struct sim_trace_point *point, const uint64_t *values,
                       uint32_t from, uint32_t to);
// The number of a record that the caller will pass to the sink later: what follows from the running code from now on
// follows from that record. 0 if causes are not recorded.
uint32_t sim_trace_reserve(sim_t *sim);
// The number of the nearest record on the critical path to the running code; 0: none.
uint32_t sim_trace_cause(sim_t *sim);
// What follows from the running code follows from the record of that number.
void sim_trace_follow(sim_t *sim, uint32_t number);
// Numbers continue after this one, if several simulations write into one trace.
void sim_trace_count_set(sim_t *sim, uint32_t count);
uint32_t sim_trace_count(const sim_t *sim);

#ifdef __cplusplus
}
#endif
