// Execution of requests: at the requester, at the responder, and failures (IBA 9.7 to 9.9, 10.3.1, 10.7.3).
#include "memory_internal.h"

enum { GRH_BYTES = 40, ATOMIC_BYTES = 8, RETRY_FOR_EVER = 7 };
#define QKEY_OF_QP 0x80000000u

// The result of a request: a completion status, or it waits.
enum { WAITS = -1 };

// --- memory ---------------------------------------------------------------------------------------------------------

// The bytes of a region; NULL: the key, the domain, the rights or the range are wrong.
static uint8_t *region_at(const struct memory_pd *pd, uint32_t key, uint64_t address, uint64_t bytes, unsigned access)
{
    const struct memory_world *world = memory_world_of(pd);
    const struct memory_mr *mr = world->mrs;
    while (mr != NULL && mr->key != key) {
        mr = mr->next;
    }
    if (mr == NULL || mr->pd != pd || (mr->region.access & access) != access || address < mr->region.iova ||
        bytes > mr->region.bytes || address - mr->region.iova > mr->region.bytes - bytes) {
        return NULL;
    }
    uint64_t offset = address - mr->region.iova;
    return mr->region.bus_address != 0 ? world->bus_at(world->bus_arg, mr->region.bus_address + offset)
                                       : (uint8_t *)mr->region.address + offset;
}

static uint64_t sges_bytes(const struct ibv_sge *sges, int count)
{
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += sges[i].length;
    }
    return bytes;
}

static bool sges_valid(const struct memory_pd *pd, const struct ibv_sge *sges, int count, unsigned access)
{
    for (int i = 0; i < count; i++) {
        if (sges[i].length > 0 && region_at(pd, sges[i].lkey, sges[i].addr, sges[i].length, access) == NULL) {
            return false;
        }
    }
    return true;
}

static void gather(const struct memory_pd *pd, const struct ibv_sge *sges, int count, uint8_t *to)
{
    for (int i = 0; i < count; i++) {
        if (sges[i].length > 0) {
            memcpy(to, region_at(pd, sges[i].lkey, sges[i].addr, sges[i].length, 0), sges[i].length);
            to += sges[i].length;
        }
    }
}

// skip: number of bytes at the front that are not changed.
static void scatter(const struct memory_pd *pd, const struct ibv_sge *sges, const uint8_t *from, uint64_t bytes,
                    uint64_t skip)
{
    for (; bytes > 0; sges++) {
        uint64_t start = skip < sges->length ? skip : sges->length, room = sges->length - start;
        uint64_t part = bytes < room ? bytes : room;
        if (part > 0) {
            memcpy(region_at(pd, sges->lkey, sges->addr + start, part, IBV_ACCESS_LOCAL_WRITE), from, part);
        }
        skip -= start;
        from += part;
        bytes -= part;
    }
}

// --- completions ----------------------------------------------------------------------------------------------------

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    default:
        return IBV_WC_SEND;
    }
}

static void send_complete(struct memory_qp *qp, enum ibv_wc_status status)
{
    uint32_t index = qp->executed++;
    const struct memory_request *request = &qp->ring[index % qp->entries];
    const struct ibv_send_wr *wr = &request->wr;
    if (status == IBV_WC_SUCCESS && !qp->all_signaled && (wr->send_flags & IBV_SEND_SIGNALED) == 0) {
        return;
    }
    bool returns = wr->opcode == IBV_WR_RDMA_READ || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                   wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const struct memory_cqe cqe = {.wc = {.wr_id = wr->wr_id,
                                          .status = status,
                                          .opcode = wc_opcode(wr->opcode),
                                          .byte_len = returns ? (uint32_t)sges_bytes(request->sges, wr->num_sge) : 0,
                                          .qp_num = qp->number},
                                   .qp = qp,
                                   .is_send = true,
                                   .index = index};
    memory_cq_add(qp->send_cq, &cqe);
}

static void receive_complete(struct memory_qp *qp, const struct memory_receive *receive, struct ibv_wc wc,
                             bool solicited)
{
    wc.wr_id = receive->wr_id;
    wc.qp_num = qp->number;
    memory_cq_add(qp->recv_cq, &(struct memory_cqe){.wc = wc, .qp = qp, .solicited = solicited});
}

