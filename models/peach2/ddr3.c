#include "models/peach2/ddr3.h"

#include <stdio.h>
#include <stdlib.h>

#include "models/pcie/ring.h"
#include "sim/kernel/cause.h"
#include "sim/kernel/counter.h"

enum {
    EMBEDDED_MAX = 32,
    AHEAD_TLPS = 2,    // of a port, inside the chip: one moves, one follows without a bubble
    HEADER_BYTES = 16, // one beat
    NAME_MAX_BYTES = 80
};

enum counter { WRITES, BUSY_PS, COUNTERS };

static const struct sim_counter_desc counter_descs[COUNTERS] = {
    [WRITES] = {"tlps", "TLPs", "packets of cables that were buffered in DDR3 memory"},
    [BUSY_PS] = {"busy_ps", "ps", "time in which the memory was accessed"},
};

static const struct sim_work buffered = {"board", "packet buffer in DDR3 memory", false};

struct kept {
    pcie_tlp_t *tlp;
    unsigned bar;
    sim_cause_t cause; // of its arrival, later of its reading
};

struct ddr3_port {
    peach2_ddr3_t *ddr3;
    struct pcie_ring kept; // struct kept: the first `written` are in the memory
    uint32_t written;
    struct pcie_ring taken;   // uint64_t: when packets inside leave the chip's input, as far as it is known
    uint32_t inside;          // packets that the chip has and has not taken
    uint32_t given, reported; // running numbers: packets that the chip got, and of which it said when it takes them
    uint64_t stored;          // a bit for each packet that the chip got: it was in the memory
    sim_event_t taken_event;
};

enum { READ, WRITE, DIRECTIONS };

struct peach2_ddr3 {
    sim_t *sim;
    struct peach2_ddr3_config config;
    const struct peach2_ddr3_ops *ops;
    void *ctx;
    struct ddr3_port ports[PEACH2_PORTS];
    unsigned turn; // the access in progress, or the last one: port * DIRECTIONS + direction
    sim_event_t access_event;
    uint64_t counters[COUNTERS];
    char name[NAME_MAX_BYTES];
};

// --- accesses ---------------------------------------------------------------------------------------------------------

static bool is_wanted(const struct ddr3_port *port, unsigned direction)
{
    return direction == WRITE ? port->kept.count > port->written : port->written > 0 && port->inside < AHEAD_TLPS;
}

static struct kept *subject(const struct ddr3_port *port, unsigned direction)
{
    return pcie_ring_at(&port->kept, direction == WRITE ? port->written : 0);
}

static uint64_t access_ps(const peach2_ddr3_t *ddr3, const pcie_tlp_t *tlp)
{
    uint64_t bytes = HEADER_BYTES + pcie_tlp_payload_bytes(tlp), rate = ddr3->config.bytes_per_us;
    return ddr3->config.turn_ps + (bytes * SIM_PS_PER_US + rate - 1) / rate;
}

// What the chip has taken until now. At one instant it may be told before or after other events.
static void taken_settle(struct ddr3_port *port)
{
    uint64_t now_ps = sim_now_ps(port->ddr3->sim);
    while (port->taken.count > 0 && *(uint64_t *)pcie_ring_front(&port->taken) <= now_ps) {
        pcie_ring_pop(&port->taken);
        port->inside--;
    }
    if (port->taken.count > 0 && !sim_event_pending(&port->taken_event)) {
        sim_event_schedule_at(port->ddr3->sim, &port->taken_event, *(uint64_t *)pcie_ring_front(&port->taken));
    }
}

static void access_begin(peach2_ddr3_t *ddr3)
{
    const unsigned turns = PEACH2_PORTS * DIRECTIONS;
    if (sim_event_pending(&ddr3->access_event)) {
        return;
    }
    for (unsigned i = 0; i < PEACH2_PORTS; i++) {
        taken_settle(&ddr3->ports[i]);
    }
    for (unsigned i = 1; i <= turns; i++) {
        unsigned turn = (ddr3->turn + i) % turns, direction = turn % DIRECTIONS;
        const struct ddr3_port *port = &ddr3->ports[turn / DIRECTIONS];
        if (is_wanted(port, direction)) {
            struct kept *kept = subject(port, direction);
            uint64_t took_ps = access_ps(ddr3, kept->tlp), end_ps = sim_now_ps(ddr3->sim) + took_ps;
            kept->cause = sim_cause_extend(ddr3->sim, kept->cause, end_ps, ddr3->name, &buffered);
            ddr3->counters[BUSY_PS] += took_ps;
            ddr3->turn = turn;
            sim_event_schedule_at(ddr3->sim, &ddr3->access_event, end_ps);
            return;
        }
    }
}

static void give(struct ddr3_port *port, bool stored)
{
    uint64_t bit = 1ull << port->given % 64;
    port->stored = stored ? port->stored | bit : port->stored & ~bit;
    port->given++;
    port->inside++;
}

