// Queue pairs: creation, destruction and query (IBA 11.2.4).
#include <stdlib.h>

#include "verbs-shim/ibverbs/check.h"

// --- operations -----------------------------------------------------------------------------------------------------

enum { QP_TYPE_MAX = IBV_QPT_XRC_RECV };

uint32_t ibverbs_qp_type_ops(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND:
        return ibverbs_opcode_operations(HCA_ON_RC);
    case IBV_QPT_UC:
        return ibverbs_opcode_operations(HCA_ON_UC);
    case IBV_QPT_UD:
        return ibverbs_opcode_operations(HCA_ON_UD);
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_XRC_RECV: // sends nothing
    case IBV_QPT_DRIVER:
        break;
    }
    return 0;
}

// --- creation -------------------------------------------------------------------------------------------------------

static int limits_check(struct ibverbs_library *library, const struct ibverbs_device_info *info,
                        const struct ibv_qp_cap *cap, bool receives)
{
    const struct {
        enum journal_reason reason;
        uint32_t asked, most;
    } limits[] = {
        {JOURNAL_WHY_LIMIT_SEND_WR, cap->max_send_wr, (uint32_t)info->attr.max_qp_wr},
        {JOURNAL_WHY_LIMIT_SEND_SGE, cap->max_send_sge, (uint32_t)info->attr.max_sge},
        {JOURNAL_WHY_LIMIT_INLINE, cap->max_inline_data, info->max_inline_bytes},
        {JOURNAL_WHY_LIMIT_RECV_WR, receives ? cap->max_recv_wr : 0, (uint32_t)info->attr.max_qp_wr},
        {JOURNAL_WHY_LIMIT_RECV_SGE, receives ? cap->max_recv_sge : 0, (uint32_t)info->attr.max_sge},
    };
    for (unsigned i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (limits[i].asked > limits[i].most) {
            return ibverbs_refuse(library, -EINVAL, limits[i].reason, limits[i].asked, limits[i].most);
        }
    }
    return 0;
}

// The CQs and the SRQ must belong to the same context; the SRQ may belong to another protection domain (10.2.9).
static int create_check(const struct ibverbs_context *context, const struct ibv_qp_init_attr *init)
{
    struct ibverbs_library *library = context->device->library;
    const struct ibverbs_device_info *info = &context->device->info;
    const struct ibv_context *base = &context->verbs.context;
    if ((unsigned)init->qp_type > QP_TYPE_MAX || (info->qp_types & 1u << init->qp_type) == 0) {
        return ibverbs_refuse(library, -EOPNOTSUPP, JOURNAL_WHY_QP_TYPE, init->qp_type, 0);
    }
    if (init->qp_type == IBV_QPT_XRC_RECV) {
        return 0; // none of the following applies
    }
    bool may_receive = init->qp_type != IBV_QPT_XRC_SEND;
    if (init->send_cq == NULL || (may_receive && init->recv_cq == NULL)) {
        return ibverbs_refuse(library, -EINVAL, JOURNAL_WHY_NO_CQ, 0, 0);
    }
    if (init->srq != NULL && (!may_receive || ibverbs_srq_of(init->srq)->xrcd != NULL)) {
        return ibverbs_refuse(library, -EINVAL, JOURNAL_WHY_UNSUPPORTED, 0, 0);
    }
    if (init->send_cq->context != base || (may_receive && init->recv_cq->context != base) ||
        (init->srq != NULL && init->srq->context != base)) {
        return ibverbs_refuse(library, -EINVAL, JOURNAL_WHY_OTHER_CONTEXT, 0, 0);
    }
    return limits_check(library, info, &init->cap, init->srq == NULL && may_receive);
}

static void *cq_object(struct ibv_cq *cq)
{
    return cq != NULL ? ibverbs_cq_of(cq)->object.device : NULL;
}

static int device_create(struct ibverbs_qp *qp, const struct ibverbs_device_ops *ops, struct ibv_pd *pd,
                         const struct ibv_qp_init_attr *init)
{
    bool target = init->qp_type == IBV_QPT_XRC_RECV;
    struct ibverbs_qp_create create = {
        .type = init->qp_type,
        .xrcd = qp->xrcd != NULL ? qp->xrcd->object.device : NULL,
        .send_cq = target ? NULL : cq_object(init->send_cq),
        .recv_cq = target || init->qp_type == IBV_QPT_XRC_SEND ? NULL : cq_object(init->recv_cq),
        .srq = !target && init->srq != NULL ? ibverbs_srq_of(init->srq)->object.device : NULL,
        .cap = target ? (struct ibv_qp_cap){0} : init->cap,
        .all_signaled = init->sq_sig_all != 0,
        .user = &qp->object,
    };
    int status =
        ops->qp_create(target ? NULL : ibverbs_pd_of(pd)->object.device, &create, &qp->object.device, &qp->base.qp_num);
    qp->attr.cap = create.cap;
    return status;
}

