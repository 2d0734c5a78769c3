// Chains of descriptors, in pinned host memory or in the board's memory.
#include <errno.h>
#include <stdlib.h>

#include "rtl/peach2_regs.h"
#include "verbs-shim/peach2_internal.h"

// descriptor_t of rtl/peach2_pkg.sv. The board reads little-endian words.
struct descriptor {
    uint64_t source;
    uint64_t destination;
    uint32_t length_flags; // length in bits 23:0
    uint32_t rows;         // width in bits 15:0, low half of the source pitch in bits 31:16, in DWs
    uint64_t next_pitches; // 39:0 bus address, or byte offset in the board's memory; the rest of the pitches
};
_Static_assert(sizeof(struct descriptor) == 32, "a descriptor has 32 bytes");

#define LENGTH_MAX     0xffffffu
#define FLAG_WAIT      0x10000000u
#define FLAG_INTERRUPT 0x20000000u
#define FLAG_STRIDE    0x40000000u
#define FLAG_LAST      0x80000000u

#define NEXT_BITS               40
#define NEXT_MASK               ((1ull << NEXT_BITS) - 1)
#define SOURCE_PITCH_HIGH_SHIFT 40
#define DESTINATION_PITCH_SHIFT 44

struct peach2_chain {
    peach2_handle_t *handle;
    peach2_chain_t *previous, *next; // of the handle's
    enum peach2_chain_place place;
    uint32_t count, room;         // descriptors: of the chain, and of its place
    uint64_t first;               // where descriptor 0 lies, as `next` would say it
    struct backend_buffer buffer; // host chains
};

static uint64_t descriptor_place(const peach2_chain_t *chain, uint32_t index)
{
    return chain->first + (uint64_t)index * sizeof(struct descriptor);
}

// --- building ------------------------------------------------------------------------------------------------------

static void descriptor_store(peach2_chain_t *chain, uint32_t index, const struct descriptor *descriptor)
{
    const struct backend *backend = &chain->handle->backend;
    switch (chain->place) {
    case PEACH2_CHAIN_HOST:
        ((struct descriptor *)chain->buffer.address)[index] = *descriptor;
        backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, sizeof *descriptor / 8);
        break;
    case PEACH2_CHAIN_BOARD:
        backend->ops->write_combined(backend->ctx, BACKEND_BAR_REGISTERS,
                                     PEACH2_MEMORY_BASE + descriptor_place(chain, index), descriptor,
                                     sizeof *descriptor);
        break;
    }
}

static struct descriptor descriptor_of(const struct peach2_transfer *transfer)
{
    struct descriptor descriptor = {
        .source = transfer->source,
        .destination = transfer->destination,
        .length_flags = transfer->bytes | ((transfer->flags & PEACH2_TRANSFER_WAIT) != 0 ? FLAG_WAIT : 0) |
                        ((transfer->flags & PEACH2_TRANSFER_INTERRUPT) != 0 ? FLAG_INTERRUPT : 0),
    };
    if (peach2_transfer_is_block(transfer)) {
        uint32_t source_pitch = transfer->source_pitch / 4, destination_pitch = transfer->destination_pitch / 4;
        descriptor.length_flags |= FLAG_STRIDE;
        descriptor.rows = transfer->width / 4 | (source_pitch & 0xffff) << 16;
        descriptor.next_pitches = (uint64_t)(source_pitch >> 16) << SOURCE_PITCH_HIGH_SHIFT |
                                  (uint64_t)destination_pitch << DESTINATION_PITCH_SHIFT;
    }
    return descriptor;
}

static void descriptors_build(peach2_chain_t *chain, const struct peach2_transfer *transfers)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        bool last = i + 1 == chain->count;
        struct descriptor descriptor = descriptor_of(&transfers[i]);
        if (last) {
            descriptor.length_flags |= FLAG_LAST;
        } else {
            descriptor.next_pitches |= descriptor_place(chain, i + 1);
        }
        descriptor_store(chain, i, &descriptor);
    }
    chain->handle->backend.ops->fence(chain->handle->backend.ctx);
}

