// Unreliable datagrams (IBA 9.8.3, 10.2.3): packets in the connection's rings to any queue pair, at most the MTU. A
// send ends when it is in a ring. A datagram that is not received is dropped and counted: at the target for a wrong
// Q_Key, no queue pair or no receive; at the sender for a node that does not answer before the connection set-up times
// out.
//
// A datagram may come from a node to which there is no connection yet. A library with UD queue pairs therefore enables
// the board's interrupt for introductions, and then reads the units of all nodes; this adds one word to every poll.
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/libtca/board_memory.h"
#include "verbs-shim/tca-verbs/internal.h"

enum { GRH_VERSION = 6, NEXT_HEADER_IBA = 0x1b };
enum { ICRC_AND_HEADERS = 4 + 12 + 8 }; // after a GRH, besides the payload: BTH, DETH, ICRC
// Much longer than two running libraries need for a connection, some 10 us. Programs retransmit what is dropped.
#define CONNECT_TIMEOUT_PS (200000 * TCAV_NS)
// A peer that takes nothing from its ring for so long is computing, or was killed.
#define ROOM_TIMEOUT_PS (1000000 * TCAV_NS)

// --- address handles ------------------------------------------------------------------------------------------------

int tcav_ah_create(void *object, const struct ibv_ah_attr *attr, void **ah_out)
{
    struct tcav_pd *pd = object;
    struct tcav_context *context = pd->context;
    tcav_pay(context, BACKEND_COST_CALL, 1);
    uint32_t node = tcav_path_node(attr);
    if (node >= peach2_node_count(context->board)) {
        return -EINVAL; // also multicast groups
    }
    struct tcav_ah *ah = calloc(1, sizeof *ah);
    if (ah == NULL) {
        return -ENOMEM;
    }
    ah->node = node;
    if (attr->is_global) {
        ah->route =
            (struct tcav_route){true, attr->grh.flow_label & 0xfffff, attr->grh.traffic_class, attr->grh.hop_limit};
        union ibv_gid there = tcav_gid(node);
        ah->astray = memcmp(&there, &attr->grh.dgid, sizeof there) != 0;
    }
    *ah_out = ah;
    return 0;
}

int tcav_ah_destroy(void *ah)
{
    free(ah);
    return 0;
}

// --- introduction ----------------------------------------------------------------------------------------------------

// Other nodes may have introduced themselves, or may wait for an answer. Only the program may call libtca to allocate
// memory for a new peer, so its next call sets up the connection, and not the thread.
static void units_check(struct tcav_context *context)
{
    context->units_due = context->on_thread;
    if (context->on_thread) {
        tcav_wake(context);
        return;
    }
    for (uint32_t node = 0; node < peach2_node_count(context->board); node++) {
        struct tcav_peer *peer = context->peers[node];
        if (node != context->node && tcav_peer_is_new(context, node)) {
            if (peer != NULL && peer->state == TCAV_PEER_CONNECTED) {
                peer->state = TCAV_PEER_GONE; // a new process is on that node
            }
            bool unknown = peer == NULL || peer->state == TCAV_PEER_GONE;
            if (unknown && tcav_peer_connect(context, node, &peer) == 0 && peer->state == TCAV_PEER_GONE) {
                context->units_due = true; // retried after the queue pairs that fail with it
            }
        }
        if (peer != NULL && peer->state == TCAV_PEER_CONNECTING) {
            tcav_peer_step(peer);
        }
    }
}

int tcav_datagrams_begin(struct tcav_context *context)
{
    if (context->datagrams) {
        return 0;
    }
    int error = peach2_interrupt_enable(context->board, TCAV_INTRODUCTION_INTERRUPT);
    if (error != 0) {
        return error;
    }
    context->datagrams = true;
    if (context->backend.ops->event_writes != NULL) {
        const volatile uint64_t *word = peach2_interrupt_word(context->board);
        context->backend.ops->event_writes(context->backend.ctx, (void *)(uintptr_t)word, sizeof *word);
    }
    for (uint32_t node = 0; node < PEACH2_NODES_MAX; node++) {
        if (context->peers[node] != NULL && node != context->node) {
            tcav_peer_introduce(context->peers[node]);
        }
    }
    units_check(context);
    return 0;
}

void tcav_datagrams_step(struct tcav_context *context)
{
    uint32_t pending;
    context->polls++;
    bool came = peach2_interrupt_take(context->board, &pending) == 0;
    if (came || (context->units_due && !context->on_thread)) {
        units_check(context);
    }
}

// --- sending --------------------------------------------------------------------------------------------------------

