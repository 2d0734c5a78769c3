// Creation and destruction of a simulation.
#include "sim/kernel/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/kernel/internal.h"

enum sim_status sim_create(const struct sim_config *config, sim_t **sim_out)
{
    if (config == NULL || sim_out == NULL) {
        return SIM_ERR_INVALID;
    }
    if (sim_bridge_living() != NULL) {
        return SIM_ERR_BUSY;
    }
    sim_t *sim = calloc(1, sizeof *sim);
    if (sim == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    sim->config = *config;
    sim_queue_init(&sim->queue);
    sim_bridge_adopt(sim);
    *sim_out = sim;
    return SIM_OK;
}

void sim_destroy(sim_t *sim)
{
    if (sim == NULL) {
        return;
    }
    if (sim->running) {
        sim_panic("kernel", "sim_destroy called inside sim_run");
    }
    sim->unwinding = true;
    if (sim->thread_count != 0) {
        sim_bridge_run(sim);
    }
    sim_counters_fini(sim);
    sim_causes_fini(sim);
    sim_names_fini(sim);
    sim_queue_fini(&sim->queue);
    sim_bridge_adopt(NULL);
    free(sim);
}

enum sim_run_outcome sim_run(sim_t *sim)
{
    if (sim->running) {
        sim_panic("kernel", "sim_run called inside sim_run");
    }
    sim_loop_begin(sim);
    sim_bridge_run(sim);
    return sim->outcome;
}

uint64_t sim_now_ps(const sim_t *sim)
{
    return sim->now_ps;
}

uint64_t sim_next_due_ps(const sim_t *sim)
{
    return sim->queue.first != NULL ? sim->queue.first->due_ps : SIM_NEVER_PS;
}

uint64_t sim_seed(const sim_t *sim)
{
    return sim->config.seed;
}

void sim_set_poll(sim_t *sim, void (*poll)(void *ctx), void *ctx)
{
    sim->poll = poll;
    sim->poll_ctx = ctx;
}

uint64_t sim_events_run(const sim_t *sim)
{
    return sim->events_run;
}

const char *sim_format_ns(char buffer[SIM_NS_TEXT_BYTES], uint64_t time_ps)
{
    uint64_t ns = time_ps / SIM_PS_PER_NS;
    unsigned ps = (unsigned)(time_ps % SIM_PS_PER_NS);
    if (ps == 0) {
        snprintf(buffer, SIM_NS_TEXT_BYTES, "%" PRIu64, ns);
    } else {
        snprintf(buffer, SIM_NS_TEXT_BYTES, "%" PRIu64 ".%03u", ns, ps);
    }
    return buffer;
}
