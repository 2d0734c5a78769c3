// Shared receive queues (IBA 10.2.9; for XRC: annex A14).
#include <stdlib.h>

#include "verbs-shim/ibverbs/note.h"

static int create_check(const struct ibverbs_context *context, const struct ibv_srq_attr *attr)
{
    struct ibverbs_library *library = context->device->library;
    const struct ibv_device_attr *limits = &context->device->info.attr;
    if (attr->max_wr < 1 || attr->max_wr > (uint32_t)limits->max_srq_wr) {
        return ibverbs_refuse(library, -EINVAL, JOURNAL_WHY_LIMIT_SRQ_WR, attr->max_wr, (uint32_t)limits->max_srq_wr);
    }
    return attr->max_sge > (uint32_t)limits->max_srq_sge ? ibverbs_refuse(library, -EINVAL, JOURNAL_WHY_LIMIT_SRQ_SGE,
                                                                          attr->max_sge, (uint32_t)limits->max_srq_sge)
                                                         : 0;
}

// xrc: the XRC objects; NULL: not an XRC queue.
static int device_create(struct ibverbs_srq *srq, struct ibverbs_pd *pd, struct ibv_srq_attr *attr,
                         struct ibverbs_srq_xrc *xrc)
{
    const struct ibverbs_context *context = pd->object.context;
    const struct ibverbs_device_ops *ops = context->device->ops;
    if (context->device->info.attr.max_srq == 0) {
        return -EOPNOTSUPP;
    }
    int status = create_check(context, attr);
    if (status != 0) {
        return status;
    }
    return xrc != NULL ? ops->srq_create_xrc(pd->object.device, attr, xrc, &srq->object, &srq->object.device)
                       : ops->srq_create(pd->object.device, attr, &srq->object, &srq->object.device);
}

static void users_add(struct ibverbs_srq *srq, unsigned count)
{
    ibverbs_pd_of(srq->base.pd)->object.users += count;
    if (srq->xrcd != NULL) {
        srq->xrcd->object.users += count;
        srq->cq->object.users += count;
    }
}

// xrcd, cq: NULL: not an XRC queue.
static int srq_create(struct ibverbs_pd *pd, struct ibv_srq_init_attr *init, struct ibverbs_xrcd *xrcd,
                      struct ibverbs_cq *cq, struct ibverbs_srq **srq_out)
{
    struct ibv_srq_attr attr = init->attr;
    struct ibverbs_srq_xrc xrc = {0};
    struct ibverbs_srq *srq = ibverbs_object_new(pd->object.context, sizeof *srq);
    if (xrcd != NULL) {
        xrc = (struct ibverbs_srq_xrc){.xrcd = xrcd->object.device, .cq = cq->object.device};
    }
    int status = srq != NULL ? device_create(srq, pd, &attr, xrcd != NULL ? &xrc : NULL) : -ENOMEM;
    if (status != 0) {
        ibverbs_object_drop(pd->object.context, srq);
        return status;
    }
    srq->base.context = pd->base.context;
    srq->base.srq_context = init->srq_context;
    srq->base.pd = &pd->base;
    srq->base.handle = pd->object.context->handles++;
    (void)pthread_mutex_init(&srq->base.mutex, NULL);
    (void)pthread_cond_init(&srq->base.cond, NULL);
    srq->max_wr = attr.max_wr;
    srq->max_sge = attr.max_sge;
    srq->xrcd = xrcd;
    srq->cq = cq;
    srq->number = xrc.number;
    init->attr.max_wr = attr.max_wr;
    init->attr.max_sge = attr.max_sge;
    users_add(srq, 1);
    ibverbs_object_add(&srq->object, pd->object.context, IBVERBS_SRQ, srq);
    *srq_out = srq;
    return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *ibv_pd, struct ibv_srq_init_attr *init)
{
    IBVERBS_ENTER_CONTEXT(ibv_pd->context);
    uint64_t began_ps = ibverbs_note_begin(entered);
    struct ibverbs_srq *srq;
    int status = srq_create(ibverbs_pd_of(ibv_pd), init, NULL, NULL, &srq);
    ibverbs_note_object(ibverbs_context_of(ibv_pd->context), began_ps, JOURNAL_CREATE_SRQ, -status,
                        status == 0 ? srq->base.handle : 0, init->attr.max_wr);
    return status == 0 ? &srq->base : ibverbs_fail(status);
}

