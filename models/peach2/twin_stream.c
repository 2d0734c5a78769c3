// Streams (models/flow): the long part of a DMA transfer without packets, and streams of other boards that pass.
//
// A channel whose transfer has a long contiguous rest hands all of it but the last segment to a stream. The last segment
// follows as packets, with all that comes after them: the order, the end of the transfer, its status word. A stream
// carries the whole descriptor if another long one follows, because nothing waits for its end.
#include "models/peach2/twin_internal.h"

// From the first beat of a packet at an input to its first beat at an output, and the same from the reader's decision to
// its request, and from a completion to the write.
enum { PASS_CYCLES = 6, READ_CYCLES = 2, WRITE_CYCLES = 8 };
// From a descriptor's end to the first segment of the next one: it is taken and checked while reads are outstanding.
enum { NEXT_CYCLES = 4 };
// A short transfer is a stream only among others of a chain, where its own latency does not show: packets are exact. The
// end of one of 9 KiB from a GPU, which answers reads line by line, would be 4 % late.
enum { LONG_BYTES = 12288, LEAST_BYTES = 2048 };

// A cycle for each 16 B, which lie on the lanes of their address (only a transfer's ends fill a beat in part), and one for
// the header.
static double beats_ps(const peach2_twin_t *twin, uint32_t packet_bytes)
{
    return (double)twin->config.period_ps * (1.0 / TWIN_BEAT_BYTES + 1.0 / packet_bytes);
}

// --- streams that pass ----------------------------------------------------------------------------------------------

static void input_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    ((struct twin_ingress *)ctx)->tlps += (uint32_t)flow_packets(bytes, packet_bytes);
}

static void output_count(void *ctx, uint64_t bytes, uint32_t packet_bytes)
{
    ((struct twin_output *)ctx)->tlps += (uint32_t)flow_packets(bytes, packet_bytes);
}

// Out of the port, with the address that the packets would have behind it.
static void leave(peach2_twin_t *twin, uint8_t dest, struct flow_path *path, uint64_t address, uint64_t bytes)
{
    pcie_end_t *end = dest < PEACH2_PORTS ? twin->ops->end(twin->ctx, dest) : NULL;
    if (end == NULL || (address ^ (address + bytes - 1)) >> PEACH2_BLOCK_BITS != 0) {
        path->refused = true;
        return;
    }
    flow_path_count(path, output_count, &twin->outputs[dest]);
    path->enters = !twin_is_on_ring(dest, path->input);
    uint64_t behind = dest == TWIN_N ? twin_host_address(twin, address, TWIN_NEVER) : address;
    pcie_end_stream_writes(end, path, beats_ps(twin, path->packet_bytes), behind, bytes);
}

void twin_core_writes_on(void *core, unsigned port, unsigned bar, struct flow_path *path, uint64_t address,
                         uint64_t bytes)
{
    peach2_twin_t *twin = core;
    bool in_window;
    uint8_t dest = twin_route_find(&twin->routing, address, &in_window);
    if (twin->config.flows == NULL || bar == 0 || dest == port || dest >= PEACH2_PORTS) {
        path->refused = true;
        return;
    }
    flow_path_count(path, input_count, &twin->ingresses[port]);
    path->input = port;
    path->latency_ps += PASS_CYCLES * twin->config.period_ps;
    leave(twin, dest, path, address, bytes);
}

// --- the DMAC -------------------------------------------------------------------------------------------------------

static uint32_t mean(uint64_t bytes, uint64_t packets)
{
    return (uint32_t)((bytes + packets / 2) / packets);
}

// Of the data of one read.
static uint64_t writes_of_read(const struct peach2_twin_config *config, uint64_t destination, uint64_t bytes)
{
    return flow_packets(destination % config->mps_bytes + bytes, config->mps_bytes);
}

// Of a transfer: its first and its last read may be shorter than those between them.
static uint64_t writes_of(const struct peach2_twin_config *config, const struct twin_transfer *transfer, uint64_t bytes)
{
    uint64_t room = config->read_bytes - transfer->source % config->read_bytes;
    uint64_t first = room < bytes ? room : bytes, left = bytes - first, next = transfer->destination + first;
    uint64_t last = left % config->read_bytes;
    return writes_of_read(config, transfer->destination, first) +
           left / config->read_bytes * writes_of_read(config, next, config->read_bytes) +
           (last != 0 ? writes_of_read(config, next, last) : 0);
}