// IBA 10.3.1.6: an error of a UD queue pair's send queue stops only that queue.
static void fail(struct tcav_qp *qp, enum ibv_wc_status status)
{
    for (; qp->count != 0; qp->count--, status = IBV_WC_WR_FLUSH_ERR) {
        const struct ibv_wc wc = {.wr_id = tcav_request_at(qp, 0)->id, .status = status, .qp_num = qp->number};
        tcav_cq_push(qp->send_cq, &wc, true);
        qp->head = (qp->head + 1) % qp->size;
    }
    qp->state = IBV_QPS_SQE;
}

static enum ibv_wc_status request_check(const struct tcav_qp *qp, const struct tcav_request *request)
{
    if (request->length > TCAV_DATAGRAM_BYTES_MAX) {
        return IBV_WC_LOC_LEN_ERR;
    }
    return tcav_list_check(qp->pd, request->sge, request->sges, 0) == 0 ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

enum way { WAY_OPEN, WAY_WAITS, WAY_NONE };

static enum way way_to(struct tcav_context *context, const struct tcav_request *request, struct tcav_peer **peer_out)
{
    struct tcav_peer *peer = context->peers[request->to.ah.node];
    bool unknown = peer == NULL || peer->state == TCAV_PEER_GONE;
    if (unknown && context->on_thread && !request->to.ah.astray) {
        tcav_wake(context); // the program must set up the connection
        return WAY_WAITS;
    }
    if (request->to.ah.astray || (unknown && tcav_peer_connect(context, request->to.ah.node, &peer) != 0)) {
        return WAY_NONE;
    }
    *peer_out = peer;
    if (peer->state == TCAV_PEER_CONNECTING) {
        peer->since_ps = peer->since_ps != 0 ? peer->since_ps : tcav_now_ps(context);
        return tcav_now_ps(context) - peer->since_ps < CONNECT_TIMEOUT_PS ? WAY_WAITS : WAY_NONE;
    }
    bool small = request->length <= TCAV_SMALL_PAYLOAD;
    unsigned slots = (request->length + TCAV_LARGE_PAYLOAD - 1) / TCAV_LARGE_PAYLOAD;
    if (peer->state == TCAV_PEER_GONE) {
        return WAY_NONE;
    }
    if (small ? tcav_ring_small_room(peer) != 0 : tcav_ring_large_room(peer) >= slots) {
        peer->full_ps = 0;
        return WAY_OPEN;
    }
    peer->full_ps = peer->full_ps != 0 ? peer->full_ps : tcav_now_ps(context);
    return tcav_now_ps(context) - peer->full_ps < ROOM_TIMEOUT_PS ? WAY_WAITS : WAY_NONE;
}

static bool send(struct tcav_qp *qp, const struct tcav_request *request, struct tcav_peer *peer)
{
    const struct tcav_source source = {qp->pd, request->sge, request->sges,
                                       (request->flags & IBV_SEND_INLINE) != 0 ? request->data : NULL};
    struct tcav_header header = tcav_send_header(qp, request, TCAV_DATAGRAM);
    header.qp = request->to.qp;
    header.key = (request->to.qkey & 0x80000000u) != 0 ? qp->qkey : request->to.qkey; // IBA 10.2.5
    header.address = tcav_route_pack(request->to.ah.route);
    return tcav_ring_send_data(peer, header, &source) >= 0;
}

bool tcav_datagram_send_step(struct tcav_qp *qp)
{
    struct tcav_context *context = qp->pd->context;
    if (qp->state == IBV_QPS_SQE) {
        fail(qp, IBV_WC_WR_FLUSH_ERR);
    }
    while (qp->count != 0 && qp->state == IBV_QPS_RTS) {
        struct tcav_request *request = tcav_request_at(qp, 0);
        struct tcav_peer *peer = NULL;
        enum ibv_wc_status status = request_check(qp, request);
        enum way way = status == IBV_WC_SUCCESS ? way_to(context, request, &peer) : WAY_NONE;
        if (way == WAY_WAITS) {
            return false;
        }
        if (way == WAY_OPEN && !send(qp, request, peer)) {
            status = IBV_WC_LOC_PROT_ERR;
        }
        if (status != IBV_WC_SUCCESS) {
            fail(qp, status);
            return false;
        }
        context->device->datagrams_dropped += way == WAY_NONE;
        request->state = TCAV_REQUEST_SENT;
        qp->sent++;
        tcav_send_retire(qp);
        if (way == WAY_OPEN) {
            return true;
        }
    }
    return false;
}

// --- receiving ------------------------------------------------------------------------------------------------------

// IBA 8.3: a GRH as after routers.
static void route_write(const struct tcav_context *context, uint32_t from, const struct tcav_header *header,
                        uint8_t grh[TCAV_GRH_BYTES])
{
    const struct tcav_route route = tcav_route_unpack(header->address);
    struct ibv_grh *to = (struct ibv_grh *)(void *)grh;
    to->version_tclass_flow =
        htobe32((uint32_t)GRH_VERSION << 28 | (uint32_t)route.traffic_class << 20 | route.flow_label);
    to->paylen = htobe16((uint16_t)((header->length + 3) / 4 * 4 + ICRC_AND_HEADERS));
    to->next_hdr = NEXT_HEADER_IBA;
    to->hop_limit = route.hop_limit;
    to->sgid = tcav_gid(from);
    to->dgid = tcav_gid(context->node);
}

static void receive_end(struct tcav_qp *qp, struct ibv_wc wc, bool solicited)
{
    wc.wr_id = qp->inbound.receive.id;
    wc.qp_num = qp->number;
    qp->inbound.active = qp->inbound.has_receive = false;
    tcav_cq_push(qp->recv_cq, &wc, solicited);
    if (wc.status != IBV_WC_SUCCESS) {
        tcav_qp_fail(qp);
    }
}

static bool begin(struct tcav_qp *qp, const struct tcav_header *header)
{
    struct tcav_inbound *inbound = &qp->inbound;
    // A datagram whose remaining packets never came has left its receive.
    inbound->active = header->key == qp->qkey && (inbound->has_receive || tcav_rq_take(qp, &inbound->receive));
    inbound->has_receive = inbound->has_receive || inbound->active;
    if (!inbound->active) {
        return false;
    }
    inbound->offset = 0;
    const struct tcav_receive *receive = &inbound->receive;
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    if (header->length + TCAV_GRH_BYTES > tcav_list_bytes(receive->sge, receive->sges)) {
        status = IBV_WC_LOC_LEN_ERR;
    } else if (tcav_list_check(qp->pd, receive->sge, receive->sges, IBV_ACCESS_LOCAL_WRITE) != 0) {
        status = IBV_WC_LOC_PROT_ERR;
    }
    if (status != IBV_WC_SUCCESS) {
        receive_end(qp, (struct ibv_wc){.status = status}, true);
    }
    return status == IBV_WC_SUCCESS;
}

static void complete(struct tcav_qp *qp, const struct tcav_peer *peer, const struct tcav_header *header)
{
    bool routed = tcav_route_unpack(header->address).there, immediate = (header->flags & TCAV_IMMEDIATE) != 0;
    const struct tcav_receive *receive = &qp->inbound.receive;
    if (routed) {
        uint8_t grh[TCAV_GRH_BYTES];
        route_write(peer->context, peer->node, header, grh);
        (void)tcav_list_store(qp->pd, receive->sge, receive->sges, 0, grh, sizeof grh);
    }
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS,
                        .opcode = IBV_WC_RECV,
                        .byte_len = header->length + TCAV_GRH_BYTES,
                        .imm_data = immediate ? header->immediate : 0,
                        .src_qp = header->source_qp,
                        .slid = (uint16_t)(peer->node + 1),
                        .wc_flags = (immediate ? IBV_WC_WITH_IMM : 0u) | (routed ? IBV_WC_GRH : 0u)};
    receive_end(qp, wc, (header->flags & TCAV_SOLICITED) != 0);
}

