// The responder's half of a queue pair: checks each request in the order of IBA 9.7.4 and 9.8, takes receive entries,
// and passes memory accesses on.
//
// A packet whose receive entry is still being read from host memory is parked, with the later packets of its queue
// pair; other queue pairs continue.
#include <string.h>

#include "models/hca/internal.h"

enum verdict { DONE, PARK };

void hca_responder_reset(struct hca_qp *qp)
{
    struct hca_slot *slots = qp->rsp.slots;
    uint32_t count = qp->hca->config.responder_reads;
    qp->rsp = (struct hca_rsp){.slots = slots, .slot_count = count == 0 ? 1 : count};
    memset(slots, 0, qp->rsp.slot_count * sizeof *slots);
}

static enum verdict discard(struct hca_qp *qp, ib_packet_t *packet)
{
    hca_receiver_discard(qp->hca, packet);
    return DONE;
}

static enum verdict refuse(struct hca_qp *qp, ib_packet_t *packet, enum ib_nak nak, enum hca_fault fault,
                           enum hca_event_type event)
{
    if (hca_is_reliable(qp->init.type)) {
        hca_responder_fatal(qp, nak, fault, event, qp->rsp.psn);
    } else {
        qp->rsp.drop_message = true;
        qp->hca->counters[HCA_PACKETS_DISCARDED]++;
    }
    return discard(qp, packet);
}

static enum verdict invalid(struct hca_qp *qp, ib_packet_t *packet, enum hca_fault fault)
{
    return refuse(qp, packet, IB_NAK_INVALID_REQUEST, fault, HCA_EVENT_QP_REQUEST_ERROR);
}

// --- shared receive queues of XRC ------------------------------------------------------------------------------------

// Binds the queue that the request names: it is of the target's domain, and stays until the message ends (annex A14).
static bool xrc_bind(struct hca_qp *qp, const ib_packet_t *packet)
{
    if (qp->init.type != HCA_XRC_TARGET || qp->rsp.has_receive || qp->rsp.waiting) {
        return true;
    }
    struct hca_rq *rq = hca_srq_find(qp->hca, packet->srqn);
    if (rq == NULL || rq->xrcdn != qp->init.xrcdn) {
        return false;
    }
    qp->rq = rq;
    return true;
}

uint32_t hca_remote_pdn(const struct hca_qp *qp)
{
    return qp->init.type == HCA_XRC_TARGET ? qp->rq->pdn : qp->init.pdn;
}

// --- receive entries -------------------------------------------------------------------------------------------------

// TAKEN: the entry is in rsp.receive.
static enum hca_take receive_take(struct hca_qp *qp)
{
    if (qp->rsp.has_receive) {
        return HCA_TAKEN;
    }
    enum hca_take take = hca_rq_take(qp->rq, qp, qp->rsp.fresh, &qp->rsp.receive);
    qp->rsp.has_receive = take == HCA_TAKEN;
    qp->rsp.received = 0;
    return take;
}

static enum verdict receive_missing(struct hca_qp *qp, ib_packet_t *packet, enum hca_take take)
{
    if (take == HCA_TAKE_WAIT) {
        return PARK;
    }
    if (take == HCA_TAKE_FAILED) {
        return refuse(qp, packet, IB_NAK_REMOTE_OPERATION, HCA_FAULT_MEMORY, HCA_EVENT_QP_FATAL);
    }
    qp->hca->counters[HCA_OUT_OF_BUFFER]++;
    if (hca_is_reliable(qp->init.type)) {
        sim_trace(qp->hca->sim, qp->hca->name, &hca_trace_rnr, (const uint64_t[]){qp->number, qp->rsp.psn});
        qp->rsp.nak_sent = true; // later packets are dropped silently until this packet comes again
        hca_responder_nak(qp, (uint8_t)(IB_SYNDROME_RNR | qp->attr.min_rnr_timer), qp->rsp.psn);
        return discard(qp, packet);
    }
    hca_lost_message(qp->hca, packet, qp, HCA_LOSS_NO_RECEIVE);
    qp->rsp.drop_message = true; // 9.8.3, 9.8.2: without an entry the message is dropped
    return discard(qp, packet);
}