static int transfers_check(enum peach2_chain_place place, uint32_t board_index, const struct peach2_transfer *transfers,
                           uint32_t count)
{
    if (count == 0) {
        return -EINVAL;
    }
    if (place == PEACH2_CHAIN_BOARD &&
        (board_index > PEACH2_BOARD_DESCRIPTORS || count > PEACH2_BOARD_DESCRIPTORS - board_index)) {
        return -ENOSPC;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (transfers[i].bytes > LENGTH_MAX) {
            return -ERANGE;
        }
        int error = peach2_transfer_check(&transfers[i]);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

static int chain_place(peach2_chain_t *chain, uint32_t board_index)
{
    const struct backend *backend = &chain->handle->backend;
    switch (chain->place) {
    case PEACH2_CHAIN_HOST: {
        size_t bytes = (size_t)chain->count * sizeof(struct descriptor);
        int error = backend->ops->alloc_pinned(backend->ctx, bytes, &chain->buffer);
        chain->first = error == 0 ? chain->buffer.bus_address : 0;
        return error;
    }
    case PEACH2_CHAIN_BOARD:
        chain->first = (uint64_t)board_index * sizeof(struct descriptor);
        return 0;
    }
    return -EINVAL;
}

// --- life ----------------------------------------------------------------------------------------------------------

int peach2_chain_create(peach2_handle_t *handle, enum peach2_chain_place place, uint32_t board_index,
                        const struct peach2_transfer *transfers, uint32_t count, peach2_chain_t **chain_out)
{
    if (handle == NULL || transfers == NULL || chain_out == NULL) {
        return -EINVAL;
    }
    int error = transfers_check(place, board_index, transfers, count);
    if (error != 0) {
        return error;
    }
    peach2_pay_call(handle);
    peach2_chain_t *chain = calloc(1, sizeof *chain);
    if (chain == NULL) {
        return -ENOMEM;
    }
    *chain = (peach2_chain_t){.handle = handle, .place = place, .count = count, .room = count};
    error = chain_place(chain, board_index);
    if (error != 0) {
        free(chain);
        return error;
    }
    // The handle knows the chain before anything takes time.
    chain->next = handle->chains;
    if (chain->next != NULL) {
        chain->next->previous = chain;
    }
    handle->chains = chain;
    descriptors_build(chain, transfers);
    *chain_out = chain;
    return 0;
}

void peach2_chain_destroy(peach2_chain_t *chain)
{
    if (chain == NULL) {
        return;
    }
    if (chain->previous != NULL) {
        chain->previous->next = chain->next;
    } else {
        chain->handle->chains = chain->next;
    }
    if (chain->next != NULL) {
        chain->next->previous = chain->previous;
    }
    if (chain->buffer.address != NULL) {
        const struct backend *backend = &chain->handle->backend;
        backend->ops->free_pinned(backend->ctx, &chain->buffer);
    }
    free(chain);
}

int peach2_chain_relink(peach2_chain_t *chain, uint32_t index, uint32_t next_index)
{
    if (chain == NULL || index >= chain->count) {
        return -EINVAL;
    }
    const struct backend *backend = &chain->handle->backend;
    struct descriptor descriptor;
    if (chain->place == PEACH2_CHAIN_HOST) {
        descriptor = ((struct descriptor *)chain->buffer.address)[index];
    } else {
        uint64_t words[sizeof descriptor / 8];
        for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
            uint64_t offset = PEACH2_MEMORY_BASE + descriptor_place(chain, index) + i * 8ull;
            int error = peach2_register_read(chain->handle, offset, 8, &words[i]);
            if (error != 0) {
                return error;
            }
        }
        descriptor = (struct descriptor){words[0], words[1], (uint32_t)words[2], (uint32_t)(words[2] >> 32), words[3]};
    }
    descriptor.length_flags &= ~FLAG_LAST;
    descriptor.next_pitches = (descriptor.next_pitches & ~NEXT_MASK) | descriptor_place(chain, next_index);
    descriptor_store(chain, index, &descriptor);
    backend->ops->fence(backend->ctx);
    return 0;
}

int peach2_chain_prepare(peach2_handle_t *handle, unsigned channel, const peach2_chain_t *chain,
                         const struct peach2_notify *notify)
{
    if (handle == NULL || channel >= PEACH2_CHANNELS || chain == NULL) {
        return -EINVAL;
    }
    peach2_pay_call(handle);
    uint32_t notify_control;
    int error = peach2_notify_prepare(handle, channel, notify, &notify_control);
    if (error != 0) {
        return error;
    }
    peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_DESCRIPTOR), chain->first, 8);
    peach2_mode_prepare(handle, channel,
                        chain->place == PEACH2_CHAIN_HOST ? PEACH2_MODE_CHAIN_HOST : PEACH2_MODE_CHAIN_BOARD,
                        notify_control);
    return 0;
}

int peach2_chain_select(peach2_handle_t *handle, unsigned channel, const peach2_chain_t *chain)
{
    const uint32_t notify = PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_MASK | PEACH2_DMAC_CONTROL_NOTIFY_REMOTE_MASK;
    if (handle == NULL || channel >= PEACH2_CHANNELS || chain == NULL || handle->control[channel] == 0) {
        return -EINVAL;
    }
    peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_DESCRIPTOR), chain->first, 8);
    peach2_mode_prepare(handle, channel,
                        chain->place == PEACH2_CHAIN_HOST ? PEACH2_MODE_CHAIN_HOST : PEACH2_MODE_CHAIN_BOARD,
                        handle->control[channel] & notify);
    return 0;
}

int peach2_chain_rewrite(peach2_chain_t *chain, const struct peach2_transfer *transfers, uint32_t count)
{
    if (chain == NULL || transfers == NULL) {
        return -EINVAL;
    }
    if (count > chain->room) {
        return -ENOSPC;
    }
    // The place is the chain's already, wherever it lies.
    int error = transfers_check(PEACH2_CHAIN_HOST, 0, transfers, count);
    if (error == 0) {
        chain->count = count;
        descriptors_build(chain, transfers);
    }
    return error;
}
