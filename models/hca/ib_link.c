#include "models/hca/ib_link.h"

#include <stdio.h>
#include <stdlib.h>

#include "models/flow/flow.h"
#include "sim/kernel/cause.h"
#include "sim/kernel/counter.h"

enum { FLOW_BYTES = 8, HEADER_BYTES_MAX = 64 };

enum counter {
    PACKETS,
    BYTES,
    FLOW_PACKETS,
    CREDIT_STALLS,
    DROPPED,
    DAMAGED,
    LOST,
    DROPPED_DOWN,
    DOWNS,
    DOWN_AT,
    UP_AT,
    COUNTERS
};

static const struct sim_counter_desc COUNTER_DESCS[COUNTERS] = {
    [PACKETS] = {"packets", "packets", "sent from this end"},
    [BYTES] = {"wire_bytes", "bytes", "sent from this end, headers and delimiters included"},
    [FLOW_PACKETS] = {"flow_packets", "packets", "flow control packets sent from this end"},
    [CREDIT_STALLS] = {"credit_stalls", "stalls", "times a packet found too little room at the peer"},
    [DROPPED] = {"dropped_packets", "packets", "lost on the wire by fault injection"},
    [DAMAGED] = {"damaged_packets", "packets", "arrived here with a wrong CRC and ended"},
    [LOST] = {"lost_packets", "packets", "sent from this end while the link was down or went down"},
    [DROPPED_DOWN] = {"dropped_while_down", "packets", "of lost_packets: given to this end while the link was down"},
    [DOWNS] = {"downs", "events", "times the link went down"},
    [DOWN_AT] = {"down_at", "ps", "when the link went down last; 0: never"},
    [UP_AT] = {"up_at", "ps", "when the link came up again last; 0: never"},
};

struct ib_end {
    ib_link_t *link;
    unsigned side;
    const struct ib_end_ops *ops;
    void *ctx;
    // sending
    uint64_t free_ps;
    uint32_t credit_blocks; // room at the peer, as far as known here
    bool refused;
    uint32_t drop_next, damage_next, sent;
    struct ib_queue flying; // due_ps: when the last symbol has arrived
    sim_event_t ready_event, arrive_event;
    // receiving
    uint32_t freed_blocks;  // not reported yet
    uint32_t flying_blocks; // reported, in flight to the peer
    sim_event_t flow_event;
    struct flow_stage stage; // of what leaves here
    struct ib_traffic lost;  // of what has left here
    uint64_t counters[COUNTERS];
    char name[168];
};

struct ib_link {
    sim_t *sim;
    ib_pool_t *pool;
    struct ib_link_config config;
    uint32_t largest_blocks;
    bool up;
    ib_end_t ends[2];
};

static ib_end_t *peer_of(ib_end_t *end)
{
    return &end->link->ends[1 - end->side];
}

// --- credits -------------------------------------------------------------------------------------------------------

static void flow_arrive(void *ctx)
{
    ib_end_t *end = ctx;
    ib_end_t *peer = peer_of(end);
    peer->credit_blocks += end->flying_blocks;
    end->flying_blocks = 0;
    if (peer->refused && !sim_event_pending(&peer->ready_event)) {
        sim_event_schedule(end->link->sim, &peer->ready_event, 0);
    }
    ib_end_release(end, NULL); // reports the blocks freed while that packet was in flight
}

void ib_end_release(ib_end_t *end, const ib_packet_t *packet)
{
    ib_link_t *link = end->link;
    end->freed_blocks += packet == NULL ? 0 : ib_packet_blocks(packet);
    bool enough = end->freed_blocks >= link->config.buffer_blocks[end->side] / 4;
    bool urgent = peer_of(end)->credit_blocks < link->largest_blocks;
    if (end->freed_blocks == 0 || !link->up || sim_event_pending(&end->flow_event) || !(enough || urgent)) {
        return;
    }
    uint64_t now_ps = sim_now_ps(link->sim);
    uint64_t start_ps = end->free_ps > now_ps ? end->free_ps : now_ps;
    end->free_ps = start_ps + (uint64_t)FLOW_BYTES * link->config.ps_per_byte;
    end->flying_blocks = end->freed_blocks;
    end->freed_blocks = 0;
    end->counters[FLOW_PACKETS]++;
    sim_event_schedule_at(link->sim, &end->flow_event, end->free_ps + link->config.flight_ps);
}

// --- packets -------------------------------------------------------------------------------------------------------

static bool fault_hits(const ib_end_t *end, uint32_t every)
{
    return every != 0 && end->sent % every == 0;
}

