// The world, its devices, and their small objects.
#include <endian.h>

#include "memory_internal.h"

#define GUID UINT64_C(0x0002c90300000000)

// --- world ----------------------------------------------------------------------------------------------------------

struct memory_world *memory_world_create(void)
{
    return calloc(1, sizeof(struct memory_world));
}

void memory_world_destroy(struct memory_world *world)
{
    free(world);
}

void memory_world_join(struct memory_world *world, struct backend_process *process)
{
    struct memory_port *port = &world->ports[world->port_count++];
    *port = (struct memory_port){.world = world, .lid = (uint16_t)world->port_count, .connected = true};
    (void)ibverbs_device_add(process, "memory0", &memory_device_ops, port);
}

unsigned memory_world_live(const struct memory_world *world)
{
    return world->live;
}

unsigned memory_world_abandoned(const struct memory_world *world)
{
    return world->abandoned;
}

void memory_world_set_bus(struct memory_world *world, uint8_t *(*at)(void *arg, uint64_t bus_address), void *arg)
{
    world->bus_at = at;
    world->bus_arg = arg;
}

void memory_world_set_wait(struct memory_world *world, void (*wait)(void *arg), void *arg)
{
    world->wait = wait;
    world->wait_arg = arg;
}

void memory_world_cable(struct memory_world *world, unsigned lid, bool connected)
{
    struct memory_port *port = &world->ports[lid - 1];
    port->connected = connected;
    for (struct memory_context *context = world->contexts; context != NULL; context = context->next) {
        if (context->port == port) {
            memory_event_raise(context, &(struct ibverbs_event){
                                            .type = connected ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, .port = 1});
        }
    }
}

void memory_world_exhaust(struct memory_world *world)
{
    world->exhausted = true;
}

void *memory_alloc(struct memory_world *world, size_t bytes)
{
    if (world->exhausted) {
        world->exhausted = false;
        return NULL;
    }
    world->live++;
    return calloc(1, bytes);
}

void memory_free(struct memory_world *world, void *object)
{
    world->live--;
    free(object);
}

// --- queries --------------------------------------------------------------------------------------------------------

static int query_device(void *device, struct ibverbs_device_info *info_out)
{
    const struct memory_port *port = device;
    if (port->world->exhausted) {
        port->world->exhausted = false;
        return -ENOMEM;
    }
    *info_out = (struct ibverbs_device_info){
        .attr = {.fw_ver = "1.0",
                 .node_guid = htobe64(GUID + 0x100u * port->lid),
                 .sys_image_guid = htobe64(GUID + 0x100u * port->lid + 3),
                 .max_mr_size = UINT64_MAX,
                 .page_size_cap = 4096,
                 .vendor_id = 0x02c9,
                 .max_qp = 1024,
                 .max_qp_wr = MEMORY_WR_MAX,
                 .max_sge = MEMORY_SGE_MAX,
                 .max_cq = 1024,
                 .max_cqe = MEMORY_CQE_MAX,
                 .max_mr = 1024,
                 .max_pd = 1024,
                 .max_qp_rd_atom = MEMORY_RD_ATOMIC,
                 .max_qp_init_rd_atom = MEMORY_RD_ATOMIC,
                 .atomic_cap = IBV_ATOMIC_HCA,
                 .max_ah = 1024,
                 .max_srq = 1024,
                 .max_srq_wr = MEMORY_WR_MAX,
                 .max_srq_sge = MEMORY_SGE_MAX,
                 .max_pkeys = 1,
                 .phys_port_cnt = 1},
        .max_inline_bytes = MEMORY_INLINE_MAX,
        .qp_types = 1u << IBV_QPT_RC | 1u << IBV_QPT_UC | 1u << IBV_QPT_UD,
        .send_ops = UINT32_MAX,
        .completion_vectors = MEMORY_VECTORS,
    };
    return 0;
}

static int query_port(void *device, unsigned number, struct ibv_port_attr *attr_out)
{
    const struct memory_port *port = device;
    (void)number;
    *attr_out = (struct ibv_port_attr){.state = port->connected ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
                                       .max_mtu = IBV_MTU_2048,
                                       .active_mtu = IBV_MTU_2048,
                                       .gid_tbl_len = 1,
                                       .max_msg_sz = MEMORY_MESSAGE_MAX,
                                       .pkey_tbl_len = 1,
                                       .lid = port->lid,
                                       .max_vl_num = 1,
                                       .active_width = 2,
                                       .active_speed = 4,
                                       .phys_state = 5,
                                       .link_layer = IBV_LINK_LAYER_INFINIBAND,
                                       .port_cap_flags2 = IBV_PORT_INFO_EXT_SUP};
    return 0;
}

static int query_gid(void *device, unsigned number, unsigned index, union ibv_gid *gid_out)
{
    const struct memory_port *port = device;
    (void)number, (void)index;
    gid_out->global.subnet_prefix = htobe64(UINT64_C(0xfe80000000000000));
    gid_out->global.interface_id = htobe64(GUID + 0x100u * port->lid + 1);
    return 0;
}

static int query_pkey(void *device, unsigned number, unsigned index, uint16_t *pkey_out)
{
    (void)device, (void)number, (void)index;
    *pkey_out = MEMORY_PKEY;
    return 0;
}