static void receive_complete(struct hca_qp *qp, struct hca_order *order, const ib_packet_t *packet, bool write)
{
    bool immediate = (ib_packet_flags(packet) & IB_HAS_IMMEDIATE) != 0;
    bool xrc = qp->init.type == HCA_XRC_TARGET;
    order->completes = true;
    order->cqn = xrc ? qp->rq->cqn : qp->init.receive_cqn;
    order->solicited = packet->solicited;
    order->cqe = (struct hca_cqe){
        .qpn = qp->number,
        .index = qp->rsp.receive.cookie,
        .bytes = qp->rsp.received,
        .immediate = immediate ? packet->immediate : 0,
        .source_qpn = packet->source_qpn,
        .source_lid = packet->slid,
        .sl = packet->sl,
        .srqn = xrc ? qp->rq->number : HCA_NO_SRQ,
        .kind = write ? HCA_CQE_RECEIVE_WRITE_IMM : HCA_CQE_RECEIVE,
        .flags = (uint8_t)((immediate ? HCA_CQE_IMMEDIATE : 0) | (ib_packet_has_route(packet) ? HCA_CQE_GRH : 0))};
    qp->rsp.has_receive = false;
}

// The entry cannot take the message: it completes in error here, and the peer is notified.
static enum verdict receive_fail(struct hca_qp *qp, ib_packet_t *packet, enum hca_status status, enum hca_fault fault)
{
    struct hca_order *order = hca_order_take(qp->hca);
    order->kind = HCA_ORDER_WRITE;
    order->qp = qp;
    receive_complete(qp, order, packet, false);
    order->cqe.status = (uint8_t)status;
    order->cqe.bytes = 0;
    order->cqe.immediate = fault;
    order->cqe.flags &= (uint8_t)~HCA_CQE_IMMEDIATE;
    order->fails = !hca_is_reliable(qp->init.type); // RC: with its NAK
    if (hca_is_reliable(qp->init.type)) {
        bool length = status == HCA_LOCAL_LENGTH; // 9.7.5.2.4, 9.7.5.2.7
        hca_order_push(qp->hca, order);
        hca_responder_refuse(qp, length ? IB_NAK_INVALID_REQUEST : IB_NAK_REMOTE_OPERATION, fault, qp->rsp.psn);
    } else {
        hca_order_push(qp->hca, order);
    }
    return discard(qp, packet);
}

// --- sends and writes ------------------------------------------------------------------------------------------------

static bool length_valid(const struct hca_qp *qp, const ib_packet_t *packet)
{
    uint16_t flags = ib_packet_flags(packet);
    uint32_t mtu = qp->attr.path_mtu_bytes;
    if ((flags & IB_IS_LAST) == 0) {
        return packet->bytes == mtu;
    }
    return packet->bytes <= mtu && ((flags & IB_IS_FIRST) != 0 || packet->bytes > 0);
}

static bool fits_sequence(const struct hca_qp *qp, const ib_packet_t *packet)
{
    uint16_t flags = ib_packet_flags(packet);
    bool first = (flags & IB_IS_FIRST) != 0;
    return first != qp->rsp.in_message && (first || qp->rsp.write_message == ((flags & IB_IS_WRITE) != 0));
}

static void accept(struct hca_qp *qp, ib_packet_t *packet, struct hca_order *order)
{
    struct hca_rsp *rsp = &qp->rsp;
    uint16_t flags = ib_packet_flags(packet);
    bool last = (flags & IB_IS_LAST) != 0;
    rsp->in_message = !last;
    rsp->write_message = (flags & IB_IS_WRITE) != 0;
    order->psn = packet->psn;
    order->acknowledge = packet->ack_request && hca_is_reliable(qp->init.type);
    order->kind = HCA_ORDER_WRITE;
    order->qp = qp;
    order->packet = packet;
    rsp->psn = (packet->psn + 1) & IB_PSN_MASK;
    rsp->msn = (rsp->msn + last) & IB_PSN_MASK;
    hca_order_push(qp->hca, order);
}