// 10.3.1: in ERR everything is flushed; receives of a shared queue stay there, and an event reports that the queue pair
// uses no more of them (10.2.9).
void memory_qp_fail(struct memory_qp *qp, int event)
{
    bool before = qp->attr.qp_state == IBV_QPS_ERR;
    qp->attr.qp_state = IBV_QPS_ERR;
    if (event >= 0 && !before) {
        memory_qp_event(qp, (enum ibv_event_type)event);
    }
    while (qp->executed != qp->posted) {
        send_complete(qp, IBV_WC_WR_FLUSH_ERR);
    }
    const struct memory_receive *receive;
    while (qp->srq == NULL && (receive = memory_rq_take(&qp->rq)) != NULL) {
        receive_complete(qp, receive, (struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV}, false);
    }
    if (qp->srq != NULL && !before) {
        memory_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
    }
}

// --- the responder --------------------------------------------------------------------------------------------------

static struct memory_port *port_of(const struct memory_qp *qp)
{
    return qp->pd->context->port;
}

// The queue pair that receives a message; NULL: none.
static struct memory_qp *peer_find(const struct memory_qp *qp, uint16_t dlid, uint32_t number)
{
    struct memory_qp *peer = memory_world_of(qp->pd)->qps;
    while (peer != NULL && (peer->number != number || port_of(peer)->lid != dlid)) {
        peer = peer->next;
    }
    if (peer == NULL || peer->type != qp->type || !port_of(qp)->connected || !port_of(peer)->connected ||
        peer->attr.qp_state < IBV_QPS_RTR || peer->attr.qp_state == IBV_QPS_ERR) {
        return NULL;
    }
    bool connected = peer->attr.dest_qp_num == qp->number && peer->attr.ah_attr.dlid == port_of(qp)->lid;
    if (qp->type != IBV_QPT_UD && !connected) {
        return NULL;
    }
    if (peer->attr.qp_state == IBV_QPS_RTR && !peer->established) {
        peer->established = true;
        memory_qp_event(peer, IBV_EVENT_COMM_EST);
    }
    return peer;
}

static const struct memory_receive *receive_take(struct memory_qp *peer)
{
    const struct memory_receive *receive = memory_rq_take(memory_qp_rq(peer));
    struct memory_srq *srq = peer->srq;
    if (receive != NULL && srq != NULL && srq->rq.posted - srq->rq.taken < srq->limit) {
        srq->limit = 0;
        memory_event_raise(srq->pd->context,
                           &(struct ibverbs_event){.type = IBV_EVENT_SRQ_LIMIT_REACHED, .user = srq->user});
    }
    return receive;
}

// The requester's status for an error at the responder: only a reliable connection is notified.
static int answer(const struct memory_qp *qp, enum ibv_wc_status status)
{
    return qp->type == IBV_QPT_RC ? (int)status : IBV_WC_SUCCESS;
}

static int refuse(const struct memory_qp *qp, struct memory_qp *peer, enum ibv_wc_status status,
                  enum ibv_event_type event)
{
    if (qp->type == IBV_QPT_RC) {
        memory_qp_fail(peer, (int)event);
    }
    return answer(qp, status);
}

static int receiver_missing(const struct memory_qp *qp)
{
    if (qp->type != IBV_QPT_RC) {
        return IBV_WC_SUCCESS; // dropped (9.8.2, 9.8.3)
    }
    return qp->attr.rnr_retry == RETRY_FOR_EVER ? (int)WAITS : (int)IBV_WC_RNR_RETRY_EXC_ERR;
}

static struct ibv_wc receive_wc(const struct memory_qp *qp, const struct ibv_send_wr *wr, uint64_t bytes)
{
    bool is_datagram = qp->type == IBV_QPT_UD;
    bool immediate = wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    struct ibv_wc wc = {.opcode = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                        .byte_len = (uint32_t)bytes + (is_datagram ? GRH_BYTES : 0),
                        .wc_flags = immediate ? IBV_WC_WITH_IMM : 0,
                        .src_qp = is_datagram ? qp->number : 0,
                        .slid = is_datagram ? port_of(qp)->lid : 0};
    wc.imm_data = immediate ? wr->imm_data : 0;
    return wc;
}

// 9.7.5.2: a message that does not fit, or whose buffer does not exist, fails both sides.
static int receive_fail(const struct memory_qp *qp, struct memory_qp *peer, const struct memory_receive *receive,
                        enum ibv_wc_status here, enum ibv_wc_status there)
{
    receive_complete(peer, receive, (struct ibv_wc){.status = here, .opcode = IBV_WC_RECV}, false);
    memory_qp_fail(peer, -1); // 9.9.3: its completion reports the error
    return answer(qp, there);
}

