// Trace points on their way to the sink.
#include "sim/kernel/trace.h"

#include "sim/kernel/internal.h"

void sim_trace_set_sink(sim_t *sim, sim_trace_sink_fn sink, void *ctx)
{
    sim->trace_sink = sink;
    sim->trace_ctx = ctx;
}

void sim_trace(sim_t *sim, const char *component, const struct sim_trace_point *point, uint64_t a, uint64_t b)
{
    if (sim->trace_sink != NULL) {
        sim->trace_sink(sim->trace_ctx, sim->now_ps, component, point, a, b);
    }
}
