// Acknowledges of the responder (IBA 9.7.5): one pending for each queue pair, positive or negative. A later positive
// one replaces an earlier one (coalescing); a negative one stays. No acknowledge leaves before the responses of earlier
// reads and atomics. Duplicate requests are answered again.
#include <stddef.h>

#include "models/hca/internal.h"

static bool is_negative(const struct hca_rsp *rsp)
{
    return rsp->ack_pending && rsp->ack_syndrome >= IB_SYNDROME_RNR;
}

bool hca_responder_ack_may_leave(const struct hca_qp *qp)
{
    const struct hca_rsp *rsp = &qp->rsp;
    if (rsp->slot_send != rsp->slot_next || rsp->responses_queued > 0) {
        return false;
    }
    // A negative one acknowledges everything before it.
    return rsp->ack_syndrome < IB_SYNDROME_RNR || rsp->order_done == rsp->order_issued;
}

void hca_responder_ack_list(struct hca_qp *qp)
{
    struct hca_rsp *rsp = &qp->rsp;
    if (!rsp->ack_pending || rsp->ack_listed || !hca_responder_ack_may_leave(qp)) {
        return;
    }
    rsp->ack_listed = true;
    rsp->ack_due_ps = sim_now_ps(qp->hca->sim) + qp->hca->config.port_tx_ps;
    // 9.7.5.1.2: one acknowledge may cover many requests, so it may wait for more.
    rsp->ack_due_ps += hca_late_ps(qp->hca, ADVERSARY_ACKNOWLEDGE);
    hca_qp_list_push(&qp->hca->ackers, qp, offsetof(struct hca_qp, next_ack));
    hca_port_pump(qp->hca);
}

void hca_responder_acknowledge(struct hca_qp *qp, uint32_t psn)
{
    struct hca_rsp *rsp = &qp->rsp;
    if (is_negative(rsp)) {
        return;
    }
    rsp->ack_pending = true;
    rsp->ack_syndrome = IB_SYNDROME_ACK;
    rsp->ack_psn = psn;
    hca_responder_ack_list(qp);
}

void hca_responder_nak(struct hca_qp *qp, uint8_t syndrome, uint32_t psn)
{
    struct hca_rsp *rsp = &qp->rsp;
    if (is_negative(rsp)) {
        return;
    }
    rsp->ack_pending = true;
    rsp->ack_syndrome = syndrome;
    rsp->ack_psn = psn;
    hca_responder_ack_list(qp);
}

// 9.7.5.1.2: reads and atomics before it are answered first.
void hca_responder_refuse(struct hca_qp *qp, enum ib_nak nak, enum hca_fault fault, uint32_t psn)
{
    struct hca_rsp *rsp = &qp->rsp;
    if (rsp->dead || qp->state == HCA_ERROR) {
        return;
    }
    rsp->dead = true;
    rsp->ack_pending = false;
    rsp->ack_fault = (uint8_t)fault;
    hca_responder_nak(qp, (uint8_t)(IB_SYNDROME_NAK | nak), psn);
}

void hca_responder_fatal(struct hca_qp *qp, enum ib_nak nak, enum hca_fault fault, enum hca_event_type event,
                         uint32_t psn)
{
    if (!qp->rsp.dead && qp->state != HCA_ERROR) {
        hca_event_raise(qp->hca, qp->init.eqn, event, qp->number);
    }
    hca_responder_refuse(qp, nak, fault, psn);
}

void hca_responder_break(struct hca_qp *qp, enum ib_nak nak, enum hca_fault fault, enum hca_event_type event,
                         uint32_t psn)
{
    struct hca_rsp *rsp = &qp->rsp;
    if (qp->state == HCA_ERROR || (rsp->dead && ib_psn_distance(psn, rsp->ack_psn) <= 0)) {
        return;
    }
    hca_stream_drop(&rsp->stream);
    rsp->dead = false; // a later request that was refused is not reported
    rsp->slot_send = rsp->slot_next;
    hca_responder_fatal(qp, nak, fault, event, psn);
}

