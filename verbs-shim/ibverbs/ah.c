// Address handles (IBA 11.2.2), and addresses from received datagrams.
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/ibverbs/note.h"

enum { SERVICE_LEVELS = 16, NEXT_HEADER_IBA = 0x1b, GRH_VERSION = 6 };

bool ibverbs_port_valid(const struct ibverbs_context *context, unsigned port)
{
    return port >= 1 && port <= context->device->info.attr.phys_port_cnt;
}

bool ibverbs_av_valid(struct ibverbs_context *context, const struct ibv_ah_attr *attr)
{
    struct ibv_port_attr port;
    if (!ibverbs_port_valid(context, attr->port_num) || attr->sl >= SERVICE_LEVELS ||
        (attr->static_rate != IBV_RATE_MAX && ibv_rate_to_mbps((enum ibv_rate)attr->static_rate) < 0) ||
        context->device->ops->query_port(context->device->object, attr->port_num, &port) != 0) {
        return false;
    }
    return !attr->is_global || attr->grh.sgid_index < port.gid_tbl_len;
}

static int ah_create(struct ibverbs_ah *ah, struct ibverbs_pd *pd, const struct ibv_ah_attr *attr)
{
    if (!ibverbs_av_valid(pd->object.context, attr)) {
        return ibverbs_refuse(pd->object.context->device->library, -EINVAL, JOURNAL_WHY_ADDRESS_VECTOR, 0, 0);
    }
    int status = ibverbs_ops(&pd->object)->ah_create(pd->object.device, attr, &ah->object.device);
    return status == -EINVAL
               ? ibverbs_refuse(pd->object.context->device->library, status, JOURNAL_WHY_LID, attr->dlid, 0)
               : status;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *ibv_pd, struct ibv_ah_attr *attr)
{
    IBVERBS_ENTER_CONTEXT(ibv_pd->context);
    struct ibverbs_pd *pd = ibverbs_pd_of(ibv_pd);
    uint64_t began_ps = ibverbs_note_begin(entered);
    struct ibverbs_ah *ah = ibverbs_object_new(pd->object.context, sizeof *ah);
    int status = ah != NULL ? ah_create(ah, pd, attr) : -ENOMEM;
    if (status != 0) {
        ibverbs_object_drop(pd->object.context, ah);
        ibverbs_note_object(pd->object.context, began_ps, JOURNAL_CREATE_AH, -status, 0, attr->dlid);
        return ibverbs_fail(status);
    }
    ah->base = (struct ibv_ah){.context = ibv_pd->context, .pd = ibv_pd, .handle = pd->object.context->handles++};
    pd->object.users++;
    ibverbs_object_add(&ah->object, pd->object.context, IBVERBS_AH, ah);
    ibverbs_note_object(pd->object.context, began_ps, JOURNAL_CREATE_AH, 0, ah->base.handle, attr->dlid);
    return &ah->base;
}

int ibverbs_ah_end(struct ibverbs_object *object)
{
    struct ibverbs_ah *ah = object->container;
    int status = ibverbs_ops(object)->ah_destroy(object->device);
    if (status == 0) {
        ibverbs_pd_of(ah->base.pd)->object.users--;
        ibverbs_object_remove(object);
        free(ah);
    }
    return status;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    IBVERBS_ENTER_CONTEXT(ah->context);
    struct ibverbs_object *object = &((struct ibverbs_ah *)ah)->object;
    struct ibverbs_context *context = object->context;
    uint64_t began_ps = ibverbs_note_begin(entered);
    uint32_t handle = ah->handle;
    int error = -ibverbs_ah_end(object);
    ibverbs_note_object(context, began_ps, JOURNAL_DESTROY_AH, error, handle, 0);
    return ibverbs_status(error);
}

void *ibverbs_ah_object(const struct ibv_ah *ah)
{
    return ((const struct ibverbs_ah *)ah)->object.device;
}

// --- from a completion ----------------------------------------------------------------------------------------------

// The index of a GID in the port's table; -1: it is not there.
static int gid_index(struct ibv_context *context, uint8_t port, const union ibv_gid *gid)
{
    union ibv_gid entry;
    for (int index = 0; ibv_query_gid(context, port, index, &entry) == 0; index++) {
        if (memcmp(&entry, gid, sizeof entry) == 0) {
            return index;
        }
    }
    return -1;
}

// IBA 8.3: the reply goes from the destination of the packet to its source.
static int route_back(struct ibv_context *context, uint8_t port, const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    uint32_t word = be32toh(grh->version_tclass_flow);
    int index = gid_index(context, port, &grh->dgid);
    if (word >> 28 != GRH_VERSION || grh->next_hdr != NEXT_HEADER_IBA) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    if (index < 0) {
        errno = EINVAL;
        return -1;
    }
    attr->is_global = 1;
    attr->grh = (struct ibv_global_route){.dgid = grh->sgid,
                                          .flow_label = word & 0xfffff,
                                          .sgid_index = (uint8_t)index,
                                          .hop_limit = grh->hop_limit,
                                          .traffic_class = (uint8_t)(word >> 20)};
    return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc, struct ibv_grh *grh,
                        struct ibv_ah_attr *attr)
{
    *attr =
        (struct ibv_ah_attr){.dlid = wc->slid, .sl = wc->sl, .src_path_bits = wc->dlid_path_bits, .port_num = port_num};
    return (wc->wc_flags & IBV_WC_GRH) != 0 ? route_back(context, port_num, grh, attr) : 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
    struct ibv_ah_attr attr;
    return ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) == 0 ? ibv_create_ah(pd, &attr) : NULL;
}