static void order_give_back(hca_t *hca, struct hca_order *order)
{
    order->next = hca->order_free;
    hca->order_free = order;
}

static enum verdict send_handle(struct hca_qp *qp, ib_packet_t *packet)
{
    hca_t *hca = qp->hca;
    struct hca_rsp *rsp = &qp->rsp;
    enum hca_take take = receive_take(qp);
    if (take != HCA_TAKEN) {
        return receive_missing(qp, packet, take);
    }
    uint32_t prefix = qp->init.type == HCA_UD ? HCA_UD_PREFIX : 0;
    rsp->received = (ib_packet_flags(packet) & IB_IS_FIRST) != 0 ? prefix : rsp->received;
    if (rsp->received + (uint64_t)packet->bytes > hca_segments_bytes(rsp->receive.data, rsp->receive.segments)) {
        return receive_fail(qp, packet, HCA_LOCAL_LENGTH, HCA_FAULT_RECEIVE_LENGTH);
    }
    struct hca_order *order = hca_order_take(hca);
    uint32_t pdn = qp->rq->shared ? qp->rq->pdn : qp->init.pdn;
    uint32_t route = ib_packet_has_route(packet) ? prefix : 0;
    if (!hca_segments_pieces(hca, pdn, HCA_LOCAL_WRITE, rsp->receive.data, rsp->receive.segments, rsp->received - route,
                             packet->bytes + route, order->pieces, &order->piece_count, HCA_PIECES_MAX)) {
        order_give_back(hca, order);
        return receive_fail(qp, packet, HCA_LOCAL_PROTECTION,
                            hca_segments_fault(hca, pdn, HCA_LOCAL_WRITE, rsp->receive.data, rsp->receive.segments,
                                               rsp->received - route, packet->bytes + route));
    }
    rsp->received += packet->bytes;
    if ((ib_packet_flags(packet) & IB_IS_LAST) != 0) {
        receive_complete(qp, order, packet, false);
    }
    accept(qp, packet, order);
    return DONE;
}

static const struct hca_mr *remote_check(const struct hca_qp *qp, const ib_packet_t *packet, uint32_t access,
                                         uint64_t bytes)
{
    return hca_mr_check(qp->hca, packet->rkey, hca_remote_pdn(qp), access, packet->address, bytes);
}

static enum hca_fault remote_fault(const struct hca_qp *qp, const ib_packet_t *packet, uint32_t access, uint64_t bytes)
{
    return hca_mr_fault(qp->hca, packet->rkey, hca_remote_pdn(qp), access, packet->address, bytes);
}

