// A transfer of a DMA channel: as registers or a descriptor give it, its checks, and the segments that it is cut into.
#include "models/peach2/twin_internal.h"

enum { MEMORY_REGION = PEACH2_MEMORY_BASE / TWIN_MEMORY_BYTES };

// --- where it comes from --------------------------------------------------------------------------------------------

struct twin_transfer twin_transfer_of_registers(const struct twin_channel *channel)
{
    uint32_t length = twin_channel_register(channel, PEACH2_DMAC_LENGTH),
             width = twin_channel_register(channel, PEACH2_DMAC_STRIDE_WIDTH);
    uint32_t source_pitch = twin_channel_register(channel, PEACH2_DMAC_STRIDE_SOURCE_PITCH);
    uint32_t destination_pitch = twin_channel_register(channel, PEACH2_DMAC_STRIDE_DESTINATION_PITCH);
    bool stride = (twin_channel_register(channel, PEACH2_DMAC_CONTROL) & PEACH2_DMAC_CONTROL_STRIDE_MASK) != 0;
    bool stride_bad = width == 0 || width >> PEACH2_WIDTH_BITS != 0 || source_pitch >> PEACH2_PITCH_BITS != 0 ||
                      destination_pitch >> PEACH2_PITCH_BITS != 0;
    return (struct twin_transfer){.source = twin_channel_register64(channel, PEACH2_DMAC_SOURCE),
                                  .destination = twin_channel_register64(channel, PEACH2_DMAC_DESTINATION),
                                  .left = length % (1u << PEACH2_LENGTH_BITS),
                                  .width = width % (1u << PEACH2_WIDTH_BITS),
                                  .source_pitch = source_pitch % (1u << PEACH2_PITCH_BITS),
                                  .destination_pitch = destination_pitch % (1u << PEACH2_PITCH_BITS),
                                  .stride = stride,
                                  .length_bad =
                                      length == 0 || length >> PEACH2_LENGTH_BITS != 0 || (stride && stride_bad),
                                  .last = true};
}

struct twin_transfer twin_transfer_of_descriptor(const uint64_t *words)
{
    const struct peach2_descriptor descriptor = peach2_descriptor_unpack(words);
    return (struct twin_transfer){
        .source = descriptor.source,
        .destination = descriptor.destination,
        .left = descriptor.length,
        .width = descriptor.width * 4,
        .source_pitch = descriptor.source_pitch * 4,
        .destination_pitch = descriptor.destination_pitch * 4,
        .stride = descriptor.stride,
        .length_bad = descriptor.length == 0 || (descriptor.stride && descriptor.width == 0),
        .interrupt = descriptor.interrupt,
        .last = descriptor.last,
        .reserved = descriptor.reserved != 0,
    };
}

// --- segments -------------------------------------------------------------------------------------------------------

uint32_t twin_transfer_segment_bytes(const peach2_twin_t *twin, const struct twin_transfer *transfer)
{
    uint32_t room = twin->config.read_bytes - (uint32_t)(transfer->source & (twin->config.read_bytes - 1));
    return transfer->row_left < room ? transfer->row_left : room;
}

static bool in_memory(uint64_t address)
{
    return address / TWIN_MEMORY_BYTES % 4 == MEMORY_REGION;
}

static bool in_window(const peach2_twin_t *twin, uint64_t address)
{
    return address >> PEACH2_WINDOW_BITS << PEACH2_WINDOW_BITS == twin->routing.window_base;
}

bool twin_transfer_leaves_window(const peach2_twin_t *twin, const struct twin_transfer *transfer)
{
    uint32_t bytes = twin_transfer_segment_bytes(twin, transfer);
    uint64_t source_end = transfer->source + bytes - 1, end = transfer->destination + bytes - 1;
    return in_window(twin, end) != transfer->in_window ||
           (transfer->in_window && end >> PEACH2_BLOCK_BITS != transfer->block) ||
           (transfer->dest == TWIN_LOCAL && !in_memory(end)) ||
           in_window(twin, source_end) != transfer->source_in_window ||
           (transfer->source_in_window && source_end >> PEACH2_BLOCK_BITS != transfer->source_block);
}

static void row_next(struct twin_transfer *transfer)
{
    transfer->row_source += transfer->source_pitch;
    transfer->row_destination += transfer->destination_pitch;
    transfer->source = transfer->row_source;
    transfer->destination = transfer->row_destination;
    transfer->row_left = transfer->width < transfer->left ? transfer->width : transfer->left;
}

void twin_transfer_advance(struct twin_transfer *transfer, uint32_t bytes)
{
    transfer->source += bytes;
    transfer->destination += bytes;
    transfer->left -= bytes;
    transfer->row_left -= bytes;
    if (transfer->left != 0 && transfer->row_left == 0) {
        row_next(transfer);
    }
}

// --- checks ---------------------------------------------------------------------------------------------------------

static bool misaligned(const struct twin_transfer *transfer)
{
    return transfer->source % 4 != 0 || transfer->left % 4 != 0 ||
           transfer->source % 16 != transfer->destination % 16 ||
           (transfer->stride && (transfer->width % 4 != 0 || transfer->source_pitch % 4 != 0 ||
                                 transfer->source_pitch % 16 != transfer->destination_pitch % 16));
}

enum peach2_dma_error twin_transfer_check_source(const peach2_twin_t *twin, struct twin_transfer *transfer)
{
    uint8_t hit = twin_route_find(&twin->routing, transfer->source, &transfer->source_in_window);
    transfer->source_block = transfer->source >> PEACH2_BLOCK_BITS;
    if (transfer->reserved) {
        return PEACH2_DMA_INVALID;
    }
    if (transfer->length_bad) {
        return PEACH2_DMA_LENGTH;
    }
    if (misaligned(transfer)) {
        return PEACH2_DMA_MISALIGNED;
    }
    return transfer->source_in_window && hit != TWIN_N ? PEACH2_DMA_UNROUTABLE : PEACH2_DMA_OK;
}

bool twin_destination_routable(const peach2_twin_t *twin, uint64_t address, uint8_t *dest_out, bool *in_window_out)
{
    uint8_t hit = twin_route_find(&twin->routing, address, in_window_out);
    *dest_out = *in_window_out ? hit : TWIN_N;
    return *dest_out != TWIN_DISCARD && (*dest_out != TWIN_LOCAL || in_memory(address));
}

bool twin_transfer_check_destination(const peach2_twin_t *twin, struct twin_transfer *transfer)
{
    if (!twin_destination_routable(twin, transfer->destination, &transfer->dest, &transfer->in_window)) {
        return false;
    }
    bool short_rows = transfer->stride && transfer->width < transfer->left;
    transfer->block = transfer->destination >> PEACH2_BLOCK_BITS;
    transfer->row_source = transfer->source;
    transfer->row_destination = transfer->destination;
    transfer->row_left = short_rows ? transfer->width : transfer->left;
    return true;
}