static void fly(ib_end_t *end, ib_packet_t *packet)
{
    static const struct sim_work serialised = {"cable", "serialisation", false};
    static const struct sim_work flight = {"cable", "flight", false};
    ib_link_t *link = end->link;
    end->sent++;
    if (end->drop_next > 0 || fault_hits(end, link->config.drop_every)) {
        end->drop_next -= end->drop_next > 0;
        end->counters[DROPPED]++;
        packet->failed = true;
    } else if (end->damage_next > 0 || fault_hits(end, link->config.damage_every)) {
        end->damage_next -= end->damage_next > 0;
        packet->damaged = true;
    }
    packet->due_ps = end->free_ps + link->config.flight_ps;
    packet->cause = sim_cause_extend(link->sim, sim_cause_now(link->sim), end->free_ps, end->name, &serialised);
    packet->cause = sim_cause_extend(link->sim, packet->cause, packet->due_ps, end->name, &flight);
    ib_queue_push(&end->flying, packet);
    if (end->flying.count == 1) {
        sim_event_schedule_at(link->sim, &end->arrive_event, packet->due_ps);
    }
}

// The first and the last packet of a message whose others go by stream: the stream has taken their time.
static bool is_beside_stream(const ib_packet_t *packet)
{
    return packet->in_long && (ib_packet_flags(packet) & (IB_IS_FIRST | IB_IS_LAST)) != 0;
}

bool ib_end_offer(ib_end_t *end, ib_packet_t *packet)
{
    ib_link_t *link = end->link;
    if (!link->up) {
        end->counters[LOST]++;
        end->counters[DROPPED_DOWN]++;
        ib_packet_give(link->pool, packet);
        return true;
    }
    uint64_t now_ps = sim_now_ps(link->sim);
    if (end->free_ps > now_ps) {
        end->refused = true;
        if (!sim_event_pending(&end->ready_event)) {
            sim_event_schedule_at(link->sim, &end->ready_event, end->free_ps);
        }
        return false;
    }
    uint32_t blocks = ib_packet_blocks(packet);
    if (blocks > end->credit_blocks) {
        end->refused = true;
        end->counters[CREDIT_STALLS]++;
        return false;
    }
    uint32_t bytes = ib_packet_wire_bytes(packet);
    end->credit_blocks -= blocks;
    end->free_ps = now_ps + (uint64_t)(bytes + link->config.gap_bytes) * link->config.ps_per_byte;
    end->counters[PACKETS]++;
    end->counters[BYTES] += bytes;
    if (!is_beside_stream(packet)) {
        flow_stage_take(&end->stage, (double)(end->free_ps - now_ps));
    }
    fly(end, packet);
    return true;
}

static void ready_run(void *ctx)
{
    static const struct sim_work busy = {"cable", "wait for wire or credits", false};
    ib_end_t *end = ctx;
    sim_cause_label(end->link->sim, end->name, &busy);
    if (end->refused) {
        end->refused = false;
        end->ops->ready(end->ctx, end);
    }
}

static void traffic_add(struct ib_traffic *traffic, const ib_packet_t *packet)
{
    traffic->packets++;
    traffic->bytes += ib_packet_data_bytes(packet);
}

struct ib_traffic ib_end_sent(const ib_end_t *end)
{
    uint64_t packets = end->counters[PACKETS];
    return (struct ib_traffic){packets, end->counters[BYTES] - packets * IB_FRAME_BYTES};
}

struct ib_traffic ib_end_received(const ib_end_t *end)
{
    const ib_end_t *peer = &end->link->ends[1 - end->side];
    struct ib_traffic received = ib_end_sent(peer), absent = peer->lost;
    for (const ib_packet_t *packet = peer->flying.first; packet != NULL; packet = packet->next) {
        traffic_add(&absent, packet);
    }
    return (struct ib_traffic){received.packets - absent.packets, received.bytes - absent.bytes};
}

void ib_end_troubles(const ib_end_t *end, uint64_t *damaged_out, uint64_t *downs_out, uint64_t *stalls_out)
{
    *damaged_out = end->counters[DAMAGED];
    *downs_out = end->counters[DOWNS];
    *stalls_out = end->counters[CREDIT_STALLS];
}

// A lost packet never used the receiver's buffer; the receiver learns of it from the sender's count (FCTBS, 7.9.4).
static void arrive(ib_end_t *end, ib_packet_t *packet)
{
    ib_end_t *peer = peer_of(end);
    if (packet->failed || packet->damaged) {
        traffic_add(&end->lost, packet);
        peer->counters[DAMAGED] += packet->damaged;
        ib_end_release(peer, packet);
        ib_packet_give(end->link->pool, packet);
        return;
    }
    packet->arrived_at = peer;
    sim_cause_arrive(end->link->sim, packet->cause);
    peer->ops->receive(peer->ctx, peer, packet);
}

