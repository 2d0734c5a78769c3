#include "models/hca/ib_switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/flow/flow.h"
#include "sim/kernel/cause.h"
#include "sim/kernel/counter.h"

enum { NO_PORT = 0xff };
enum counter { FORWARDED, UNROUTABLE, COUNTERS };

static const struct sim_work switching = {"cable", "switch", false};

static const struct sim_counter_desc COUNTER_DESCS[COUNTERS] = {
    [FORWARDED] = {"forwarded_packets", "packets", "given to an output"},
    [UNROUTABLE] = {"unroutable_packets", "packets", "to a LID without a port, dropped"},
};

struct port {
    ib_switch_t *owner;
    unsigned index;
    ib_end_t *end;
    struct ib_queue from[IB_SWITCH_PORTS_MAX]; // packets that leave here, by the port they came through
    uint32_t waiting, next_input;
    sim_event_t event;
};

struct group {
    uint16_t mlid; // 0: none
    uint16_t members[IB_SWITCH_PORTS_MAX];
};

struct ib_switch {
    sim_t *sim;
    ib_pool_t *pool;
    uint64_t latency_ps;
    struct port *ports[IB_SWITCH_PORTS_MAX];
    unsigned port_count;
    uint8_t *routes; // the port of each LID
    unsigned lid_count;
    struct group *groups; // IB_SWITCH_GROUPS of them; NULL: there was none yet
    uint64_t counters[COUNTERS];
    char name[64];
};

// The next input in turn whose oldest packet has passed the switch; NULL: none yet, *due_ps: time of the first one.
static struct ib_queue *input_pick(struct port *port, uint64_t now_ps, uint64_t *due_ps)
{
    *due_ps = SIM_NEVER_PS;
    for (unsigned i = 0; i < port->owner->port_count; i++) {
        unsigned input = (port->next_input + i) % port->owner->port_count;
        struct ib_queue *queue = &port->from[input];
        if (queue->count == 0) {
            continue;
        }
        if (queue->first->due_ps <= now_ps) {
            port->next_input = input + 1;
            return queue;
        }
        *due_ps = queue->first->due_ps < *due_ps ? queue->first->due_ps : *due_ps;
    }
    return NULL;
}

static void port_pump(struct port *port)
{
    ib_switch_t *owner = port->owner;
    uint64_t due_ps = SIM_NEVER_PS;
    while (port->waiting > 0) {
        struct ib_queue *queue = input_pick(port, sim_now_ps(owner->sim), &due_ps);
        if (queue == NULL) {
            sim_event_schedule_at(owner->sim, &port->event, due_ps);
            return;
        }
        ib_packet_t *packet = queue->first, *next = packet->next;
        ib_end_t *arrived_at = packet->arrived_at;
        ib_packet_t *original = packet->shared;
        const ib_packet_t freed = {.opcode = packet->opcode,
                                   .service = packet->service,
                                   .global = packet->global,
                                   .bytes = packet->bytes}; // the link may end the packet
        packet->shared = NULL;
        sim_cause_follow(owner->sim, packet->cause, owner->name, &switching);
        if (!ib_end_offer(port->end, packet)) {
            packet->shared = original;
            port->next_input = (port->next_input + owner->port_count - 1) % owner->port_count;
            return;
        }
        queue->first = next;
        queue->count--;
        port->waiting--;
        owner->counters[FORWARDED]++;
        if (original != NULL) {
            ib_packet_done(owner->pool, original);
        } else {
            ib_end_release(arrived_at, &freed);
        }
    }
}

static void port_event(void *ctx)
{
    port_pump(ctx);
}

static void forward(const struct port *from, struct port *to, ib_packet_t *packet)
{
    ib_switch_t *owner = from->owner;
    packet->due_ps = sim_now_ps(owner->sim) + owner->latency_ps;
    packet->cause = sim_cause_now(owner->sim);
    ib_queue_push(&to->from[from->index], packet);
    to->waiting++;
    if (!sim_event_pending(&to->event)) {
        sim_event_schedule_at(owner->sim, &to->event, packet->due_ps);
    }
}

