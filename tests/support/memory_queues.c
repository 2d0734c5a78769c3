// Completion, receive and send queues, and the queue pairs that use them.
#include "memory_internal.h"

// --- completion queues ----------------------------------------------------------------------------------------------

int memory_cq_create(void *context, unsigned *entries, unsigned vector, void *user, void **cq_out)
{
    struct memory_world *world = ((struct memory_context *)context)->port->world;
    struct memory_cq *cq = memory_alloc(world, sizeof *cq);
    (void)vector;
    if (cq == NULL) {
        return -ENOMEM;
    }
    *cq = (struct memory_cq){.context = context, .user = user, .entries = *entries};
    cq->ring = calloc(*entries, sizeof *cq->ring);
    *cq_out = cq;
    return 0;
}

int memory_cq_destroy(void *object)
{
    struct memory_cq *cq = object;
    free(cq->ring);
    memory_event_forget(cq->context, cq->user);
    memory_free(cq->context->port->world, cq);
    return 0;
}

int memory_cq_resize(void *object, unsigned *entries)
{
    struct memory_cq *cq = object;
    if (*entries < cq->count) {
        return -EINVAL;
    }
    cq->ring = realloc(cq->ring, *entries * sizeof *cq->ring);
    cq->entries = *entries;
    return 0;
}

static void entry_taken(const struct memory_cqe *cqe)
{
    if (cqe->qp != NULL && cqe->is_send) {
        cqe->qp->done = cqe->index + 1;
    } else if (cqe->qp != NULL) {
        memory_qp_rq(cqe->qp)->freed++;
    }
}

int memory_cq_poll(void *object, int max, struct ibv_wc *wc_out)
{
    struct memory_cq *cq = object;
    unsigned count = cq->count < (unsigned)max ? cq->count : (unsigned)max;
    for (unsigned i = 0; i < count; i++) {
        wc_out[i] = cq->ring[i].wc;
        entry_taken(&cq->ring[i]);
    }
    cq->count -= count;
    memmove(cq->ring, cq->ring + count, cq->count * sizeof *cq->ring);
    return (int)count;
}

int memory_cq_wait(void *object, uint64_t timeout_ns)
{
    const struct memory_cq *cq = object;
    (void)timeout_ns;
    return cq->count > 0 ? 0 : -ETIMEDOUT;
}

static void cq_notify(struct memory_cq *cq, const struct memory_cqe *cqe)
{
    if (cq->arm == ARMED_ANY || (cq->arm == ARMED_SOLICITED && (cqe->solicited || cqe->wc.status != IBV_WC_SUCCESS))) {
        cq->arm = DISARMED;
        for (unsigned i = 0; i < cq->count; i++) {
            cq->ring[i].notified = true;
        }
        memory_event_raise(cq->context, &(struct ibverbs_event){.completion = true, .user = cq->user});
    }
}

// 11.4.2.2; completions since the last event that were not polled count, as in the other devices.
int memory_cq_arm(void *object, bool solicited_only)
{
    struct memory_cq *cq = object;
    cq->arm = solicited_only && cq->arm != ARMED_ANY ? ARMED_SOLICITED : ARMED_ANY;
    for (unsigned i = 0; i < cq->count && cq->arm != DISARMED; i++) {
        if (!cq->ring[i].notified) {
            cq_notify(cq, &cq->ring[i]);
        }
    }
    return 0;
}

static void cq_overrun(struct memory_cq *cq)
{
    struct memory_world *world = cq->context->port->world;
    if (cq->overrun) {
        return;
    }
    cq->overrun = true;
    memory_event_raise(cq->context, &(struct ibverbs_event){.type = IBV_EVENT_CQ_ERR, .user = cq->user});
    for (struct memory_qp *qp = world->qps; qp != NULL; qp = qp->next) {
        if (qp->send_cq == cq || qp->recv_cq == cq) {
            memory_qp_fail(qp, IBV_EVENT_QP_FATAL);
        }
    }
}

void memory_cq_add(struct memory_cq *cq, const struct memory_cqe *cqe)
{
    if (cq->overrun || cq->count == cq->entries) {
        cq_overrun(cq);
        return;
    }
    cq->ring[cq->count++] = *cqe;
    cq_notify(cq, cqe);
}

static void cq_forget(struct memory_cq *cq, const struct memory_qp *qp)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < cq->count; i++) {
        if (cq->ring[i].qp != qp) {
            cq->ring[kept++] = cq->ring[i];
        } else if (!cq->ring[i].is_send) {
            memory_qp_rq(cq->ring[i].qp)->freed++; // frees the entry of a shared queue
        }
    }
    cq->count = kept;
}

