// Creation and destruction of the twin, and its interface to the board.
#include "models/peach2/twin.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "models/peach2/twin_internal.h"

static void twin_core_reset(void *core)
{
    peach2_twin_reset(core);
}

const struct peach2_core_ops peach2_twin_core_ops = {.rx = twin_core_rx,
                                                     .set_tx_ready = twin_core_set_tx_ready,
                                                     .set_tx_room = twin_core_set_tx_room,
                                                     .reset = twin_core_reset,
                                                     .writes_on = twin_core_writes_on};

static bool is_power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

// The values that the straps of the chip can have.
static bool config_fits(const struct peach2_twin_config *config)
{
    return config->period_ps != 0 && is_power_of_two(config->mps_bytes) && config->mps_bytes >= 128 &&
           config->mps_bytes <= PCIE_PAYLOAD_MAX && config->start_cycles <= UINT16_MAX &&
           config->fetch_cycles <= UINT16_MAX && config->finish_cycles <= UINT16_MAX &&
           is_power_of_two(config->read_bytes) && config->read_bytes >= 64 && config->read_bytes <= TWIN_SLOT_BYTES &&
           config->read_tags >= 1 && config->read_tags <= TWIN_SLOTS && config->prefetch >= 1 && config->prefetch <= 4;
}

static void units_init(peach2_twin_t *twin)
{
    twin_registers_init(twin);
    twin_outputs_init(twin);
    twin_ingresses_init(twin);
    twin_local_init(twin);
    twin_fetches_init(twin);
    twin_channels_init(twin);
    twin_dmac_init(twin);
    twin_writer_init(twin);
}

static void units_fini(peach2_twin_t *twin)
{
    twin_writer_fini(twin);
    twin_dmac_fini(twin);
    twin_channels_fini(twin);
    twin_fetches_fini(twin);
    twin_local_fini(twin);
    twin_ingresses_fini(twin);
    twin_outputs_fini(twin);
}

enum sim_status peach2_twin_create(sim_t *sim, pcie_pool_t *pool, const char *name,
                                   const struct peach2_twin_config *config, const struct peach2_twin_ops *ops,
                                   void *ctx, peach2_twin_t **twin_out)
{
    if (!config_fits(config)) {
        return SIM_ERR_RANGE;
    }
    peach2_twin_t *twin = aligned_alloc(_Alignof(peach2_twin_t), sizeof *twin);
    if (twin == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    memset(twin, 0, sizeof *twin);
    twin->name = strdup(name);
    if (twin->name == NULL) {
        free(twin);
        return SIM_ERR_NO_MEMORY;
    }
    twin->sim = sim;
    twin->pool = pool;
    twin->config = *config;
    twin->ops = ops;
    twin->ctx = ctx;
    units_init(twin);
    *twin_out = twin;
    return SIM_OK;
}

void peach2_twin_destroy(peach2_twin_t *twin)
{
    if (twin == NULL) {
        return;
    }
    units_fini(twin);
    free(twin->name);
    free(twin);
}

// Everything but the memory is in the part of the struct before it.
void peach2_twin_reset(peach2_twin_t *twin)
{
    twin_local_interrupt(twin);
    twin_ingresses_release(twin);
    units_fini(twin);
    memset((char *)twin + offsetof(peach2_twin_t, offers), 0,
           offsetof(peach2_twin_t, memory) - offsetof(peach2_twin_t, offers));
    units_init(twin);
}

// --- edges ----------------------------------------------------------------------------------------------------------

void twin_event_set(peach2_twin_t *twin, sim_event_t *event, uint64_t edge)
{
    if (edge == TWIN_NEVER) {
        sim_event_cancel(twin->sim, event);
        return;
    }
    uint64_t due_ps = edge * twin->config.period_ps;
    uint64_t now_ps = sim_now_ps(twin->sim);
    due_ps = due_ps > now_ps ? due_ps : now_ps;
    if (!sim_event_pending(event) || event->due_ps != due_ps) {
        sim_event_schedule_at(twin->sim, event, due_ps);
    }
}

void twin_event_by(peach2_twin_t *twin, sim_event_t *event, uint64_t edge)
{
    if (edge != TWIN_NEVER && (!sim_event_pending(event) || event->due_ps > edge * twin->config.period_ps)) {
        twin_event_set(twin, event, edge);
    }
}