static void access_run(void *ctx)
{
    peach2_ddr3_t *ddr3 = ctx;
    unsigned index = ddr3->turn / DIRECTIONS;
    struct ddr3_port *port = &ddr3->ports[index];
    struct kept kept = *subject(port, ddr3->turn % DIRECTIONS);
    sim_cause_arrive(ddr3->sim, kept.cause);
    if (ddr3->turn % DIRECTIONS == WRITE) {
        port->written++;
        ddr3->counters[WRITES]++;
        ddr3->ops->release(ddr3->ctx, index, kept.tlp);
    } else {
        port->written--;
        pcie_ring_pop(&port->kept);
        give(port, true);
        ddr3->ops->deliver(ddr3->ctx, index, kept.bar, kept.tlp);
    }
    access_begin(ddr3);
}

// --- the chip's input -------------------------------------------------------------------------------------------------

static void taken_run(void *ctx)
{
    struct ddr3_port *port = ctx;
    taken_settle(port); // also while the memory is busy: the next event is that of the next taking
    access_begin(port->ddr3);
}

bool peach2_ddr3_taken(peach2_ddr3_t *ddr3, unsigned index, uint64_t taken_ps)
{
    struct ddr3_port *port = &ddr3->ports[index];
    bool stored = (port->stored >> port->reported++ % 64 & 1) != 0;
    *(uint64_t *)pcie_ring_push(&port->taken) = taken_ps;
    taken_run(port);
    return stored;
}

bool peach2_ddr3_keeps(peach2_ddr3_t *ddr3, unsigned index, unsigned bar, pcie_tlp_t *tlp)
{
    struct ddr3_port *port = &ddr3->ports[index];
    taken_settle(port);
    if (index == PEACH2_PORT_N || (port->kept.count == 0 && port->inside < ddr3->config.embedded_tlps)) {
        give(port, false);
        return false;
    }
    *(struct kept *)pcie_ring_push(&port->kept) =
        (struct kept){.tlp = tlp, .bar = bar, .cause = sim_cause_now(ddr3->sim)};
    access_begin(ddr3);
    return true;
}

// --- creation, reset and destruction ----------------------------------------------------------------------------------

enum sim_status peach2_ddr3_create(sim_t *sim, const char *name, const struct peach2_ddr3_config *config,
                                   const struct peach2_ddr3_ops *ops, void *ctx, peach2_ddr3_t **ddr3_out)
{
    if (config->embedded_tlps == 0 || config->embedded_tlps > EMBEDDED_MAX || config->bytes_per_us == 0) {
        return SIM_ERR_INVALID;
    }
    peach2_ddr3_t *ddr3 = calloc(1, sizeof *ddr3);
    if (ddr3 == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    ddr3->sim = sim;
    ddr3->config = *config;
    ddr3->ops = ops;
    ddr3->ctx = ctx;
    snprintf(ddr3->name, sizeof ddr3->name, "%s.ddr3", name);
    sim_event_init(&ddr3->access_event, access_run, ddr3);
    for (unsigned i = 0; i < PEACH2_PORTS; i++) {
        struct ddr3_port *port = &ddr3->ports[i];
        port->ddr3 = ddr3;
        pcie_ring_init(&port->kept, sizeof(struct kept));
        pcie_ring_init(&port->taken, sizeof(uint64_t));
        sim_event_init(&port->taken_event, taken_run, port);
    }
    enum sim_status status = sim_counters_register(sim, ddr3->name, counter_descs, ddr3->counters, COUNTERS);
    if (status != SIM_OK) {
        free(ddr3);
        return status;
    }
    *ddr3_out = ddr3;
    return SIM_OK;
}

static void port_clear(peach2_ddr3_t *ddr3, unsigned index, bool release)
{
    struct ddr3_port *port = &ddr3->ports[index];
    sim_event_cancel(ddr3->sim, &port->taken_event);
    for (; port->kept.count > 0; pcie_ring_pop(&port->kept)) {
        const struct kept *kept = pcie_ring_front(&port->kept);
        if (port->written > 0) {
            port->written--;
        } else if (release) {
            ddr3->ops->release(ddr3->ctx, index, kept->tlp);
        }
        pcie_tlp_unref(kept->tlp);
    }
}

void peach2_ddr3_reset(peach2_ddr3_t *ddr3)
{
    sim_event_cancel(ddr3->sim, &ddr3->access_event);
    for (unsigned i = 0; i < PEACH2_PORTS; i++) {
        struct ddr3_port *port = &ddr3->ports[i];
        port_clear(ddr3, i, true);
        for (; port->taken.count > 0; pcie_ring_pop(&port->taken)) {
            port->inside--;
        }
    }
}

void peach2_ddr3_destroy(peach2_ddr3_t *ddr3)
{
    if (ddr3 == NULL) {
        return;
    }
    sim_event_cancel(ddr3->sim, &ddr3->access_event);
    for (unsigned i = 0; i < PEACH2_PORTS; i++) {
        port_clear(ddr3, i, false);
        pcie_ring_fini(&ddr3->ports[i].kept);
        pcie_ring_fini(&ddr3->ports[i].taken);
    }
    sim_counters_unregister(ddr3->sim, ddr3->counters);
    free(ddr3);
}
