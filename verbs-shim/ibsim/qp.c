// Queue pairs and shared receive queues.
#include <stdlib.h>

#include "verbs-shim/ibsim/ibsim.h"
#include "verbs-shim/ibsim/ibsim_internal.h"

// --- attributes ------------------------------------------------------------------------------------------------------

_Static_assert((int)HCA_RESET == IBV_QPS_RESET && (int)HCA_INIT == IBV_QPS_INIT && (int)HCA_RTR == IBV_QPS_RTR &&
                   (int)HCA_RTS == IBV_QPS_RTS && (int)HCA_SQD == IBV_QPS_SQD && (int)HCA_SQE == IBV_QPS_SQE &&
                   (int)HCA_ERROR == IBV_QPS_ERR,
               "the driver's states are libibverbs'");

static uint32_t mask_of(int mask)
{
    static const struct {
        int verbs;
        uint32_t hca;
    } bits[] = {
        {IBV_QP_STATE, HCA_QP_STATE},
        {IBV_QP_CUR_STATE, HCA_QP_CURRENT_STATE},
        {IBV_QP_EN_SQD_ASYNC_NOTIFY, HCA_QP_DRAINED_EVENT},
        {IBV_QP_ACCESS_FLAGS, HCA_QP_ACCESS},
        {IBV_QP_PORT, HCA_QP_PORT},
        {IBV_QP_QKEY, HCA_QP_QKEY},
        {IBV_QP_AV, HCA_QP_PATH},
        {IBV_QP_PATH_MTU, HCA_QP_PATH_MTU},
        {IBV_QP_TIMEOUT, HCA_QP_TIMEOUT},
        {IBV_QP_RETRY_CNT, HCA_QP_RETRY_COUNT},
        {IBV_QP_RNR_RETRY, HCA_QP_RNR_RETRY},
        {IBV_QP_RQ_PSN, HCA_QP_RECEIVE_PSN},
        {IBV_QP_SQ_PSN, HCA_QP_SEND_PSN},
        {IBV_QP_MAX_QP_RD_ATOMIC, HCA_QP_MAX_RD_ATOMIC},
        {IBV_QP_MAX_DEST_RD_ATOMIC, HCA_QP_MAX_DEST_RD},
        {IBV_QP_MIN_RNR_TIMER, HCA_QP_MIN_RNR_TIMER},
        {IBV_QP_DEST_QPN, HCA_QP_DEST_QPN},
    }; // the P_Key index is ignored: there is only one P_Key
    uint32_t translated = 0;
    for (unsigned i = 0; i < sizeof bits / sizeof *bits; i++) {
        translated |= (mask & bits[i].verbs) != 0 ? bits[i].hca : 0;
    }
    return translated;
}

int ibsim_qp_modify(void *qp, const struct ibv_qp_attr *attr, int mask)
{
    const struct hca_qp_attr translated = {
        .state = (mask & IBV_QP_STATE) != 0 ? (enum hca_qp_state)attr->qp_state : HCA_RESET,
        .current_state = (mask & IBV_QP_CUR_STATE) != 0 ? (enum hca_qp_state)attr->cur_qp_state : HCA_RESET,
        .access = attr->qp_access_flags,
        .qkey = attr->qkey,
        .dest_qpn = attr->dest_qp_num,
        .receive_psn = attr->rq_psn,
        .send_psn = attr->sq_psn,
        .path_mtu_bytes = (mask & IBV_QP_PATH_MTU) != 0 ? 128u << attr->path_mtu : 0,
        .dlid = attr->ah_attr.dlid,
        .port = attr->port_num,
        .sl = attr->ah_attr.sl,
        .global = (mask & IBV_QP_AV) != 0 && attr->ah_attr.is_global != 0,
        .timeout = attr->timeout,
        .retry_count = attr->retry_cnt,
        .rnr_retry = attr->rnr_retry,
        .min_rnr_timer = attr->min_rnr_timer,
        .max_rd_atomic = attr->max_rd_atomic,
        .max_dest_rd_atomic = attr->max_dest_rd_atomic,
        .drained_event = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attr->en_sqd_async_notify != 0,
    };
    return hca_qp_modify(((struct ibsim_qp *)qp)->hca, mask_of(mask), &translated);
}

int ibsim_qp_query(void *qp, struct ibv_qp_attr *attr)
{
    struct hca_qp_attr now;
    int status = hca_qp_query(((struct ibsim_qp *)qp)->hca, &now);
    if (status == 0) {
        attr->qp_state = (enum ibv_qp_state)now.state;
        attr->sq_psn = now.send_psn;
        attr->rq_psn = now.receive_psn;
    }
    return status;
}

// --- queue pairs -----------------------------------------------------------------------------------------------------

static enum hca_qp_type type_of(enum ibv_qp_type type)
{
    static const enum hca_qp_type types[] = {[IBV_QPT_RC] = HCA_RC,
                                             [IBV_QPT_UC] = HCA_UC,
                                             [IBV_QPT_UD] = HCA_UD,
                                             [IBV_QPT_XRC_SEND] = HCA_XRC_INITIATOR,
                                             [IBV_QPT_XRC_RECV] = HCA_XRC_TARGET};
    return types[type]; // the library has checked the type
}

static hca_cq_t *cq_of(void *cq)
{
    return cq != NULL ? ((struct ibsim_cq *)cq)->hca : NULL;
}

