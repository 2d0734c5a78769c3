// Queue pairs of identifiers: creation, state transitions, destruction. Also the identifier's other objects for them: a
// protection domain, completion queues with channels, a shared receive queue.
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/rdmacm/internal.h"

// --- attributes -----------------------------------------------------------------------------------------------------
// The attributes are those of Linux's ib_cm_init_qp_attr and cma_ib_init_qp_attr.

// 4.096 us * 2^19: twice the path's packet life time (resolve.c).
enum { ACK_TIMEOUT = CM_PACKET_LIFE + 1 };

static void init_attr(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    attr->port_num = CM_PORT;
    if (cm_is_datagram(id)) {
        attr->qkey = RDMA_UDP_QKEY;
        *mask |= IBV_QP_QKEY;
        return;
    }
    *mask |= IBV_QP_ACCESS_FLAGS;
    if (id->peer_known) {
        attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        if (id->responder_resources != 0) {
            attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        }
    }
}

static void rtr_attr(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    *mask = IBV_QP_STATE;
    if (cm_is_datagram(id)) {
        return;
    }
    *mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    attr->ah_attr = (struct ibv_ah_attr){.dlid = id->peer.lid, .port_num = CM_PORT};
    attr->path_mtu = id->peer.mtu != 0 && id->peer.mtu < id->device->port.active_mtu ? (enum ibv_mtu)id->peer.mtu
                                                                                     : id->device->port.active_mtu;
    attr->dest_qp_num = id->peer.qp_num;
    attr->rq_psn = id->peer.psn;
    if (id->base.qp_type != IBV_QPT_UC) {
        *mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        attr->max_dest_rd_atomic = id->responder_resources;
        attr->min_rnr_timer = 0; // 655 ms
    }
}

static void rts_attr(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    *mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (cm_is_datagram(id)) {
        return;
    }
    attr->sq_psn = id->psn;
    if (id->base.qp_type != IBV_QPT_UC) {
        *mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        attr->timeout = id->ack_timeout != 0 ? id->ack_timeout : ACK_TIMEOUT;
        // Both sides use the counts of the REQ; the RNR retry count is the peer's.
        attr->retry_cnt = id->own.kind == CM_REQ ? id->own.retry_count : id->peer.retry_count;
        attr->rnr_retry = id->peer.rnr_retry_count;
        attr->max_rd_atomic = id->initiator_depth;
    }
}

int cm_qp_attr(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    enum ibv_qp_state state = attr->qp_state;
    *attr = (struct ibv_qp_attr){.qp_state = state};
    bool knows = cm_is_datagram(id) || id->peer_known;
    if (id->device == NULL || (state != IBV_QPS_INIT && !knows)) {
        return -EINVAL;
    }
    if (state == IBV_QPS_INIT) {
        init_attr(id, attr, mask);
    } else if (state == IBV_QPS_RTR) {
        rtr_attr(id, attr, mask);
    } else if (state == IBV_QPS_RTS) {
        rts_attr(id, attr, mask);
    } else {
        return -EINVAL;
    }
    return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
    CM_ENTER();
    return cm_errno(cm_qp_attr(cm_id_of(base), attr, mask));
}

// --- states ---------------------------------------------------------------------------------------------------------

static int lead(struct cm_id *id, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask;
    int status = cm_qp_attr(id, &attr, &mask);
    return status != 0 ? status : -ibv_modify_qp(id->base.qp, &attr, mask);
}

int cm_qp_connect(struct cm_id *id, uint8_t responder_resources, uint8_t initiator_depth)
{
    id->responder_resources = responder_resources;
    id->initiator_depth = initiator_depth;
    int status = lead(id, IBV_QPS_INIT); // again, now with write access for the peer
    status = status != 0 ? status : lead(id, IBV_QPS_RTR);
    return status != 0 ? status : lead(id, IBV_QPS_RTS);
}

int cm_qp_error(struct cm_id *id)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    return id->base.qp != NULL ? -ibv_modify_qp(id->base.qp, &attr, IBV_QP_STATE) : 0;
}

static int lead_new(struct cm_id *id)
{
    int status = lead(id, IBV_QPS_INIT);
    if (cm_is_datagram(id)) { // it needs no peer
        status = status != 0 ? status : lead(id, IBV_QPS_RTR);
        status = status != 0 ? status : lead(id, IBV_QPS_RTS);
    }
    return status;
}

// --- objects for queue pairs ----------------------------------------------------------------------------------------

static struct ibv_pd *domain_of(struct cm_id *id)
{
    if (id->device->pd == NULL) {
        id->device->pd = ibv_alloc_pd(id->base.verbs);
    }
    return id->device->pd;
}

static bool queue_make(struct cm_id *id, uint32_t entries, struct ibv_comp_channel **channel_out,
                       struct ibv_cq **cq_out)
{
    *channel_out = ibv_create_comp_channel(id->base.verbs);
    *cq_out = *channel_out != NULL ? ibv_create_cq(id->base.verbs, (int)entries, id, *channel_out, 0) : NULL;
    return *cq_out != NULL;
}