static enum verdict write_handle(struct hca_qp *qp, ib_packet_t *packet)
{
    hca_t *hca = qp->hca;
    struct hca_rsp *rsp = &qp->rsp;
    uint16_t flags = ib_packet_flags(packet);
    bool first = (flags & IB_IS_FIRST) != 0, last = (flags & IB_IS_LAST) != 0;
    uint64_t address = first ? packet->address : rsp->address;
    uint32_t left = first ? packet->dma_bytes : rsp->left, rkey = first ? packet->rkey : rsp->rkey;
    if (packet->bytes > left || (last && packet->bytes != left) || (!last && packet->bytes == left)) {
        return invalid(qp, packet, HCA_FAULT_PACKET);
    }
    // 9.7.4.1.5: the key of a write of no bytes is not checked.
    if (first && left > 0 && remote_check(qp, packet, HCA_REMOTE_WRITE, left) == NULL) {
        return refuse(qp, packet, IB_NAK_REMOTE_ACCESS, remote_fault(qp, packet, HCA_REMOTE_WRITE, left),
                      HCA_EVENT_QP_ACCESS_ERROR);
    }
    const struct hca_mr *mr =
        packet->bytes == 0 ? NULL : hca_mr_check(hca, rkey, hca_remote_pdn(qp), HCA_REMOTE_WRITE, address, packet->bytes);
    if (packet->bytes > 0 && mr == NULL) { // deregistered in the middle of the message
        return refuse(qp, packet, IB_NAK_REMOTE_ACCESS, HCA_FAULT_KEY, HCA_EVENT_QP_ACCESS_ERROR);
    }
    if ((flags & IB_HAS_IMMEDIATE) != 0) {
        enum hca_take take = receive_take(qp);
        if (take != HCA_TAKEN) {
            return receive_missing(qp, packet, take);
        }
    }
    struct hca_order *order = hca_order_take(hca);
    if (mr != NULL) {
        order->piece_count = hca_mr_pieces(mr, address, packet->bytes, order->pieces, 0, HCA_PIECES_MAX);
    }
    rsp->message_bytes = (first ? 0 : rsp->message_bytes) + packet->bytes;
    if ((flags & IB_HAS_IMMEDIATE) != 0) {
        rsp->received = rsp->message_bytes;
        receive_complete(qp, order, packet, true);
    }
    rsp->address = address + packet->bytes;
    rsp->left = left - packet->bytes;
    rsp->rkey = rkey;
    accept(qp, packet, order);
    return DONE;
}

// --- reads and atomics ----------------------------------------------------------------------------------------------

static struct hca_slot *slot_take(struct hca_qp *qp)
{
    struct hca_rsp *rsp = &qp->rsp;
    uint32_t unanswered = 0;
    for (uint32_t count = rsp->slot_send; count != rsp->slot_next; count++) {
        unanswered += rsp->slots[count % rsp->slot_count].state != HCA_SLOT_SENT;
    }
    return unanswered < qp->attr.max_dest_rd_atomic ? &rsp->slots[rsp->slot_next % rsp->slot_count] : NULL;
}

static void slot_fill(struct hca_qp *qp, struct hca_slot *slot, const ib_packet_t *packet, uint32_t packets)
{
    struct hca_rsp *rsp = &qp->rsp;
    rsp->psn = (rsp->psn + packets) & IB_PSN_MASK;
    rsp->msn = (rsp->msn + 1) & IB_PSN_MASK;
    *slot = (struct hca_slot){.psn = packet->psn,
                              .packets = packets,
                              .pdn = hca_remote_pdn(qp),
                              .rkey = packet->rkey,
                              .bytes = packet->dma_bytes,
                              .msn = rsp->msn,
                              .address = packet->address,
                              .order_mark = rsp->order_issued};
    rsp->slot_next++;
}

static enum verdict read_handle(struct hca_qp *qp, ib_packet_t *packet)
{
    uint32_t mtu = qp->attr.path_mtu_bytes;
    struct hca_slot *slot = slot_take(qp);
    if (slot == NULL) {
        return invalid(qp, packet, HCA_FAULT_READS); // 9.7.4.1.6: more than it may have outstanding
    }
    if (packet->dma_bytes > 0 && remote_check(qp, packet, HCA_REMOTE_READ, packet->dma_bytes) == NULL) {
        return refuse(qp, packet, IB_NAK_REMOTE_ACCESS, remote_fault(qp, packet, HCA_REMOTE_READ, packet->dma_bytes),
                      HCA_EVENT_QP_ACCESS_ERROR);
    }
    slot_fill(qp, slot, packet, packet->dma_bytes == 0 ? 1 : (packet->dma_bytes + mtu - 1) / mtu);
    slot->state = HCA_SLOT_READY;
    // Table 76 (10.8.3.3): writes and atomics after a read may be executed before it.
    slot->due_ps = sim_now_ps(qp->hca->sim) + hca_late_ps(qp->hca, ADVERSARY_READ);
    hca_reader_kick(qp);
    return discard(qp, packet);
}

