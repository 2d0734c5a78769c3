// What leaves through a root port: completions of memory reads, forwarded TLPs, the processor's requests.
//
// Each class is a queue; clause 2.4.1 holds here as it does in the link: nothing passes a posted write that came
// before it.
#include "models/pcie/rc_internal.h"

static void leave_event_run(void *ctx);

void pcie_rc_egress_init(struct pcie_rc_port *port)
{
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        pcie_ring_init(&port->leaving[class], sizeof(struct pcie_rc_leaving));
    }
    sim_event_init(&port->leave_event, leave_event_run, port);
}

void pcie_rc_egress_fini(struct pcie_rc_port *port)
{
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        struct pcie_ring *queue = &port->leaving[class];
        while (queue->count > 0) {
            const struct pcie_rc_leaving *front = pcie_ring_front(queue);
            pcie_tlp_unref(front->tlp);
            if (front->held_at != NULL) {
                pcie_tlp_unref(front->held);
            }
            pcie_ring_pop(queue);
        }
        pcie_ring_fini(queue);
    }
    sim_event_cancel(port->rc->sim, &port->leave_event);
}

void pcie_rc_egress_push(struct pcie_rc_port *port, const struct pcie_rc_leaving *leaving)
{
    struct pcie_rc_leaving *slot = pcie_ring_push(&port->leaving[pcie_tlp_class(leaving->tlp)]);
    *slot = *leaving;
    slot->order = port->leaving_order++;
    slot->cause = sim_cause_now(port->rc->sim);
    if (leaving->from_cpu) {
        port->cpu_writes_waiting++;
    }
    pcie_rc_egress_pump(port);
}

// Gives the oldest of a class to the link. false: no room there.
static bool leave(struct pcie_rc_port *port, enum pcie_class class)
{
    static const struct sim_work passage = {"PCIe", "through the root complex", false};
    struct pcie_rc_leaving front = *(struct pcie_rc_leaving *)pcie_ring_front(&port->leaving[class]);
    sim_cause_t cause = sim_cause_now(port->rc->sim);
    sim_cause_follow(port->rc->sim, front.cause, port->rc->name, &passage);
    bool taken = pcie_end_offer(port->end, front.tlp);
    sim_cause_arrive(port->rc->sim, cause);
    if (!taken) {
        return false;
    }
    pcie_ring_pop(&port->leaving[class]);
    if (front.from_cpu) {
        port->cpu_writes_waiting--;
    }
    if (front.held_at != NULL) {
        pcie_end_release(front.held_at->end, front.held);
        pcie_tlp_unref(front.held);
    }
    if (front.crossed != NULL) {
        pcie_rc_qpi_line_left(front.crossed);
    }
    if (front.ends_read) {
        pcie_rc_memory_read_left(port->rc);
    }
    return true;
}

// Offers what is ready, class by class until the link has no room; posted writes first, as nothing may pass them.
void pcie_rc_egress_pump(struct pcie_rc_port *port)
{
    uint64_t now_ps = sim_now_ps(port->rc->sim);
    uint64_t barrier = UINT64_MAX, next_ps = SIM_NEVER_PS;
    for (enum pcie_class class = PCIE_POSTED; class < PCIE_CLASS_COUNT; class ++) {
        struct pcie_ring *queue = &port->leaving[class];
        while (queue->count > 0) {
            const struct pcie_rc_leaving *front = pcie_ring_front(queue);
            if (front->order > barrier) {
                break;
            }
            if (front->ready_ps > now_ps) {
                next_ps = front->ready_ps < next_ps ? front->ready_ps : next_ps;
                break;
            }
            if (!leave(port, class)) {
                break;
            }
        }
        if (class == PCIE_POSTED && queue->count > 0) {
            barrier = ((const struct pcie_rc_leaving *)pcie_ring_front(queue))->order;
        }
    }
    if (next_ps != SIM_NEVER_PS && (!sim_event_pending(&port->leave_event) || port->leave_event.due_ps > next_ps)) {
        sim_event_schedule_at(port->rc->sim, &port->leave_event, next_ps);
    }
}

static void leave_event_run(void *ctx)
{
    struct pcie_rc_port *port = ctx;
    pcie_rc_egress_pump(port);
    pcie_rc_cpu_retry(port);
}

void pcie_rc_egress_ready(void *ctx, pcie_end_t *end)
{
    (void)end;
    leave_event_run(ctx);
}
