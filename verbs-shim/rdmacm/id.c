// Identifiers: creation, destruction, options.
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/rdmacm/internal.h"

static int id_create(struct rdma_event_channel *wanted, struct rdma_cm_id **id_out, void *context,
                     enum rdma_port_space ps, enum ibv_qp_type type)
{
    if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP && ps != RDMA_PS_IPOIB && ps != RDMA_PS_IB) {
        return -EPROTONOSUPPORT;
    }
    struct cm_channel *channel = wanted != NULL ? (struct cm_channel *)wanted : cm_channel_new();
    struct cm_id *id = channel != NULL ? cm_id_new(channel, context, ps, type) : NULL;
    if (id == NULL) {
        int status = channel != NULL ? -ENOMEM : -errno;
        if (channel != NULL && wanted == NULL) {
            cm_channel_free(channel);
        }
        return status;
    }
    id->sync = wanted == NULL;
    *id_out = &id->base;
    return 0;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id_out, void *context,
                   enum rdma_port_space ps)
{
    CM_ENTER();
    bool datagrams = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
    return cm_errno(id_create(channel, id_out, context, ps, datagrams ? IBV_QPT_UD : IBV_QPT_RC));
}

// Destroys identifiers of peers that have connected to the listener and sent no request yet.
static void incoming_end(const struct cm_id *listener)
{
    struct cm_id *id = cm_ids();
    while (id != NULL) {
        struct cm_id *next = id->next;
        if (id->listener == listener) {
            cm_id_free(id);
        }
        id = next;
    }
}

static void id_destroy(struct cm_id *id)
{
    CM_ENTER();
    cm_deadline_set(id, 0);
    cm_port_give(id);
    incoming_end(id);
    cm_events_drop(id);
    cm_wait_acknowledged(id);
    cm_id_free(id);
}

int rdma_destroy_id(struct rdma_cm_id *base)
{
    if (base->event != NULL) {
        (void)rdma_ack_cm_event(base->event);
        base->event = NULL;
    }
    id_destroy(cm_id_of(base));
    return 0;
}

// --- endpoints ------------------------------------------------------------------------------------------------------

static int endpoint_listens(struct cm_id *id, const struct rdma_addrinfo *info, struct ibv_pd *pd,
                            const struct ibv_qp_init_attr *init)
{
    if (rdma_bind_addr(&id->base, info->ai_src_addr) != 0) {
        return -1;
    }
    if (init != NULL) {
        id->qp_init = malloc(sizeof *id->qp_init);
        if (id->qp_init == NULL) {
            return cm_errno(-ENOMEM);
        }
        *id->qp_init = *init;
    }
    id->base.pd = pd;
    return 0;
}

static int endpoint_connects(struct cm_id *id, const struct rdma_addrinfo *info, struct ibv_pd *pd,
                             struct ibv_qp_init_attr *init)
{
    enum { TIMEOUT_MS = 2000 };
    if (rdma_resolve_addr(&id->base, info->ai_src_addr, info->ai_dst_addr, TIMEOUT_MS) != 0 ||
        rdma_resolve_route(&id->base, TIMEOUT_MS) != 0) {
        return -1;
    }
    if (init == NULL) {
        return 0;
    }
    init->qp_type = (enum ibv_qp_type)info->ai_qp_type;
    return rdma_create_qp(&id->base, pd, init);
}

int rdma_create_ep(struct rdma_cm_id **id_out, struct rdma_addrinfo *info, struct ibv_pd *pd,
                   struct ibv_qp_init_attr *init)
{
    struct rdma_cm_id *id = NULL;
    int status;
    {
        CM_ENTER();
        status = cm_errno(
            id_create(NULL, &id, NULL, (enum rdma_port_space)info->ai_port_space, (enum ibv_qp_type)info->ai_qp_type));
    }
    if (status != 0) {
        return status;
    }
    bool passive = (info->ai_flags & RAI_PASSIVE) != 0;
    status = passive ? endpoint_listens(cm_id_of(id), info, pd, init) : endpoint_connects(cm_id_of(id), info, pd, init);
    if (status != 0) {
        int error = errno;
        rdma_destroy_ep(id);
        errno = error;
        return -1;
    }
    *id_out = id;
    return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    rdma_destroy_srq(id);
    (void)rdma_destroy_id(id);
}

int rdma_get_request(struct rdma_cm_id *base, struct rdma_cm_id **id_out)
{
    const struct cm_id *listener = cm_id_of(base);
    struct rdma_cm_event *event;
    if (!listener->sync) {
        return cm_errno(-EINVAL);
    }
    if (base->event != NULL) {
        (void)rdma_ack_cm_event(base->event);
        base->event = NULL;
    }
    if (rdma_get_cm_event(base->channel, &event) != 0) {
        return -1;
    }
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
        base->event = event;
        return cm_errno(-EINVAL);
    }
    if (listener->qp_init != NULL) {
        struct ibv_qp_init_attr init = *listener->qp_init;
        init.qp_type = base->qp_type;
        if (rdma_create_qp(event->id, base->pd, &init) != 0) {
            int error = errno;
            struct rdma_cm_id *id = event->id;
            base->event = event;
            (void)rdma_reject(id, NULL, 0);
            (void)rdma_destroy_id(id);
            errno = error;
            return -1;
        }
    }
    *id_out = event->id;
    (*id_out)->event = event;
    return 0;
}

// --- options --------------------------------------------------------------------------------------------------------

// A type of service has no effect on this fabric, and a port has one owner at a time.
int rdma_set_option(struct rdma_cm_id *base, int level, int name, void *value, size_t bytes)
{
    CM_ENTER();
    if (level != RDMA_OPTION_ID) {
        return cm_errno(level == RDMA_OPTION_IB ? -EOPNOTSUPP : -ENOSYS);
    }
    switch (name) {
    case RDMA_OPTION_ID_TOS:
        return cm_errno(bytes == sizeof(uint8_t) ? 0 : -EINVAL);
    case RDMA_OPTION_ID_REUSEADDR:
    case RDMA_OPTION_ID_AFONLY:
        return cm_errno(bytes == sizeof(int) ? 0 : -EINVAL);
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        if (bytes != sizeof(uint8_t) || base->qp_type != IBV_QPT_RC) {
            return cm_errno(-EINVAL);
        }
        cm_id_of(base)->ack_timeout = *(uint8_t *)value & 0x1f;
        return 0;
    default:
        return cm_errno(-ENOSYS);
    }
}

int rdma_set_local_ece(struct rdma_cm_id *base, struct ibv_ece *ece)
{
    CM_ENTER();
    if (ece == NULL || base->qp != NULL) {
        return cm_errno(-EINVAL);
    }
    cm_id_of(base)->ece = *ece;
    return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *base, struct ibv_ece *ece)
{
    CM_ENTER();
    if (ece == NULL || base->qp != NULL) {
        return cm_errno(-EINVAL);
    }
    *ece = cm_id_of(base)->peer.ece;
    return 0;
}
