// Multicast groups. The GID of a group is made from its IP address as IPoIB does (RFC 4391, with the byte that Linux'
// rdma_cm sets for its port space). A join with a queue pair attaches it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models/hca/abi/hca_abi.h"
#include "verbs-shim/rdmacm/internal.h"

enum { EVERYBODY = 0xffffff, HOPS = 1 };

struct cm_group {
    struct cm_group *next;
    struct sockaddr_storage address;
    union ibv_gid gid;
    uint16_t lid;
    bool attached;
};

bool cm_is_group(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return IN_MULTICAST(ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr));
    }
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static size_t address_bytes(const struct sockaddr *address)
{
    return address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static union ibv_gid gid_of(const struct cm_id *id, const struct sockaddr *address)
{
    bool v4 = address->sa_family == AF_INET;
    // Transient, of link-local scope; IPv4 or IPv6; the P_Key.
    union ibv_gid gid = {.raw = {0xff, 0x12, v4 ? 0x40 : 0x60, id->base.ps == RDMA_PS_UDP ? 0x01 : 0x1b, 0xff, 0xff}};
    if (v4) {
        memcpy(&gid.raw[12], &((const struct sockaddr_in *)address)->sin_addr, 4);
        gid.raw[12] &= 0x0f;
    } else {
        memcpy(&gid.raw[6], &((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr[6], 10);
    }
    return gid;
}

static int join(struct cm_id *id, const struct sockaddr *address, bool receives, void *context)
{
    if (!cm_is_datagram(id) || id->device == NULL || !cm_is_group(address)) {
        return -EINVAL;
    }
    struct cm_group *group = calloc(1, sizeof *group);
    if (group == NULL) {
        return -ENOMEM;
    }
    memcpy(&group->address, address, address_bytes(address));
    group->gid = gid_of(id, address);
    group->lid = hca_group_lid(group->gid.raw);
    int error = receives && id->base.qp != NULL ? ibv_attach_mcast(id->base.qp, &group->gid, group->lid) : 0;
    if (error != 0) {
        free(group);
        return -error;
    }
    group->attached = receives && id->base.qp != NULL;
    group->next = id->groups;
    id->groups = group;
    struct cm_event *event = cm_event_put(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
    if (event != NULL) {
        event->base.param.ud.private_data = context;
        event->base.param.ud.ah_attr = (struct ibv_ah_attr){
            .dlid = group->lid, .is_global = 1, .port_num = CM_PORT, .grh = {.dgid = group->gid, .hop_limit = HOPS}};
        event->base.param.ud.qp_num = EVERYBODY;
        event->base.param.ud.qkey = RDMA_UDP_QKEY;
    }
    return 0;
}

static void leave(struct cm_id *id, struct cm_group **link)
{
    struct cm_group *group = *link;
    if (group->attached && id->base.qp != NULL) {
        (void)ibv_detach_mcast(id->base.qp, &group->gid, group->lid);
    }
    *link = group->next;
    free(group);
}

void cm_groups_leave(struct cm_id *id)
{
    while (id->groups != NULL) {
        leave(id, &id->groups);
    }
}

int rdma_join_multicast(struct rdma_cm_id *base, struct sockaddr *address, void *context)
{
    int status;
    {
        CM_ENTER();
        status = join(cm_id_of(base), address, true, context);
    }
    return status != 0 ? cm_errno(status) : cm_complete(cm_id_of(base));
}

int rdma_join_multicast_ex(struct rdma_cm_id *base, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
    const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    bool sends_only = attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
    if (attr->comp_mask != needed || (!sends_only && attr->join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER)) {
        return cm_errno(-EINVAL);
    }
    int status;
    {
        CM_ENTER();
        status = join(cm_id_of(base), attr->addr, !sends_only, context);
    }
    return status != 0 ? cm_errno(status) : cm_complete(cm_id_of(base));
}

// The subnet administrator is notified, which takes time: earlier requests of the program leave the adapter meanwhile.
int rdma_leave_multicast(struct rdma_cm_id *base, struct sockaddr *address)
{
    const struct timespec delay = {.tv_nsec = (long)cm_answer_ns()};
    (void)nanosleep(&delay, NULL);
    CM_ENTER();
    struct cm_id *id = cm_id_of(base);
    struct cm_group **link = &id->groups;
    while (*link != NULL && memcmp(&(*link)->address, address, address_bytes(address)) != 0) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return cm_errno(-EADDRNOTAVAIL);
    }
    leave(id, link);
    return 0;
}