// The packets of one datagram arrive one after the other, as they were sent at once.
void tcav_datagram_packet(struct tcav_peer *peer, const struct tcav_header *header, const unsigned char *payload)
{
    struct tcav_qp *qp = peer->context->table[header->qp % TCAV_QPS_MAX];
    bool receives =
        qp != NULL && qp->number == header->qp && qp->type == IBV_QPT_UD &&
        (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD || qp->state == IBV_QPS_SQE);
    if (!receives || (header->offset == 0 && !begin(qp, header))) {
        peer->context->device->datagrams_dropped += header->offset == 0;
        return;
    }
    struct tcav_inbound *inbound = &qp->inbound;
    if (!inbound->active || header->offset != inbound->offset || header->bytes > header->length - header->offset) {
        return; // a further packet of a dropped datagram
    }
    const struct tcav_receive *receive = &inbound->receive;
    if (tcav_list_store(qp->pd, receive->sge, receive->sges, TCAV_GRH_BYTES + header->offset, payload, header->bytes) !=
        0) {
        receive_end(qp, (struct ibv_wc){.status = IBV_WC_LOC_PROT_ERR}, true);
        return;
    }
    inbound->offset += header->bytes;
    if (inbound->offset == header->length) {
        complete(qp, peer, header);
    }
}
