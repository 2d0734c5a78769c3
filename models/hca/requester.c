// The requester's half of a connection: acknowledges, responses, and completions in order (IBA 9.9.2).
#include "models/hca/internal.h"

static bool returns_data(const struct hca_request *request)
{
    return hca_opcode_has(request->opcode, HCA_HAS_RESPONSE);
}

// --- completions ---------------------------------------------------------------------------------------------------

void hca_requester_end(struct hca_qp *qp, enum hca_status status)
{
    struct hca_sq *sq = &qp->sq;
    const struct hca_request *request = hca_wqe_request(qp, sq->una);
    const struct hca_cqe cqe = {.qpn = qp->number,
                                .index = (uint16_t)sq->una,
                                .bytes = returns_data(request) ? request->bytes : 0,
                                .kind = HCA_CQE_SEND,
                                .opcode = request->opcode,
                                .status = (uint8_t)status,
                                .immediate = status != HCA_OK ? sq->fault : HCA_FAULT_NONE};
    sq->una++;
    sq->streamed -= request->streamed;
    if ((request->flags & HCA_WQE_SIGNALED) != 0 || status != HCA_OK) {
        hca_cq_push(qp->hca, qp->init.send_cqn, &cqe, false);
    }
    if (status == HCA_OK) {
        return;
    }
    // 10.3.1: a failed request stops a reliable connection; in the other services it stops only sending.
    if (hca_is_reliable(qp->init.type)) {
        hca_qp_fail(qp);
    } else {
        hca_qp_send_error(qp);
    }
}

static bool is_done(const struct hca_qp *qp, const struct hca_request *request)
{
    if (!hca_is_reliable(qp->init.type)) {
        return request->sent;
    }
    return ib_psn_distance((request->first_psn + request->packets) & IB_PSN_MASK, qp->sq.una_psn) >= 0;
}

void hca_requester_complete(struct hca_qp *qp)
{
    struct hca_sq *sq = &qp->sq;
    while (sq->una != sq->begun || sq->stopped) {
        const struct hca_request *request = hca_wqe_request(qp, sq->una);
        if (sq->stopped && sq->una == sq->failed) {
            hca_requester_end(qp, sq->failed_status);
            return;
        }
        if (sq->una == sq->begun || !is_done(qp, request)) {
            break;
        }
        sq->reads -= returns_data(request) && (int32_t)(sq->next - sq->una) > 0; // those sent since the last go-back
        hca_requester_end(qp, HCA_OK);
    }
    hca_flush_drained(qp);
}

void hca_request_fail(struct hca_qp *qp, uint32_t count, enum hca_status status, enum hca_fault fault)
{
    if (qp->sq.stopped && (int32_t)(count - qp->sq.failed) >= 0) {
        return; // an earlier request failed
    }
    qp->sq.stopped = true;
    qp->sq.failed = count;
    qp->sq.failed_status = status;
    qp->sq.fault = fault;
    hca_requester_complete(qp);
}

void hca_requester_sent(hca_t *hca, const ib_packet_t *packet)
{
    struct hca_qp *qp = packet->qp;
    (void)hca;
    hca_wqe_request(qp, packet->index)->sent = true;
    hca_requester_complete(qp);
}

// --- acknowledges --------------------------------------------------------------------------------------------------

// An acknowledge arrived after a go-back: the packets that it covers need not be sent again.
static void position_catch_up(struct hca_qp *qp)
{
    struct hca_sq *sq = &qp->sq;
    if (ib_psn_distance(sq->psn, sq->una_psn) <= 0) {
        return;
    }
    sq->psn = sq->una_psn;
    sq->next = sq->una;
    sq->packet =
        sq->una == sq->begun ? 0 : (uint32_t)ib_psn_distance(hca_wqe_request(qp, sq->una)->first_psn, sq->una_psn);
    if ((int32_t)(sq->fetched - sq->next) < 0) {
        sq->fetched = sq->next;
    }
}

void hca_requester_progress(struct hca_qp *qp, uint32_t psn)
{
    qp->sq.una_psn = psn & IB_PSN_MASK;
    hca_retry_progress(qp);
    hca_requester_complete(qp);
    position_catch_up(qp);
}

// Marks everything before psn as acknowledged. false: a response before it is missing (9.7.5.1.6: an implied NAK).
static bool acknowledged_before(struct hca_qp *qp, uint32_t psn)
{
    struct hca_sq *sq = &qp->sq;
    while (sq->una_psn != psn) {
        if (sq->una == sq->begun) {
            return true;
        }
        const struct hca_request *request = hca_wqe_request(qp, sq->una);
        uint32_t end = (request->first_psn + request->packets) & IB_PSN_MASK;
        if (returns_data(request)) {
            return false;
        }
        hca_requester_progress(qp, ib_psn_distance(end, psn) >= 0 ? end : psn);
        if (qp->state == HCA_ERROR) {
            return true;
        }
    }
    return true;
}

