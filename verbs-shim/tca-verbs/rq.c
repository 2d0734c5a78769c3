// Receive queues, of one queue pair or shared.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/tca-verbs/internal.h"

int tcav_rq_init(struct tcav_rq *rq, unsigned size)
{
    *rq = (struct tcav_rq){.wrs = calloc(size != 0 ? size : 1, sizeof *rq->wrs), .size = size};
    return rq->wrs != NULL ? 0 : -ENOMEM;
}

static int post(struct tcav_context *context, struct tcav_rq *rq, const struct ibv_recv_wr *wr, unsigned count,
                const struct ibv_recv_wr **bad_out)
{
    context->repeats = false;
    tcav_pay(context, BACKEND_COST_CALL, 1);
    tcav_pay(context, BACKEND_COST_LOCK, 1);
    for (; count != 0; count--, wr = wr->next) {
        if (rq->count == rq->size) {
            *bad_out = wr;
            return -ENOMEM;
        }
        struct tcav_receive *receive = &rq->wrs[(rq->head + rq->count++) % rq->size];
        *receive = (struct tcav_receive){.id = wr->wr_id, .sges = (unsigned)wr->num_sge};
        if (wr->num_sge != 0) {
            memcpy(receive->sge, wr->sg_list, (unsigned)wr->num_sge * sizeof *wr->sg_list);
        }
        tcav_pay(context, BACKEND_COST_LOAD_STORE, 2 + 2 * receive->sges);
    }
    return 0;
}

static struct tcav_receive pop(struct tcav_rq *rq)
{
    struct tcav_receive receive = rq->wrs[rq->head];
    rq->head = (rq->head + 1) % rq->size;
    rq->count--;
    return receive;
}

bool tcav_rq_take(struct tcav_qp *qp, struct tcav_receive *receive_out)
{
    struct tcav_srq *srq = qp->srq;
    struct tcav_rq *rq = srq != NULL ? &srq->rq : &qp->rq;
    if (rq->count == 0) {
        return false;
    }
    *receive_out = pop(rq);
    if (srq != NULL && srq->limit != 0 && rq->count < srq->limit) {
        srq->limit = 0; // IBA 10.2.9.3: only once
        tcav_event_async(qp->pd->context, IBV_EVENT_SRQ_LIMIT_REACHED, srq->user);
    }
    return true;
}

int tcav_post_recv(void *object, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out)
{
    struct tcav_qp *qp = object;
    int error = post(qp->pd->context, &qp->rq, wr, count, bad_out);
    if (qp->state == IBV_QPS_ERR) {
        tcav_qp_fail(qp); // flushes what was posted
    }
    return error;
}

int tcav_post_srq_recv(void *object, const struct ibv_recv_wr *wr, unsigned count, const struct ibv_recv_wr **bad_out)
{
    struct tcav_srq *srq = object;
    return post(srq->pd->context, &srq->rq, wr, count, bad_out);
}

int tcav_srq_create(void *pd, struct ibv_srq_attr *attr, void *user, void **srq_out)
{
    struct tcav_pd *owner = pd;
    struct tcav_context *context = owner->context;
    tcav_pay(context, BACKEND_COST_CALL, 1);
    struct tcav_srq *srq = calloc(1, sizeof *srq);
    if (srq == NULL || tcav_rq_init(&srq->rq, attr->max_wr) != 0) {
        free(srq);
        return -ENOMEM;
    }
    srq->next = context->srqs;
    srq->pd = owner;
    srq->user = user;
    srq->max_sge = attr->max_sge;
    context->srqs = srq;
    owner->users++;
    *srq_out = srq;
    return 0;
}

int tcav_srq_destroy(void *object)
{
    struct tcav_srq *srq = object;
    struct tcav_context *context = srq->pd->context;
    if (srq->users != 0) {
        return -EBUSY;
    }
    tcav_pay(context, BACKEND_COST_CALL, 1);
    struct tcav_srq **link = &context->srqs;
    while (*link != srq) {
        link = &(*link)->next;
    }
    *link = srq->next;
    srq->pd->users--;
    tcav_events_purge(context, srq->user);
    free(srq->rq.wrs);
    free(srq);
    return 0;
}

int tcav_srq_arm(void *object, unsigned limit)
{
    struct tcav_srq *srq = object;
    tcav_pay(srq->pd->context, BACKEND_COST_CALL, 1);
    srq->limit = limit;
    if (limit != 0 && srq->rq.count < limit) {
        srq->limit = 0;
        tcav_event_async(srq->pd->context, IBV_EVENT_SRQ_LIMIT_REACHED, srq->user);
    }
    return 0;
}

int tcav_srq_query(void *object, struct ibv_srq_attr *attr_out)
{
    struct tcav_srq *srq = object;
    tcav_pay(srq->pd->context, BACKEND_COST_CALL, 1);
    *attr_out = (struct ibv_srq_attr){.max_wr = srq->rq.size, .max_sge = srq->max_sge, .srq_limit = srq->limit};
    return 0;
}
