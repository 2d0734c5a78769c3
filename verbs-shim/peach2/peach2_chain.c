// Chains of descriptors, in pinned host memory or in the board's memory.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rtl/peach2_regs.h"
#include "verbs-shim/peach2/peach2_internal.h"

struct peach2_chain {
    peach2_handle_t *handle;
    peach2_chain_t *previous, *next; // links of the handle's list
    enum peach2_chain_memory memory;
    uint32_t count, room;         // descriptors: of the chain, and what its memory has room for
    uint64_t first;               // position of descriptor 0, in the form of the `next` field
    struct backend_buffer buffer; // host chains
};

static uint64_t descriptor_position(const peach2_chain_t *chain, uint32_t index)
{
    return chain->first + (uint64_t)index * PEACH2_DESCRIPTOR_BYTES;
}

// --- building ------------------------------------------------------------------------------------------------------

static void descriptor_store(peach2_chain_t *chain, uint32_t index, const struct peach2_descriptor *descriptor)
{
    const struct backend *backend = &chain->handle->backend;
    uint64_t words[PEACH2_DESCRIPTOR_WORDS];
    peach2_descriptor_pack(descriptor, words);
    switch (chain->memory) {
    case PEACH2_CHAIN_HOST:
        memcpy((uint8_t *)chain->buffer.address + (size_t)index * sizeof words, words, sizeof words);
        backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, PEACH2_DESCRIPTOR_WORDS);
        break;
    case PEACH2_CHAIN_BOARD:
        backend->ops->write_combined(backend->ctx, BACKEND_BAR_REGISTERS,
                                     PEACH2_MEMORY_BASE + descriptor_position(chain, index), words, sizeof words);
        break;
    }
}

static struct peach2_descriptor descriptor_of(const struct peach2_transfer *transfer)
{
    bool stride = peach2_transfer_is_block(transfer);
    return (struct peach2_descriptor){.source = transfer->source,
                                      .destination = transfer->destination,
                                      .length = transfer->bytes,
                                      .fence = (transfer->flags & PEACH2_TRANSFER_FENCE) != 0,
                                      .interrupt = (transfer->flags & PEACH2_TRANSFER_INTERRUPT) != 0,
                                      .stride = stride,
                                      .width = stride ? transfer->width / 4 : 0,
                                      .source_pitch = stride ? transfer->source_pitch / 4 : 0,
                                      .destination_pitch = stride ? transfer->destination_pitch / 4 : 0};
}

static void descriptors_build(peach2_chain_t *chain, const struct peach2_transfer *transfers)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        struct peach2_descriptor descriptor = descriptor_of(&transfers[i]);
        descriptor.last = i + 1 == chain->count;
        descriptor.next = descriptor.last ? 0 : descriptor_position(chain, i + 1);
        descriptor_store(chain, i, &descriptor);
    }
    chain->handle->backend.ops->fence(chain->handle->backend.ctx);
}

static int transfers_check(enum peach2_chain_memory memory, uint32_t board_index,
                           const struct peach2_transfer *transfers, uint32_t count)
{
    if (count == 0) {
        return -EINVAL;
    }
    if (memory == PEACH2_CHAIN_BOARD &&
        (board_index > PEACH2_BOARD_DESCRIPTORS || count > PEACH2_BOARD_DESCRIPTORS - board_index)) {
        return -ENOSPC;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (transfers[i].bytes > PEACH2_DESCRIPTOR_LENGTH_MAX) {
            return -ERANGE;
        }
        int error = peach2_transfer_check(&transfers[i]);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

static int memory_get(peach2_chain_t *chain, uint32_t board_index)
{
    const struct backend *backend = &chain->handle->backend;
    switch (chain->memory) {
    case PEACH2_CHAIN_HOST: {
        size_t bytes = (size_t)chain->count * PEACH2_DESCRIPTOR_BYTES;
        int error = backend->ops->alloc_pinned(backend->ctx, bytes, &chain->buffer);
        chain->first = error == 0 ? chain->buffer.bus_address : 0;
        return error;
    }
    case PEACH2_CHAIN_BOARD:
        chain->first = (uint64_t)board_index * PEACH2_DESCRIPTOR_BYTES;
        return 0;
    }
    return -EINVAL;
}

// --- life ----------------------------------------------------------------------------------------------------------

int peach2_chain_create(peach2_handle_t *handle, enum peach2_chain_memory memory, uint32_t board_index,
                        const struct peach2_transfer *transfers, uint32_t count, peach2_chain_t **chain_out)
{
    if (handle == NULL || transfers == NULL || chain_out == NULL) {
        return -EINVAL;
    }
    int error = transfers_check(memory, board_index, transfers, count);
    if (error != 0) {
        return error;
    }
    peach2_pay_call(handle);
    peach2_chain_t *chain = calloc(1, sizeof *chain);
    if (chain == NULL) {
        return -ENOMEM;
    }
    *chain = (peach2_chain_t){.handle = handle, .memory = memory, .count = count, .room = count};
    error = memory_get(chain, board_index);
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
    uint64_t words[PEACH2_DESCRIPTOR_WORDS];
    if (chain->memory == PEACH2_CHAIN_HOST) {
        memcpy(words, (const uint8_t *)chain->buffer.address + (size_t)index * sizeof words, sizeof words);
    }
    for (unsigned i = 0; chain->memory == PEACH2_CHAIN_BOARD && i < PEACH2_DESCRIPTOR_WORDS; i++) {
        uint64_t offset = PEACH2_MEMORY_BASE + descriptor_position(chain, index) + i * sizeof words[0];
        int error = peach2_register_read(chain->handle, offset, sizeof words[0], &words[i]);
        if (error != 0) {
            return error;
        }
    }
    struct peach2_descriptor descriptor = peach2_descriptor_unpack(words);
    descriptor.last = false;
    descriptor.next = descriptor_position(chain, next_index);
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
                        chain->memory == PEACH2_CHAIN_HOST ? PEACH2_MODE_CHAIN_HOST : PEACH2_MODE_CHAIN_BOARD,
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
                        chain->memory == PEACH2_CHAIN_HOST ? PEACH2_MODE_CHAIN_HOST : PEACH2_MODE_CHAIN_BOARD,
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
    // The chain owns its memory already, whichever it is.
    int error = transfers_check(PEACH2_CHAIN_HOST, 0, transfers, count);
    if (error == 0) {
        chain->count = count;
        descriptors_build(chain, transfers);
    }
    return error;
}
