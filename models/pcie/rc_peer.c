// Port to port: posted writes are passed on; reads are passed on under a tag of the root complex, and their completions
// find the way back by it. A TLP keeps its place in the receive buffer it came through until the other link takes it.
#include "models/pcie/rc_internal.h"

static void waiting_pump(struct pcie_rc_port *from);

void pcie_rc_peer_init(struct pcie_rc_port *port)
{
    pcie_ring_init(&port->peer_waiting, sizeof(struct pcie_rc_peer_waiting));
}

void pcie_rc_peer_fini(struct pcie_rc_port *port)
{
    while (port->peer_waiting.count > 0) {
        pcie_tlp_unref(((struct pcie_rc_peer_waiting *)pcie_ring_front(&port->peer_waiting))->request);
        pcie_ring_pop(&port->peer_waiting);
    }
    pcie_ring_fini(&port->peer_waiting);
    for (unsigned tag = 0; tag < PCIE_RC_TAGS; tag++) {
        if (port->peer_reads[tag].request != NULL) {
            pcie_tlp_unref(port->peer_reads[tag].request);
        }
    }
}

// tlp leaves through `to`; `held`, whose reference is taken, came through `from`.
static void forward(struct pcie_rc_port *from, struct pcie_rc_port *to, pcie_tlp_t *tlp, pcie_tlp_t *held)
{
    pcie_rc_t *rc = to->rc;
    pcie_rc_egress_push(
        to, &(struct pcie_rc_leaving){
                .tlp = tlp, .ready_ps = sim_now_ps(rc->sim) + rc->config.peer_ps, .held = held, .held_at = from});
}

void pcie_rc_peer_write(struct pcie_rc_port *from, struct pcie_rc_port *to, pcie_tlp_t *tlp)
{
    to->rc->counters[PCIE_RC_PEER_WRITES]++;
    pcie_tlp_ref(tlp);
    forward(from, to, tlp, tlp);
}

// --- reads ---------------------------------------------------------------------------------------------------------

void pcie_rc_peer_read(struct pcie_rc_port *from, struct pcie_rc_port *to, pcie_tlp_t *tlp)
{
    to->rc->counters[PCIE_RC_PEER_READS]++;
    *(struct pcie_rc_peer_waiting *)pcie_ring_push(&from->peer_waiting) =
        (struct pcie_rc_peer_waiting){.request = tlp, .to = to};
    waiting_pump(from);
}

static bool tag_take(struct pcie_rc_port *to, const struct pcie_rc_port *from, uint8_t *tag_out)
{
    if (to->peer_outstanding[from->index] >= to->rc->config.peer_reads_max) {
        return false;
    }
    for (unsigned i = 0; i < PCIE_RC_TAGS; i++) {
        unsigned tag = (to->peer_next_tag + i) % PCIE_RC_TAGS;
        if (to->peer_reads[tag].request == NULL) {
            to->peer_next_tag = tag + 1;
            *tag_out = (uint8_t)tag;
            return true;
        }
    }
    return false;
}

static void unsupported_answer(struct pcie_rc_port *from, const pcie_tlp_t *request)
{
    pcie_rc_t *rc = from->rc;
    rc->counters[PCIE_RC_UNSUPPORTED_READS]++;
    pcie_rc_egress_push(from, &(struct pcie_rc_leaving){.tlp = pcie_tlp_error(request, PCIE_RC_CPU_ID, PCIE_CPL_UR),
                                                        .ready_ps = sim_now_ps(rc->sim)});
}

static void waiting_pump(struct pcie_rc_port *from)
{
    while (from->peer_waiting.count > 0) {
        struct pcie_rc_peer_waiting waiting = *(struct pcie_rc_peer_waiting *)pcie_ring_front(&from->peer_waiting);
        pcie_tlp_t *request = waiting.request;
        uint8_t tag = 0;
        if (pcie_end_is_up(waiting.to->end)) {
            if (!tag_take(waiting.to, from, &tag)) {
                return;
            }
            pcie_ring_pop(&from->peer_waiting);
            waiting.to->peer_reads[tag] = (struct pcie_rc_peer_read){.request = request, .from = from};
            waiting.to->peer_outstanding[from->index]++;
            pcie_tlp_t *renamed = pcie_tlp_copy(request);
            renamed->requester = PCIE_RC_PEER_ID;
            renamed->tag = tag;
            pcie_tlp_ref(request);
            forward(from, waiting.to, renamed, request);
        } else {
            pcie_ring_pop(&from->peer_waiting);
            pcie_end_release(from->end, request);
            unsupported_answer(from, request);
            pcie_tlp_unref(request);
        }
    }
}

static void read_end(struct pcie_rc_port *to, struct pcie_rc_peer_read *read)
{
    to->peer_outstanding[read->from->index]--;
    pcie_tlp_unref(read->request);
    read->request = NULL;
}

static void all_waiting_pump(pcie_rc_t *rc, unsigned first)
{
    for (unsigned i = 0; i < rc->port_count; i++) {
        waiting_pump(rc->ports[(first + i) % rc->port_count]);
    }
}

void pcie_rc_peer_complete(struct pcie_rc_port *port, pcie_tlp_t *completion)
{
    pcie_rc_t *rc = port->rc;
    struct pcie_rc_peer_read *read = &port->peer_reads[completion->tag];
    if (read->request == NULL) {
        // Clause 2.3.2: an unexpected completion is discarded.
        rc->counters[PCIE_RC_UNEXPECTED_COMPLETIONS]++;
        pcie_end_release(port->end, completion);
        pcie_tlp_unref(completion);
        return;
    }
    struct pcie_rc_port *from = read->from;
    pcie_tlp_t *renamed = pcie_tlp_copy(completion);
    renamed->requester = read->request->requester;
    renamed->tag = read->request->tag;
    bool last = completion->cpl_status != PCIE_CPL_SC || pcie_tlp_byte_count(completion) >= completion->byte_count;
    if (last) {
        read_end(port, read);
    }
    forward(port, from, renamed, completion);
    if (last) {
        all_waiting_pump(rc, from->index + 1);
    }
}

// Reads that went to the port will not be answered; those that wait for it are answered now.
void pcie_rc_peer_port_down(struct pcie_rc_port *port)
{
    for (unsigned tag = 0; tag < PCIE_RC_TAGS; tag++) {
        struct pcie_rc_peer_read *read = &port->peer_reads[tag];
        if (read->request != NULL) {
            unsupported_answer(read->from, read->request);
            read_end(port, read);
        }
    }
    all_waiting_pump(port->rc, 0);
}
