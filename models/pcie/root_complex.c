// The root complex: creation and destruction, ports and windows, and the dispatch of arriving TLPs.
#include "models/pcie/root_complex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/pcie/completer.h"
#include "models/pcie/rc_internal.h"
#include "sim/kernel/counter.h"

static const struct sim_counter_desc COUNTERS[PCIE_RC_COUNTERS] = {
    [PCIE_RC_MEMORY_WRITES] = {"memory_writes", "TLPs", "memory writes that arrived for memory"},
    [PCIE_RC_MEMORY_WRITE_BYTES] = {"memory_write_bytes", "bytes", "bytes of those that became visible"},
    [PCIE_RC_MEMORY_READS] = {"memory_reads", "TLPs", "memory reads that arrived for memory"},
    [PCIE_RC_MEMORY_READ_BYTES] = {"memory_read_bytes", "bytes", "bytes of those that were read"},
    [PCIE_RC_PEER_WRITES] = {"peer_writes", "TLPs", "writes from port to port"},
    [PCIE_RC_PEER_READS] = {"peer_reads", "TLPs", "reads from port to port"},
    [PCIE_RC_QPI_WRITE_LINES] = {"qpi_write_lines", "lines", "64 B of writes from port to port across QPI"},
    [PCIE_RC_QPI_READ_LINES] = {"qpi_read_lines", "lines", "64 B of reads from port to port across QPI"},
    [PCIE_RC_CPU_WRITES] = {"cpu_writes", "TLPs", "the processor's posted writes to windows"},
    [PCIE_RC_CPU_READS] = {"cpu_reads", "TLPs", "the processor's reads"},
    [PCIE_RC_CPU_REFUSALS] = {"cpu_refusals", "events", "the processor's writes that had to be tried again"},
    [PCIE_RC_UNSUPPORTED_WRITES] = {"unsupported_writes", "TLPs",
                                    "writes to unclaimed addresses or to released memory, dropped"},
    [PCIE_RC_UNSUPPORTED_READS] = {"unsupported_reads", "TLPs", "reads answered with Unsupported Request"},
    [PCIE_RC_UNEXPECTED_COMPLETIONS] = {"unexpected_completions", "TLPs", "completions of no read, dropped"},
};

static void port_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp);
static void port_down(void *ctx, pcie_end_t *end, unsigned lost_tlps);

static const struct pcie_end_ops PORT_OPS = {
    .receive = port_receive,
    .ready = pcie_rc_egress_ready,
    .down = port_down,
    .writes_on = pcie_rc_writes_on,
    .reads_from = pcie_rc_reads_from,
};

static bool config_valid(const struct pcie_rc_config *config)
{
    uint32_t mps = config->mps_bytes, piece = config->peer_read_bytes;
    if (piece != 0 && (piece < PCIE_RC_LINE_BYTES || (piece & (piece - 1)) != 0)) {
        return false;
    }
    return config->memory_reads_max > 0 && (config->rcb_bytes == 64 || config->rcb_bytes == 128) && mps >= 128 &&
           mps <= PCIE_PAYLOAD_MAX && (mps & (mps - 1)) == 0 && config->peer_reads_max > 0;
}

