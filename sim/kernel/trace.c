// Passes trace points to the sink.
#include "sim/kernel/trace.h"

#include "sim/kernel/internal.h"

void sim_trace_set_sink(sim_t *sim, sim_trace_sink_fn sink, void *ctx)
{
    sim->trace_sink = sink;
    sim->trace_ctx = ctx;
}

bool sim_trace_wanted(const sim_t *sim)
{
    return sim->trace_sink != NULL;
}

void sim_trace(sim_t *sim, const char *component, const struct sim_trace_point *point, const uint64_t *values)
{
    if (sim->trace_sink != NULL) {
        sim->trace_sink(sim->trace_ctx, sim->now_ps, component, point, values);
    }
}