// --- contexts and events --------------------------------------------------------------------------------------------

static int open_context(void *device, struct backend_process *process, void **context_out)
{
    struct memory_port *port = device;
    struct memory_context *context = memory_alloc(port->world, sizeof *context);
    (void)process;
    if (context == NULL) {
        return -ENOMEM;
    }
    context->port = port;
    context->events_end = &context->events;
    context->next = port->world->contexts;
    port->world->contexts = context;
    *context_out = context;
    return 0;
}

static int close_context(void *object)
{
    struct memory_context *context = object, **link = &context->port->world->contexts;
    while (*link != context) {
        link = &(*link)->next;
    }
    *link = context->next;
    while (context->events != NULL) {
        struct memory_event *event = context->events;
        context->events = event->next;
        free(event);
    }
    memory_free(context->port->world, context);
    return 0;
}

static void abandon_context(void *context)
{
    ((struct memory_context *)context)->port->world->abandoned++;
}

void memory_event_raise(struct memory_context *context, const struct ibverbs_event *event)
{
    struct memory_event *raised = calloc(1, sizeof *raised);
    raised->event = *event;
    *context->events_end = raised;
    context->events_end = &raised->next;
}

void memory_event_forget(struct memory_context *context, const void *user)
{
    for (struct memory_event *event = context->events; event != NULL; event = event->next) {
        event->event.user = event->event.user == user ? NULL : event->event.user;
    }
}

static int event_get(void *object, uint64_t timeout_ns, struct ibverbs_event *event_out)
{
    struct memory_context *context = object;
    const struct memory_world *world = context->port->world;
    if (context->events == NULL && timeout_ns != IBVERBS_NO_WAIT && world->wait != NULL) {
        world->wait(world->wait_arg);
    }
    struct memory_event *event = context->events;
    if (event == NULL) {
        return timeout_ns == IBVERBS_NO_WAIT ? -EAGAIN : -EINTR;
    }
    context->events = event->next;
    context->events_end = event->next == NULL ? &context->events : context->events_end;
    *event_out = event->event;
    free(event);
    return 0;
}

// --- protection domains, regions, address handles -------------------------------------------------------------------

static int pd_create(void *context, void **pd_out)
{
    struct memory_pd *pd = memory_alloc(((struct memory_context *)context)->port->world, sizeof *pd);
    if (pd == NULL) {
        return -ENOMEM;
    }
    pd->context = context;
    *pd_out = pd;
    return 0;
}

static int pd_destroy(void *pd)
{
    memory_free(memory_world_of(pd), pd);
    return 0;
}

static int mr_register(void *pd, const struct ibverbs_region *region, void **mr_out, uint32_t *lkey_out,
                       uint32_t *rkey_out)
{
    struct memory_world *world = memory_world_of(pd);
    struct memory_mr *mr = memory_alloc(world, sizeof *mr);
    if (mr == NULL) {
        return -ENOMEM;
    }
    *mr = (struct memory_mr){.next = world->mrs, .pd = pd, .region = *region, .key = 0x100u * ++world->keys};
    world->mrs = mr;
    *mr_out = mr;
    *lkey_out = mr->key;
    *rkey_out = mr->key;
    return 0;
}

static int mr_deregister(void *object)
{
    struct memory_mr *mr = object, **link = &memory_world_of(mr->pd)->mrs;
    while (*link != mr) {
        link = &(*link)->next;
    }
    *link = mr->next;
    memory_free(memory_world_of(mr->pd), mr);
    return 0;
}

static int ah_create(void *pd, const struct ibv_ah_attr *attr, void **ah_out)
{
    struct memory_ah *ah = memory_alloc(memory_world_of(pd), sizeof *ah);
    if (ah == NULL) {
        return -ENOMEM;
    }
    *ah = (struct memory_ah){memory_world_of(pd), *attr};
    *ah_out = ah;
    return 0;
}

static int ah_destroy(void *ah)
{
    memory_free(((struct memory_ah *)ah)->world, ah);
    return 0;
}

const struct ibverbs_device_ops memory_device_ops = {
    .query_device = query_device,
    .query_port = query_port,
    .query_gid = query_gid,
    .query_pkey = query_pkey,
    .open = open_context,
    .close = close_context,
    .abandon = abandon_context,
    .event_get = event_get,
    .pd_create = pd_create,
    .pd_destroy = pd_destroy,
    .mr_register = mr_register,
    .mr_deregister = mr_deregister,
    .cq_create = memory_cq_create,
    .cq_destroy = memory_cq_destroy,
    .cq_resize = memory_cq_resize,
    .cq_poll = memory_cq_poll,
    .cq_arm = memory_cq_arm,
    .cq_wait = memory_cq_wait,
    .srq_create = memory_srq_create,
    .srq_destroy = memory_srq_destroy,
    .srq_arm = memory_srq_arm,
    .srq_query = memory_srq_query,
    .qp_create = memory_qp_create,
    .qp_destroy = memory_qp_destroy,
    .qp_modify = memory_qp_modify,
    .qp_query = memory_qp_query,
    .ah_create = ah_create,
    .ah_destroy = ah_destroy,
    .post_send = memory_post_send,
    .post_recv = memory_post_recv,
    .post_srq_recv = memory_post_srq_recv,
    .send_room = memory_send_room,
};