enum sim_status pcie_rc_create(sim_t *sim, pcie_pool_t *pool, const char *name, const struct pcie_rc_config *config,
                               const struct pcie_memory_ops *memory, void *memory_ctx, pcie_rc_t **rc_out)
{
    if (!config_valid(config) || strlen(name) >= PCIE_RC_NAME_MAX) {
        return SIM_ERR_INVALID;
    }
    pcie_rc_t *rc = calloc(1, sizeof *rc);
    if (rc == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    rc->sim = sim;
    rc->pool = pool;
    rc->config = *config;
    rc->memory = memory;
    rc->memory_ctx = memory_ctx;
    snprintf(rc->name, sizeof rc->name, "%s", name);
    enum sim_status status = sim_counters_register(sim, rc->name, COUNTERS, rc->counters, PCIE_RC_COUNTERS);
    if (status != SIM_OK) {
        free(rc);
        return status;
    }
    pcie_rc_memory_init(rc);
    pcie_rc_qpi_init(rc);
    pcie_ring_init(&rc->refused_reads, sizeof(struct pcie_rc_refused_read));
    sim_event_init(&rc->refuse_event, pcie_rc_cpu_refuse_run, rc);
    *rc_out = rc;
    return SIM_OK;
}

void pcie_rc_destroy(pcie_rc_t *rc)
{
    if (rc == NULL) {
        return;
    }
    for (unsigned i = rc->port_count; i > 0; i--) {
        pcie_rc_peer_fini(rc->ports[i - 1]); // a read belongs to two ports
    }
    for (unsigned i = rc->port_count; i > 0; i--) {
        struct pcie_rc_port *port = rc->ports[i - 1];
        pcie_rc_cpu_fini(port);
        pcie_rc_qpi_port_fini(port);
        pcie_rc_egress_fini(port);
        free(port);
    }
    sim_event_cancel(rc->sim, &rc->refuse_event);
    pcie_ring_fini(&rc->refused_reads);
    pcie_rc_qpi_fini(rc);
    pcie_rc_memory_fini(rc);
    sim_counters_unregister(rc->sim, rc->counters);
    free(rc);
}

// --- ports and windows ---------------------------------------------------------------------------------------------

unsigned pcie_rc_add_port(pcie_rc_t *rc, pcie_end_t *end)
{
    struct pcie_rc_port *port = rc->port_count < PCIE_RC_PORTS_MAX ? calloc(1, sizeof *port) : NULL;
    if (port == NULL) {
        sim_panic(rc->name, "no memory for a port, or more than %d ports", PCIE_RC_PORTS_MAX);
    }
    port->rc = rc;
    port->end = end;
    port->index = rc->port_count;
    rc->ports[rc->port_count++] = port;
    pcie_rc_egress_init(port);
    pcie_rc_peer_init(port);
    pcie_rc_qpi_port_init(port);
    pcie_rc_cpu_init(port);
    pcie_end_attach(end, &PORT_OPS, port);
    return port->index;
}

enum sim_status pcie_rc_add_window(pcie_rc_t *rc, unsigned port, uint64_t base, uint64_t size)
{
    if (port >= rc->port_count || size == 0 || base > UINT64_MAX - size || rc->window_count == PCIE_RC_WINDOWS_MAX) {
        return SIM_ERR_INVALID;
    }
    for (unsigned i = 0; i < rc->window_count; i++) {
        const struct pcie_rc_window *window = &rc->windows[i];
        if (base < window->base + window->size && window->base < base + size) {
            return SIM_ERR_EXISTS;
        }
    }
    // Memory reports only whether it claims a range: both ends and the whole range are checked.
    if (rc->memory->claims(rc->memory_ctx, base, 1) || rc->memory->claims(rc->memory_ctx, base + size - 1, 1) ||
        rc->memory->claims(rc->memory_ctx, base, size)) {
        return SIM_ERR_EXISTS;
    }
    rc->windows[rc->window_count++] = (struct pcie_rc_window){base, size, rc->ports[port]};
    return SIM_OK;
}

enum sim_status pcie_rc_set_port_socket(pcie_rc_t *rc, unsigned port, unsigned socket)
{
    if (port >= rc->port_count || socket >= PCIE_RC_SOCKETS || rc->config.qpi_peer_lines_max == 0) {
        return SIM_ERR_INVALID;
    }
    rc->ports[port]->socket = socket;
    rc->two_sockets = true;
    return SIM_OK;
}

void pcie_rc_set_far_memory(pcie_rc_t *rc, uint64_t base)
{
    rc->far_memory_base = base;
}

struct pcie_rc_port *pcie_rc_decode(const pcie_rc_t *rc, uint64_t address, uint64_t bytes)
{
    for (unsigned i = 0; i < rc->window_count; i++) {
        const struct pcie_rc_window *window = &rc->windows[i];
        // Unsigned: an address below the base wraps to a large offset.
        uint64_t offset = address - window->base;
        if (offset < window->size && bytes <= window->size - offset) {
            return window->port;
        }
    }
    return NULL;
}

// --- what arrives --------------------------------------------------------------------------------------------------

static void write_arrived(struct pcie_rc_port *port, pcie_tlp_t *tlp)
{
    pcie_rc_t *rc = port->rc;
    uint64_t address = pcie_tlp_first_byte(tlp);
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    bytes = bytes == 0 ? 1 : bytes; // a write of no bytes goes to its address
    if (rc->memory->claims(rc->memory_ctx, address, bytes)) {
        pcie_rc_memory_write(port, tlp);
        return;
    }
    struct pcie_rc_port *to = pcie_rc_decode(rc, address, bytes);
    if (to != NULL && to != port) {
        pcie_rc_peer_write(port, to, tlp);
        return;
    }
    rc->counters[PCIE_RC_UNSUPPORTED_WRITES]++;
    pcie_end_release(port->end, tlp);
    pcie_tlp_unref(tlp);
}

static void read_arrived(struct pcie_rc_port *port, pcie_tlp_t *tlp)
{
    pcie_rc_t *rc = port->rc;
    uint64_t address = pcie_tlp_first_byte(tlp);
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    if (rc->memory->claims(rc->memory_ctx, address, bytes)) {
        pcie_rc_memory_read(port, tlp);
        return;
    }
    struct pcie_rc_port *to = pcie_rc_decode(rc, address, bytes);
    if (to != NULL && to != port) {
        pcie_rc_peer_read(port, to, tlp);
        return;
    }
    rc->counters[PCIE_RC_UNSUPPORTED_READS]++;
    pcie_end_release(port->end, tlp);
    pcie_rc_egress_push(port, &(struct pcie_rc_leaving){.base = {.tlp = pcie_unsupported(tlp, PCIE_RC_CPU_ID),
                                                                 .ready_ps = sim_now_ps(rc->sim)}});
    pcie_tlp_unref(tlp);
}

static void completion_arrived(struct pcie_rc_port *port, pcie_tlp_t *tlp)
{
    if (tlp->requester == PCIE_RC_PEER_ID) {
        pcie_rc_peer_complete(port, tlp);
        return;
    }
    pcie_end_release(port->end, tlp);
    if (tlp->requester == PCIE_RC_CPU_ID) {
        pcie_rc_memory_behind_writes(port, tlp);
        return;
    }
    port->rc->counters[PCIE_RC_UNEXPECTED_COMPLETIONS]++;
    pcie_tlp_unref(tlp);
}

void pcie_rc_arrived(struct pcie_rc_port *port, pcie_tlp_t *tlp)
{
    switch (tlp->kind) {
    case PCIE_TLP_MWR:
        write_arrived(port, tlp);
        break;
    case PCIE_TLP_MRD:
        read_arrived(port, tlp);
        break;
    case PCIE_TLP_CPL:
    case PCIE_TLP_CPLD:
        completion_arrived(port, tlp);
        break;
    }
}

static void port_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    (void)end;
    pcie_rc_qpi_receive(ctx, tlp);
}

static void port_down(void *ctx, pcie_end_t *end, unsigned lost_tlps)
{
    (void)end;
    (void)lost_tlps; // the link counts them
    pcie_rc_cpu_port_down(ctx);
    pcie_rc_peer_port_down(ctx);
    pcie_rc_egress_pump(ctx);
    pcie_rc_cpu_retry(ctx);
}
