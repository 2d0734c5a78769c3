// The HCA's kernel driver as an attached process sees it: each command crosses.
#include <errno.h>
#include <string.h>

#include "models/hca/abi/hca_abi.h"
#include "verbs-shim/attach/attach_ops.h"
#include "verbs-shim/attach/client.h"

// A command that brings a structure, and one that gives a number back.
static int with_struct(enum attach_op op, uint64_t a, uint64_t b, const void *structure, size_t bytes)
{
    struct attach_slot *slot = attach_slot();
    if (structure != NULL) {
        memcpy(slot->structure, structure, bytes);
    }
    return (int)attach_cross3(op, a, b, 0);
}

static int create(enum attach_op op, const void *structure, size_t bytes, uint32_t *number_out)
{
    int status = with_struct(op, 0, 0, structure, bytes);
    *number_out = status == 0 ? (uint32_t)attach_slot()->values[0] : 0;
    return status;
}

static int query(enum attach_op op, uint64_t number, void *structure_out, size_t bytes)
{
    int status = (int)attach_cross1(op, number);
    if (status == 0) {
        memcpy(structure_out, attach_slot()->structure, bytes);
    }
    return status;
}

static int uar_alloc(void *ctx, uint32_t *uar_out)
{
    (void)ctx;
    return create(ATTACH_OP_HCA_UAR_ALLOC, NULL, 0, uar_out);
}

static void uar_free(void *ctx, uint32_t uar)
{
    (void)ctx;
    (void)attach_cross1(ATTACH_OP_HCA_UAR_FREE, uar);
}

static int query_device(void *ctx, struct hca_device_info *info_out)
{
    (void)ctx;
    return query(ATTACH_OP_HCA_QUERY_DEVICE, 0, info_out, sizeof *info_out);
}

static int query_port(void *ctx, struct hca_port_info *info_out)
{
    (void)ctx;
    return query(ATTACH_OP_HCA_QUERY_PORT, 0, info_out, sizeof *info_out);
}

static int pd_create(void *ctx, uint32_t *pdn_out)
{
    (void)ctx;
    return create(ATTACH_OP_HCA_PD_CREATE, NULL, 0, pdn_out);
}

static int xrcd_create(void *ctx, uint32_t *xrcdn_out)
{
    (void)ctx;
    return create(ATTACH_OP_HCA_XRCD_CREATE, NULL, 0, xrcdn_out);
}

static int xrcd_destroy(void *ctx, uint32_t xrcdn)
{
    (void)ctx;
    return (int)attach_cross1(ATTACH_OP_HCA_XRCD_DESTROY, xrcdn);
}

// Pinned memory is named by its bus address; other memory is the simulator's to reach.
static int mr_register(void *ctx, uint32_t pdn, uint64_t iova, uint64_t bytes, uint32_t access, uint64_t bus_address,
                       uint32_t *key_out)
{
    struct attach_slot *slot = attach_slot();
    uint64_t bus = bus_address;
    (void)ctx;
    if (bus == 0 && !attach_pinned_find((const void *)(uintptr_t)iova, bytes, &bus)) {
        bus = 0;
    }
    slot->arguments[3] = access;
    slot->arguments[4] = bus;
    int status = (int)attach_cross3(ATTACH_OP_HCA_MR_REGISTER, pdn, iova, bytes);
    *key_out = status == 0 ? (uint32_t)slot->values[0] : 0;
    return status;
}

static int eq_create(void *ctx, const struct hca_eq_init *init, uint32_t *eqn_out)
{
    (void)ctx;
    return create(ATTACH_OP_HCA_EQ_CREATE, init, sizeof *init, eqn_out);
}

static int cq_create(void *ctx, const struct hca_cq_init *init, uint32_t *cqn_out)
{
    (void)ctx;
    return create(ATTACH_OP_HCA_CQ_CREATE, init, sizeof *init, cqn_out);
}

static int cq_resize(void *ctx, uint32_t cqn, const struct hca_cq_resize *resize)
{
    (void)ctx;
    return with_struct(ATTACH_OP_HCA_CQ_RESIZE, cqn, 0, resize, sizeof *resize);
}

