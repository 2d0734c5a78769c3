// What a stream crosses from the sender's memory to the receiver's, and what the counters of the two adapters get of it.
#include "models/hca/internal.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

// --- counters -------------------------------------------------------------------------------------------------------

static bool is_loop(const struct hca_stream *stream)
{
    return stream->qp->attr.dlid == stream->qp->hca->lid;
}

static uint64_t data_bytes_of(const struct hca_stream *stream, uint64_t bytes)
{
    return bytes / stream->mtu_bytes * stream->data_bytes;
}

static void reads_count(void *ctx, uint64_t bytes, uint32_t read_bytes)
{
    hca_t *hca = ((struct hca_stream *)ctx)->qp->hca;
    hca->counters[HCA_DMA_READS] += flow_packets(bytes, read_bytes);
    hca->counters[HCA_DMA_READ_BYTES] += bytes;
}

static void sent_count(void *ctx, uint64_t bytes, uint32_t mtu_bytes)
{
    const struct hca_stream *stream = ctx;
    uint64_t *counters = stream->qp->hca->counters, packets = flow_packets(bytes, mtu_bytes);
    counters[HCA_PACKETS_SENT] += packets;
    counters[is_loop(stream) ? HCA_LOOPBACK_PACKETS : HCA_PORT_XMIT_PACKETS] += packets;
    counters[HCA_PORT_XMIT_DATA] += is_loop(stream) ? 0 : data_bytes_of(stream, bytes);
}

static void received_count(void *ctx, uint64_t bytes, uint32_t mtu_bytes)
{
    const struct hca_stream *stream = ctx;
    uint64_t *counters = stream->peer->hca->counters, packets = flow_packets(bytes, mtu_bytes);
    counters[HCA_PACKETS_RECEIVED] += packets;
    counters[HCA_PORT_RCV_PACKETS] += is_loop(stream) ? 0 : packets;
    counters[HCA_PORT_RCV_DATA] += is_loop(stream) ? 0 : data_bytes_of(stream, bytes);
}

static void acks_count(void *ctx, uint64_t bytes, uint32_t acknowledged_bytes)
{
    static const ib_packet_t empty = {.opcode = IB_ACKNOWLEDGE};
    const struct hca_stream *stream = ctx;
    uint64_t *from = stream->peer->hca->counters, *to = stream->qp->hca->counters, acks = bytes / acknowledged_bytes;
    from[HCA_ACKS_SENT] += acks;
    from[HCA_PACKETS_SENT] += acks;
    to[HCA_PACKETS_RECEIVED] += acks;
    if (is_loop(stream)) {
        from[HCA_LOOPBACK_PACKETS] += acks;
        return;
    }
    from[HCA_PORT_XMIT_PACKETS] += acks;
    from[HCA_PORT_XMIT_DATA] += acks * ib_packet_data_bytes(&empty);
    to[HCA_PORT_RCV_PACKETS] += acks;
    to[HCA_PORT_RCV_DATA] += acks * ib_packet_data_bytes(&empty);
}

static void writes_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    hca_t *hca = ((struct hca_stream *)ctx)->peer->hca;
    hca->counters[HCA_DMA_WRITES] += flow_packets(bytes, packet_bytes);
    hca->counters[HCA_DMA_WRITE_BYTES] += bytes;
}

// --- the receiver ---------------------------------------------------------------------------------------------------

void hca_stream_arrives(void *ctx, ib_end_t *end, struct flow_path *path, struct ib_stream *as_packets)
{
    hca_t *hca = ctx;
    const struct hca_config *config = &hca->config;
    const ib_packet_t *like = as_packets->like;
    struct hca_qp *qp = hca_qp_find(hca, like->dest_qpn);
    bool response = (ib_packet_flags(like) & IB_IS_RESPONSE) != 0;
    struct hca_piece piece;
    (void)end;
    if (as_packets->acknowledged_bytes > 0) {
        path->refused = path->refused || like->dlid != hca->lid;
        return;
    }
    if (like->dlid != hca->lid || qp == NULL || hca_service(qp->init.type) != like->service ||
        qp->attr.path_mtu_bytes != like->bytes || config->adversary != NULL || hca->host_down ||
        hca_stream_has_beside(qp) || !hca_stream_lands(qp, like, as_packets->bytes, &piece)) {
        path->refused = true;
        return;
    }
    as_packets->receiver = qp;
    uint64_t engine_ps = config->receive_packet_ps;
    path->latency_ps += config->port_rx_ps + engine_ps + (response ? 0 : config->write_dispatch_ps);
    if (!response && config->write_dispatch_ps > engine_ps) {
        engine_ps = config->write_dispatch_ps;
    }
    path->packet_bytes = smaller(config->mps_bytes, like->bytes);
    pcie_end_stream_writes(hca->end, path, (double)engine_ps / like->bytes, piece.bus, piece.bytes);
}