static void users_add(struct ibverbs_qp *qp, unsigned count)
{
    struct ibv_cq *const cqs[] = {qp->base.send_cq, qp->base.recv_cq};
    for (unsigned i = 0; i < 2; i++) {
        if (cqs[i] != NULL) {
            ibverbs_cq_of(cqs[i])->object.users += count;
        }
    }
    if (qp->base.pd != NULL) {
        ibverbs_pd_of(qp->base.pd)->object.users += count;
    }
    if (qp->base.srq != NULL) {
        ibverbs_srq_of(qp->base.srq)->object.users += count;
    }
    if (qp->xrcd != NULL) {
        qp->xrcd->object.users += count;
    }
}

static void qp_fill(struct ibverbs_qp *qp, struct ibverbs_context *context, struct ibv_pd *pd,
                    const struct ibv_qp_init_attr *init)
{
    struct ibv_qp *base = &qp->base;
    base->context = &context->verbs.context;
    base->qp_context = init->qp_context;
    if (init->qp_type != IBV_QPT_XRC_RECV) {
        base->pd = pd;
        base->send_cq = init->send_cq;
        base->recv_cq = init->qp_type != IBV_QPT_XRC_SEND ? init->recv_cq : NULL;
        base->srq = init->srq;
    }
    base->handle = context->handles++;
    base->state = IBV_QPS_RESET;
    base->qp_type = init->qp_type;
    (void)pthread_mutex_init(&base->mutex, NULL);
    (void)pthread_cond_init(&base->cond, NULL);
    qp->send_ops = ibverbs_qp_type_ops(init->qp_type) & context->device->info.send_ops;
    qp->all_signaled = init->sq_sig_all != 0;
}

// pd: NULL for XRC_RECV, which has an XRC domain instead.
static int qp_create(struct ibverbs_context *context, struct ibv_pd *pd, struct ibverbs_xrcd *xrcd,
                     struct ibv_qp_init_attr *init, struct ibverbs_qp **qp_out)
{
    struct ibverbs_qp *qp = ibverbs_object_new(context, sizeof *qp);
    int status = qp != NULL ? create_check(context, init) : -ENOMEM;
    if (status == 0) {
        qp->xrcd = xrcd;
        status = (init->qp_type == IBV_QPT_XRC_RECV) != (xrcd != NULL) || (xrcd == NULL && pd == NULL) ? -EINVAL : 0;
    }
    status = status != 0 ? status : device_create(qp, context->device->ops, pd, init);
    if (status != 0) {
        ibverbs_object_drop(context, qp);
        return status;
    }
    qp_fill(qp, context, pd, init);
    users_add(qp, 1);
    ibverbs_object_add(&qp->object, context, IBVERBS_QP, qp);
    init->cap = qp->attr.cap;
    *qp_out = qp;
    return 0;
}

static void creation_note(struct ibverbs_context *context, uint64_t began_ps, int status, struct ibverbs_qp *qp,
                          const struct ibv_qp_init_attr *init)
{
    if (status == 0) {
        ibverbs_note_qp(qp, began_ps, 0);
    } else {
        ibverbs_note_qp_refused(context, began_ps, -status, init);
    }
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    IBVERBS_ENTER_CONTEXT(pd->context);
    uint64_t began_ps = ibverbs_note_begin(entered);
    struct ibverbs_qp *qp;
    int status = qp_create(ibverbs_context_of(pd->context), pd, NULL, init, &qp);
    creation_note(ibverbs_context_of(pd->context), began_ps, status, qp, init);
    return status == 0 ? &qp->base : ibverbs_fail(status);
}