static void arrive_run(void *ctx)
{
    ib_end_t *end = ctx;
    uint64_t now_ps = sim_now_ps(end->link->sim);
    while (end->flying.count > 0 && end->flying.first->due_ps <= now_ps) {
        arrive(end, ib_queue_pop(&end->flying));
    }
    if (end->flying.count > 0) {
        sim_event_schedule_at(end->link->sim, &end->arrive_event, end->flying.first->due_ps);
    }
}

// --- creation and destruction --------------------------------------------------------------------------------------

enum sim_status ib_link_create(sim_t *sim, ib_pool_t *pool, const char *name, const struct ib_link_config *config,
                               ib_link_t **link_out)
{
    uint32_t largest = (config->mtu_bytes + HEADER_BYTES_MAX + IB_BLOCK_BYTES - 1) / IB_BLOCK_BYTES;
    if (config->ps_per_byte == 0 || config->mtu_bytes == 0 || config->mtu_bytes > IB_PAYLOAD_MAX ||
        config->buffer_blocks[0] < largest || config->buffer_blocks[1] < largest) {
        return SIM_ERR_INVALID;
    }
    ib_link_t *link = calloc(1, sizeof *link);
    if (link == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    *link = (ib_link_t){.sim = sim, .pool = pool, .config = *config, .largest_blocks = largest, .up = true};
    for (unsigned side = 0; side < 2; side++) {
        ib_end_t *end = &link->ends[side];
        end->link = link;
        end->side = side;
        end->credit_blocks = config->buffer_blocks[1 - side];
        sim_event_init(&end->ready_event, ready_run, end);
        sim_event_init(&end->arrive_event, arrive_run, end);
        sim_event_init(&end->flow_event, flow_arrive, end);
        snprintf(end->name, sizeof end->name, "%s.%u", name, side);
        (void)sim_counters_register(sim, end->name, COUNTER_DESCS, end->counters, COUNTERS);
    }
    *link_out = link;
    return SIM_OK;
}

static void end_stop(ib_end_t *end)
{
    sim_event_cancel(end->link->sim, &end->ready_event);
    sim_event_cancel(end->link->sim, &end->arrive_event);
    sim_event_cancel(end->link->sim, &end->flow_event);
    while (end->flying.count > 0) {
        ib_packet_t *packet = ib_queue_pop(&end->flying);
        end->counters[LOST]++;
        traffic_add(&end->lost, packet);
        ib_packet_give(end->link->pool, packet);
    }
}

void ib_link_destroy(ib_link_t *link)
{
    if (link == NULL) {
        return;
    }
    for (unsigned side = 0; side < 2; side++) {
        end_stop(&link->ends[side]);
        sim_counters_unregister(link->sim, link->ends[side].counters);
    }
    free(link);
}

ib_end_t *ib_link_end(ib_link_t *link, unsigned side)
{
    return &link->ends[side];
}

void ib_end_attach(ib_end_t *end, const struct ib_end_ops *ops, void *ctx)
{
    end->ops = ops;
    end->ctx = ctx;
}

const char *ib_end_name(const ib_end_t *end)
{
    return end->name;
}

bool ib_end_is_up(const ib_end_t *end)
{
    return end->link->up;
}

// Training exchanges the state of the buffers again: packets still held at the receiver count as room only when they
// are released.
static void credits_restart(ib_end_t *end)
{
    ib_end_t *peer = peer_of(end);
    uint32_t flying = 0;
    for (const ib_packet_t *packet = end->flying.first; packet != NULL; packet = packet->next) {
        flying += ib_packet_blocks(packet);
    }
    end->credit_blocks += flying + peer->flying_blocks + peer->freed_blocks;
    peer->flying_blocks = 0;
    peer->freed_blocks = 0;
}

void ib_link_set_up(ib_link_t *link, bool up)
{
    if (link->up == up) {
        return;
    }
    ib_end_streams_interrupt(&link->ends[0]);
    for (unsigned side = 0; side < 2 && !up; side++) {
        credits_restart(&link->ends[side]);
    }
    link->up = up;
    for (unsigned side = 0; side < 2; side++) {
        ib_end_t *end = &link->ends[side];
        end_stop(end);
        end->free_ps = sim_now_ps(link->sim);
        end->counters[up ? UP_AT : DOWN_AT] = sim_now_ps(link->sim);
        end->counters[DOWNS] += !up;
        end->ops->state(end->ctx, end, up);
        if (end->refused) {
            sim_event_schedule(link->sim, &end->ready_event, 0);
        }
        if (up) {
            ib_end_release(end, NULL);
        }
    }
}

void ib_link_drop_next(ib_link_t *link, unsigned side, unsigned packets)
{
    flow_stage_interrupt(&link->ends[side].stage);
    link->ends[side].drop_next += packets;
}

void ib_link_damage_next(ib_link_t *link, unsigned side, unsigned packets)
{
    flow_stage_interrupt(&link->ends[side].stage);
    link->ends[side].damage_next += packets;
}

// --- streams --------------------------------------------------------------------------------------------------------

enum { GRH_BYTES = IB_GRH_BYTES, XRCETH_BYTES = 4 };

static void data_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    static const ib_packet_t empty = {.opcode = IB_WRITE_MIDDLE};
    ib_end_t *end = ctx;
    end->counters[PACKETS] += flow_packets(bytes, packet_bytes);
    end->counters[BYTES] += bytes + flow_packets(bytes, packet_bytes) * ib_packet_wire_bytes(&empty);
}

