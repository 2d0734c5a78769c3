// The receiving half of a link's end: the data link layer's checks, delivery, and ACK timing.
//
// The data link layer checks TLPs lazily, when something depends on them, but judges each by its instant of arrival; so
// a TLP that is in order needs no event of its own.
#include "models/pcie/link_internal.h"

static const struct sim_trace_point tlp_received = {"tlp_received", PCIE_TRACE_FIELDS,
                                                    "the owner of the receiving end gets a TLP"};

static void deliver_event_run(void *ctx);
static void ack_event_run(void *ctx);

void pcie_receiver_init(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    pcie_ring_init(&rx->arriving, sizeof(struct pcie_arriving));
    pcie_ring_init(&rx->dllps, sizeof(struct pcie_dllp));
    sim_event_init(&rx->deliver_event, deliver_event_run, end);
    pcie_update_init(end, PCIE_UPDATE_ACK, ack_event_run);
    pcie_update_init(end, PCIE_UPDATE_DLLP, pcie_dllps_arrive);
    pcie_credits_init(end);
}

// Drops all arriving TLPs but the oldest `count`; returns their number.
static uint32_t arriving_truncate(pcie_end_t *end, uint32_t count)
{
    struct pcie_ring *arriving = &end->rx.arriving;
    uint32_t tlps = 0;
    for (uint32_t i = count; i < arriving->count; i++) {
        const struct pcie_arriving *dropped = pcie_ring_at(arriving, i);
        if (dropped->tlp != NULL) {
            pcie_tlp_unref(dropped->tlp);
            tlps++;
        }
    }
    if (arriving->count > count) {
        arriving->count = count;
    }
    return tlps;
}

uint32_t pcie_receiver_flush(pcie_end_t *end)
{
    end->rx.checked = 0;
    sim_event_cancel(end->sim, &end->rx.deliver_event);
    return arriving_truncate(end, 0);
}

void pcie_receiver_cut(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    (void)arriving_truncate(end, rx->checked);
    while (rx->dllps.count > 0) {
        pcie_ring_pop(&rx->dllps);
    }
    rx->ack_due = rx->nak_due = false;
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        rx->update_due[class] = false;
    }
    if (rx->arriving.count == 0) {
        sim_event_cancel(end->sim, &rx->deliver_event);
    }
    pcie_update_cancel(end, PCIE_UPDATE_ACK);
    pcie_update_cancel(end, PCIE_UPDATE_DLLP);
    pcie_credits_clear(end);
}

void pcie_receiver_restart(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    rx->expected = 0;
    rx->acknowledged = 0;
    rx->nak_outstanding = false;
}

void pcie_receiver_fini(pcie_end_t *end)
{
    end->rx.checked = 0;
    pcie_receiver_cut(end);
    pcie_ring_fini(&end->rx.arriving);
    pcie_ring_fini(&end->rx.dllps);
    pcie_ring_fini(&end->rx.freeing);
}

// --- arrival -------------------------------------------------------------------------------------------------------

void pcie_receiver_send_towards(pcie_end_t *end, const struct pcie_arriving *arriving, bool at_once)
{
    struct pcie_receiver *rx = &end->rx;
    uint32_t every = end->link->config.ack_every_tlps;
    *(struct pcie_arriving *)pcie_ring_push(&rx->arriving) = *arriving;
    if (rx->arriving.count == 1) { // otherwise the event is pending
        sim_event_schedule_at(end->sim, &rx->deliver_event, arriving->arrive_ps + end->config.rx_ps);
    }
    if (at_once || (every > 0 && arriving->sequence + 1 - rx->acknowledged >= every)) {
        pcie_update_by(end, PCIE_UPDATE_ACK, arriving->arrive_ps);
    } else if (rx->update_due_ps[PCIE_UPDATE_ACK] == SIM_NEVER_PS) {
        pcie_update_at(end, PCIE_UPDATE_ACK, arriving->arrive_ps + end->link->interval_ps);
    }
}

static void discard(pcie_end_t *end, struct pcie_arriving *arriving)
{
    end->counters[PCIE_COUNT_TLPS_DISCARDED]++;
    pcie_tlp_unref(arriving->tlp);
    arriving->tlp = NULL;
}

// Clause 3.5.3.1: a wrong LCRC or an unexpected sequence number requests a replay, once until the replay comes; a
// duplicate is acknowledged again.
static void sequence_check(pcie_end_t *end, struct pcie_arriving *arriving)
{
    struct pcie_receiver *rx = &end->rx;
    if (!arriving->corrupt && arriving->sequence == rx->expected) {
        if (rx->acknowledged == rx->expected) {
            rx->unacknowledged_since_ps = arriving->arrive_ps;
        }
        rx->expected++;
        rx->nak_outstanding = false;
        return;
    }
    if (!arriving->corrupt && arriving->sequence < rx->expected) {
        rx->ack_due = true;
    } else if (!rx->nak_outstanding) {
        rx->nak_outstanding = true;
        rx->nak_due = true;
    }
    discard(end, arriving);
}