// Of the extensions to ibv_create_qp only the operations of ibv_qp_ex are supported; creation flags must be 0.
static int extended_check(const struct ibverbs_context *context, const struct ibv_qp_init_attr_ex *init)
{
    const uint32_t domain = init->qp_type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
    const uint32_t known =
        domain | IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    uint64_t ops = ibverbs_qp_type_ops(init->qp_type) & context->device->info.send_ops;
    if ((init->comp_mask & ~known) != 0 ||
        ((init->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && init->create_flags != 0) ||
        ((init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 && (init->send_ops_flags & ~ops) != 0)) {
        return -EOPNOTSUPP;
    }
    if ((init->comp_mask & domain) == 0) {
        return -EINVAL;
    }
    const struct ibv_context *of = domain == IBV_QP_INIT_ATTR_PD ? init->pd->context : init->xrcd->context;
    return of == &context->verbs.context ? 0 : -EINVAL;
}

struct ibv_qp *ibverbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
    IBVERBS_ENTER_CONTEXT(context);
    uint64_t began_ps = ibverbs_note_begin(entered);
    struct ibverbs_qp *qp;
    int status = extended_check(ibverbs_context_of(context), init);
    if (status == 0) {
        bool target = init->qp_type == IBV_QPT_XRC_RECV;
        status = qp_create(ibverbs_context_of(context), target ? NULL : init->pd,
                           target ? ibverbs_xrcd_of(init->xrcd) : NULL, (struct ibv_qp_init_attr *)(void *)init, &qp);
    }
    if (status == 0 && (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
        status = ibverbs_builder_create(qp, init->send_ops_flags);
        if (status != 0) {
            (void)ibverbs_qp_end(&qp->object);
        }
    }
    creation_note(ibverbs_context_of(context), began_ps, status, qp, (struct ibv_qp_init_attr *)(void *)init);
    return status == 0 ? &qp->base : ibverbs_fail(status);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv_qp)
{
    struct ibverbs_qp *qp = ibverbs_qp_of(ibv_qp);
    return qp->builder != NULL ? &qp->ex : NULL;
}

// --- end ------------------------------------------------------------------------------------------------------------

int ibverbs_qp_end(struct ibverbs_object *object)
{
    struct ibverbs_qp *qp = object->container;
    object->ending = true;
    int status = ibverbs_ops(object)->qp_destroy(object->device);
    if (status != 0) {
        object->ending = false;
        return status;
    }
    ibverbs_check_end(qp);
    users_add(qp, (unsigned)-1);
    ibverbs_queue_purge(&object->context->events, object);
    (void)pthread_mutex_destroy(&qp->base.mutex);
    (void)pthread_cond_destroy(&qp->base.cond);
    ibverbs_object_remove(object);
    ibverbs_builder_destroy(qp->builder);
    free(qp);
    return 0;
}

// Requests that are not complete, and completions that were not polled, are dropped (11.2.4.4).
int ibv_destroy_qp(struct ibv_qp *ibv_qp)
{
    IBVERBS_ENTER_CONTEXT(ibv_qp->context);
    struct ibverbs_qp *qp = ibverbs_qp_of(ibv_qp);
    uint64_t began_ps = ibverbs_note_begin(entered);
    struct journal_record record = ibverbs_record_qp(qp);
    struct ibverbs_context *context = qp->object.context;
    int status = ibverbs_events_settle(context, &ibv_qp->events_completed, qp->events_taken);
    status = status != 0 ? status : ibverbs_qp_end(&qp->object);
    ibverbs_note_end(context, began_ps, JOURNAL_DESTROY_QP, -status, &record);
    return ibverbs_status(-status);
}

// --- query ----------------------------------------------------------------------------------------------------------

enum ibv_qp_state ibverbs_qp_state(struct ibverbs_qp *qp)
{
    struct ibv_qp_attr attr = qp->attr;
    return ibverbs_ops(&qp->object)->qp_query(qp->object.device, &attr) == 0 ? attr.qp_state : IBV_QPS_RESET;
}

int ibv_query_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    IBVERBS_ENTER_CONTEXT(ibv_qp->context);
    struct ibverbs_qp *qp = ibverbs_qp_of(ibv_qp);
    struct ibv_qp_attr now = qp->attr;
    int status = ibverbs_ops(&qp->object)->qp_query(qp->object.device, &now);
    if (status != 0) {
        return ibverbs_status(-status);
    }
    now.cur_qp_state = now.qp_state;
    *attr = now;
    *init = (struct ibv_qp_init_attr){.qp_context = ibv_qp->qp_context,
                                      .send_cq = ibv_qp->send_cq,
                                      .recv_cq = ibv_qp->recv_cq,
                                      .srq = ibv_qp->srq,
                                      .cap = now.cap,
                                      .qp_type = ibv_qp->qp_type,
                                      .sq_sig_all = qp->all_signaled};
    if ((mask & IBV_QP_STATE) != 0) {
        ibv_qp->state = now.qp_state;
    }
    return 0;
}
