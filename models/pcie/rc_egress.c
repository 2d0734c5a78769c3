// What leaves through a root port: completions of memory reads, forwarded TLPs, the processor's requests.
#include "models/pcie/rc_internal.h"

static void leave_event_run(void *ctx);

static void held_release(const struct pcie_rc_leaving *slot, bool from_buffer)
{
    if (slot->held_at != NULL) {
        if (from_buffer) {
            pcie_end_release(slot->held_at->end, slot->held);
        }
        pcie_tlp_unref(slot->held);
    }
}

static void sent(void *ctx, const void *leaving)
{
    struct pcie_rc_port *port = ctx;
    const struct pcie_rc_leaving *slot = leaving;
    port->cpu_writes_waiting -= slot->from_cpu;
    held_release(slot, true);
    if (slot->crossed != NULL) {
        pcie_rc_qpi_line_left(slot->crossed);
    }
    if (slot->ends_read) {
        pcie_rc_memory_read_left(port->rc);
    }
}

static void dropped(void *port, const void *leaving)
{
    (void)port;
    held_release(leaving, false);
}

void pcie_rc_egress_init(struct pcie_rc_port *port)
{
    static const struct sim_work passage = {"PCIe", "through the root complex", false};
    static const struct pcie_egress_ops ops = {.sent = sent, .dropped = dropped, .passage = &passage};
    pcie_egress_init(&port->egress, port->rc->sim, port->rc->name, sizeof(struct pcie_rc_leaving), &ops, port);
    port->egress.end = port->end;
    sim_event_init(&port->leave_event, leave_event_run, port);
}

void pcie_rc_egress_fini(struct pcie_rc_port *port)
{
    pcie_egress_fini(&port->egress);
    sim_event_cancel(port->rc->sim, &port->leave_event);
}

static void again_at(struct pcie_rc_port *port, uint64_t next_ps)
{
    if (next_ps != SIM_NEVER_PS && (!sim_event_pending(&port->leave_event) || port->leave_event.due_ps > next_ps)) {
        sim_event_schedule_at(port->rc->sim, &port->leave_event, next_ps);
    }
}

void pcie_rc_egress_push(struct pcie_rc_port *port, const struct pcie_rc_leaving *leaving)
{
    port->cpu_writes_waiting += leaving->from_cpu;
    again_at(port, pcie_egress_send(&port->egress, leaving));
}

void pcie_rc_egress_pump(struct pcie_rc_port *port)
{
    again_at(port, pcie_egress_pump(&port->egress));
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