void pcie_receiver_check(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    uint64_t now_ps = sim_now_ps(end->sim);
    while (rx->checked < rx->arriving.count) {
        struct pcie_arriving *next = pcie_ring_at(&rx->arriving, rx->checked);
        if (next->arrive_ps > now_ps) {
            return;
        }
        sequence_check(end, next);
        rx->checked++;
    }
}

static void deliver(pcie_end_t *end, pcie_tlp_t *tlp)
{
    struct pcie_receiver *rx = &end->rx;
    enum pcie_class class = pcie_tlp_class(tlp);
    rx->classes[class].received.headers++;
    rx->classes[class].received.data += pcie_tlp_data_credits(tlp);
    end->counters[PCIE_COUNT_TLPS_RECEIVED]++;
    pcie_credits_watch(end, class);
    pcie_trace_tlp(end, &tlp_received, tlp, sim_cause_now(end->sim), sim_cause_now(end->sim));
    if (end->ops == NULL) {
        sim_panic(end->name, "a TLP arrived and nobody is attached");
    }
    end->ops->receive(end->ctx, end, tlp);
}

static void deliver_event_run(void *ctx)
{
    pcie_end_t *end = ctx;
    struct pcie_receiver *rx = &end->rx;
    uint64_t now_ps = sim_now_ps(end->sim);
    pcie_receiver_check(end);
    if (pcie_dllps_waiting(end)) {
        pcie_transmitter_wake(end);
    }
    // receive() may take the link down, which shortens the queue.
    while (rx->arriving.count > 0) {
        const struct pcie_arriving *front = pcie_ring_front(&rx->arriving);
        uint64_t due_ps = front->arrive_ps + end->config.rx_ps;
        if (due_ps > now_ps) {
            sim_event_schedule_at(end->sim, &rx->deliver_event, due_ps);
            return;
        }
        pcie_tlp_t *tlp = front->tlp;
        sim_cause_arrive(end->sim, front->cause);
        pcie_ring_pop(&rx->arriving);
        rx->checked--;
        if (tlp != NULL) {
            deliver(end, tlp);
        }
    }
}

// --- ACK (clause 3.5.3.1) ------------------------------------------------------------------------------------------

// When the next ACK is due if so many TLPs have arrived unacknowledged. SIM_NEVER_PS: nothing to acknowledge.
static uint64_t ack_due_ps(const pcie_end_t *end, uint64_t unacknowledged)
{
    const struct pcie_receiver *rx = &end->rx;
    uint32_t every = end->link->config.ack_every_tlps;
    uint32_t unchecked = rx->arriving.count - rx->checked;
    uint64_t due_ps = SIM_NEVER_PS;
    if (unacknowledged > 0) {
        due_ps = rx->unacknowledged_since_ps + (every > 0 && unacknowledged >= every ? 0 : end->link->interval_ps);
    }
    if (unchecked > 0) {
        const struct pcie_arriving *next = pcie_ring_at(&rx->arriving, rx->checked);
        uint64_t next_ps = next->arrive_ps + (pcie_transmitter_is_prompt(end->peer) ? 0 : end->link->interval_ps);
        due_ps = next_ps < due_ps ? next_ps : due_ps;
    }
    if (every > unacknowledged && unchecked >= every - unacknowledged) {
        uint32_t index = rx->checked + (uint32_t)(every - unacknowledged) - 1;
        uint64_t full_ps = ((const struct pcie_arriving *)pcie_ring_at(&rx->arriving, index))->arrive_ps;
        due_ps = full_ps < due_ps ? full_ps : due_ps;
    }
    return due_ps;
}

void pcie_receiver_ack_mark(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    pcie_receiver_check(end);
    uint64_t due_ps = ack_due_ps(end, rx->expected - rx->acknowledged);
    if (due_ps <= sim_now_ps(end->sim)) {
        rx->ack_due = true;
        // This ACK covers what has arrived; the next ACK is about TLPs that are still in flight.
        due_ps = ack_due_ps(end, 0);
    }
    if (due_ps != SIM_NEVER_PS) {
        pcie_update_at(end, PCIE_UPDATE_ACK, due_ps);
    }
}

static void ack_event_run(void *ctx)
{
    pcie_end_t *end = ctx;
    pcie_update_begun(end, PCIE_UPDATE_ACK);
    pcie_receiver_ack_mark(end);
    pcie_end_settle(end);
    pcie_dllps_flush(end);
}
