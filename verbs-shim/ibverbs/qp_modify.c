// Modify Queue Pair (IBA 11.2.4.2): the transition, then the ranges of the attributes.
#include "verbs-shim/ibverbs/internal.h"

enum {
    PSN_MASK = 0xffffff,
    QPN_MAX = 0xffffff,
    TIMER_MAX = 31,
    RETRY_MAX = 7,
    ACCESS_MASK = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

// 9.7, 11.2.4.2: widths of the fields.
static bool numbers_valid(const struct ibv_qp_attr *attr, int mask)
{
    return ((mask & IBV_QP_TIMEOUT) == 0 || attr->timeout <= TIMER_MAX) &&
           ((mask & IBV_QP_RETRY_CNT) == 0 || attr->retry_cnt <= RETRY_MAX) &&
           ((mask & IBV_QP_RNR_RETRY) == 0 || attr->rnr_retry <= RETRY_MAX) &&
           ((mask & IBV_QP_MIN_RNR_TIMER) == 0 || attr->min_rnr_timer <= TIMER_MAX) &&
           ((mask & IBV_QP_DEST_QPN) == 0 || attr->dest_qp_num <= QPN_MAX);
}

static bool limits_valid(const struct ibverbs_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    const struct ibv_device_attr *limits = &qp->object.context->device->info.attr;
    return ((mask & IBV_QP_MAX_QP_RD_ATOMIC) == 0 || attr->max_rd_atomic <= limits->max_qp_init_rd_atom) &&
           ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) == 0 || attr->max_dest_rd_atomic <= limits->max_qp_rd_atom);
}

// What depends on the port: the one in the mask, or the one that it has.
static bool port_valid(struct ibverbs_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct ibverbs_context *context = qp->object.context;
    unsigned port = (mask & IBV_QP_PORT) != 0 ? attr->port_num : qp->attr.port_num;
    struct ibv_port_attr info;
    if ((mask & (IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MTU)) != 0) {
        if (!ibverbs_port_valid(context, port) ||
            context->device->ops->query_port(context->device->object, port, &info) != 0 ||
            ((mask & IBV_QP_PKEY_INDEX) != 0 && attr->pkey_index >= info.pkey_tbl_len) ||
            ((mask & IBV_QP_PATH_MTU) != 0 && (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > info.max_mtu))) {
            return false;
        }
    }
    return (mask & IBV_QP_AV) == 0 || ibverbs_av_valid(context, &attr->ah_attr);
}

// 10.3.1: the consumer may say which state it believes; a wrong belief is refused.
static bool transition_valid(struct ibverbs_qp *qp, const struct ibv_qp_attr *attr, int mask, enum ibv_qp_state from)
{
    enum ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : from;
    return ((mask & IBV_QP_CUR_STATE) == 0 || attr->cur_qp_state == from) &&
           ibverbs_qp_transition(qp->base.qp_type, from, to, mask);
}

// Programs connect both ends of XRC alike (perftest): what an end does not have is dropped, as Linux does.
static int mask_of_type(enum ibv_qp_type type, int mask)
{
    if (type == IBV_QPT_XRC_SEND) {
        return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    }
    if (type == IBV_QPT_XRC_RECV) {
        return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
    }
    return mask;
}

// --- memory of what was set -----------------------------------------------------------------------------------------

static void path_store(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
    to->ah_attr = (mask & IBV_QP_AV) != 0 ? from->ah_attr : to->ah_attr;
    to->path_mtu = (mask & IBV_QP_PATH_MTU) != 0 ? from->path_mtu : to->path_mtu;
    to->dest_qp_num = (mask & IBV_QP_DEST_QPN) != 0 ? from->dest_qp_num : to->dest_qp_num;
    to->rq_psn = (mask & IBV_QP_RQ_PSN) != 0 ? from->rq_psn : to->rq_psn;
    to->sq_psn = (mask & IBV_QP_SQ_PSN) != 0 ? from->sq_psn : to->sq_psn;
    to->pkey_index = (mask & IBV_QP_PKEY_INDEX) != 0 ? from->pkey_index : to->pkey_index;
    to->port_num = (mask & IBV_QP_PORT) != 0 ? from->port_num : to->port_num;
    to->qkey = (mask & IBV_QP_QKEY) != 0 ? from->qkey : to->qkey;
}

static void attr_store(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
    path_store(to, from, mask);
    to->qp_access_flags = (mask & IBV_QP_ACCESS_FLAGS) != 0 ? from->qp_access_flags : to->qp_access_flags;
    to->timeout = (mask & IBV_QP_TIMEOUT) != 0 ? from->timeout : to->timeout;
    to->retry_cnt = (mask & IBV_QP_RETRY_CNT) != 0 ? from->retry_cnt : to->retry_cnt;
    to->rnr_retry = (mask & IBV_QP_RNR_RETRY) != 0 ? from->rnr_retry : to->rnr_retry;
    to->min_rnr_timer = (mask & IBV_QP_MIN_RNR_TIMER) != 0 ? from->min_rnr_timer : to->min_rnr_timer;
    to->max_rd_atomic = (mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 ? from->max_rd_atomic : to->max_rd_atomic;
    to->max_dest_rd_atomic =
        (mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 ? from->max_dest_rd_atomic : to->max_dest_rd_atomic;
    to->en_sqd_async_notify =
        (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 ? from->en_sqd_async_notify : to->en_sqd_async_notify;
}

int ibv_modify_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *given, int mask)
{
    IBVERBS_ENTER_CONTEXT(ibv_qp->context);
    struct ibverbs_qp *qp = ibverbs_qp_of(ibv_qp);
    struct ibv_qp_attr attr = *given;
    mask = mask_of_type(ibv_qp->qp_type, mask);
    if (!transition_valid(qp, &attr, mask, ibverbs_qp_state(qp))) {
        return ibverbs_status(EINVAL);
    }
    if ((mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)) != 0) {
        return ibverbs_status(EOPNOTSUPP);
    }
    if (!numbers_valid(&attr, mask) || !limits_valid(qp, &attr, mask) || !port_valid(qp, &attr, mask)) {
        return ibverbs_status(EINVAL);
    }
    attr.sq_psn &= PSN_MASK; // as hardware, which has no more bits, and
    attr.rq_psn &= PSN_MASK;
    attr.qp_access_flags &= ACCESS_MASK; // as drivers, which look for the rights that a queue pair can have
    int status = ibverbs_ops(&qp->object)->qp_modify(qp->object.device, &attr, mask);
    if (status != 0) {
        return ibverbs_status(-status);
    }
    if ((mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_RESET) {
        qp->attr = (struct ibv_qp_attr){.cap = qp->attr.cap};
    }
    attr_store(&qp->attr, &attr, mask);
    ibv_qp->state = (mask & IBV_QP_STATE) != 0 ? attr.qp_state : ibv_qp->state;
    return 0;
}