static int srq_create(void *ctx, const struct hca_srq_init *init, uint32_t *srqn_out)
{
    (void)ctx;
    return create(ATTACH_OP_HCA_SRQ_CREATE, init, sizeof *init, srqn_out);
}

static int srq_arm(void *ctx, uint32_t srqn, uint32_t limit)
{
    (void)ctx;
    return (int)attach_cross3(ATTACH_OP_HCA_SRQ_ARM, srqn, limit, 0);
}

static int srq_query(void *ctx, uint32_t srqn, uint32_t *limit_out)
{
    (void)ctx;
    int status = (int)attach_cross1(ATTACH_OP_HCA_SRQ_QUERY, srqn);
    *limit_out = status == 0 ? (uint32_t)attach_slot()->values[0] : 0;
    return status;
}

static int qp_create(void *ctx, const struct hca_qp_init *init, uint32_t *qpn_out)
{
    (void)ctx;
    return create(ATTACH_OP_HCA_QP_CREATE, init, sizeof *init, qpn_out);
}

static int qp_modify(void *ctx, uint32_t qpn, uint32_t mask, const struct hca_qp_attr *attr)
{
    (void)ctx;
    return with_struct(ATTACH_OP_HCA_QP_MODIFY, qpn, mask, attr, sizeof *attr);
}

static int qp_query(void *ctx, uint32_t qpn, struct hca_qp_attr *attr_out)
{
    (void)ctx;
    return query(ATTACH_OP_HCA_QP_QUERY, qpn, attr_out, sizeof *attr_out);
}

static int pd_destroy(void *ctx, uint32_t pdn)
{
    (void)ctx;
    return (int)attach_cross1(ATTACH_OP_HCA_PD_DESTROY, pdn);
}

static int mr_deregister(void *ctx, uint32_t key)
{
    (void)ctx;
    return (int)attach_cross1(ATTACH_OP_HCA_MR_DEREGISTER, key);
}

static int eq_destroy(void *ctx, uint32_t eqn)
{
    (void)ctx;
    return (int)attach_cross1(ATTACH_OP_HCA_EQ_DESTROY, eqn);
}

static int cq_destroy(void *ctx, uint32_t cqn)
{
    (void)ctx;
    return (int)attach_cross1(ATTACH_OP_HCA_CQ_DESTROY, cqn);
}

static int srq_destroy(void *ctx, uint32_t srqn)
{
    (void)ctx;
    return (int)attach_cross1(ATTACH_OP_HCA_SRQ_DESTROY, srqn);
}

static int group_attach(void *ctx, uint32_t qpn, const uint8_t mgid[16], uint16_t mlid)
{
    (void)ctx;
    return with_struct(ATTACH_OP_HCA_GROUP_ATTACH, qpn, mlid, mgid, 16);
}

static int group_detach(void *ctx, uint32_t qpn, const uint8_t mgid[16], uint16_t mlid)
{
    (void)ctx;
    return with_struct(ATTACH_OP_HCA_GROUP_DETACH, qpn, mlid, mgid, 16);
}

static int qp_destroy(void *ctx, uint32_t qpn)
{
    (void)ctx;
    return (int)attach_cross1(ATTACH_OP_HCA_QP_DESTROY, qpn);
}

const struct backend_hca_ops attach_hca_ops = {
    .uar_alloc = uar_alloc,
    .uar_free = uar_free,
    .query_device = query_device,
    .query_port = query_port,
    .pd_create = pd_create,
    .pd_destroy = pd_destroy,
    .xrcd_create = xrcd_create,
    .xrcd_destroy = xrcd_destroy,
    .mr_register = mr_register,
    .mr_deregister = mr_deregister,
    .eq_create = eq_create,
    .eq_destroy = eq_destroy,
    .cq_create = cq_create,
    .cq_resize = cq_resize,
    .cq_destroy = cq_destroy,
    .srq_create = srq_create,
    .srq_arm = srq_arm,
    .srq_query = srq_query,
    .srq_destroy = srq_destroy,
    .qp_create = qp_create,
    .qp_modify = qp_modify,
    .qp_query = qp_query,
    .qp_destroy = qp_destroy,
    .group_attach = group_attach,
    .group_detach = group_detach,
};
