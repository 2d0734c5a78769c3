// Trace points: named instants with two numbers, from verb to wire. Without a sink a point costs one branch.
#pragma once

#include "sim/kernel/sim.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sim_trace_point {
    const char *name;   // "tlp_sent"
    const char *a_name; // "address", NULL when unused
    const char *b_name;
    const char *doc;
};

typedef void (*sim_trace_sink_fn)(void *ctx, uint64_t time_ps, const char *component,
                                  const struct sim_trace_point *point, uint64_t a, uint64_t b);

// One sink at a time; NULL removes it.
void sim_trace_set_sink(sim_t *sim, sim_trace_sink_fn sink, void *ctx);
void sim_trace(sim_t *sim, const char *component, const struct sim_trace_point *point, uint64_t a, uint64_t b);

#ifdef __cplusplus
}
#endif