static struct group *group_find(ib_switch_t *ib_switch, uint16_t mlid)
{
    for (unsigned i = 0; ib_switch->groups != NULL && i < IB_SWITCH_GROUPS; i++) {
        if (ib_switch->groups[i].mlid == mlid) {
            return &ib_switch->groups[i];
        }
    }
    return NULL;
}

static void group_forward(const struct port *from, ib_packet_t *packet)
{
    ib_switch_t *owner = from->owner;
    const struct group *group = group_find(owner, packet->dlid);
    packet->pending = 1; // one for this function
    for (unsigned i = 0; i < owner->port_count && group != NULL; i++) {
        if (group->members[i] > 0 && i != from->index) {
            forward(from, owner->ports[i], ib_packet_share(owner->pool, packet));
        }
    }
    owner->counters[UNROUTABLE] += packet->pending == 1;
    ib_packet_done(owner->pool, packet);
}

static void port_receive(void *ctx, ib_end_t *end, ib_packet_t *packet)
{
    struct port *from = ctx;
    ib_switch_t *owner = from->owner;
    if (ib_is_multicast(packet->dlid)) {
        group_forward(from, packet);
        return;
    }
    uint8_t route = packet->dlid < owner->lid_count ? owner->routes[packet->dlid] : NO_PORT;
    if (route == NO_PORT) {
        owner->counters[UNROUTABLE]++;
        ib_end_release(end, packet);
        ib_packet_give(owner->pool, packet);
        return;
    }
    forward(from, owner->ports[route], packet);
}

static void port_ready(void *ctx, ib_end_t *end)
{
    (void)end;
    port_pump(ctx);
}

static void port_state(void *ctx, ib_end_t *end, bool up)
{
    (void)end;
    (void)up;
    port_pump(ctx); // a link that is down takes and drops packets
}

static void forwarded_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    ((ib_switch_t *)ctx)->counters[FORWARDED] += flow_packets(bytes, packet_bytes);
}

static void acks_count(void *ctx, uint64_t bytes, uint32_t acknowledged_bytes)
{
    ((ib_switch_t *)ctx)->counters[FORWARDED] += bytes / acknowledged_bytes;
}

static void port_stream(void *ctx, ib_end_t *end, struct flow_path *path, struct ib_stream *stream)
{
    struct port *from = ctx;
    ib_switch_t *owner = from->owner;
    uint16_t lid = stream->like->dlid;
    uint8_t route = lid < IB_SWITCH_LIDS_MAX ? owner->routes[lid] : NO_PORT;
    (void)end;
    if (route == NO_PORT) {
        path->refused = true;
        return;
    }
    if (stream->acknowledged_bytes > 0) {
        flow_path_count_as(path, stream->acknowledged_bytes, acks_count, owner);
    } else {
        flow_path_count(path, forwarded_count, owner);
        path->latency_ps += owner->latency_ps;
        flow_path_sorted(path); // the receive buffer, by outputs
        path->input = from->index % FLOW_INPUTS_MAX;
    }
    ib_end_stream(owner->ports[route]->end, path, 0, stream);
}

static const struct ib_end_ops PORT_OPS = {port_receive, port_ready, port_state, port_stream};

