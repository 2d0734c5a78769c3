// Requests: how each is sent, one step at a time, and in which order they complete.
#include <errno.h>
#include <string.h>

#include "verbs-shim/tca-verbs/internal.h"

// --- properties of opcodes ------------------------------------------------------------------------------------------

static const struct property {
    enum tcav_kind kind, ask;
    uint32_t direct_bytes; // from this size on the board may move the data itself
} properties[] = {
    [IBV_WR_SEND] = {TCAV_SEND, TCAV_ASK_SEND, TCAV_SEND_DIRECT_BYTES},
    [IBV_WR_SEND_WITH_IMM] = {TCAV_SEND, TCAV_ASK_SEND, TCAV_SEND_DIRECT_BYTES},
    [IBV_WR_RDMA_WRITE] = {TCAV_WRITE, TCAV_ASK_WRITE, TCAV_WRITE_DIRECT_BYTES},
    [IBV_WR_RDMA_WRITE_WITH_IMM] = {TCAV_WRITE, TCAV_ASK_WRITE, TCAV_WRITE_DIRECT_BYTES},
    [IBV_WR_RDMA_READ] = {TCAV_READ, TCAV_READ, TCAV_READ_DIRECT_BYTES},
    [IBV_WR_ATOMIC_CMP_AND_SWP] = {TCAV_SWAP, TCAV_SWAP, 0},
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = {TCAV_ADD, TCAV_ADD, 0},
};

bool tcav_send_is_read(const struct tcav_request *request)
{
    return ibverbs_opcode_has(request->opcode, HCA_HAS_RESPONSE);
}

enum ibv_wc_opcode tcav_send_opcode(const struct tcav_request *request)
{
    return ibverbs_opcode(request->opcode)->completion;
}

struct tcav_header tcav_send_header(const struct tcav_qp *qp, const struct tcav_request *request, enum tcav_kind kind)
{
    bool immediate = ibverbs_opcode_has(request->opcode, HCA_HAS_IMMEDIATE);
    return (struct tcav_header){
        .qp = qp->remote_number,
        .kind = (uint8_t)kind,
        .flags = (uint8_t)((immediate ? TCAV_IMMEDIATE : 0) |
                           ((request->flags & IBV_SEND_SOLICITED) != 0 ? TCAV_SOLICITED : 0)),
        .message = request->message,
        .offset = request->offset,
        .length = request->length,
        .immediate = request->immediate,
        .source_qp = qp->number,
        .key = request->key,
        .address = request->remote,
    };
}

// --- one step -------------------------------------------------------------------------------------------------------

static void sent(struct tcav_qp *qp, struct tcav_request *request)
{
    request->state = TCAV_REQUEST_SENT;
    qp->sent++;
}

