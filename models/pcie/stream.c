// Streams over links: what they need of each direction, and what the counters of an end get of them.
#include "models/pcie/link_internal.h"

enum { WRITE_OVERHEAD = 24, COMPLETION_OVERHEAD = 20, READ_REQUEST = 24, DATA_CREDIT_BYTES = 16 };
// Of a link's time, without SKP ordered sets: 4 symbols of 1538 (clause 4.2.7).
#define USABLE (1 - 4.0 / 1538)
// UpdateFCs and ACKs against the data: one of each in an interval, when data comes without a gap.
enum { DLLPS = 2 };

static bool takes_streams(const pcie_link_t *link)
{
    bool single = false;
    for (unsigned side = 0; side < 2; side++) {
        single = single || link->ends[side].tx.corrupt_next || link->ends[side].tx.drop_next;
    }
    return link->up && !single && link->config.corrupt_every_tlps == 0 && link->config.lose_every_acks == 0 &&
           link->tlps_before_down == 0;
}

static double wire_ps(const pcie_link_t *link, uint32_t bytes)
{
    return (double)pcie_wire_ps(link->config.generation, link->config.lanes, bytes);
}

static void count(pcie_end_t *end, uint64_t tlps, uint64_t payload, uint64_t overhead)
{
    end->counters[PCIE_COUNT_TLPS_SENT] += tlps;
    end->counters[PCIE_COUNT_PAYLOAD_BYTES] += payload;
    end->counters[PCIE_COUNT_WIRE_BYTES] += payload + tlps * overhead;
    end->peer->counters[PCIE_COUNT_TLPS_RECEIVED] += tlps;
}

static void writes_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    count(ctx, flow_packets(bytes, packet_bytes), bytes, WRITE_OVERHEAD);
}

static void completions_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    count(ctx, flow_packets(bytes, packet_bytes), bytes, COMPLETION_OVERHEAD);
}

static void requests_count(void *ctx, uint64_t bytes, uint32_t read_bytes)
{
    count(ctx, flow_packets(bytes, read_bytes), 0, READ_REQUEST);
}

static uint64_t way_ps(const pcie_end_t *end, uint32_t bytes)
{
    return end->config.tx_ps + (uint64_t)wire_ps(end->link, bytes) + end->link->config.flight_ps +
           end->peer->config.rx_ps;
}

// Bytes of writes with so much payload each that an end can receive before its owner releases any.
static uint32_t writes_received(const pcie_end_t *end, uint32_t packet_bytes)
{
    const struct pcie_end_config *config = &end->config;
    uint64_t headers = (uint64_t)config->headers[PCIE_POSTED] * packet_bytes;
    uint64_t data = (uint64_t)config->data[PCIE_POSTED] * DATA_CREDIT_BYTES;
    uint64_t least = headers < data ? headers : data;
    return least < UINT32_MAX ? (uint32_t)least : UINT32_MAX;
}

// What waits between the feeder of this end and the far owner: the transmit queue and the receive buffer.
static uint32_t writes_held(const pcie_end_t *end, uint32_t packet_bytes)
{
    uint32_t queued = end->config.tx_queue_tlps * packet_bytes;
    uint32_t received = writes_received(end->peer, packet_bytes);
    return received < UINT32_MAX - queued ? received + queued : UINT32_MAX;
}

// Data in one direction, and what the other one carries for it.
static void data_add(pcie_end_t *end, struct flow_path *path, uint32_t overhead, double ps_per_byte,
                     uint32_t buffer_bytes)
{
    const pcie_link_t *link = end->link;
    double wire = wire_ps(link, path->packet_bytes + overhead) / path->packet_bytes / USABLE;
    double interval_ps = (double)link->interval_ps;
    flow_path_step(path, &end->stage, wire > ps_per_byte ? wire : ps_per_byte, buffer_bytes);
    flow_path_aside(path, &end->peer->stage, DLLPS * wire_ps(link, link->config.lanes) / interval_ps * wire, 0);
    path->latency_ps += way_ps(end, path->packet_bytes + overhead);
    path->refused = path->refused || !takes_streams(link);
}

void pcie_end_stream_writes(pcie_end_t *end, struct flow_path *path, double ps_per_byte, uint64_t address,
                            uint64_t bytes)
{
    pcie_end_t *peer = end->peer;
    data_add(end, path, WRITE_OVERHEAD, ps_per_byte, writes_held(end, path->packet_bytes));
    flow_path_count(path, writes_count, end);
    if (peer->ops == NULL || peer->ops->writes_on == NULL) {
        path->refused = true;
        return;
    }
    peer->ops->writes_on(peer->ctx, peer, path, address, bytes);
}

void pcie_end_stream_reads(pcie_end_t *end, struct flow_path *path, uint32_t read_bytes, uint32_t held_bytes,
                           uint64_t address, uint64_t bytes)
{
    pcie_end_t *peer = end->peer;
    if (peer->ops == NULL || peer->ops->reads_from == NULL) {
        path->refused = true;
        return;
    }
    flow_path_count_as(path, read_bytes, requests_count, end);
    flow_path_aside(path, &end->stage, wire_ps(end->link, READ_REQUEST) / read_bytes / USABLE, held_bytes);
    path->latency_ps += way_ps(end, READ_REQUEST);
    peer->ops->reads_from(peer->ctx, peer, path, address, bytes);
    data_add(peer, path, COMPLETION_OVERHEAD, 0, held_bytes);
    flow_path_count(path, completions_count, peer);
}

void pcie_end_stream_beside_read(pcie_end_t *end, uint32_t bytes)
{
    flow_stage_take(&end->stage, wire_ps(end->link, READ_REQUEST));
    flow_stage_take(&end->peer->stage, wire_ps(end->link, bytes + COMPLETION_OVERHEAD));
}

void pcie_link_streams_interrupt(pcie_link_t *link)
{
    flow_stage_interrupt(&link->ends[0].stage);
    flow_stage_interrupt(&link->ends[1].stage);
}