static int qp_make(struct ibsim_qp *qp, hca_pd_t *pd, struct ibverbs_qp_create *create)
{
    struct ibv_qp_cap *cap = &create->cap;
    struct hca_qp_create made = {.type = type_of(create->type),
                                 .xrcd = create->xrcd != NULL ? ((struct ibsim_xrcd *)create->xrcd)->hca : NULL,
                                 .send_cq = cq_of(create->send_cq),
                                 .receive_cq = cq_of(create->recv_cq != NULL ? create->recv_cq : create->send_cq),
                                 .srq = create->srq != NULL ? ((struct ibsim_srq *)create->srq)->hca : NULL,
                                 .send_entries = cap->max_send_wr,
                                 .receive_entries = create->srq != NULL ? 0 : cap->max_recv_wr,
                                 .send_segments = cap->max_send_sge,
                                 .receive_segments = create->srq != NULL ? 0 : cap->max_recv_sge,
                                 .inline_bytes = cap->max_inline_data,
                                 .all_signaled = create->all_signaled,
                                 .user = create->user};
    int status = hca_qp_create(pd, &made, &qp->hca);
    if (status == 0) {
        *cap = (struct ibv_qp_cap){.max_send_wr = made.send_entries,
                                   .max_recv_wr = made.receive_entries,
                                   .max_send_sge = made.send_segments,
                                   .max_recv_sge = made.receive_segments,
                                   .max_inline_data = made.inline_bytes};
    }
    return status;
}

int ibsim_qp_create(void *object, struct ibverbs_qp_create *create, void **qp_out, uint32_t *number_out)
{
    const struct ibsim_pd *pd = object;
    struct ibsim_qp *qp = calloc(1, sizeof *qp);
    if (qp == NULL) {
        return -ENOMEM;
    }
    qp->context = pd != NULL ? pd->context : ((struct ibsim_xrcd *)create->xrcd)->context;
    int status = qp_make(qp, pd != NULL ? pd->hca : NULL, create);
    if (status != 0) {
        free(qp);
        return status;
    }
    *qp_out = qp;
    *number_out = hca_qp_number(qp->hca);
    return 0;
}

int ibsim_qp_destroy(void *qp)
{
    int status = hca_qp_destroy(((struct ibsim_qp *)qp)->hca);
    if (status == 0) {
        free(qp);
    }
    return status;
}

size_t ibsim_qp_bytes(const struct ibv_qp_cap *cap)
{
    const struct hca_qp_create create = {.type = HCA_RC,
                                         .send_entries = cap->max_send_wr,
                                         .receive_entries = cap->max_recv_wr,
                                         .send_segments = cap->max_send_sge,
                                         .receive_segments = cap->max_recv_sge,
                                         .inline_bytes = cap->max_inline_data};
    return sizeof(struct ibsim_qp) + hca_qp_bytes(&create);
}

int ibsim_group_change(void *qp, const union ibv_gid *gid, uint16_t lid, bool attach)
{
    return hca_qp_group(((struct ibsim_qp *)qp)->hca, gid->raw, lid, attach);
}

unsigned ibsim_send_room(void *qp)
{
    return hca_qp_send_room(((struct ibsim_qp *)qp)->hca);
}

// --- shared receive queues -------------------------------------------------------------------------------------------

static int srq_create(const struct ibsim_pd *pd, struct ibv_srq_attr *attr, struct ibverbs_srq_xrc *xrc, void *user,
                      struct ibsim_srq **srq_out)
{
    struct ibsim_srq *srq = calloc(1, sizeof *srq);
    if (srq == NULL) {
        return -ENOMEM;
    }
    srq->context = pd->context;
    const struct ibsim_xrcd *xrcd = xrc != NULL ? xrc->xrcd : NULL;
    int status = hca_srq_create(pd->hca, attr->max_wr, attr->max_sge, user, xrcd != NULL ? xrcd->hca : NULL,
                                xrc != NULL ? cq_of(xrc->cq) : NULL, &srq->hca);
    if (status != 0) {
        free(srq);
        return status;
    }
    hca_srq_size(srq->hca, &attr->max_wr, &attr->max_sge);
    *srq_out = srq;
    return 0;
}

int ibsim_srq_create(void *pd, struct ibv_srq_attr *attr, void *user, void **srq_out)
{
    struct ibsim_srq *srq = NULL;
    int status = srq_create(pd, attr, NULL, user, &srq);
    *srq_out = status == 0 ? srq : *srq_out;
    return status;
}

int ibsim_srq_create_xrc(void *pd, struct ibv_srq_attr *attr, struct ibverbs_srq_xrc *xrc, void *user, void **srq_out)
{
    struct ibsim_srq *srq = NULL;
    int status = srq_create(pd, attr, xrc, user, &srq);
    if (status == 0) {
        xrc->number = hca_srq_number(srq->hca);
        *srq_out = srq;
    }
    return status;
}

int ibsim_srq_destroy(void *srq)
{
    int status = hca_srq_destroy(((struct ibsim_srq *)srq)->hca);
    if (status == 0) {
        free(srq);
    }
    return status;
}

int ibsim_srq_arm(void *srq, unsigned limit)
{
    return hca_srq_arm(((struct ibsim_srq *)srq)->hca, limit);
}

int ibsim_srq_query(void *object, struct ibv_srq_attr *attr_out)
{
    const struct ibsim_srq *srq = object;
    hca_srq_size(srq->hca, &attr_out->max_wr, &attr_out->max_sge);
    return hca_srq_limit(srq->hca, &attr_out->srq_limit);
}

void ibsim_qp_outstanding(void *qp, unsigned *sends_out, unsigned *receives_out)
{
    hca_qp_outstanding(((struct ibsim_qp *)qp)->hca, sends_out, receives_out);
}