static void path_find(struct twin_channel *channel, struct flow_path *path, uint64_t bytes)
{
    peach2_twin_t *twin = channel->twin;
    const struct peach2_twin_config *config = &twin->config;
    const struct twin_transfer *transfer = &channel->transfer;
    pcie_end_t *north = twin->ops->end(twin->ctx, TWIN_N);
    uint64_t source =
        transfer->source_in_window ? twin_host_address(twin, transfer->source, TWIN_NEVER) : transfer->source;
    if (north == NULL) {
        path->refused = true;
        return;
    }
    // The first and the last read may be shorter: their mean.
    uint64_t first = transfer->source % config->read_bytes;
    uint64_t reads = flow_packets(first + bytes, config->read_bytes);
    uint32_t read_bytes = mean(bytes, reads);
    path->grain_bytes = config->read_bytes;
    path->packet_bytes = read_bytes;
    flow_path_count(path, output_count, &twin->outputs[TWIN_N]);
    path->input = channel->index;
    pcie_end_stream_reads(north, path, read_bytes, config->read_tags * config->read_bytes, source, bytes);
    flow_path_count(path, input_count, &twin->ingresses[TWIN_N]);
    path->latency_ps += (READ_CYCLES + WRITE_CYCLES) * config->period_ps;
    flow_path_window(path, (uint64_t)config->read_tags * read_bytes, path->latency_ps);
    // The data of a read goes in writes that end at multiples of the largest payload.
    path->packet_bytes = mean(bytes, writes_of(config, transfer, bytes));
    path->input = TWIN_SOURCE_WRITE;
    leave(twin, transfer->dest, path, transfer->destination, bytes);
}

// The packets of the channel wait until its streams have ended. first: the oldest one.
static struct twin_stream *stream_at(struct twin_channel *channel, uint32_t number)
{
    return &channel->streams[number % TWIN_STREAMS];
}

// Streams whose last packet is on its way and that have left their source.
static void ended_remove(struct twin_channel *channel)
{
    while (channel->stream_head != channel->stream_tail && stream_at(channel, channel->stream_head)->counted &&
           stream_at(channel, channel->stream_head)->issued) {
        channel->stream_head++;
    }
}

// Nothing of the transfer's row is left to the channel.
static void left(void *ctx)
{
    struct twin_stream *stream = ctx;
    struct twin_channel *channel = stream->channel;
    peach2_twin_t *twin = channel->twin;
    channel->begins = false;
    channel->outstanding += stream->issued ? 0 : 1;
    stream->counted = true;
    stream->flow = stream->finished ? NULL : stream->flow;
    ended_remove(channel);
    twin_channel_advance(channel, twin_edge(twin), channel->transfer.row_left);
    twin_reader_plan(twin);
}

// Nothing is left for packets: the descriptor ends here.
static void retire(struct twin_stream *stream)
{
    struct twin_channel *channel = stream->channel;
    const struct twin_report report = {PEACH2_DMA_OK, (uint8_t)channel->index, true, false};
    channel->outstanding += stream->counted ? 0 : 1;
    stream->issued = true;
    ended_remove(channel);
    twin_channel_retire(channel, &report, stream->from);
}

static void done(void *ctx, uint64_t bytes)
{
    static const struct sim_work streaming = {"board", "DMA stream", false};
    struct twin_stream *stream = ctx;
    peach2_twin_t *twin = stream->channel->twin;
    sim_cause_label(twin->sim, twin->name, &streaming);
    bool whole = bytes == stream->body;
    stream->finished = true;
    stream->flow = whole && !stream->counted ? stream->flow : NULL; // until it has left
    stream->source += bytes;
    stream->destination += bytes;
    stream->left -= (uint32_t)bytes;
    stream->from = twin_edge(twin);
    if (!stream->counted && !whole) { // otherwise it is still to come
        left(stream);
    }
    if (stream->left == 0) {
        retire(stream);
    }
    twin_reader_plan(twin);
}

// The next descriptor is known, and will be a stream, too.
static bool is_followed(const struct twin_channel *channel)
{
    const struct twin_descriptor *next = twin_fetch_front(&channel->twin->fetches[channel->index]);
    const struct peach2_descriptor descriptor =
        next == NULL ? (struct peach2_descriptor){0} : peach2_descriptor_unpack(next->words);
    return descriptor.length > LEAST_BYTES && !descriptor.fence;
}

bool twin_stream_fits(const struct twin_channel *channel)
{
    const struct twin_transfer *transfer = &channel->transfer;
    uint64_t last = transfer->row_left - 1;
    bool inside = (transfer->source ^ (transfer->source + last)) >> PEACH2_BLOCK_BITS == 0 &&
                  (transfer->destination ^ (transfer->destination + last)) >> PEACH2_BLOCK_BITS == 0;
    if (channel->twin->config.flows == NULL || channel->packets || transfer->dest >= PEACH2_PORTS || !inside ||
        channel->stream_tail - channel->stream_head >= TWIN_STREAMS) {
        return false;
    }
    return twin_streams_any(channel) || is_followed(channel)
               ? transfer->row_left > LEAST_BYTES
               : transfer->row_left > LONG_BYTES && transfer->source % channel->twin->config.read_bytes == 0;
}

