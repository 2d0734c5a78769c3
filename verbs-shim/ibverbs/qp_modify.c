// Modify Queue Pair (IBA 11.2.4.2): the transition, then the ranges of the attributes.
#include "verbs-shim/ibverbs/check.h"

enum {
    PSN_MASK = 0xffffff,
    QPN_MAX = 0xffffff,
    TIMER_MAX = 31,
    RETRY_MAX = 7,
    ACCESS_MASK = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

struct range {
    int attribute;
    uint64_t value, least, most;
};

static int ranges_check(struct ibverbs_library *library, int mask, const struct range *ranges, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct range *range = &ranges[i];
        if ((mask & range->attribute) != 0 && (range->value < range->least || range->value > range->most)) {
            return ibverbs_refuse(library, EINVAL, JOURNAL_WHY_ATTRIBUTE_RANGE, (unsigned)range->attribute,
                                  range->value);
        }
    }
    return 0;
}

// 9.7, 11.2.4.2: checks the widths of the fields and the device's limits.
static int numbers_check(const struct ibverbs_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    const struct ibv_device_attr *limits = &qp->object.context->device->info.attr;
    const struct range ranges[] = {
        {IBV_QP_TIMEOUT, attr->timeout, 0, TIMER_MAX},
        {IBV_QP_RETRY_CNT, attr->retry_cnt, 0, RETRY_MAX},
        {IBV_QP_RNR_RETRY, attr->rnr_retry, 0, RETRY_MAX},
        {IBV_QP_MIN_RNR_TIMER, attr->min_rnr_timer, 0, TIMER_MAX},
        {IBV_QP_DEST_QPN, attr->dest_qp_num, 0, QPN_MAX},
        {IBV_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic, 0, (uint64_t)limits->max_qp_init_rd_atom},
        {IBV_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic, 0, (uint64_t)limits->max_qp_rd_atom},
    };
    return ranges_check(qp->object.context->device->library, mask, ranges, sizeof ranges / sizeof ranges[0]);
}

// Checks what depends on the port: the port in the mask, or the queue pair's current port.
static int port_check(struct ibverbs_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct ibverbs_context *context = qp->object.context;
    struct ibverbs_library *library = context->device->library;
    unsigned port = (mask & IBV_QP_PORT) != 0 ? attr->port_num : qp->attr.port_num;
    struct ibv_port_attr info;
    if ((mask & (IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MTU)) != 0) {
        if (!ibverbs_port_valid(context, port) ||
            context->device->ops->query_port(context->device->object, port, &info) != 0) {
            return ibverbs_refuse(library, EINVAL, JOURNAL_WHY_ATTRIBUTE_RANGE, IBV_QP_PORT, port);
        }
        const struct range ranges[] = {
            {IBV_QP_PKEY_INDEX, attr->pkey_index, 0, (uint64_t)info.pkey_tbl_len - 1},
            {IBV_QP_PATH_MTU, attr->path_mtu, IBV_MTU_256, info.max_mtu},
        };
        int error = ranges_check(library, mask, ranges, sizeof ranges / sizeof ranges[0]);
        if (error != 0) {
            return error;
        }
    }
    return (mask & IBV_QP_AV) == 0 || ibverbs_av_valid(context, &attr->ah_attr)
               ? 0
               : ibverbs_refuse(library, EINVAL, JOURNAL_WHY_ADDRESS_VECTOR, 0, 0);
}

// 10.3.1: the program may name the current state; a wrong state is refused.
static int transition_check(struct ibverbs_qp *qp, const struct ibv_qp_attr *attr, int mask, enum ibv_qp_state from)
{
    struct ibverbs_library *library = qp->object.context->device->library;
    enum ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : from;
    int missing = 0, surplus = 0;
    if ((mask & IBV_QP_CUR_STATE) != 0 && attr->cur_qp_state != from) {
        return ibverbs_refuse(library, EINVAL, JOURNAL_WHY_CURRENT_STATE, from, attr->cur_qp_state);
    }
    if (!ibverbs_qp_transition_lacks(qp->base.qp_type, from, to, mask, &missing, &surplus)) {
        return ibverbs_refuse(library, EINVAL, JOURNAL_WHY_TRANSITION, from, to);
    }
    if (missing != 0) {
        return ibverbs_refuse(library, EINVAL, JOURNAL_WHY_ATTRIBUTES_MISSING, (unsigned)missing, 0);
    }
    return surplus != 0 ? ibverbs_refuse(library, EINVAL, JOURNAL_WHY_ATTRIBUTES_UNKNOWN, (unsigned)surplus, 0) : 0;
}

// Programs pass the same attributes to both ends of XRC (perftest): attributes that an end does not have are dropped,
// as Linux does.
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

// --- attributes set by the program ----------------------------------------------------------------------------------

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

static int modify(struct ibverbs_qp *qp, struct ibv_qp_attr *attr, int mask, enum ibv_qp_state from)
{
    int error = transition_check(qp, attr, mask, from);
    if (error != 0) {
        return error;
    }
    if ((mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)) != 0) {
        return ibverbs_refuse(qp->object.context->device->library, EOPNOTSUPP, JOURNAL_WHY_UNSUPPORTED, 0, 0);
    }
    error = numbers_check(qp, attr, mask);
    error = error != 0 ? error : port_check(qp, attr, mask);
    if (error != 0) {
        return error;
    }
    attr->sq_psn &= PSN_MASK; // as hardware does, which has no more bits
    attr->rq_psn &= PSN_MASK;
    attr->qp_access_flags &= ACCESS_MASK; // as drivers do, which use only the rights that a queue pair can have
    int status = ibverbs_ops(&qp->object)->qp_modify(qp->object.device, attr, mask);
    if (status == -EINVAL && (mask & IBV_QP_AV) != 0) {
        (void)ibverbs_refuse(qp->object.context->device->library, 0, JOURNAL_WHY_LID, attr->ah_attr.dlid, 0);
    }
    if (status != 0) {
        return -status;
    }
    if ((mask & IBV_QP_STATE) != 0 && attr->qp_state == IBV_QPS_RESET) {
        qp->attr = (struct ibv_qp_attr){.cap = qp->attr.cap};
        ibverbs_check_end(qp); // 10.3.1: its requests were dropped
    }
    attr_store(&qp->attr, attr, mask);
    qp->base.state = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : qp->base.state;
    return 0;
}

int ibv_modify_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *given, int mask)
{
    IBVERBS_ENTER_CONTEXT(ibv_qp->context);
    struct ibverbs_qp *qp = ibverbs_qp_of(ibv_qp);
    struct ibv_qp_attr attr = *given;
    uint64_t began_ps = ibverbs_note_begin(entered);
    mask = mask_of_type(ibv_qp->qp_type, mask);
    enum ibv_qp_state from = ibverbs_qp_state(qp);
    int error = modify(qp, &attr, mask, from);
    ibverbs_note_modify(qp, began_ps, error, &attr, mask, from);
    return ibverbs_status(error);
}