// --- the sender -----------------------------------------------------------------------------------------------------

// What is gathered already waits in one queue for all queue pairs. A stream would find it full of another one's data at
// the beginning of each message, so it has the least buffer.
enum { HELD_BYTES = 1 };

static void reads_add(struct hca_stream *stream, struct flow_path *path, const struct hca_piece *piece)
{
    hca_t *hca = stream->qp->hca;
    const struct hca_config *config = &hca->config;
    uint32_t read_bytes = smaller(config->mrrs_bytes, stream->mtu_bytes);
    uint32_t gathered_bytes = config->gather_packets * stream->mtu_bytes;
    path->packet_bytes = read_bytes;
    flow_path_count(path, reads_count, stream);
    pcie_end_stream_reads(hca->end, path, read_bytes, HELD_BYTES, piece->bus, piece->bytes);
    flow_path_window(path, (uint64_t)config->read_tags * read_bytes, path->latency_ps);
    path->latency_ps += config->port_tx_ps;
    flow_path_window(path, gathered_bytes, path->latency_ps);
}

static void sent_add(struct hca_stream *stream, struct flow_path *path, struct ib_stream *as_packets)
{
    hca_t *hca = stream->qp->hca;
    ib_end_t *out = hca_port_way_out(hca, as_packets->like);
    if (out == NULL) {
        path->refused = true;
        return;
    }
    uint64_t engine_ps = stream->response ? hca->config.read_packet_ps : hca->config.send_packet_ps;
    path->packet_bytes = stream->mtu_bytes;
    path->input = 0;
    flow_path_count(path, sent_count, stream);
    flow_path_count(path, received_count, stream);
    ib_end_stream(out, path, (double)engine_ps / stream->mtu_bytes, as_packets);
}

// From the receiver to the sender, which may be another way than that of the data.
static void acknowledges_add(struct hca_stream *stream, struct flow_path *path, const ib_packet_t *like)
{
    const hca_t *hca = stream->qp->hca;
    uint32_t acknowledged_bytes = hca->config.ack_every_packets * like->bytes;
    const ib_packet_t acknowledge = {.opcode = IB_ACKNOWLEDGE, .dlid = hca->lid};
    struct ib_stream as_packets = {.like = &acknowledge, .acknowledged_bytes = acknowledged_bytes};
    ib_end_t *out = hca_port_way_out(stream->peer->hca, &acknowledge);
    if (out == NULL) {
        path->refused = true;
        return;
    }
    ib_end_stream(out, path, 0, &as_packets);
    flow_path_count_as(path, acknowledged_bytes, acks_count, stream);
    flow_path_window(path, (uint64_t)hca->config.window_packets * like->bytes, 2 * path->latency_ps);
}

void hca_stream_path(struct hca_stream *stream, struct flow_path *path, const ib_packet_t *like)
{
    const struct hca_config *config = &stream->qp->hca->config;
    struct ib_stream as_packets = {.like = like, .bytes = stream->bytes};
    struct hca_piece piece;
    if (stream->qp->hca->host_down || like->bytes > config->active_mtu_bytes || !hca_stream_begins(stream, &piece)) {
        path->refused = true;
        return;
    }
    stream->data_bytes = ib_packet_data_bytes(like);
    reads_add(stream, path, &piece);
    if (!path->refused) {
        sent_add(stream, path, &as_packets);
    }
    if (path->refused) {
        return;
    }
    stream->peer = as_packets.receiver;
    stream->peer_generation = stream->peer->generation;
    flow_path_count(path, writes_count, stream);
    if (!stream->response && hca_is_reliable(stream->qp->init.type)) {
        acknowledges_add(stream, path, like);
    }
    hca_stream_memory(stream, path, like);
}
