// The two rings of a connection, and the PSN pair after each write.
#include <errno.h>
#include <string.h>

#include "verbs-shim/tca-verbs/internal.h"

#define PAIR_STRIDE 2u
#define PAIR_BATCH  TCAV_SMALL_SLOTS
#define PAIR_ALONE  (TCAV_SMALL_SLOTS + 2u)

#define HEADER_BYTES (uint32_t)sizeof(struct tcav_header)

// The cost to write or read a packet's header, in 8-byte accesses of the processor.
#define HEADER_WORDS (HEADER_BYTES / 8)

// From this size on the board reads a piece of GPU memory, not the processor through its window.
#define GPU_DIRECT_BYTES 128u

bool tcav_ring_may_send(const struct tcav_context *context)
{
    return context->ready == NULL;
}

unsigned tcav_ring_small_room(const struct tcav_peer *peer)
{
    return TCAV_SMALL_SLOTS - (peer->out.sent_small - peer->in.taken_small);
}

unsigned tcav_ring_large_room(const struct tcav_peer *peer)
{
    return TCAV_LARGE_SLOTS - (peer->out.sent_large - peer->in.taken_large);
}

// This write publishes everything that was taken.
static void pair_write(struct tcav_peer *peer, unsigned index)
{
    peer->published_small = peer->out.taken_small;
    peer->published_large = peer->out.taken_large;
    peer->pairs[index * PAIR_STRIDE] = tcav_pair_of(peer->out);
    tcav_pay(peer->context, BACKEND_COST_LOAD_STORE, 1);
    tcav_pay_lines(peer->context, sizeof *peer->pairs);
}

// --- low latency ----------------------------------------------------------------------------------------------------

void tcav_ring_send_small(struct tcav_peer *peer, struct tcav_header header, const void *payload)
{
    unsigned slot = peer->out.sent_small % TCAV_SMALL_SLOTS;
    unsigned char *packet = peer->send->small[slot];
    header.order = peer->order_out++;
    memcpy(packet, &header, HEADER_BYTES);
    if (header.bytes != 0) {
        memcpy(packet + HEADER_BYTES, payload, header.bytes);
    }
    tcav_pay(peer->context, BACKEND_COST_LOAD_STORE, HEADER_WORDS);
    tcav_pay_lines(peer->context, HEADER_BYTES + header.bytes);
    peer->out.sent_small++;
    pair_write(peer, slot);
    tcav_channel_ready(peer, peer->small[slot]);
}

void tcav_ring_send_pair(struct tcav_peer *peer)
{
    pair_write(peer, PAIR_ALONE);
    tcav_channel_ready(peer, peer->pair_alone);
}

// --- high bandwidth -------------------------------------------------------------------------------------------------

struct batch {
    struct tcav_peer *peer;
    struct peach2_transfer transfers[2 * TCAV_BATCH_SLOTS + 2];
    uint32_t count;
};

// Copies from the send area to the same offset of the remote receive area; extends the previous run if possible.
static void run_add(struct batch *batch, unsigned slot, uint32_t bytes)
{
    struct tcav_peer *peer = batch->peer;
    uint64_t offset = offsetof(struct tcav_area, large) + (uint64_t)slot * TCAV_LARGE_BYTES;
    uint64_t source = peer->memory_bus + (uint64_t)((char *)peer->send - (char *)peer->memory) + offset;
    struct peach2_transfer *last = batch->count != 0 ? &batch->transfers[batch->count - 1] : NULL;
    bytes = (bytes + 15) & ~15u;
    if (last != NULL && last->source + last->bytes == source) {
        last->bytes += bytes;
        return;
    }
    batch->transfers[batch->count++] =
        (struct peach2_transfer){.source = source, .destination = tcav_peer_area(peer, offset), .bytes = bytes};
}

// Copies the payload from GPU memory to the remote packet, with up to 3 bytes after it, which are ignored.
static void gpu_add(struct batch *batch, unsigned slot, const struct tcav_header *header, struct tcav_location location)
{
    struct tcav_context *context = batch->peer->context;
    uint64_t offset = offsetof(struct tcav_area, large) + (uint64_t)slot * TCAV_LARGE_BYTES;
    batch->transfers[batch->count++] = (struct peach2_transfer){
        .source = tcav_location_address(context, context->node, location),
        .destination = tcav_peer_area(batch->peer, offset + HEADER_BYTES + header->skew),
        .bytes = (header->bytes + 3u) & ~3u,
    };
}

static bool is_gpu_direct(struct tcav_location location, uint32_t bytes)
{
    return location.block > TCAV_HOST && location.offset % 4 == 0 && bytes >= GPU_DIRECT_BYTES;
}

static int packet_add(struct batch *batch, struct tcav_header header, const struct tcav_source *source)
{
    struct tcav_peer *peer = batch->peer;
    unsigned slot = peer->out.sent_large % TCAV_LARGE_SLOTS;
    unsigned char *packet = peer->send->large[slot];
    struct tcav_location location =
        tcav_list_location(source->pd, source->sge, source->sges, header.offset, header.bytes);
    // A datagram's send ends here, so its data must be in the ring now.
    bool direct = is_gpu_direct(location, header.bytes) && header.kind != TCAV_DATAGRAM;
    if (source->inline_data != NULL) {
        memcpy(packet + HEADER_BYTES, source->inline_data + header.offset, header.bytes);
        tcav_pay(peer->context, BACKEND_COST_COPY, header.bytes);
    } else if (direct) {
        header.skew = location.offset % 16;
    } else if (tcav_list_load(source->pd, source->sge, source->sges, header.offset, packet + HEADER_BYTES,
                              header.bytes) != 0) {
        return -EFAULT;
    }
    header.order = peer->order_out++;
    memcpy(packet, &header, HEADER_BYTES);
    tcav_pay(peer->context, BACKEND_COST_LOAD_STORE, HEADER_WORDS);
    tcav_pay_lines(peer->context, HEADER_BYTES);
    run_add(batch, slot, HEADER_BYTES + (direct ? 0u : header.bytes));
    if (direct) {
        gpu_add(batch, slot, &header, location);
    }
    peer->out.sent_large++;
    return 0;
}

