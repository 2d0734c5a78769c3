// The receiving half of a link's end: the data link layer's checks, delivery, ACK timing, and the return of credits.
//
// The data link layer looks at TLPs lazily, whenever something depends on it, but judges each by its instant of
// arrival; so it needs no event of its own for a TLP that is in order.
#include "models/pcie/link_internal.h"

static const struct sim_trace_point tlp_received = {"tlp_received", PCIE_TRACE_FIELDS,
                                                    "the owner of the receiving end gets a TLP"};

enum { UNREPORTED_DIVISOR = 4 }; // a quarter of the buffer is reported at once (docs/component-facts.md)
enum { DATA_CREDIT_BYTES = 16 };

static void deliver_event_run(void *ctx);
static void ack_event_run(void *ctx);
static void update_event_run(void *ctx);

void pcie_receiver_init(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    pcie_ring_init(&rx->arriving, sizeof(struct pcie_arriving));
    pcie_ring_init(&rx->dllps, sizeof(struct pcie_dllp));
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        rx->granted[class].headers = end->config.headers[class];
        rx->granted[class].data = end->config.data[class];
        rx->freed[class] = rx->granted[class];
    }
    rx->unreported_since_ps = SIM_NEVER_PS;
    sim_event_init(&rx->deliver_event, deliver_event_run, end);
    sim_event_init(&rx->ack_event, ack_event_run, end);
    sim_event_init(&rx->update_event, update_event_run, end);
    sim_event_init(&rx->dllp_event, pcie_dllps_arrive, end);
}

void pcie_receiver_clear(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    while (rx->arriving.count > 0) {
        const struct pcie_arriving *front = pcie_ring_front(&rx->arriving);
        if (front->tlp != NULL) {
            pcie_tlp_unref(front->tlp);
        }
        pcie_ring_pop(&rx->arriving);
    }
    while (rx->dllps.count > 0) {
        pcie_ring_pop(&rx->dllps);
    }
    rx->checked = 0;
    sim_event_cancel(end->sim, &rx->deliver_event);
    sim_event_cancel(end->sim, &rx->ack_event);
    sim_event_cancel(end->sim, &rx->update_event);
    sim_event_cancel(end->sim, &rx->dllp_event);
}

void pcie_receiver_fini(pcie_end_t *end)
{
    pcie_receiver_clear(end);
    pcie_ring_fini(&end->rx.arriving);
    pcie_ring_fini(&end->rx.dllps);
}

// --- arrival -------------------------------------------------------------------------------------------------------

void pcie_receiver_send_towards(pcie_end_t *end, const struct pcie_arriving *arriving, bool at_once)
{
    struct pcie_receiver *rx = &end->rx;
    uint32_t every = end->link->config.ack_every_tlps;
    *(struct pcie_arriving *)pcie_ring_push(&rx->arriving) = *arriving;
    if (!sim_event_pending(&rx->deliver_event)) {
        sim_event_schedule_at(end->sim, &rx->deliver_event, arriving->arrive_ps + end->config.rx_ps);
    }
    if (at_once || (every > 0 && arriving->sequence + 1 - rx->acknowledged >= every)) {
        pcie_event_by(end->sim, &rx->ack_event, arriving->arrive_ps);
    } else if (!sim_event_pending(&rx->ack_event)) {
        sim_event_schedule_at(end->sim, &rx->ack_event, arriving->arrive_ps + end->link->interval_ps);
    }
}

static void discard(pcie_end_t *end, struct pcie_arriving *arriving)
{
    end->counters[PCIE_COUNT_TLPS_DISCARDED]++;
    pcie_tlp_unref(arriving->tlp);
    arriving->tlp = NULL;
}

// Clause 3.5.3.1: a wrong LCRC or a sequence number that is not the next one asks for a replay, once until it comes; a
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
    rx->delivered++;
    rx->received[class].headers++;
    rx->received[class].data += pcie_tlp_data_credits(tlp);
    end->counters[PCIE_COUNT_TLPS_RECEIVED]++;
    pcie_trace_tlp(end, &tlp_received, tlp);
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
    pcie_dllps_flush(end);
    // receive() may take the link down, which empties the queue.
    while (rx->arriving.count > 0) {
        const struct pcie_arriving *front = pcie_ring_front(&rx->arriving);
        uint64_t due_ps = front->arrive_ps + end->config.rx_ps;
        if (due_ps > now_ps) {
            sim_event_schedule_at(end->sim, &rx->deliver_event, due_ps);
            return;
        }
        pcie_tlp_t *tlp = front->tlp;
        pcie_ring_pop(&rx->arriving);
        rx->checked--;
        if (tlp != NULL) {
            deliver(end, tlp);
        }
    }
}