static enum verdict atomic_handle(struct hca_qp *qp, ib_packet_t *packet)
{
    hca_t *hca = qp->hca;
    struct hca_slot *slot = slot_take(qp);
    if (slot == NULL || packet->address % sizeof(uint64_t) != 0) { // 9.4.5: must be a multiple of 8
        return invalid(qp, packet, slot == NULL ? HCA_FAULT_READS : HCA_FAULT_ALIGNMENT);
    }
    const struct hca_mr *mr = remote_check(qp, packet, HCA_REMOTE_ATOMIC, sizeof(uint64_t));
    if (mr == NULL) {
        return refuse(qp, packet, IB_NAK_REMOTE_ACCESS, remote_fault(qp, packet, HCA_REMOTE_ATOMIC, sizeof(uint64_t)),
                      HCA_EVENT_QP_ACCESS_ERROR);
    }
    struct hca_order *order = hca_order_take(hca);
    order->kind = HCA_ORDER_ATOMIC;
    order->qp = qp;
    order->opcode = packet->opcode;
    order->swap_add = packet->swap_add;
    order->compare = packet->compare;
    order->piece_count = hca_mr_pieces(mr, packet->address, sizeof(uint64_t), order->pieces, 0, HCA_PIECES_MAX);
    order->slot = qp->rsp.slot_next;
    slot_fill(qp, slot, packet, 1);
    slot->atomic = true;
    slot->state = HCA_SLOT_EXECUTING;
    hca_order_push(hca, order);
    return discard(qp, packet);
}

// --- sequence ------------------------------------------------------------------------------------------------------

// 9.7.4.1.2: an operation that the queue pair does not allow is an unsupported opcode.
static bool allowed(const struct hca_qp *qp, const ib_packet_t *packet)
{
    uint16_t flags = ib_packet_flags(packet);
    if ((flags & IB_IS_SEND) != 0) {
        return true;
    }
    uint32_t other = packet->opcode == IB_READ_REQUEST ? HCA_REMOTE_READ : HCA_REMOTE_ATOMIC;
    return (qp->attr.access & ((flags & IB_IS_WRITE) != 0 ? (uint32_t)HCA_REMOTE_WRITE : other)) != 0;
}

static enum verdict connected_handle(struct hca_qp *qp, ib_packet_t *packet)
{
    uint16_t flags = ib_packet_flags(packet);
    bool begins = (flags & IB_IS_FIRST) != 0;
    if (!fits_sequence(qp, packet)) {
        return invalid(qp, packet, HCA_FAULT_PACKET);
    }
    if (!allowed(qp, packet)) {
        return invalid(qp, packet, HCA_FAULT_QP_RIGHTS);
    }
    if (begins && !xrc_bind(qp, packet)) {
        return invalid(qp, packet, HCA_FAULT_SHARED_QUEUE);
    }
    if ((flags & IB_HAS_PAYLOAD) != 0 && !length_valid(qp, packet)) {
        return invalid(qp, packet, HCA_FAULT_PACKET);
    }
    if ((flags & IB_IS_SEND) != 0) {
        return send_handle(qp, packet);
    }
    if ((flags & IB_IS_WRITE) != 0) {
        return write_handle(qp, packet);
    }
    switch (packet->opcode) {
    case IB_READ_REQUEST:
        return read_handle(qp, packet);
    case IB_COMPARE_SWAP:
    case IB_FETCH_ADD:
        return atomic_handle(qp, packet);
    default:
        return invalid(qp, packet, HCA_FAULT_REQUEST);
    }
}

