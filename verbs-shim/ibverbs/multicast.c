// Multicast (IBA 10.5, 11.3): the datagram queue pairs that receive messages to a group.
#include "verbs-shim/ibverbs/internal.h"

enum { MGID_FIRST_BYTE = 0xff, MLID_FIRST = 0xc000, MLID_LAST = 0xfffe };

static int change(struct ibv_qp *ibv_qp, const union ibv_gid *gid, uint16_t lid, bool attach)
{
    IBVERBS_ENTER_CONTEXT(ibv_qp->context);
    struct ibverbs_qp *qp = ibverbs_qp_of(ibv_qp);
    const struct ibverbs_device_ops *ops = ibverbs_ops(&qp->object);
    if (ops->group_change == NULL) {
        return ibverbs_status(EOPNOTSUPP);
    }
    if (ibv_qp->qp_type != IBV_QPT_UD || gid->raw[0] != MGID_FIRST_BYTE || lid < MLID_FIRST || lid > MLID_LAST) {
        return ibverbs_status(EINVAL);
    }
    int status = ops->group_change(qp->object.device, gid, lid, attach);
    return ibverbs_status(status == -EBUSY ? 0 : -status); // it is attached already
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return change(qp, gid, lid, true);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    return change(qp, gid, lid, false);
}