// --- receive queues -------------------------------------------------------------------------------------------------

static void rq_init(struct memory_rq *rq, uint32_t entries, uint32_t max_sge)
{
    *rq = (struct memory_rq){.entries = entries, .max_sge = max_sge};
    rq->ring = calloc(entries + 1, sizeof *rq->ring);
}

struct memory_rq *memory_qp_rq(struct memory_qp *qp)
{
    return qp->srq != NULL ? &qp->srq->rq : &qp->rq;
}

const struct memory_receive *memory_rq_take(struct memory_rq *rq)
{
    return rq->taken == rq->posted ? NULL : &rq->ring[rq->taken++ % rq->entries];
}

static int rq_post(struct memory_rq *rq, const struct ibv_recv_wr *wr, unsigned count,
                   const struct ibv_recv_wr **bad_out)
{
    for (unsigned i = 0; i < count; i++, wr = wr->next) {
        if (rq->posted - rq->freed == rq->entries) {
            *bad_out = wr;
            return -ENOMEM;
        }
        struct memory_receive *receive = &rq->ring[rq->posted++ % rq->entries];
        receive->wr_id = wr->wr_id;
        receive->sge_count = wr->num_sge;
        if (wr->num_sge > 0) {
            memcpy(receive->sges, wr->sg_list, (size_t)wr->num_sge * sizeof *wr->sg_list);
        }
    }
    return 0;
}

int memory_post_recv(void *object, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out)
{
    struct memory_qp *qp = object;
    int status = rq_post(&qp->rq, wr, count, bad_out);
    if (qp->attr.qp_state == IBV_QPS_ERR) {
        memory_qp_fail(qp, -1);
    }
    memory_world_progress(memory_world_of(qp->pd));
    return status;
}

int memory_post_srq_recv(void *object, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out)
{
    struct memory_srq *srq = object;
    int status = rq_post(&srq->rq, wr, count, bad_out);
    memory_world_progress(memory_world_of(srq->pd));
    return status;
}

// --- shared receive queues ------------------------------------------------------------------------------------------

int memory_srq_create(void *pd, struct ibv_srq_attr *attr, void *user, void **srq_out)
{
    struct memory_srq *srq = memory_alloc(memory_world_of(pd), sizeof *srq);
    if (srq == NULL) {
        return -ENOMEM;
    }
    srq->pd = pd;
    srq->user = user;
    attr->max_sge = attr->max_sge == 0 ? 1 : attr->max_sge;
    rq_init(&srq->rq, attr->max_wr, attr->max_sge);
    *srq_out = srq;
    return 0;
}

int memory_srq_destroy(void *object)
{
    struct memory_srq *srq = object;
    free(srq->rq.ring);
    memory_event_forget(srq->pd->context, srq->user);
    memory_free(memory_world_of(srq->pd), srq);
    return 0;
}

int memory_srq_arm(void *object, unsigned limit)
{
    struct memory_srq *srq = object;
    srq->limit = limit;
    return 0;
}

int memory_srq_query(void *object, struct ibv_srq_attr *attr_out)
{
    const struct memory_srq *srq = object;
    *attr_out = (struct ibv_srq_attr){srq->rq.entries, srq->rq.max_sge, srq->limit};
    return 0;
}

// --- queue pairs ----------------------------------------------------------------------------------------------------

int memory_qp_create(void *object, struct ibverbs_qp_create *create, void **qp_out, uint32_t *number_out)
{
    struct memory_pd *pd = object;
    struct memory_world *world = memory_world_of(pd);
    struct memory_qp *qp = memory_alloc(world, sizeof *qp);
    struct ibv_qp_cap *cap = &create->cap;
    if (qp == NULL) {
        return -ENOMEM;
    }
    cap->max_send_sge = cap->max_send_sge == 0 ? 1 : cap->max_send_sge;
    cap->max_recv_sge = cap->max_recv_sge == 0 ? 1 : cap->max_recv_sge;
    cap->max_recv_wr = create->srq != NULL ? 0 : cap->max_recv_wr;
    *qp = (struct memory_qp){.next = world->qps,
                             .pd = pd,
                             .user = create->user,
                             .type = create->type,
                             .number = 0x40 + ++world->numbers,
                             .send_cq = create->send_cq,
                             .recv_cq = create->recv_cq,
                             .srq = create->srq,
                             .all_signaled = create->all_signaled,
                             .entries = cap->max_send_wr};
    qp->ring = calloc(qp->entries + 1, sizeof *qp->ring);
    rq_init(&qp->rq, cap->max_recv_wr, cap->max_recv_sge);
    world->qps = qp;
    *qp_out = qp;
    *number_out = qp->number;
    return 0;
}