static void queues_destroy(struct cm_id *id)
{
    struct ibv_cq **const queues[] = {&id->base.recv_cq, &id->base.send_cq};
    struct ibv_comp_channel **const channels[] = {&id->base.recv_cq_channel, &id->base.send_cq_channel};
    for (unsigned i = 0; i < 2; i++) {
        if (*queues[i] != NULL) {
            (void)ibv_destroy_cq(*queues[i]);
            *queues[i] = NULL;
        }
        if (*channels[i] != NULL) {
            (void)ibv_destroy_comp_channel(*channels[i]);
            *channels[i] = NULL;
        }
    }
}

static bool queues_make(struct cm_id *id, struct ibv_qp_init_attr_ex *init)
{
    bool made = true;
    if (init->recv_cq == NULL) {
        made = queue_make(id, init->cap.max_recv_wr > 0 ? init->cap.max_recv_wr : 1, &id->base.recv_cq_channel,
                          &id->base.recv_cq);
        init->recv_cq = id->base.recv_cq;
    }
    if (made && init->send_cq == NULL) {
        made = queue_make(id, init->cap.max_send_wr > 0 ? init->cap.max_send_wr : 1, &id->base.send_cq_channel,
                          &id->base.send_cq);
        init->send_cq = id->base.send_cq;
    }
    return made;
}

// --- queue pairs ----------------------------------------------------------------------------------------------------

static int qp_make(struct cm_id *id, struct ibv_qp_init_attr_ex *init)
{
    if (id->device == NULL || (init->comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0) {
        return id->device == NULL ? -EINVAL : -EOPNOTSUPP;
    }
    if ((init->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
        init->comp_mask |= IBV_QP_INIT_ATTR_PD;
        init->pd = domain_of(id);
    }
    init->srq = init->srq != NULL ? init->srq : id->base.srq;
    if (init->pd == NULL || init->pd->context != id->base.verbs || !queues_make(id, init)) {
        int status = init->pd != NULL && init->pd->context == id->base.verbs ? -errno : -EINVAL;
        queues_destroy(id);
        return status;
    }
    id->base.qp = ibv_create_qp_ex(id->base.verbs, init);
    int status = id->base.qp != NULL ? lead_new(id) : -errno;
    if (status == 0) {
        id->base.pd = init->pd;
        return 0;
    }
    if (id->base.qp != NULL) {
        (void)ibv_destroy_qp(id->base.qp);
        id->base.qp = NULL;
    }
    queues_destroy(id);
    return status;
}

int rdma_create_qp_ex(struct rdma_cm_id *base, struct ibv_qp_init_attr_ex *init)
{
    CM_ENTER();
    return cm_errno(base->qp != NULL ? -EINVAL : qp_make(cm_id_of(base), init));
}

int rdma_create_qp(struct rdma_cm_id *base, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct ibv_qp_init_attr_ex extended = {0};
    memcpy(&extended, init, offsetof(struct ibv_qp_init_attr, sq_sig_all) + sizeof init->sq_sig_all);
    if (pd != NULL) {
        extended.comp_mask = IBV_QP_INIT_ATTR_PD;
        extended.pd = pd;
    }
    int status = rdma_create_qp_ex(base, &extended);
    memcpy(init, &extended, offsetof(struct ibv_qp_init_attr, sq_sig_all));
    return status;
}

void rdma_destroy_qp(struct rdma_cm_id *base)
{
    CM_ENTER();
    if (base->qp != NULL) {
        cm_groups_leave(cm_id_of(base));
        (void)ibv_destroy_qp(base->qp);
        base->qp = NULL;
    }
    queues_destroy(cm_id_of(base));
}

// --- shared receive queues ------------------------------------------------------------------------------------------

int rdma_create_srq(struct rdma_cm_id *base, struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    CM_ENTER();
    struct cm_id *id = cm_id_of(base);
    if (id->device == NULL || base->srq != NULL) {
        return cm_errno(-EINVAL);
    }
    pd = pd != NULL ? pd : domain_of(id);
    base->srq = pd != NULL ? ibv_create_srq(pd, init) : NULL;
    if (base->srq == NULL) {
        return -1;
    }
    base->pd = pd;
    return 0;
}

int rdma_create_srq_ex(struct rdma_cm_id *base, struct ibv_srq_init_attr_ex *init)
{
    if ((init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && init->srq_type != IBV_SRQT_BASIC) {
        return cm_errno(-EOPNOTSUPP);
    }
    struct ibv_srq_init_attr basic = {.srq_context = init->srq_context, .attr = init->attr};
    int status = rdma_create_srq(base, (init->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0 ? init->pd : NULL, &basic);
    init->attr = basic.attr;
    return status;
}

void rdma_destroy_srq(struct rdma_cm_id *base)
{
    CM_ENTER();
    if (base->srq != NULL) {
        (void)ibv_destroy_srq(base->srq);
        base->srq = NULL;
    }
}
