// The table of operations of a context, and the operations that no device has.
//
// For entries that are NULL in the extended table, the header's inline functions themselves refuse the call
// (EOPNOTSUPP): extended connection domains, flow steering, work queues, device memory, counters, thread and parent
// domains, moderation, null regions, advice, raw clocks, rate limits, tag matching.
#include <string.h>

#include "verbs-shim/ibverbs/internal.h"

// --- memory windows: the header, or an older one, calls these without checking that they exist -------------

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    (void)qp, (void)mw, (void)bind;
    return EOPNOTSUPP;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    (void)pd, (void)type;
    return ibverbs_fail(-EOPNOTSUPP);
}

static int dealloc_mw(struct ibv_mw *mw)
{
    (void)mw;
    return EOPNOTSUPP;
}

void ibverbs_verbs_fill(struct verbs_context *verbs)
{
    verbs->sz = sizeof *verbs;
    verbs->query_port = ibverbs_query_port;
    verbs->query_device_ex = ibverbs_query_device_ex;
    verbs->create_cq_ex = ibverbs_create_cq_ex;
    verbs->create_qp_ex = ibverbs_create_qp_ex;
    verbs->create_srq_ex = ibverbs_create_srq_ex;
    verbs->get_srq_num = ibverbs_get_srq_num;
    verbs->open_xrcd = ibverbs_open_xrcd;
    verbs->close_xrcd = ibverbs_close_xrcd;
    struct ibv_context_ops *ops = &verbs->context.ops;
    ops->poll_cq = ibverbs_poll_cq;
    ops->req_notify_cq = ibverbs_req_notify_cq;
    ops->post_send = ibverbs_post_send;
    ops->post_recv = ibverbs_post_recv;
    ops->post_srq_recv = ibverbs_post_srq_recv;
    ops->alloc_mw = alloc_mw;
    ops->bind_mw = bind_mw;
    ops->dealloc_mw = dealloc_mw;
}

// --- objects shared between processes -------------------------------------------------------------------------------

struct ibv_context *ibv_import_device(int cmd_fd)
{
    (void)cmd_fd;
    return ibverbs_fail(-EOPNOTSUPP);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    (void)context, (void)pd_handle;
    return ibverbs_fail(-EOPNOTSUPP);
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    (void)pd, (void)mr_handle;
    return ibverbs_fail(-EOPNOTSUPP);
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
    (void)context, (void)dm_handle;
    return ibverbs_fail(-EOPNOTSUPP);
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm;
}

// --- the rest -------------------------------------------------------------------------------------------------------

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
    (void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
    return ibverbs_fail(-EOPNOTSUPP);
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
    (void)mr, (void)pd, (void)addr, (void)length;
    bool change = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
    bool wrong = (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || (change && (length == 0 || addr == NULL)) ||
                 (access != 0 && (flags & IBV_REREG_MR_CHANGE_ACCESS) == 0);
    errno = wrong ? EINVAL : EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
}

// The bytes of a message may be written in any order.
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    (void)qp, (void)op, (void)flags;
    return 0;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp, (void)ece;
    return EOPNOTSUPP;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void)qp;
    *ece = (struct ibv_ece){0};
    return EOPNOTSUPP;
}

// Only Ethernet ports have such addresses.
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    (void)context, (void)attr, (void)eth_mac, (void)vid;
    return EOPNOTSUPP;
}