static enum verdict reliable_handle(struct hca_qp *qp, ib_packet_t *packet)
{
    struct hca_rsp *rsp = &qp->rsp;
    int32_t ahead = ib_psn_distance(rsp->psn, packet->psn);
    if (rsp->dead) {
        return discard(qp, packet);
    }
    if (ahead < 0) {
        hca_responder_duplicate(qp, packet);
        return discard(qp, packet);
    }
    if (ahead > 0) {
        qp->hca->counters[HCA_OUT_OF_SEQUENCE]++;
        if (!rsp->nak_sent) { // 9.7.5.1.1: once
            rsp->nak_sent = true;
            hca_responder_nak(qp, IB_SYNDROME_NAK | IB_NAK_SEQUENCE, rsp->psn);
        }
        return discard(qp, packet);
    }
    rsp->nak_sent = false;
    rsp->damage_next = rsp->damage_next || packet->damage_answer;
    return connected_handle(qp, packet);
}

// 9.8.2.2: a gap drops the message in which it occurs; the next message is accepted.
static enum verdict unreliable_handle(struct hca_qp *qp, ib_packet_t *packet)
{
    struct hca_rsp *rsp = &qp->rsp;
    bool first = (ib_packet_flags(packet) & IB_IS_FIRST) != 0;
    if (packet->psn != rsp->psn && !first) {
        qp->hca->counters[HCA_OUT_OF_SEQUENCE]++;
        rsp->drop_message = true;
    }
    if (first) {
        rsp->drop_message = false;
        rsp->in_message = false;
    }
    rsp->psn = (packet->psn + 1) & IB_PSN_MASK;
    if (rsp->drop_message) {
        rsp->in_message = false;
        qp->hca->counters[HCA_PACKETS_DISCARDED]++;
        return discard(qp, packet);
    }
    return connected_handle(qp, packet);
}

static enum verdict datagram_handle(struct hca_qp *qp, ib_packet_t *packet)
{
    bool arrived = !packet->global || hca_route_is_here(qp->hca, packet);                           // 9.6.1.2
    if (!arrived || packet->qkey != qp->attr.qkey || (ib_packet_flags(packet) & IB_IS_SEND) == 0) { // 9.8.3.1
        hca_lost_message(qp->hca, packet, qp,
                         !arrived                        ? HCA_LOSS_ADDRESS
                         : packet->qkey != qp->attr.qkey ? HCA_LOSS_QKEY
                                                         : HCA_LOSS_NO_QP);
        return discard(qp, packet);
    }
    return send_handle(qp, packet);
}

static enum verdict handle(struct hca_qp *qp, ib_packet_t *packet)
{
    if (qp->state == HCA_RTR && !qp->rsp.established && qp->init.type != HCA_UD) {
        qp->rsp.established = true;
        hca_event_raise(qp->hca, qp->init.eqn, HCA_EVENT_COMMUNICATION_ESTABLISHED, qp->number);
    }
    switch (qp->init.type) {
    case HCA_RC:
    case HCA_XRC_TARGET:
        return reliable_handle(qp, packet);
    case HCA_UC:
        return unreliable_handle(qp, packet);
    case HCA_UD:
        return datagram_handle(qp, packet);
    case HCA_XRC_INITIATOR:
    case HCA_QP_TYPES:
        break;
    }
    return discard(qp, packet);
}

void hca_responder_request(struct hca_qp *qp, ib_packet_t *packet)
{
    hca_stream_beside(qp, packet);
    if (qp->rsp.parked.count > 0 || hca_adversity_holds(qp) || handle(qp, packet) == PARK) {
        ib_queue_push(&qp->rsp.parked, packet);
    }
}

void hca_responder_resume(struct hca_qp *qp, bool fresh)
{
    struct hca_rsp *rsp = &qp->rsp;
    if (qp->state == HCA_ERROR) {
        hca_flush_receives_resume(qp, fresh);
        return;
    }
    rsp->fresh = fresh;
    while (rsp->parked.count > 0) {
        ib_packet_t *packet = ib_queue_pop(&rsp->parked);
        if (handle(qp, packet) == PARK) {
            ib_queue_push_front(&rsp->parked, packet);
            break;
        }
        rsp->fresh = false;
    }
    rsp->fresh = false;
}