enum sim_status ib_switch_create(sim_t *sim, ib_pool_t *pool, const char *name, uint64_t latency_ps,
                                 ib_switch_t **switch_out)
{
    ib_switch_t *created = calloc(1, sizeof *created);
    if (created == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    created->sim = sim;
    created->pool = pool;
    created->latency_ps = latency_ps;
    snprintf(created->name, sizeof created->name, "%s", name);
    enum sim_status status = sim_counters_register(sim, name, COUNTER_DESCS, created->counters, COUNTERS);
    if (status != SIM_OK) {
        free(created);
        return status;
    }
    *switch_out = created;
    return SIM_OK;
}

// Its link still exists, but its owner must not be notified of room any more.
static void queued_drop(ib_switch_t *ib_switch, ib_packet_t *packet)
{
    ib_packet_t *original = packet->shared;
    ib_packet_give(ib_switch->pool, packet);
    if (original != NULL && --original->pending == 0) {
        ib_packet_give(ib_switch->pool, original);
    }
}

void ib_switch_destroy(ib_switch_t *ib_switch)
{
    if (ib_switch == NULL) {
        return;
    }
    for (unsigned i = 0; i < ib_switch->port_count; i++) {
        struct port *port = ib_switch->ports[i];
        for (unsigned input = 0; input < ib_switch->port_count; input++) {
            while (port->from[input].count > 0) {
                queued_drop(ib_switch, ib_queue_pop(&port->from[input]));
            }
        }
        sim_event_cancel(ib_switch->sim, &port->event);
        free(port);
    }
    sim_counters_unregister(ib_switch->sim, ib_switch->counters);
    free(ib_switch->routes);
    free(ib_switch->groups);
    free(ib_switch);
}

unsigned ib_switch_add_port(ib_switch_t *ib_switch, ib_end_t *end)
{
    struct port *port = ib_switch->port_count < IB_SWITCH_PORTS_MAX ? calloc(1, sizeof *port) : NULL;
    if (port == NULL) {
        sim_panic("ib_switch", "no memory for a port, or more than %u ports", IB_SWITCH_PORTS_MAX);
    }
    port->owner = ib_switch;
    port->index = ib_switch->port_count;
    port->end = end;
    sim_event_init(&port->event, port_event, port);
    ib_switch->ports[ib_switch->port_count++] = port;
    ib_end_attach(end, &PORT_OPS, port);
    return port->index;
}

// SIM_ERR_NO_MEMORY: the table stays as it is.
static enum sim_status routes_grow(ib_switch_t *ib_switch, unsigned lid)
{
    unsigned count = ib_switch->lid_count == 0 ? 64 : ib_switch->lid_count;
    while (count <= lid) {
        count *= 2;
    }
    uint8_t *routes = realloc(ib_switch->routes, count * sizeof *routes);
    if (routes == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    memset(routes + ib_switch->lid_count, NO_PORT, count - ib_switch->lid_count);
    ib_switch->routes = routes;
    ib_switch->lid_count = count;
    return SIM_OK;
}

enum sim_status ib_switch_set_route(ib_switch_t *ib_switch, uint16_t lid, unsigned port)
{
    if (lid >= IB_SWITCH_LIDS_MAX || port >= ib_switch->port_count) {
        return SIM_ERR_INVALID;
    }
    if (lid >= ib_switch->lid_count && routes_grow(ib_switch, lid) != SIM_OK) {
        return SIM_ERR_NO_MEMORY;
    }
    ib_switch->routes[lid] = (uint8_t)port;
    return SIM_OK;
}

static struct group *group_make(ib_switch_t *ib_switch)
{
    if (ib_switch->groups == NULL) {
        ib_switch->groups = calloc(IB_SWITCH_GROUPS, sizeof *ib_switch->groups);
    }
    return group_find(ib_switch, 0);
}

enum sim_status ib_switch_group_change(ib_switch_t *ib_switch, uint16_t mlid, unsigned port, bool joins)
{
    struct group *group = group_find(ib_switch, mlid);
    if (port >= ib_switch->port_count || !ib_is_multicast(mlid) ||
        (!joins && (group == NULL || group->members[port] == 0))) {
        return SIM_ERR_INVALID;
    }
    group = group != NULL ? group : group_make(ib_switch);
    if (group == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    group->mlid = mlid;
    group->members[port] = (uint16_t)(group->members[port] + (joins ? 1 : -1));
    unsigned members = 0;
    for (unsigned i = 0; i < ib_switch->port_count; i++) {
        members += group->members[i];
    }
    group->mlid = members > 0 ? mlid : 0;
    return SIM_OK;
}
