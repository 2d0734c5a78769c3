// Passes trace points to the sink, with the numbers that connect them to their causes.
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

void sim_trace_between(sim_t *sim, const char *component, const struct sim_trace_point *point, const uint64_t *values,
                       uint32_t from, uint32_t to)
{
    if (sim->trace_sink == NULL) {
        return;
    }
    struct sim_trace_record record = {.time_ps = sim->now_ps, .component = component, .point = point, .values = values};
    if (sim->causes != NULL) {
        record.cause = sim_cause_numbered(sim, from);
        record.number = ++sim->trace_count;
        sim_cause_number(sim, to, record.number);
    }
    sim->trace_sink(sim->trace_ctx, &record);
}

void sim_trace(sim_t *sim, const char *component, const struct sim_trace_point *point, const uint64_t *values)
{
    if (sim->trace_sink != NULL) {
        sim_trace_between(sim, component, point, values, sim->cause, sim->cause);
    }
}

uint32_t sim_trace_reserve(sim_t *sim)
{
    if (sim->causes == NULL) {
        return 0;
    }
    sim_cause_number(sim, sim->cause, ++sim->trace_count);
    return sim->trace_count;
}

void sim_trace_follow(sim_t *sim, uint32_t number)
{
    if (sim->causes != NULL) {
        sim_cause_number(sim, sim->cause, number);
    }
}

uint32_t sim_trace_cause(sim_t *sim)
{
    return sim->causes != NULL ? sim_cause_numbered(sim, sim->cause) : 0;
}

void sim_trace_count_set(sim_t *sim, uint32_t count)
{
    sim->trace_count = count;
}

uint32_t sim_trace_count(const sim_t *sim)
{
    return sim->trace_count;
}
