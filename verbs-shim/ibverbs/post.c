// Posting work requests (IBA 11.4.1).
//
// The list goes to the device as far as it is good; the first bad one is named. Codes are those of the driver of the
// ConnectX generations that are modelled (libmlx4): too many segments of a send and too much inline data are ENOMEM.
// Too many of a receive are EINVAL, as rdma-core's own tests ask of every device.
#include "verbs-shim/ibverbs/internal.h"

enum {
    SEND_DATA = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
                IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
};

// --- send -----------------------------------------------------------------------------------------------------------

static bool inline_fits(const struct ibverbs_qp *qp, const struct ibv_send_wr *wr)
{
    uint64_t bytes = 0;
    for (int i = 0; i < wr->num_sge; i++) {
        bytes += wr->sg_list[i].length;
    }
    return bytes <= qp->attr.cap.max_inline_data;
}

int ibverbs_send_check(struct ibverbs_qp *qp, const struct ibv_send_wr *wr)
{
    uint32_t op = ibverbs_opcode_op(wr->opcode);
    bool is_inline = (wr->send_flags & IBV_SEND_INLINE) != 0;
    if ((op & qp->send_ops) == 0 || wr->num_sge < 0 || (is_inline && (op & SEND_DATA) == 0) ||
        (wr->send_flags & IBV_SEND_IP_CSUM) != 0) {
        return EINVAL;
    }
    if (qp->base.qp_type == IBV_QPT_UD && (wr->wr.ud.ah == NULL || wr->wr.ud.ah->pd != qp->base.pd)) {
        return EINVAL; // 10.2.3: address handles are of the queue pair's domain
    }
    bool fits = (uint32_t)wr->num_sge <= qp->attr.cap.max_send_sge && (!is_inline || inline_fits(qp, wr));
    return fits ? 0 : ENOMEM;
}

// 10.3.1: RESET, INIT and RTR take no send requests. What the program has set is asked first: only the device knows
// of a queue pair that went to ERR by itself.
static bool sends(struct ibverbs_qp *qp)
{
    if (qp->base.state != IBV_QPS_RTR && qp->base.state != IBV_QPS_INIT && qp->base.state != IBV_QPS_RESET) {
        return true;
    }
    return ibverbs_qp_state(qp) == IBV_QPS_ERR;
}

int ibverbs_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    IBVERBS_ENTER_CONTEXT(ibv_qp->context);
    struct ibverbs_qp *qp = ibverbs_qp_of(ibv_qp);
    unsigned count = 0;
    struct ibv_send_wr *at = wr;
    int error = sends(qp) ? 0 : EINVAL;
    while (error == 0 && at != NULL) {
        error = ibverbs_send_check(qp, at);
        count += error == 0;
        at = error == 0 ? at->next : at;
    }
    if (count > 0) {
        const struct ibv_send_wr *refused = NULL;
        int status = ibverbs_ops(&qp->object)->post_send(qp->object.device, wr, count, &refused);
        if (status != 0) {
            *bad = (struct ibv_send_wr *)(uintptr_t)refused;
            return -status;
        }
    }
    if (error != 0) {
        *bad = at;
    }
    return error;
}

// --- receive --------------------------------------------------------------------------------------------------------

// How many of the list have segments that fit; *bad_out: the first that has not, NULL: there is none.
static unsigned receives_count(struct ibv_recv_wr *wr, uint32_t max_sge, struct ibv_recv_wr **bad_out)
{
    unsigned count = 0;
    while (wr != NULL && wr->num_sge >= 0 && (uint32_t)wr->num_sge <= max_sge) {
        wr = wr->next;
        count++;
    }
    *bad_out = wr;
    return count;
}

static int receives_end(int status, const struct ibv_recv_wr *refused, struct ibv_recv_wr *too_long,
                        struct ibv_recv_wr **bad)
{
    if (status != 0) {
        *bad = (struct ibv_recv_wr *)(uintptr_t)refused;
        return -status;
    }
    if (too_long != NULL) {
        *bad = too_long;
        return EINVAL;
    }
    return 0;
}

// 10.3.1: RESET takes none. 10.2.9: nor does a queue pair with a shared queue.
int ibverbs_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    IBVERBS_ENTER_CONTEXT(ibv_qp->context);
    struct ibverbs_qp *qp = ibverbs_qp_of(ibv_qp);
    bool receives = ibv_qp->recv_cq != NULL && ibv_qp->srq == NULL;
    if (!receives || (ibv_qp->state == IBV_QPS_RESET && wr != NULL)) {
        *bad = wr;
        return EINVAL;
    }
    struct ibv_recv_wr *too_long;
    const struct ibv_recv_wr *refused = NULL;
    unsigned count = receives_count(wr, qp->attr.cap.max_recv_sge, &too_long);
    int status = count > 0 ? ibverbs_ops(&qp->object)->post_recv(qp->object.device, wr, count, &refused) : 0;
    return receives_end(status, refused, too_long, bad);
}

int ibverbs_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    IBVERBS_ENTER_CONTEXT(ibv_srq->context);
    struct ibverbs_srq *srq = ibverbs_srq_of(ibv_srq);
    struct ibv_recv_wr *too_long;
    const struct ibv_recv_wr *refused = NULL;
    unsigned count = receives_count(wr, srq->max_sge, &too_long);
    int status = count > 0 ? ibverbs_ops(&srq->object)->post_srq_recv(srq->object.device, wr, count, &refused) : 0;
    return receives_end(status, refused, too_long, bad);
}
