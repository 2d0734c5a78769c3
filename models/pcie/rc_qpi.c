// Writes from port to port across QPI: cut into lines of 64 B, each a transaction that takes one of a few entries until
// it is acknowledged.
//
// Ordering: everything that arrives through a port after a crossing write stays behind it until its last line is in the
// order of the far port; later crossing writes follow in line. So no one can observe a later write, read or completion
// of that device before the data are ahead of everything that leaves through the far port. Only posted writes are
// waited for here, and they share no entries with reads: no cycle of waiting is possible.
#include <string.h>

#include "models/pcie/rc_internal.h"

static void line_event_run(void *ctx);
static void line_ack_event_run(void *ctx);

void pcie_rc_qpi_init(pcie_rc_t *rc)
{
    pcie_ring_init(&rc->lines, sizeof(struct pcie_rc_line));
    pcie_ring_init(&rc->line_acks, sizeof(struct pcie_rc_line_ack));
    sim_event_init(&rc->line_event, line_event_run, rc);
    sim_event_init(&rc->line_ack_event, line_ack_event_run, rc);
}

void pcie_rc_qpi_fini(pcie_rc_t *rc)
{
    while (rc->lines.count > 0) {
        const struct pcie_rc_line *line = pcie_ring_front(&rc->lines);
        pcie_tlp_unref(line->tlp);
        if (line->held != NULL) {
            pcie_tlp_unref(line->held);
        }
        pcie_ring_pop(&rc->lines);
    }
    pcie_ring_fini(&rc->lines);
    pcie_ring_fini(&rc->line_acks);
    sim_event_cancel(rc->sim, &rc->line_event);
    sim_event_cancel(rc->sim, &rc->line_ack_event);
}

void pcie_rc_qpi_port_init(struct pcie_rc_port *port)
{
    pcie_ring_init(&port->behind, sizeof(struct pcie_rc_crossing));
}

void pcie_rc_qpi_port_fini(struct pcie_rc_port *port)
{
    while (port->behind.count > 0) {
        pcie_tlp_unref(((struct pcie_rc_crossing *)pcie_ring_front(&port->behind))->tlp);
        pcie_ring_pop(&port->behind);
    }
    pcie_ring_fini(&port->behind);
}

// --- lines ---------------------------------------------------------------------------------------------------------

static pcie_tlp_t *line_cut(pcie_tlp_t *tlp, uint32_t first, uint32_t dwords)
{
    if (dwords == tlp->dwords) {
        pcie_tlp_ref(tlp);
        return tlp;
    }
    pcie_tlp_t *line = pcie_tlp_blank(tlp->pool, PCIE_TLP_MWR, (uint16_t)dwords);
    bool ends = first + dwords == tlp->dwords;
    line->requester = tlp->requester;
    line->address = tlp->address + first * 4u;
    line->first_be = first == 0 ? tlp->first_be : 0xf;
    line->last_be = ends ? tlp->last_be : 0xf;
    if (dwords == 1) {
        line->first_be = first == 0 ? tlp->first_be : line->last_be;
        line->last_be = 0;
    }
    memcpy(pcie_tlp_data(line), pcie_tlp_data(tlp) + first * 4u, dwords * 4u);
    return line;
}

// Sends the next line of a write. false: no entry is free.
static bool line_send(struct pcie_rc_port *from, struct pcie_rc_crossing *crossing)
{
    pcie_rc_t *rc = from->rc;
    if (rc->write_lines[from->socket] == rc->config.qpi_peer_lines_max) {
        return false;
    }
    pcie_tlp_t *tlp = crossing->tlp;
    uint64_t begin = tlp->address + crossing->crossed_dwords * 4u;
    uint32_t left = tlp->dwords - crossing->crossed_dwords;
    uint32_t dwords = (uint32_t)(PCIE_RC_LINE_BYTES - begin % PCIE_RC_LINE_BYTES) / 4;
    dwords = dwords < left ? dwords : left;
    *(struct pcie_rc_line *)pcie_ring_push(&rc->lines) =
        (struct pcie_rc_line){.tlp = line_cut(tlp, crossing->crossed_dwords, dwords),
                              .held = dwords == left ? tlp : NULL,
                              .from = from,
                              .to = crossing->to,
                              .due_ps = sim_now_ps(rc->sim) + rc->config.qpi_ps + rc->config.qpi_peer_write_ps};
    crossing->crossed_dwords += dwords;
    rc->counters[PCIE_RC_QPI_WRITE_LINES]++;
    rc->write_lines[from->socket]++;
    from->lines_in_flight++;
    if (!sim_event_pending(&rc->line_event)) {
        sim_event_schedule_at(rc->sim, &rc->line_event, ((struct pcie_rc_line *)pcie_ring_front(&rc->lines))->due_ps);
    }
    return true;
}