// The transfer's bytes that a stream carries: packets wait for its end, another stream does not.
static uint64_t body_of(const struct twin_channel *channel)
{
    const struct twin_transfer *transfer = &channel->transfer;
    uint32_t read_bytes = channel->twin->config.read_bytes;
    bool awaited = transfer->interrupt || transfer->left != transfer->row_left || !is_followed(channel);
    uint32_t last_bytes = (uint32_t)((transfer->source + transfer->row_left - 1) % read_bytes) + 1;
    return transfer->row_left - (awaited ? last_bytes : 0);
}

bool twin_stream_begin(struct twin_channel *channel)
{
    static const struct flow_ops ops = {left, done};
    peach2_twin_t *twin = channel->twin;
    const struct twin_transfer *transfer = &channel->transfer;
    if (!twin_stream_fits(channel)) {
        return false;
    }
    uint64_t bytes = body_of(channel);
    struct flow_path path = {.tail_bytes = (uint32_t)(transfer->row_left - bytes),
                             .lead_ps = transfer->last ? 0 : NEXT_CYCLES * twin->config.period_ps,
                             .behind_streams_bytes = twin_streams_any(channel) ? channel->streamed_bytes : 0};
    path_find(channel, &path, bytes);
    if (path.refused) {
        channel->packets = true;
        return false;
    }
    struct twin_stream *stream = stream_at(channel, channel->stream_tail++);
    *stream = (struct twin_stream){.channel = channel,
                                   .source = transfer->source,
                                   .destination = transfer->destination,
                                   .left = transfer->row_left,
                                   .body = bytes,
                                   .dest = transfer->dest,
                                   .last = transfer->left == transfer->row_left,
                                   .interrupt = transfer->interrupt};
    channel->begins = true;
    channel->streamed_bytes = path.behind_streams_bytes + transfer->row_left;
    stream->flow = flow_start(twin->config.flows, &path, transfer->row_left, &ops, stream);
    return true;
}

uint64_t twin_stream_wants(const struct twin_channel *channel)
{
    const struct twin_stream *first = &channel->streams[channel->stream_head % TWIN_STREAMS];
    if (channel->stream_head == channel->stream_tail || !first->finished || first->issued) {
        return TWIN_NEVER;
    }
    return first->from;
}

struct twin_segment twin_stream_segment(struct twin_channel *channel)
{
    struct twin_stream *stream = stream_at(channel, channel->stream_head);
    uint32_t room =
        channel->twin->config.read_bytes - (uint32_t)(stream->source & (channel->twin->config.read_bytes - 1));
    uint32_t bytes = stream->left < room ? stream->left : room;
    bool ends = bytes == stream->left, last = ends && stream->last;
    struct twin_segment segment = {stream->source,
                                   stream->destination,
                                   bytes,
                                   stream->dest,
                                   {PEACH2_DMA_OK, (uint8_t)channel->index, last, last && stream->interrupt}};
    stream->source += bytes;
    stream->destination += bytes;
    stream->left -= bytes;
    stream->from = twin_edge(channel->twin) + 1;
    channel->outstanding += ends && stream->counted ? 0 : 1;
    stream->issued = ends;
    ended_remove(channel);
    return segment;
}

void twin_streams_beside_read(peach2_twin_t *twin, uint32_t bytes)
{
    pcie_end_t *north = twin->config.flows != NULL ? twin->ops->end(twin->ctx, TWIN_N) : NULL;
    if (north != NULL) {
        pcie_end_stream_beside_read(north, bytes);
    }
}

// --- early ends -----------------------------------------------------------------------------------------------------

void twin_streams_stop(struct twin_channel *channel)
{
    for (; channel->stream_head != channel->stream_tail; channel->stream_head++) {
        struct twin_stream *stream = stream_at(channel, channel->stream_head);
        if (stream->flow != NULL && stream->finished) {
            flow_drop(stream->flow);
        } else if (stream->flow != NULL) {
            (void)flow_stop(stream->flow);
        }
        channel->outstanding -= stream->counted && !stream->issued ? 1 : 0;
    }
    channel->begins = false;
}

void twin_streams_drop(struct twin_channel *channel)
{
    for (; channel->stream_head != channel->stream_tail; channel->stream_head++) {
        struct twin_stream *stream = stream_at(channel, channel->stream_head);
        if (stream->flow != NULL) {
            flow_drop(stream->flow);
        }
    }
}
