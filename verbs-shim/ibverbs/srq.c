// Shared receive queues (IBA 10.2.9).
#include <stdlib.h>

#include "verbs-shim/ibverbs/internal.h"

static bool create_valid(const struct ibverbs_context *context, const struct ibv_srq_attr *attr)
{
    const struct ibv_device_attr *limits = &context->device->info.attr;
    return attr->max_wr >= 1 && attr->max_wr <= (uint32_t)limits->max_srq_wr &&
           attr->max_sge <= (uint32_t)limits->max_srq_sge;
}

static int srq_create(struct ibverbs_srq *srq, struct ibverbs_pd *pd, struct ibv_srq_attr *attr)
{
    const struct ibverbs_context *context = pd->object.context;
    if (context->device->info.attr.max_srq == 0) {
        return -EOPNOTSUPP;
    }
    if (!create_valid(context, attr)) {
        return -EINVAL;
    }
    return context->device->ops->srq_create(pd->object.device, attr, &srq->object, &srq->object.device);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *ibv_pd, struct ibv_srq_init_attr *init)
{
    IBVERBS_ENTER_CONTEXT(ibv_pd->context);
    struct ibverbs_pd *pd = ibverbs_pd_of(ibv_pd);
    struct ibv_srq_attr attr = init->attr;
    struct ibverbs_srq *srq = ibverbs_object_new(pd->object.context, sizeof *srq);
    int status = srq != NULL ? srq_create(srq, pd, &attr) : -ENOMEM;
    if (status != 0) {
        ibverbs_object_drop(pd->object.context, srq);
        return ibverbs_fail(status);
    }
    srq->base.context = ibv_pd->context;
    srq->base.srq_context = init->srq_context;
    srq->base.pd = ibv_pd;
    srq->base.handle = pd->object.context->handles++;
    (void)pthread_mutex_init(&srq->base.mutex, NULL);
    (void)pthread_cond_init(&srq->base.cond, NULL);
    srq->max_wr = attr.max_wr;
    srq->max_sge = attr.max_sge;
    init->attr.max_wr = attr.max_wr;
    init->attr.max_sge = attr.max_sge;
    pd->object.users++;
    ibverbs_object_add(&srq->object, pd->object.context, IBVERBS_SRQ, srq);
    return &srq->base;
}

// The limit is armed once for each call; queues keep the size they were made with.
int ibv_modify_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr, int mask)
{
    IBVERBS_ENTER_CONTEXT(ibv_srq->context);
    struct ibverbs_srq *srq = ibverbs_srq_of(ibv_srq);
    if ((mask & ~IBV_SRQ_LIMIT) != 0 || ((mask & IBV_SRQ_LIMIT) != 0 && attr->srq_limit > srq->max_wr)) {
        return ibverbs_status(EINVAL);
    }
    return ibverbs_status(
        (mask & IBV_SRQ_LIMIT) != 0 ? -ibverbs_ops(&srq->object)->srq_arm(srq->object.device, attr->srq_limit) : 0);
}

int ibv_query_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr)
{
    IBVERBS_ENTER_CONTEXT(ibv_srq->context);
    struct ibverbs_srq *srq = ibverbs_srq_of(ibv_srq);
    return ibverbs_status(-ibverbs_ops(&srq->object)->srq_query(srq->object.device, attr));
}

int ibverbs_srq_end(struct ibverbs_object *object)
{
    struct ibverbs_srq *srq = object->face;
    int status = ibverbs_ops(object)->srq_destroy(object->device);
    if (status == 0) {
        ibverbs_pd_of(srq->base.pd)->object.users--;
        ibverbs_queue_purge(&object->context->events, object);
        (void)pthread_mutex_destroy(&srq->base.mutex);
        (void)pthread_cond_destroy(&srq->base.cond);
        ibverbs_object_remove(object);
        free(srq);
    }
    return status;
}

// Not while queue pairs use it.
int ibv_destroy_srq(struct ibv_srq *ibv_srq)
{
    IBVERBS_ENTER_CONTEXT(ibv_srq->context);
    struct ibverbs_srq *srq = ibverbs_srq_of(ibv_srq);
    if (srq->object.users > 0) {
        return ibverbs_status(EBUSY);
    }
    int status = ibverbs_events_settle(srq->object.context, &ibv_srq->events_completed, srq->events_taken);
    return ibverbs_status(status != 0 ? -status : -ibverbs_srq_end(&srq->object));
}