static void behind_pump(struct pcie_rc_port *port)
{
    while (port->behind.count > 0) {
        struct pcie_rc_crossing *front = pcie_ring_front(&port->behind);
        if (front->to != NULL) {
            if (!line_send(port, front)) {
                return;
            }
            if (front->crossed_dwords == front->tlp->dwords) {
                pcie_ring_pop(&port->behind);
            }
        } else {
            if (port->lines_in_flight > 0) {
                return;
            }
            pcie_tlp_t *tlp = front->tlp;
            pcie_ring_pop(&port->behind);
            pcie_rc_arrived(port, tlp);
        }
    }
}

static void line_event_run(void *ctx)
{
    static const struct sim_work crossing = {"PCIe", "across QPI", false};
    pcie_rc_t *rc = ctx;
    sim_cause_label(rc->sim, rc->name, &crossing);
    while (rc->lines.count > 0) {
        struct pcie_rc_line line = *(struct pcie_rc_line *)pcie_ring_front(&rc->lines);
        if (line.due_ps > sim_now_ps(rc->sim)) {
            sim_event_schedule_at(rc->sim, &rc->line_event, line.due_ps);
            return;
        }
        pcie_ring_pop(&rc->lines);
        line.from->lines_in_flight--;
        pcie_rc_egress_push(line.to, &(struct pcie_rc_leaving){.base = {.tlp = line.tlp, .ready_ps = line.due_ps},
                                                               .held = line.held,
                                                               .held_at = line.held != NULL ? line.from : NULL,
                                                               .crossed = line.from});
        behind_pump(line.from);
    }
}

void pcie_rc_qpi_line_left(struct pcie_rc_port *crossed)
{
    pcie_rc_t *rc = crossed->rc;
    uint64_t due_ps = sim_now_ps(rc->sim) + rc->config.qpi_ps;
    *(struct pcie_rc_line_ack *)pcie_ring_push(&rc->line_acks) = (struct pcie_rc_line_ack){due_ps, crossed->socket};
    if (!sim_event_pending(&rc->line_ack_event)) {
        sim_event_schedule_at(rc->sim, &rc->line_ack_event, due_ps);
    }
}

static void line_ack_event_run(void *ctx)
{
    pcie_rc_t *rc = ctx;
    while (rc->line_acks.count > 0) {
        const struct pcie_rc_line_ack *front = pcie_ring_front(&rc->line_acks);
        if (front->due_ps > sim_now_ps(rc->sim)) {
            sim_event_schedule_at(rc->sim, &rc->line_ack_event, front->due_ps);
            break;
        }
        rc->write_lines[front->socket]--;
        pcie_ring_pop(&rc->line_acks);
    }
    unsigned turn = rc->line_turn++;
    for (unsigned i = 0; i < rc->port_count; i++) {
        behind_pump(rc->ports[(turn + i) % rc->port_count]);
    }
}

// --- arrival -------------------------------------------------------------------------------------------------------

// The port of the other socket that is the target of a write, or NULL.
static struct pcie_rc_port *far_port(const struct pcie_rc_port *port, const pcie_tlp_t *tlp)
{
    const pcie_rc_t *rc = port->rc;
    if (tlp->kind != PCIE_TLP_MWR) {
        return NULL;
    }
    uint64_t address = pcie_tlp_first_byte(tlp);
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    bytes = bytes == 0 ? 1 : bytes;
    if (rc->memory->claims(rc->memory_ctx, address, bytes)) {
        return NULL;
    }
    struct pcie_rc_port *to = pcie_rc_decode(rc, address, bytes);
    return to == NULL || to->socket == port->socket ? NULL : to;
}

void pcie_rc_qpi_receive(struct pcie_rc_port *port, pcie_tlp_t *tlp)
{
    struct pcie_rc_port *to = port->rc->two_sockets ? far_port(port, tlp) : NULL;
    if (to == NULL && port->behind.count == 0 && port->lines_in_flight == 0) {
        pcie_rc_arrived(port, tlp);
        return;
    }
    if (to != NULL) {
        port->rc->counters[PCIE_RC_PEER_WRITES]++;
    }
    *(struct pcie_rc_crossing *)pcie_ring_push(&port->behind) = (struct pcie_rc_crossing){.tlp = tlp, .to = to};
    behind_pump(port);
}