// The header calls it for queues that ibv_create_srq cannot create: XRC queues, and tag-matching queues, which no
// device has.
struct ibv_srq *ibverbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
    IBVERBS_ENTER_CONTEXT(context);
    uint64_t began_ps = ibverbs_note_begin(entered);
    const uint32_t needed =
        IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    bool has_type = (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0;
    int status = 0;
    if ((has_type && init->srq_type == IBV_SRQT_TM) || (init->comp_mask & ~needed) != 0 ||
        ibverbs_context_of(context)->device->ops->srq_create_xrc == NULL) {
        status = ibverbs_refuse(entered, -EOPNOTSUPP, JOURNAL_WHY_UNSUPPORTED, 0, 0);
    } else if (init->comp_mask != needed || init->srq_type != IBV_SRQT_XRC) {
        status = ibverbs_refuse(entered, -EINVAL, JOURNAL_WHY_UNSUPPORTED, 0, 0);
    } else if (init->pd->context != context || init->xrcd->context != context || init->cq->context != context) {
        status = ibverbs_refuse(entered, -EINVAL, JOURNAL_WHY_OTHER_CONTEXT, 0, 0);
    }
    struct ibverbs_srq *srq;
    status = status != 0 ? status
                         : srq_create(ibverbs_pd_of(init->pd), (struct ibv_srq_init_attr *)(void *)init,
                                      ibverbs_xrcd_of(init->xrcd), ibverbs_cq_of(init->cq), &srq);
    ibverbs_note_object(ibverbs_context_of(context), began_ps, JOURNAL_CREATE_SRQ, -status,
                        status == 0 ? srq->base.handle : 0, init->attr.max_wr);
    return status == 0 ? &srq->base : ibverbs_fail(status);
}

int ibverbs_get_srq_num(struct ibv_srq *ibv_srq, uint32_t *number)
{
    const struct ibverbs_srq *srq = ibverbs_srq_of(ibv_srq);
    if (srq->xrcd == NULL) {
        return EOPNOTSUPP;
    }
    *number = srq->number;
    return 0;
}

// Each call arms the limit once; a queue keeps the size with which it was created.
int ibv_modify_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr, int mask)
{
    IBVERBS_ENTER_CONTEXT(ibv_srq->context);
    struct ibverbs_srq *srq = ibverbs_srq_of(ibv_srq);
    uint64_t began_ps = ibverbs_note_begin(entered);
    int status = 0;
    if ((mask & ~IBV_SRQ_LIMIT) != 0 || ((mask & IBV_SRQ_LIMIT) != 0 && attr->srq_limit > srq->max_wr)) {
        status = ibverbs_refuse(entered, -EINVAL, JOURNAL_WHY_LIMIT_SRQ_LIMIT, attr->srq_limit, srq->max_wr);
    } else if ((mask & IBV_SRQ_LIMIT) != 0) {
        status = ibverbs_ops(&srq->object)->srq_arm(srq->object.device, attr->srq_limit);
    }
    ibverbs_note_object(srq->object.context, began_ps, JOURNAL_MODIFY_SRQ, -status, ibv_srq->handle, attr->srq_limit);
    return ibverbs_status(-status);
}

int ibv_query_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr)
{
    IBVERBS_ENTER_CONTEXT(ibv_srq->context);
    struct ibverbs_srq *srq = ibverbs_srq_of(ibv_srq);
    return ibverbs_status(-ibverbs_ops(&srq->object)->srq_query(srq->object.device, attr));
}

int ibverbs_srq_end(struct ibverbs_object *object)
{
    struct ibverbs_srq *srq = object->container;
    int status = ibverbs_ops(object)->srq_destroy(object->device);
    if (status == 0) {
        users_add(srq, (unsigned)-1);
        ibverbs_queue_purge(&object->context->events, object);
        (void)pthread_mutex_destroy(&srq->base.mutex);
        (void)pthread_cond_destroy(&srq->base.cond);
        ibverbs_object_remove(object);
        free(srq);
    }
    return status;
}

// Refused while queue pairs use it.
int ibv_destroy_srq(struct ibv_srq *ibv_srq)
{
    IBVERBS_ENTER_CONTEXT(ibv_srq->context);
    struct ibverbs_srq *srq = ibverbs_srq_of(ibv_srq);
    uint64_t began_ps = ibverbs_note_begin(entered);
    if (srq->object.users > 0) {
        ibverbs_note_object(srq->object.context, began_ps, JOURNAL_DESTROY_SRQ,
                            ibverbs_refuse(entered, EBUSY, JOURNAL_WHY_BUSY, srq->object.users, 0), ibv_srq->handle, 0);
        return ibverbs_status(EBUSY);
    }
    struct ibverbs_context *context = srq->object.context;
    uint32_t handle = ibv_srq->handle;
    int status = ibverbs_events_settle(context, &ibv_srq->events_completed, srq->events_taken);
    status = status != 0 ? status : ibverbs_srq_end(&srq->object);
    ibverbs_note_object(context, began_ps, JOURNAL_DESTROY_SRQ, -status, handle, 0);
    return ibverbs_status(-status);
}