static int send_large(struct tcav_peer *peer, struct tcav_header header, const struct tcav_source *source)
{
    struct tcav_context *context = peer->context;
    struct batch batch = {.peer = peer};
    unsigned room = tcav_ring_large_room(peer), which = context->batch;
    uint32_t start = header.offset;
    int error = 0;
    for (unsigned i = 0; i < TCAV_BATCH_SLOTS && i < room && header.offset < header.length; i++) {
        uint32_t left = header.length - header.offset;
        header.bytes = (uint16_t)(left < TCAV_LARGE_PAYLOAD ? left : TCAV_LARGE_PAYLOAD);
        error = packet_add(&batch, header, source);
        if (error != 0) {
            break;
        }
        header.offset += header.bytes;
    }
    if (batch.count == 0) {
        return error;
    }
    uint64_t pair_bus =
        peer->memory_bus + (uint64_t)((char *)&peer->pairs[(PAIR_BATCH + which) * PAIR_STRIDE] - (char *)peer->memory);
    pair_write(peer, PAIR_BATCH + which);
    batch.transfers[batch.count++] =
        (struct peach2_transfer){.source = pair_bus,
                                 .destination = tcav_peer_area(peer, offsetof(struct tcav_area, pair)),
                                 .bytes = 8,
                                 .flags = tcav_chain_flags(context)};
    batch.count += tcav_chain_end(context, &batch.transfers[batch.count]);
    (void)peach2_chain_rewrite(context->batches[which], batch.transfers, batch.count);
    context->batch = 1 - which;
    tcav_channel_ready(peer, context->batches[which]);
    return error != 0 ? error : (int)(header.offset - start);
}

int tcav_ring_send_data(struct tcav_peer *peer, struct tcav_header header, const struct tcav_source *source)
{
    unsigned char data[TCAV_SMALL_PAYLOAD];
    if (header.length > TCAV_SMALL_PAYLOAD) {
        return send_large(peer, header, source);
    }
    header.bytes = (uint16_t)header.length;
    if (source->inline_data != NULL) {
        memcpy(data, source->inline_data, header.bytes);
    } else if (tcav_list_load(source->pd, source->sge, source->sges, 0, data, header.bytes) != 0) {
        return -EFAULT;
    }
    tcav_ring_send_small(peer, header, data);
    return header.bytes;
}

// --- arrival --------------------------------------------------------------------------------------------------------

// The full count for the received low bits: the first one that is not before the known count.
static uint32_t count_of(uint32_t known, uint64_t pair, unsigned field)
{
    return known + ((uint32_t)((pair >> field * TCAV_COUNT_BITS) - known) & TCAV_COUNT_MASK);
}

void tcav_ring_poll(struct tcav_peer *peer)
{
    backend_polled(&peer->context->backend, &peer->area->pair, peer->area->pair != 0);
    if (peer->area->pair == 0) {
        return;
    }
    // One locked access, so that a write of the board in between is not lost.
    tcav_pay_lines(peer->context, sizeof peer->area->pair);
    tcav_pay(peer->context, BACKEND_COST_LOCK, 1);
    uint64_t pair = __atomic_exchange_n(&peer->area->pair, 0, __ATOMIC_ACQUIRE);
    peer->in.sent_small = count_of(peer->in.sent_small, pair, 0);
    peer->in.sent_large = count_of(peer->in.sent_large, pair, 1);
    peer->in.taken_small = count_of(peer->in.taken_small, pair, 2);
    peer->in.taken_large = count_of(peer->in.taken_large, pair, 3);
}

const struct tcav_header *tcav_ring_next(struct tcav_peer *peer)
{
    const void *packets[] = {peer->area->small[peer->out.taken_small % TCAV_SMALL_SLOTS],
                             peer->area->large[peer->out.taken_large % TCAV_LARGE_SLOTS]};
    const bool there[] = {peer->in.sent_small != peer->out.taken_small, peer->in.sent_large != peer->out.taken_large};
    for (unsigned i = 0; i < 2; i++) {
        const struct tcav_header *header = packets[i];
        if (there[i] && header->order == peer->order_in) {
            tcav_pay(peer->context, BACKEND_COST_LOAD_STORE, HEADER_WORDS);
            tcav_pay_lines(peer->context, HEADER_BYTES + (i == 0 ? header->bytes : 0u));
            return header;
        }
    }
    return NULL;
}

void tcav_ring_take(struct tcav_peer *peer)
{
    const struct tcav_header *small = (const void *)peer->area->small[peer->out.taken_small % TCAV_SMALL_SLOTS];
    if (peer->in.sent_small != peer->out.taken_small && small->order == peer->order_in) {
        peer->out.taken_small++;
    } else {
        peer->out.taken_large++;
    }
    peer->order_in++;
}

bool tcav_ring_owes_room(const struct tcav_peer *peer)
{
    return peer->out.taken_small - peer->published_small >= TCAV_SMALL_SLOTS / 2 ||
           peer->out.taken_large - peer->published_large >= TCAV_LARGE_SLOTS / 2;
}