static enum ibv_wc_status request_check(const struct tcav_qp *qp, const struct tcav_request *request)
{
    bool read = tcav_send_is_read(request);
    if (request->length > TCAV_MESSAGE_BYTES_MAX) {
        return IBV_WC_LOC_LEN_ERR;
    }
    if (read && qp->reads_max == 0) {
        return IBV_WC_LOC_QP_OP_ERR;
    }
    bool atomic = ibverbs_opcode_has(request->opcode, HCA_HAS_ATOMIC);
    if (atomic && request->length != 8) {
        return IBV_WC_LOC_LEN_ERR;
    }
    bool allowed =
        tcav_list_check(qp->pd, request->sge, request->sges, read ? (unsigned)IBV_ACCESS_LOCAL_WRITE : 0) == 0;
    return allowed ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

// A request that cannot be sent fails after the earlier ones have ended.
static bool refuse(struct tcav_qp *qp, struct tcav_request *request, enum ibv_wc_status status)
{
    if (qp->sent == 0) {
        tcav_qp_fail_request(qp, request, status, HCA_FAULT_NONE);
    }
    return false;
}

static bool ask(struct tcav_qp *qp, struct tcav_request *request)
{
    if (tcav_ring_small_room(qp->peer) == 0) {
        return false;
    }
    tcav_ring_send_small(qp->peer, tcav_send_header(qp, request, properties[request->opcode].ask), NULL);
    request->state = TCAV_REQUEST_ASKED;
    return true;
}

static bool read_send(struct tcav_qp *qp, struct tcav_request *request)
{
    if (tcav_ring_small_room(qp->peer) == 0) {
        return false;
    }
    struct tcav_header header = tcav_send_header(qp, request, properties[request->opcode].kind);
    struct tcav_location location = {.block = TCAV_NOWHERE};
    const struct tcav_operands operands = {request->compare, request->swap_add};
    bool atomic = ibverbs_opcode_has(request->opcode, HCA_HAS_ATOMIC);
    if (!atomic && request->length >= TCAV_READ_DIRECT_BYTES) {
        location = tcav_list_location(qp->pd, request->sge, request->sges, 0, request->length);
    }
    if (location.block != TCAV_NOWHERE && !tcav_grant_add(qp, request->message, location, request->length, true)) {
        location.block = TCAV_NOWHERE;
    }
    header.bytes = atomic ? sizeof operands : sizeof location;
    tcav_ring_send_small(qp->peer, header, atomic ? (const void *)&operands : &location);
    qp->reads_out++;
    sent(qp, request);
    return true;
}

static bool packets_send(struct tcav_qp *qp, struct tcav_request *request)
{
    bool small = request->length <= TCAV_SMALL_PAYLOAD;
    if ((small ? tcav_ring_small_room(qp->peer) : tcav_ring_large_room(qp->peer)) == 0) {
        return false;
    }
    const struct tcav_source source = {qp->pd, request->sge, request->sges,
                                       (request->flags & IBV_SEND_INLINE) != 0 ? request->data : NULL};
    int bytes = tcav_ring_send_data(qp->peer, tcav_send_header(qp, request, properties[request->opcode].kind), &source);
    if (bytes < 0) {
        return refuse(qp, request, IBV_WC_LOC_PROT_ERR);
    }
    request->offset += (uint32_t)bytes;
    request->state = TCAV_REQUEST_PACKETS;
    if (request->offset == request->length) {
        sent(qp, request);
    }
    return true;
}

static bool start(struct tcav_qp *qp, struct tcav_request *request)
{
    bool read = tcav_send_is_read(request);
    enum ibv_wc_status status = request_check(qp, request);
    if (status != IBV_WC_SUCCESS) {
        return refuse(qp, request, status);
    }
    // IBA 10.8.3.3: a fence waits for earlier reads and atomics, which also have a limit of their own.
    if (((request->flags & IBV_SEND_FENCE) != 0 && qp->reads_out != 0) || (read && qp->reads_out >= qp->reads_max)) {
        return false;
    }
    if (read) {
        return read_send(qp, request);
    }
    bool reached = request->length >= properties[request->opcode].direct_bytes && !request->denied &&
                   tcav_list_location(qp->pd, request->sge, request->sges, 0, request->length).block != TCAV_NOWHERE;
    return reached ? ask(qp, request) : packets_send(qp, request);
}

static bool move(struct tcav_qp *qp, struct tcav_request *request)
{
    struct tcav_context *context = qp->pd->context;
    struct tcav_location from = tcav_list_location(qp->pd, request->sge, request->sges, 0, request->length);
    if (!tcav_locations_match(from, request->location)) {
        if (request->location.block != TCAV_NOWHERE) {
            tcav_grant_release(qp->peer, qp->remote_number, qp->number, request->message, false);
        }
        request->denied = true;
        request->state = TCAV_REQUEST_PACKETS;
        return packets_send(qp, request);
    }
    uint32_t before, bytes = tcav_move_split(from.offset, request->length, &before);
    from.offset += before;
    request->location.offset += before;
    qp->request_moved = false;
    qp->request_move = (struct tcav_move){
        .peer = qp->peer,
        .source = tcav_location_address(context, context->node, from),
        .destination = tcav_location_address(context, qp->peer->node, request->location),
        .bytes = bytes,
        .moved = &qp->request_moved,
    };
    request->state = TCAV_REQUEST_MOVING;
    tcav_move_queue(context, &qp->request_move);
    return false;
}

// After the data: sends the bytes around whole words, and the notification that the data has arrived.
static bool moved(struct tcav_qp *qp, struct tcav_request *request)
{
    if (qp->request_move.error != 0) {
        return refuse(qp, request,
                      qp->request_move.error == PEACH2_DMA_UNROUTABLE ? IBV_WC_RETRY_EXC_ERR : IBV_WC_LOC_QP_OP_ERR);
    }
    if (tcav_ring_small_room(qp->peer) == 0) {
        return false;
    }
    unsigned char around[6];
    struct tcav_location from = tcav_list_location(qp->pd, request->sge, request->sges, 0, request->length);
    uint32_t before, bytes = tcav_move_split(from.offset, request->length, &before);
    uint32_t after = request->length - before - bytes;
    if (from.block == TCAV_NOWHERE || tcav_list_load(qp->pd, request->sge, request->sges, 0, around, before) != 0 ||
        tcav_list_load(qp->pd, request->sge, request->sges, before + bytes, around + before, after) != 0) {
        return refuse(qp, request, IBV_WC_LOC_PROT_ERR);
    }
    struct tcav_header header = tcav_send_header(qp, request, TCAV_DATA_DONE);
    header.bytes = (uint16_t)(before + after);
    tcav_ring_send_small(qp->peer, header, around);
    sent(qp, request);
    return true;
}

static bool request_step(struct tcav_qp *qp, struct tcav_request *request)
{
    switch (request->state) {
    case TCAV_REQUEST_QUEUED:
        return qp->state == IBV_QPS_RTS && start(qp, request);
    case TCAV_REQUEST_ASKED:
        return false;
    case TCAV_REQUEST_GRANTED:
        return move(qp, request);
    case TCAV_REQUEST_MOVING:
        request->state = qp->request_moved ? TCAV_REQUEST_MOVED : TCAV_REQUEST_MOVING;
        return qp->request_moved && moved(qp, request);
    case TCAV_REQUEST_MOVED:
        return moved(qp, request);
    case TCAV_REQUEST_PACKETS:
        return packets_send(qp, request);
    case TCAV_REQUEST_SENT:
    case TCAV_REQUEST_ANSWERED:
        break;
    }
    return false;
}

bool tcav_send_step(struct tcav_qp *qp)
{
    if (qp->type == IBV_QPT_UD) {
        return tcav_datagram_send_step(qp);
    }
    bool may = qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD;
    if (!may || qp->sent == qp->count || qp->resume_ps != 0 || qp->peer->state != TCAV_PEER_CONNECTED) {
        return false;
    }
    return request_step(qp, tcav_request_at(qp, qp->sent));
}

// --- the end --------------------------------------------------------------------------------------------------------

static void complete(struct tcav_qp *qp, const struct tcav_request *request)
{
    if (!qp->all_signaled && (request->flags & IBV_SEND_SIGNALED) == 0) {
        return;
    }
    const struct ibv_wc wc = {
        .wr_id = request->id,
        .status = IBV_WC_SUCCESS,
        .opcode = tcav_send_opcode(request),
        .byte_len = request->length,
        .qp_num = qp->number,
    };
    tcav_cq_push(qp->send_cq, &wc, false);
}

void tcav_send_retire(struct tcav_qp *qp)
{
    while (qp->sent != 0) {
        const struct tcav_request *request = tcav_request_at(qp, 0);
        bool ended = qp->type == IBV_QPT_UD       ? true
                     : tcav_send_is_read(request) ? request->state == TCAV_REQUEST_ANSWERED
                                                  : tcav_before(request->message, qp->acked);
        if (!ended) {
            return;
        }
        complete(qp, request);
        qp->head = (qp->head + 1) % qp->size;
        qp->count--;
        qp->sent--;
        qp->retries_left = qp->retries;
        qp->rnr_retries_left = qp->rnr_retries;
    }
}

void tcav_send_rewind(struct tcav_qp *qp, uint32_t message)
{
    uint32_t first = qp->next_message - qp->count;
    unsigned index = (message - first) & TCAV_NUMBER_MASK;
    for (unsigned i = index; i < qp->count && i <= qp->sent; i++) {
        struct tcav_request *request = tcav_request_at(qp, i);
        if (request->state == TCAV_REQUEST_SENT && tcav_send_is_read(request)) {
            qp->reads_out--;
        }
        request->state = TCAV_REQUEST_QUEUED;
        request->offset = 0;
    }
    qp->sent = index;
}