static void global_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    ((ib_end_t *)ctx)->counters[BYTES] += flow_packets(bytes, packet_bytes) * GRH_BYTES;
}

static void xrc_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    ((ib_end_t *)ctx)->counters[BYTES] += flow_packets(bytes, packet_bytes) * XRCETH_BYTES;
}

static const ib_packet_t an_acknowledge = {.opcode = IB_ACKNOWLEDGE};

static void acks_count(void *ctx, uint64_t bytes, uint32_t acknowledged_bytes)
{
    ib_end_t *end = ctx;
    end->counters[PACKETS] += bytes / acknowledged_bytes;
    end->counters[BYTES] += bytes / acknowledged_bytes * ib_packet_wire_bytes(&an_acknowledge);
}

static void data_add(ib_end_t *end, struct flow_path *path, double ps_per_byte, const ib_packet_t *like)
{
    const struct ib_link_config *config = &end->link->config;
    ib_end_t *peer = peer_of(end);
    uint64_t wire_ps = (uint64_t)(ib_packet_wire_bytes(like) + config->gap_bytes) * config->ps_per_byte;
    double wire_rate = (double)wire_ps / like->bytes;
    uint32_t buffer_bytes = config->buffer_blocks[peer->side] * IB_BLOCK_BYTES;
    flow_path_step(path, &end->stage, wire_rate > ps_per_byte ? wire_rate : ps_per_byte, buffer_bytes);
    flow_path_count(path, data_count, end);
    if (like->global) {
        flow_path_count(path, global_count, end);
    }
    if (like->service == IB_XRC && (ib_packet_flags(like) & IB_IS_RESPONSE) == 0) {
        flow_path_count(path, xrc_count, end);
    }
    // Flow control packets go the other way, for each quarter of the buffer.
    flow_path_aside(path, &peer->stage, FLOW_BYTES / (buffer_bytes / 4.0) * config->ps_per_byte, 0);
    path->latency_ps += wire_ps + config->flight_ps;
    flow_path_window(path, buffer_bytes, wire_ps + 2 * config->flight_ps);
}

// Beside the data, on a route of its own.
static void acknowledges_add(ib_end_t *end, struct flow_path *path, uint32_t acknowledged_bytes)
{
    const struct ib_link_config *config = &end->link->config;
    double bytes = (double)(ib_packet_wire_bytes(&an_acknowledge) + config->gap_bytes) / acknowledged_bytes;
    flow_path_count_as(path, acknowledged_bytes, acks_count, end);
    flow_path_aside(path, &end->stage, bytes * config->ps_per_byte, 0);
}

static bool takes_streams(const ib_end_t *end)
{
    const struct ib_link_config *config = &end->link->config;
    return end->link->up && config->drop_every == 0 && config->damage_every == 0 && end->drop_next == 0 &&
           end->damage_next == 0;
}

void ib_end_stream(ib_end_t *end, struct flow_path *path, double ps_per_byte, struct ib_stream *stream)
{
    ib_end_t *peer = peer_of(end);
    if (!takes_streams(end) || peer->ops == NULL || peer->ops->stream == NULL) {
        path->refused = true;
        return;
    }
    if (stream->acknowledged_bytes > 0) {
        acknowledges_add(end, path, stream->acknowledged_bytes);
    } else {
        data_add(end, path, ps_per_byte, stream->like);
    }
    peer->ops->stream(peer->ctx, peer, path, stream);
}

void ib_end_streams_interrupt(ib_end_t *end)
{
    flow_stage_interrupt(&end->stage);
    flow_stage_interrupt(&peer_of(end)->stage);
}

// --- copies ---------------------------------------------------------------------------------------------------------

ib_packet_t *ib_packet_share(ib_pool_t *pool, ib_packet_t *arrived)
{
    ib_packet_t *copy = ib_packet_copy(pool, arrived);
    copy->shared = arrived;
    copy->cause = arrived->cause;
    arrived->pending++;
    return copy;
}

void ib_packet_done(ib_pool_t *pool, ib_packet_t *packet)
{
    ib_packet_t *original = packet->shared;
    if (original != NULL) {
        ib_packet_give(pool, packet);
        packet = original;
    }
    if (packet->pending > 0 && --packet->pending > 0) {
        return;
    }
    ib_end_release(packet->arrived_at, packet);
    ib_packet_give(pool, packet);
}
