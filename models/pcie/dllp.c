// Data link layer packets: ACK, NAK and UpdateFC, 8 bytes each on the wire (clause 3.4).
//
// They go before TLPs but do not preempt one. The content of a DLLP is decided when it is sent, so that a DLLP that
// waited for the wire covers everything that happened meanwhile. An arriving DLLP is processed lazily, when the
// transmitter next needs the acknowledged TLPs and granted credits; only a transmitter that waits for one gets an
// event. Their processing time is part of the intervals of clauses 2.6.1.2 and 3.5.3.1 (their "internal delay");
// nothing else is charged for it.
#include "models/pcie/link_internal.h"

enum { DLLP_BYTES = 8 };

bool pcie_dllps_waiting(const pcie_end_t *end)
{
    const struct pcie_receiver *rx = &end->rx;
    return rx->nak_due || rx->ack_due || rx->update_due[PCIE_POSTED] || rx->update_due[PCIE_NONPOSTED] ||
           rx->update_due[PCIE_COMPLETION];
}

static void acknowledge_fill(pcie_end_t *end, struct pcie_dllp *dllp)
{
    struct pcie_receiver *rx = &end->rx;
    if (rx->nak_due) {
        dllp->kind = PCIE_DLLP_NAK;
        end->counters[PCIE_COUNT_NAKS]++;
    } else {
        dllp->kind = PCIE_DLLP_ACK;
        end->counters[PCIE_COUNT_ACKS]++;
    }
    rx->nak_due = false;
    rx->ack_due = false;
    rx->acknowledged = rx->expected;
    dllp->expected = rx->expected;
}

static bool all_reported(const struct pcie_receiver *rx)
{
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        if (rx->classes[class].granted.headers != rx->classes[class].freed.headers ||
            rx->classes[class].granted.data != rx->classes[class].freed.data) {
            return false;
        }
    }
    return true;
}

static void update_fill(pcie_end_t *end, struct pcie_dllp *dllp)
{
    struct pcie_receiver *rx = &end->rx;
    enum pcie_class class = PCIE_POSTED;
    while (!rx->update_due[class]) {
        class ++;
    }
    rx->update_due[class] = false;
    pcie_credits_take(end);
    rx->classes[class].granted = rx->classes[class].freed;
    pcie_credits_granted(end, class);
    if (all_reported(rx)) {
        rx->unreported_since_ps = SIM_NEVER_PS;
    }
    dllp->kind = PCIE_DLLP_UPDATE_FC;
    dllp->class = class;
    dllp->headers = rx->classes[class].granted.headers;
    dllp->data = rx->classes[class].granted.data;
    end->counters[PCIE_COUNT_UPDATE_FCS]++;
}

// UpdateFCs are not hit: the next one has all that a lost one had.
static bool loss_due(pcie_end_t *end, enum pcie_dllp_kind kind)
{
    uint32_t every = end->link->config.lose_every_acks;
    if (every == 0 || kind == PCIE_DLLP_UPDATE_FC || --end->tx.until_lost > 0) {
        return false;
    }
    end->tx.until_lost = every;
    end->counters[kind == PCIE_DLLP_ACK ? PCIE_COUNT_ACKS_LOST : PCIE_COUNT_NAKS_LOST]++;
    return true;
}

void pcie_dllps_send_one(pcie_end_t *end)
{
    struct pcie_dllp dllp = {0};
    pcie_receiver_check(end);
    if (end->rx.nak_due || end->rx.ack_due) {
        acknowledge_fill(end, &dllp);
    } else {
        update_fill(end, &dllp);
    }
    uint64_t sent_ps = pcie_wire_send(&end->tx.wire, sim_now_ps(end->sim), DLLP_BYTES);
    struct pcie_receiver *peer = &end->peer->rx;
    dllp.arrive_ps = sent_ps + end->link->config.flight_ps;
    end->counters[PCIE_COUNT_DLLPS_SENT]++;
    end->counters[PCIE_COUNT_WIRE_BYTES] += DLLP_BYTES;
    if (loss_due(end, dllp.kind)) {
        return;
    }
    *(struct pcie_dllp *)pcie_ring_push(&peer->dllps) = dllp;
    if (dllp.kind == PCIE_DLLP_NAK || pcie_transmitter_waits(end->peer)) {
        pcie_update_by(end->peer, PCIE_UPDATE_DLLP, dllp.arrive_ps);
    }
}

void pcie_dllps_flush(pcie_end_t *end)
{
    while (pcie_dllps_waiting(end) && pcie_wire_free_ps(&end->tx.wire) <= sim_now_ps(end->sim)) {
        pcie_dllps_send_one(end);
    }
    // The DLLPs delay the TLPs whose event is pending; that event finds the wire busy and is scheduled again.
    if (pcie_dllps_waiting(end)) {
        pcie_transmitter_wake(end);
    }
}

static void dllp_process(pcie_end_t *end, const struct pcie_dllp *dllp)
{
    switch (dllp->kind) {
    case PCIE_DLLP_ACK:
        pcie_transmitter_acknowledge(end, dllp->expected, dllp->arrive_ps);
        break;
    case PCIE_DLLP_NAK:
        pcie_transmitter_acknowledge(end, dllp->expected, dllp->arrive_ps);
        pcie_transmitter_replay(end);
        break;
    case PCIE_DLLP_UPDATE_FC:
        end->tx.classes[dllp->class].limit.headers = dllp->headers;
        end->tx.classes[dllp->class].limit.data = dllp->data;
        break;
    }
}

void pcie_dllps_take(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    while (rx->dllps.count > 0) {
        struct pcie_dllp dllp = *(struct pcie_dllp *)pcie_ring_front(&rx->dllps);
        if (dllp.arrive_ps > sim_now_ps(end->sim)) {
            return;
        }
        pcie_ring_pop(&rx->dllps);
        end->tx.next = PCIE_CLASS_COUNT;
        dllp_process(end, &dllp);
    }
}

void pcie_dllps_await(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    bool waits = pcie_transmitter_waits(end);
    for (uint32_t i = 0; i < rx->dllps.count; i++) {
        const struct pcie_dllp *dllp = pcie_ring_at(&rx->dllps, i);
        if (waits || dllp->kind == PCIE_DLLP_NAK) {
            pcie_update_by(end, PCIE_UPDATE_DLLP, dllp->arrive_ps);
            return;
        }
    }
}

void pcie_dllps_arrive(void *ctx)
{
    pcie_end_t *end = ctx;
    pcie_update_begun(end, PCIE_UPDATE_DLLP);
    pcie_end_settle(end);
    pcie_dllps_await(end);
    pcie_dllps_flush(end);
    pcie_transmitter_wake(end);
}