// --- ACK (clause 3.5.3.1) ------------------------------------------------------------------------------------------

// When the next ACK is due, with so many TLPs arrived and not acknowledged. SIM_NEVER_PS: nothing to acknowledge.
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
        uint64_t next_ps = next->arrive_ps + (end->peer->tx.gap ? 0 : end->link->interval_ps);
        due_ps = next_ps < due_ps ? next_ps : due_ps;
    }
    if (every > unacknowledged && unchecked >= every - unacknowledged) {
        uint32_t index = rx->checked + (uint32_t)(every - unacknowledged) - 1;
        uint64_t full_ps = ((const struct pcie_arriving *)pcie_ring_at(&rx->arriving, index))->arrive_ps;
        due_ps = full_ps < due_ps ? full_ps : due_ps;
    }
    return due_ps;
}

static void ack_event_run(void *ctx)
{
    pcie_end_t *end = ctx;
    struct pcie_receiver *rx = &end->rx;
    pcie_receiver_check(end);
    uint64_t due_ps = ack_due_ps(end, rx->expected - rx->acknowledged);
    if (due_ps <= sim_now_ps(end->sim)) {
        rx->ack_due = true;
        // What has arrived is covered; the next ACK is about what is still on its way.
        due_ps = ack_due_ps(end, 0);
    }
    if (due_ps != SIM_NEVER_PS) {
        sim_event_schedule_at(end->sim, &rx->ack_event, due_ps);
    }
    pcie_dllps_flush(end);
}

// --- credits (clause 2.6.1.2) --------------------------------------------------------------------------------------

static bool update_urgent(const pcie_end_t *end, enum pcie_class class)
{
    const struct pcie_receiver *rx = &end->rx;
    const struct pcie_credits *granted = &rx->granted[class], *freed = &rx->freed[class];
    uint64_t headers = freed->headers - granted->headers, data = freed->data - granted->data;
    if (headers > 0 && (granted->headers == rx->received[class].headers ||
                        headers * UNREPORTED_DIVISOR >= end->config.headers[class])) {
        return true;
    }
    uint64_t left = granted->data - rx->received[class].data;
    return data > 0 && (left * DATA_CREDIT_BYTES < end->link->config.mps_bytes ||
                        data * UNREPORTED_DIVISOR >= end->config.data[class]);
}

void pcie_end_release(pcie_end_t *end, const pcie_tlp_t *tlp)
{
    struct pcie_receiver *rx = &end->rx;
    enum pcie_class class = pcie_tlp_class(tlp);
    if (!end->link->up) {
        return;
    }
    if (end->config.headers[class] != PCIE_CREDITS_INFINITE) {
        rx->freed[class].headers++;
    }
    if (end->config.data[class] != PCIE_CREDITS_INFINITE) {
        rx->freed[class].data += pcie_tlp_data_credits(tlp);
    }
    if (rx->freed[class].headers == rx->granted[class].headers && rx->freed[class].data == rx->granted[class].data) {
        return; // infinite
    }
    uint64_t now_ps = sim_now_ps(end->sim);
    if (rx->unreported_since_ps == SIM_NEVER_PS) {
        rx->unreported_since_ps = now_ps;
    }
    if (update_urgent(end, class)) {
        rx->update_due[class] = true;
        pcie_dllps_flush(end);
    } else if (!sim_event_pending(&rx->update_event)) {
        sim_event_schedule_at(end->sim, &rx->update_event, now_ps + end->link->interval_ps);
    }
}

static void update_event_run(void *ctx)
{
    pcie_end_t *end = ctx;
    struct pcie_receiver *rx = &end->rx;
    if (rx->unreported_since_ps == SIM_NEVER_PS) {
        return;
    }
    // Credits that were reported early moved the beginning of the interval.
    uint64_t due_ps = rx->unreported_since_ps + end->link->interval_ps;
    if (due_ps > sim_now_ps(end->sim)) {
        sim_event_schedule_at(end->sim, &rx->update_event, due_ps);
        return;
    }
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        rx->update_due[class] =
            rx->freed[class].headers != rx->granted[class].headers || rx->freed[class].data != rx->granted[class].data;
    }
    pcie_dllps_flush(end);
}