static void response_lost(struct hca_qp *qp)
{
    if (!qp->sq.recovering) {
        hca_retry_from(qp, true);
        qp->sq.recovering = true;
    }
}

static void nak_handle(struct hca_qp *qp, const ib_packet_t *packet)
{
    static const enum hca_status STATUSES[] = {[IB_NAK_INVALID_REQUEST] = HCA_REMOTE_INVALID_REQUEST,
                                               [IB_NAK_REMOTE_ACCESS] = HCA_REMOTE_ACCESS,
                                               [IB_NAK_REMOTE_OPERATION] = HCA_REMOTE_OPERATION};
    unsigned code = packet->syndrome & 0x1f;
    if (code == IB_NAK_SEQUENCE) {
        hca_retry_from(qp, true);
    } else if (qp->sq.una != qp->sq.begun) {
        qp->sq.fault = packet->fault < HCA_FAULTS ? (enum hca_fault)packet->fault : HCA_FAULT_NONE;
        hca_requester_end(qp, code <= IB_NAK_REMOTE_OPERATION ? STATUSES[code] : HCA_BAD_RESPONSE);
    }
}

static void acknowledge_handle(struct hca_qp *qp, const ib_packet_t *packet)
{
    unsigned kind = packet->syndrome & IB_SYNDROME_KIND;
    bool positive = kind == 0;
    if (!acknowledged_before(qp, (packet->psn + positive) & IB_PSN_MASK)) {
        response_lost(qp);
    } else if (qp->state == HCA_ERROR) {
        return;
    } else if (kind == IB_SYNDROME_RNR) {
        hca_retry_rnr(qp, packet->syndrome & 0x1f);
    } else if (kind == IB_SYNDROME_NAK) {
        nak_handle(qp, packet);
    }
}

// --- responses with data ---------------------------------------------------------------------------------------------

static bool data_store(struct hca_qp *qp, const struct hca_request *request, uint32_t at, const uint8_t *data,
                       uint32_t bytes)
{
    struct hca_piece pieces[HCA_PIECES_MAX];
    unsigned count = 0;
    if (!hca_segments_pieces(qp->hca, qp->init.pdn, HCA_LOCAL_WRITE, hca_wqe_segments(qp, qp->sq.una),
                             request->segments, at, bytes, pieces, &count, HCA_PIECES_MAX)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        hca_dma_write(qp->hca, pieces[i].bus, data, pieces[i].bytes);
        data += pieces[i].bytes;
    }
    return true;
}

static void response_handle(struct hca_qp *qp, const ib_packet_t *packet)
{
    struct hca_sq *sq = &qp->sq;
    if (!acknowledged_before(qp, packet->psn)) {
        response_lost(qp);
        return;
    }
    if (qp->state == HCA_ERROR || sq->una == sq->begun) {
        return;
    }
    const struct hca_request *request = hca_wqe_request(qp, sq->una);
    bool atomic = packet->opcode == IB_ATOMIC_ACKNOWLEDGE;
    uint32_t at = (uint32_t)ib_psn_distance(request->first_psn, packet->psn) * qp->attr.path_mtu_bytes;
    uint32_t left = request->bytes - at;
    uint32_t expected = left < qp->attr.path_mtu_bytes ? left : qp->attr.path_mtu_bytes;
    if (atomic != hca_opcode_has(request->opcode, HCA_HAS_ATOMIC) || !returns_data(request) ||
        (!atomic && packet->bytes != expected)) {
        sq->fault = HCA_FAULT_PACKET;
        hca_requester_end(qp, HCA_BAD_RESPONSE);
        return;
    }
    bool stored = atomic ? data_store(qp, request, 0, (const uint8_t *)&packet->original, sizeof packet->original)
                         : data_store(qp, request, at, packet->data, packet->bytes);
    if (!stored) {
        sq->fault =
            hca_segments_fault(qp->hca, qp->init.pdn, HCA_LOCAL_WRITE, hca_wqe_segments(qp, sq->una), request->segments,
                               atomic ? 0 : at, atomic ? (uint32_t)sizeof packet->original : packet->bytes);
        hca_requester_end(qp, HCA_LOCAL_PROTECTION);
        return;
    }
    hca_requester_progress(qp, packet->psn + 1);
}

void hca_requester_response(struct hca_qp *qp, ib_packet_t *packet)
{
    struct hca_sq *sq = &qp->sq;
    bool known = ib_psn_distance(sq->una_psn, packet->psn) >= 0 && ib_psn_distance(packet->psn, sq->max_psn) > 0;
    if (!known || (qp->state != HCA_RTS && qp->state != HCA_SQD)) {
        qp->hca->counters[HCA_PACKETS_DISCARDED]++; // late, or from before a reset (9.7.5.1.2: ghosts)
        return;
    }
    if (packet->opcode == IB_ACKNOWLEDGE) {
        acknowledge_handle(qp, packet);
    } else {
        response_handle(qp, packet);
    }
    hca_sender_kick(qp);
}