ib_packet_t *hca_responder_ack_make(const struct hca_qp *qp)
{
    const struct hca_rsp *rsp = &qp->rsp;
    ib_packet_t *packet = ib_packet_take(qp->hca->packets);
    hca_packet_address(qp, packet, IB_ACKNOWLEDGE);
    packet->syndrome = rsp->ack_syndrome;
    packet->fault = is_negative(rsp) ? rsp->ack_fault : HCA_FAULT_NONE;
    packet->psn = rsp->ack_psn & IB_PSN_MASK;
    packet->msn = rsp->msn;
    return packet;
}

// An adversary may have delayed it. The program that ends the queue pair now has seen the data that it acknowledges,
// and a real adapter would have sent it by then: the peer must not retry for ever.
void hca_responder_ack_last(struct hca_qp *qp)
{
    hca_t *hca = qp->hca;
    struct hca_rsp *rsp = &qp->rsp;
    if (hca->config.adversary == NULL || !rsp->ack_pending || is_negative(rsp) || !hca_responder_ack_may_leave(qp)) {
        return;
    }
    ib_packet_t *packet = hca_responder_ack_make(qp);
    packet->qp = qp;
    packet->generation = qp->generation;
    packet->due_ps = sim_now_ps(hca->sim);
    packet->cause = sim_cause_now(hca->sim);
    rsp->ack_pending = false;
    rsp->responses_queued++;
    ib_queue_push(&hca->responses, packet);
    hca->counters[HCA_ACKS_SENT]++;
    sim_event_schedule(hca->sim, &hca->port_event, 0); // the caller may be in the middle of a packet
}

void hca_responder_ack_left(struct hca_qp *qp)
{
    hca_t *hca = qp->hca;
    struct hca_rsp *rsp = &qp->rsp;
    hca->counters[HCA_ACKS_SENT] += !is_negative(rsp);
    hca->counters[HCA_NAKS_SENT] += is_negative(rsp) && rsp->ack_syndrome >= IB_SYNDROME_NAK;
    hca->counters[HCA_RNR_NAKS_SENT] += is_negative(rsp) && rsp->ack_syndrome < IB_SYNDROME_NAK;
    (void)hca_qp_list_pop(&hca->ackers, offsetof(struct hca_qp, next_ack));
    rsp->ack_listed = false;
    rsp->ack_pending = false;
    if (rsp->dead) {
        hca_qp_fail(qp); // the peer is notified; 9.9.3: the responder's queue pair goes to the error state
    }
}

void hca_responder_duplicate(struct hca_qp *qp, const ib_packet_t *packet)
{
    struct hca_rsp *rsp = &qp->rsp;
    qp->hca->counters[HCA_DUPLICATES]++;
    if ((ib_packet_flags(packet) & IB_HAS_PAYLOAD) != 0) {
        if (rsp->order_done == rsp->order_issued) {
            hca_responder_acknowledge(qp, (rsp->psn - 1) & IB_PSN_MASK);
        }
        return;
    }
    uint32_t kept = rsp->slot_next < rsp->slot_count ? rsp->slot_next : rsp->slot_count;
    for (uint32_t count = rsp->slot_next - kept; count != rsp->slot_next; count++) {
        struct hca_slot *slot = &rsp->slots[count % rsp->slot_count];
        int32_t at = ib_psn_distance(slot->psn, packet->psn);
        bool same = slot->atomic == (packet->opcode != IB_READ_REQUEST);
        if (!same || at < 0 || at >= (int32_t)slot->packets || slot->state == HCA_SLOT_EXECUTING) {
            continue;
        }
        hca_stream_drop(&rsp->stream);
        slot->again = true;
        if (slot->sent_packets > (uint32_t)at) {
            slot->sent_packets = (uint32_t)at;
            slot->state = HCA_SLOT_READY;
        }
        rsp->slot_send = (int32_t)(rsp->slot_send - count) > 0 ? count : rsp->slot_send;
        hca_reader_kick(qp);
        return;
    }
}
