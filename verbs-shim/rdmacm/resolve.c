// Binding to addresses and devices, and the path record that a subnet administrator would return for a node.
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/rdmacm/internal.h"

void cm_bind_device(struct cm_id *id, struct cm_device *device)
{
    struct rdma_ib_addr *address = &id->base.route.addr.addr.ibaddr;
    id->device = device;
    id->base.verbs = device->verbs;
    id->base.port_num = CM_PORT;
    address->sgid = device->gid;
    address->pkey = htobe16(0xffff);
}

static int device_have(struct cm_id *id)
{
    struct cm_device *device = id->device != NULL ? id->device : cm_device_open(NULL);
    if (device == NULL) {
        return -ENODEV;
    }
    cm_bind_device(id, device);
    return 0;
}

static int bind_address(struct cm_id *id, const struct sockaddr *address)
{
    uint32_t node;
    enum cm_where where = cm_address_where(address, &node);
    if (id->state != CM_IDLE) {
        return -EINVAL;
    }
    if (where == CM_WHERE_BAD) {
        return -EAFNOSUPPORT;
    }
    if (where == CM_WHERE_NOBODY || (where == CM_WHERE_NODE && node != cm_own_node())) {
        return -EADDRNOTAVAIL;
    }
    int status = where == CM_WHERE_NODE ? device_have(id) : 0;
    status = status != 0 ? status : cm_port_take(id, cm_address_port(address));
    if (status == 0) {
        id->state = CM_BOUND;
        cm_address_set(&id->base.route.addr.src_storage, address->sa_family, where == CM_WHERE_ANY, node, id->port);
    }
    return status;
}

int cm_bind_any(struct cm_id *id)
{
    const struct sockaddr_in any = {.sin_family = AF_INET};
    return bind_address(id, (const struct sockaddr *)&any);
}

int rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *address)
{
    CM_ENTER();
    return cm_errno(bind_address(cm_id_of(base), address));
}

// The time of a request to another node (ARP) or to the subnet administrator: an interrupt there and one here. Without
// simulated time it is a timeout for the other program: a server that has served one connection may be about to listen
// for the next.
uint64_t cm_answer_ns(void)
{
    enum { FUNCTIONAL_NS = 20000000 };
    return attach_mode() == ATTACH_TIMED ? 2 * attach_environment()->interrupt_ps / 1000 + 1 : FUNCTIONAL_NS;
}

static int resolve(struct cm_id *id, const struct sockaddr *source, const struct sockaddr *destination, int timeout_ms)
{
    uint32_t node;
    bool group = cm_is_group(destination);
    enum cm_where where = group ? CM_WHERE_ANY : cm_address_where(destination, &node);
    int status = where == CM_WHERE_BAD ? -EAFNOSUPPORT : 0;
    if (status == 0 && id->state == CM_IDLE) {
        status = source != NULL ? bind_address(id, source) : cm_bind_any(id);
    }
    if (status == 0 && id->state != CM_BOUND) {
        status = -EINVAL;
    }
    status = status != 0 ? status : device_have(id);
    if (status != 0) {
        return status;
    }
    int family = destination->sa_family;
    cm_address_set(&id->base.route.addr.src_storage, family, false, cm_own_node(), id->port);
    id->state = CM_ADDRESS_SOUGHT;
    if (where == CM_WHERE_NOBODY) {
        id->base.route.addr.dst_addr.sa_family = AF_UNSPEC; // no node has the address
        cm_deadline_set(id, (timeout_ms > 0 ? (uint64_t)timeout_ms : 1) * 1000000u);
    } else if (group) { // no request: its GID follows from the address
        memcpy(&id->base.route.addr.dst_storage, destination,
               family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        cm_deadline_set(id, cm_answer_ns());
    } else {
        cm_address_set(&id->base.route.addr.dst_storage, family, false, where == CM_WHERE_ANY ? cm_own_node() : node,
                       cm_address_port(destination));
        cm_deadline_set(id, cm_answer_ns());
    }
    return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *source, struct sockaddr *destination, int timeout_ms)
{
    int status;
    {
        CM_ENTER();
        status = resolve(cm_id_of(base), source, destination, timeout_ms);
    }
    return status != 0 ? cm_errno(status) : cm_complete(cm_id_of(base));
}

// LIDs follow the order of the nodes, for both devices (sim/platform/ib_fabric.c). The peer's GID comes with its answer.
void cm_route_set(struct cm_id *id, uint32_t node)
{
    const struct ibv_port_attr *port = &id->device->port;
    id->path_rec = (struct ibv_sa_path_rec){
        .sgid = id->device->gid,
        .slid = htobe16(port->lid),
        .dlid = htobe16((uint16_t)(port->lid + node - cm_own_node())),
        .reversible = 1,
        .pkey = htobe16(0xffff),
        .mtu_selector = 2, // exactly (IBA 15.2.5.16)
        .mtu = (uint8_t)port->active_mtu,
        .rate_selector = 2,
        .packet_life_time_selector = 2,
        .packet_life_time = CM_PACKET_LIFE,
    };
    // Four lanes at SDR, DDR, QDR or FDR.
    id->path_rec.rate = port->active_speed >= 16  ? IBV_RATE_56_GBPS
                        : port->active_speed >= 4 ? IBV_RATE_40_GBPS
                        : port->active_speed >= 2 ? IBV_RATE_20_GBPS
                                                  : IBV_RATE_10_GBPS;
    id->base.route.path_rec = &id->path_rec;
    id->base.route.num_paths = 1;
}

static int route(struct cm_id *id)
{
    if (id->state != CM_ADDRESS_FOUND) {
        return -EINVAL;
    }
    id->state = CM_ROUTE_SOUGHT;
    cm_deadline_set(id, cm_answer_ns());
    return 0;
}

void cm_resolved(struct cm_id *id)
{
    uint32_t node;
    const struct sockaddr *destination = &id->base.route.addr.dst_addr;
    if (destination->sa_family == AF_UNSPEC) {
        id->state = CM_BOUND;
        (void)cm_event_put(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
    } else if (id->state == CM_ADDRESS_SOUGHT) {
        id->state = CM_ADDRESS_FOUND;
        (void)cm_event_put(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    } else {
        (void)cm_address_where(destination, &node);
        cm_route_set(id, node);
        id->state = CM_ROUTED;
        (void)cm_event_put(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    }
}

int rdma_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
    int status;
    (void)timeout_ms; // the answer always comes
    {
        CM_ENTER();
        status = route(cm_id_of(base));
    }
    return status != 0 ? cm_errno(status) : cm_complete(cm_id_of(base));
}