static int respond_send(const struct memory_qp *qp, struct memory_qp *peer, const struct ibv_send_wr *wr,
                        const uint8_t *data, uint64_t bytes)
{
    const struct memory_receive *receive = receive_take(peer);
    if (receive == NULL) {
        return receiver_missing(qp);
    }
    uint64_t skip = qp->type == IBV_QPT_UD ? GRH_BYTES : 0;
    const struct memory_pd *pd = peer->srq != NULL ? peer->srq->pd : peer->pd;
    if (bytes + skip > sges_bytes(receive->sges, receive->sge_count)) {
        return receive_fail(qp, peer, receive, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
    }
    if (!sges_valid(pd, receive->sges, receive->sge_count, IBV_ACCESS_LOCAL_WRITE)) {
        return receive_fail(qp, peer, receive, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
    }
    scatter(pd, receive->sges, data, bytes, skip);
    receive_complete(peer, receive, receive_wc(qp, wr, bytes), (wr->send_flags & IBV_SEND_SOLICITED) != 0);
    return IBV_WC_SUCCESS;
}

// 9.7.4.1.2: an operation that the queue pair does not allow is an unsupported opcode.
static bool allowed(const struct memory_qp *peer, enum ibv_wr_opcode opcode)
{
    unsigned other = opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_ATOMIC;
    bool writes = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    return (peer->attr.qp_access_flags & (writes ? (unsigned)IBV_ACCESS_REMOTE_WRITE : other)) != 0;
}

static int respond_write(const struct memory_qp *qp, struct memory_qp *peer, const struct ibv_send_wr *wr,
                         const uint8_t *data, uint64_t bytes)
{
    if (!allowed(peer, wr->opcode)) {
        return refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    uint8_t *to = region_at(peer->pd, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, bytes, IBV_ACCESS_REMOTE_WRITE);
    if (bytes > 0 && to == NULL) {
        return refuse(qp, peer, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    const struct memory_receive *receive = NULL;
    if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
        receive = receive_take(peer);
        if (receive == NULL) {
            return receiver_missing(qp);
        }
    }
    if (bytes > 0) {
        memcpy(to, data, bytes);
    }
    if (receive != NULL) {
        receive_complete(peer, receive, receive_wc(qp, wr, bytes), (wr->send_flags & IBV_SEND_SOLICITED) != 0);
    }
    return IBV_WC_SUCCESS;
}

static int respond_read(const struct memory_qp *qp, struct memory_qp *peer, const struct memory_request *request)
{
    const struct ibv_send_wr *wr = &request->wr;
    uint64_t bytes = sges_bytes(request->sges, wr->num_sge);
    if (peer->attr.max_dest_rd_atomic == 0 || !allowed(peer, wr->opcode)) {
        return refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    const uint8_t *from = region_at(peer->pd, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, bytes, IBV_ACCESS_REMOTE_READ);
    if (bytes > 0 && from == NULL) {
        return refuse(qp, peer, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    if (!sges_valid(qp->pd, request->sges, wr->num_sge, IBV_ACCESS_LOCAL_WRITE)) {
        return IBV_WC_LOC_PROT_ERR;
    }
    scatter(qp->pd, request->sges, from, bytes, 0);
    return IBV_WC_SUCCESS;
}

static int respond_atomic(const struct memory_qp *qp, struct memory_qp *peer, const struct memory_request *request)
{
    const struct ibv_send_wr *wr = &request->wr;
    uint64_t before, address = wr->wr.atomic.remote_addr;
    if (peer->attr.max_dest_rd_atomic == 0 || !allowed(peer, wr->opcode) || address % ATOMIC_BYTES != 0) {
        return refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    uint8_t *word = region_at(peer->pd, wr->wr.atomic.rkey, address, ATOMIC_BYTES, IBV_ACCESS_REMOTE_ATOMIC);
    if (word == NULL) {
        return refuse(qp, peer, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    memcpy(&before, word, sizeof before);
    uint64_t after = before + wr->wr.atomic.compare_add;
    if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        after = before == wr->wr.atomic.compare_add ? wr->wr.atomic.swap : before;
    }
    memcpy(word, &after, sizeof after);
    if (!sges_valid(qp->pd, request->sges, wr->num_sge, IBV_ACCESS_LOCAL_WRITE)) {
        return IBV_WC_LOC_PROT_ERR; // detected at the reply: the word has changed
    }
    scatter(qp->pd, request->sges, (const uint8_t *)&before, sizeof before, 0);
    return IBV_WC_SUCCESS;
}

// --- the requester --------------------------------------------------------------------------------------------------

static int carry_data(struct memory_qp *qp, struct memory_qp *peer, const struct memory_request *request)
{
    const struct ibv_send_wr *wr = &request->wr;
    bool inlined = (wr->send_flags & IBV_SEND_INLINE) != 0;
    uint64_t bytes = inlined ? request->inline_bytes : sges_bytes(request->sges, wr->num_sge);
    uint8_t *data = malloc(bytes + 1);
    if (inlined) {
        memcpy(data, request->inlined, bytes);
    } else {
        gather(qp->pd, request->sges, wr->num_sge, data);
    }
    bool writes = wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    int status = writes ? respond_write(qp, peer, wr, data, bytes) : respond_send(qp, peer, wr, data, bytes);
    free(data);
    return status;
}

// Errors that the requester detects before it sends anything (10.7.3, 11.6.2).
static enum ibv_wc_status request_check(const struct memory_qp *qp, const struct memory_request *request)
{
    const struct ibv_send_wr *wr = &request->wr;
    bool inlined = (wr->send_flags & IBV_SEND_INLINE) != 0;
    bool atomic = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    bool returns = atomic || wr->opcode == IBV_WR_RDMA_READ;
    uint64_t bytes = inlined ? request->inline_bytes : sges_bytes(request->sges, wr->num_sge);
    uint64_t limit = qp->type == IBV_QPT_UD ? MEMORY_MTU_BYTES : MEMORY_MESSAGE_MAX;
    if (bytes > limit || (atomic && bytes != ATOMIC_BYTES)) {
        return IBV_WC_LOC_LEN_ERR;
    }
    if (returns && qp->attr.max_rd_atomic == 0) {
        return IBV_WC_LOC_QP_OP_ERR;
    }
    return inlined || returns || sges_valid(qp->pd, request->sges, wr->num_sge, 0) ? IBV_WC_SUCCESS
                                                                                   : IBV_WC_LOC_PROT_ERR;
}

static struct memory_qp *request_peer(const struct memory_qp *qp, const struct ibv_send_wr *wr)
{
    if (qp->type != IBV_QPT_UD) {
        return peer_find(qp, qp->attr.ah_attr.dlid, qp->attr.dest_qp_num);
    }
    const struct memory_ah *ah = ibverbs_ah_object(wr->wr.ud.ah);
    uint32_t qkey = (wr->wr.ud.remote_qkey & QKEY_OF_QP) != 0 ? qp->attr.qkey : wr->wr.ud.remote_qkey;
    struct memory_qp *peer = peer_find(qp, ah->attr.dlid, wr->wr.ud.remote_qpn);
    return peer != NULL && peer->attr.qkey == qkey ? peer : NULL;
}

static int execute(struct memory_qp *qp, const struct memory_request *request)
{
    int status = (int)request_check(qp, request);
    if (status != IBV_WC_SUCCESS) {
        return status;
    }
    struct memory_qp *peer = request_peer(qp, &request->wr);
    if (peer == NULL) {
        return answer(qp, IBV_WC_RETRY_EXC_ERR);
    }
    switch (request->wr.opcode) {
    case IBV_WR_RDMA_READ:
        return respond_read(qp, peer, request);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return respond_atomic(qp, peer, request);
    default:
        return carry_data(qp, peer, request);
    }
}

// 10.3.1: for an unreliable queue pair only the send queue fails (SQE), a reliable connection fails as a whole.
static void request_fail(struct memory_qp *qp)
{
    if (qp->type == IBV_QPT_RC) {
        memory_qp_fail(qp, -1);
        return;
    }
    qp->attr.qp_state = qp->attr.qp_state == IBV_QPS_ERR ? IBV_QPS_ERR : IBV_QPS_SQE;
}

// true: something was done.
static bool qp_progress(struct memory_qp *qp)
{
    uint32_t before = qp->executed;
    bool waits = false;
    while (!waits && qp->executed != qp->posted) {
        enum ibv_qp_state state = qp->attr.qp_state;
        if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) {
            send_complete(qp, IBV_WC_WR_FLUSH_ERR);
            continue;
        }
        int status = state == IBV_QPS_RTS ? execute(qp, &qp->ring[qp->executed % qp->entries]) : (int)WAITS;
        waits = status == WAITS;
        if (!waits && qp->executed != qp->posted) { // a queue pair connected to itself may have been flushed
            send_complete(qp, (enum ibv_wc_status)status);
            if (status != IBV_WC_SUCCESS) {
                request_fail(qp);
            }
        }
    }
    return qp->executed != before;
}

void memory_world_progress(struct memory_world *world)
{
    bool again = true;
    while (again) {
        again = false;
        for (struct memory_qp *qp = world->qps; qp != NULL; qp = qp->next) {
            again |= qp_progress(qp);
        }
    }
}