static void qp_forget(struct memory_qp *qp)
{
    cq_forget(qp->send_cq, qp);
    cq_forget(qp->recv_cq, qp);
}

int memory_qp_destroy(void *object)
{
    struct memory_qp *qp = object, **link = &memory_world_of(qp->pd)->qps;
    while (*link != qp) {
        link = &(*link)->next;
    }
    *link = qp->next;
    qp_forget(qp);
    free(qp->ring);
    free(qp->rq.ring);
    memory_event_forget(qp->pd->context, qp->user);
    memory_free(memory_world_of(qp->pd), qp);
    return 0;
}

static void qp_reset(struct memory_qp *qp)
{
    qp_forget(qp);
    qp->posted = qp->executed = qp->done = 0;
    qp->rq.posted = qp->rq.taken = qp->rq.freed = 0;
    qp->attr = (struct ibv_qp_attr){0};
    qp->established = false;
}

static void path_take(struct ibv_qp_attr *to, const struct ibv_qp_attr *attr, int mask)
{
    to->ah_attr = (mask & IBV_QP_AV) != 0 ? attr->ah_attr : to->ah_attr;
    to->dest_qp_num = (mask & IBV_QP_DEST_QPN) != 0 ? attr->dest_qp_num : to->dest_qp_num;
    to->qkey = (mask & IBV_QP_QKEY) != 0 ? attr->qkey : to->qkey;
    to->qp_access_flags = (mask & IBV_QP_ACCESS_FLAGS) != 0 ? attr->qp_access_flags : to->qp_access_flags;
    to->rnr_retry = (mask & IBV_QP_RNR_RETRY) != 0 ? attr->rnr_retry : to->rnr_retry;
    to->max_rd_atomic = (mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 ? attr->max_rd_atomic : to->max_rd_atomic;
    to->max_dest_rd_atomic =
        (mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 ? attr->max_dest_rd_atomic : to->max_dest_rd_atomic;
}

int memory_qp_modify(void *object, const struct ibv_qp_attr *attr, int mask)
{
    struct memory_qp *qp = object;
    path_take(&qp->attr, attr, mask);
    if ((mask & IBV_QP_STATE) == 0) {
        return 0;
    }
    enum ibv_qp_state from = qp->attr.qp_state, to = attr->qp_state;
    qp->attr.qp_state = to;
    if (to == IBV_QPS_RESET) {
        qp_reset(qp);
    } else if (to == IBV_QPS_ERR) {
        qp->attr.qp_state = from;
        memory_qp_fail(qp, -1);
    } else if (to == IBV_QPS_SQD && (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attr->en_sqd_async_notify != 0) {
        memory_qp_event(qp, IBV_EVENT_SQ_DRAINED);
    }
    memory_world_progress(memory_world_of(qp->pd));
    return 0;
}

int memory_qp_query(void *object, struct ibv_qp_attr *attr)
{
    const struct memory_qp *qp = object;
    attr->qp_state = qp->attr.qp_state;
    return 0;
}

void memory_qp_event(struct memory_qp *qp, enum ibv_event_type type)
{
    memory_event_raise(qp->pd->context, &(struct ibverbs_event){.type = type, .user = qp->user});
}

// --- send queues ----------------------------------------------------------------------------------------------------

unsigned memory_send_room(void *object)
{
    const struct memory_qp *qp = object;
    return qp->entries - (qp->posted - qp->done);
}

static void request_copy(struct memory_request *request, const struct ibv_send_wr *wr)
{
    request->wr = *wr;
    request->inline_bytes = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        const struct ibv_sge *sge = &wr->sg_list[i];
        if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
            memcpy(request->inlined + request->inline_bytes, (const void *)(uintptr_t)sge->addr, sge->length);
            request->inline_bytes += sge->length;
        } else {
            request->sges[i] = *sge;
        }
    }
}

int memory_post_send(void *object, const struct ibv_send_wr *wr, unsigned count, const struct ibv_send_wr **bad_out)
{
    struct memory_qp *qp = object;
    int status = 0;
    for (unsigned i = 0; i < count && status == 0; i++) {
        if (memory_send_room(qp) == 0) {
            *bad_out = wr;
            status = -ENOMEM;
        } else {
            request_copy(&qp->ring[qp->posted++ % qp->entries], wr);
            wr = wr->next;
        }
    }
    memory_world_progress(memory_world_of(qp->pd));
    return status;
}
