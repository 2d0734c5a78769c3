// Copies become a chain of the board's descriptors. After a copy, a small DMA for each notification copies a word from
// pinned memory to the slot. A channel writes in the order of its chain, so a notification stays after the data without
// a wait.
#include <stdlib.h>

#include "verbs-shim/libtca/internal.h"

// The maximum that one descriptor moves: the next part begins at the same low 4 bits.
#define RUN_BYTES_MAX   (PEACH2_DMA_BYTES_MAX & ~0xfu)
#define TAG_ENTRY_BYTES 16u

// If transfers is NULL the builder only counts, so that both passes run the same code.
struct builder {
    struct peach2_transfer *transfers;
    uint32_t count;
    uint32_t tags;
    bool wait; // the next transfer begins a copy that waits for earlier ones
};

static void transfer_add(struct builder *builder, const struct peach2_transfer *transfer)
{
    if (builder->transfers != NULL) {
        builder->transfers[builder->count] = *transfer;
        builder->transfers[builder->count].flags = builder->wait ? PEACH2_TRANSFER_FENCE : 0;
    }
    builder->wait = false;
    builder->count++;
}

static void run_add(struct builder *builder, uint64_t source, uint64_t destination, uint64_t bytes)
{
    while (bytes != 0) {
        uint32_t part = bytes > RUN_BYTES_MAX ? RUN_BYTES_MAX : (uint32_t)bytes;
        const struct peach2_transfer transfer = {.source = source, .destination = destination, .bytes = part};
        transfer_add(builder, &transfer);
        source += part;
        destination += part;
        bytes -= part;
    }
}

static bool is_one_run(const struct tca_copy *copy)
{
    return copy->count == 1 || (copy->source_pitch == copy->width && copy->destination_pitch == copy->width);
}

static bool has_stride(const struct tca_copy *copy)
{
    return copy->width <= PEACH2_DMA_WIDTH_MAX && copy->source_pitch <= PEACH2_DMA_PITCH_MAX &&
           copy->destination_pitch <= PEACH2_DMA_PITCH_MAX;
}

static void rows_add(struct builder *builder, const struct tca_copy *copy)
{
    uint64_t rows_max = has_stride(copy) ? PEACH2_DMA_BYTES_MAX / copy->width : 1;
    for (uint64_t row = 0; row < copy->count;) {
        uint64_t rows = copy->count - row < rows_max ? copy->count - row : rows_max;
        uint64_t source = copy->source + row * copy->source_pitch;
        uint64_t destination = copy->destination + row * copy->destination_pitch;
        if (rows == 1) {
            run_add(builder, source, destination, copy->width);
        } else {
            const struct peach2_transfer transfer = {
                .source = source,
                .destination = destination,
                .bytes = (uint32_t)(rows * copy->width),
                .width = (uint32_t)copy->width,
                .source_pitch = (uint32_t)copy->source_pitch,
                .destination_pitch = (uint32_t)copy->destination_pitch,
            };
            transfer_add(builder, &transfer);
        }
        row += rows;
    }
}

// An entry of the table has the word in both halves of its 16 bytes, as a slot may be in either half.
static void notification_add(struct builder *builder, const tcaDesc *desc, uint64_t slot_address, uint32_t tag)
{
    uint64_t offset = (uint64_t)builder->tags * TAG_ENTRY_BYTES;
    if (builder->transfers != NULL) {
        uint64_t *entry = (uint64_t *)(void *)((char *)desc->tags.address + offset);
        entry[0] = entry[1] = tca_notification(tag);
    }
    builder->tags++;
    run_add(builder, desc->tags.bus_address + offset + slot_address % TAG_ENTRY_BYTES, slot_address, TCA_SLOT_BYTES);
}

static void copies_add(struct builder *builder, const tcaDesc *desc)
{
    for (const struct tca_copy *copy = desc->copies; copy != NULL; copy = copy->next) {
        bool internal = (copy->flags & tcaDMAUseNotifyInternal) != 0;
        builder->wait = copy != desc->copies && (copy->flags & tcaDMAPipeline) == 0;
        if (is_one_run(copy)) {
            run_add(builder, copy->source, copy->destination, copy->width * copy->count);
        } else {
            rows_add(builder, copy);
        }
        if ((copy->flags & tcaDMANotify) != 0) {
            notification_add(builder, desc, tca_slot_address(desc->context, &copy->to, copy->slot, internal),
                             copy->tag);
        }
        if ((copy->flags & tcaDMANotifySelf) != 0) {
            notification_add(builder, desc, tca_slot_address(desc->context, &copy->from, copy->slot, internal),
                             copy->tag);
        }
    }
}

static int tags_alloc(tcaDesc *desc, const char *call, uint32_t tags)
{
    const struct backend *backend = &desc->context->backend;
    if (tags == 0) {
        return tcaSuccess;
    }
    if (backend->ops->alloc_pinned(backend->ctx, (size_t)tags * TAG_ENTRY_BYTES, &desc->tags) != 0) {
        return tca_refuse(desc->context, tcaErrorNoMemory, "%s: no pinned memory for %u notifications", call, tags);
    }
    backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, (uint64_t)tags * 2);
    return tcaSuccess;
}

// Chains that are set on no channel release their board memory; they are built again when they are set.
static void idle_chains_release(struct tca_context *context)
{
    for (tcaDesc *other = context->descs; other != NULL; other = other->next) {
        bool set = false;
        for (unsigned channel = 0; channel < tcaChannels; channel++) {
            set = set || tca_desc_is_set(other, channel);
        }
        if (!set && other->board_count != 0) {
            tca_desc_release(other);
        }
    }
}

static int board_memory_take(tcaDesc *desc, const char *call, uint32_t count)
{
    struct tca_context *context = desc->context;
    if ((desc->copies->flags & tcaDMAUseInternal) == 0) {
        return tcaSuccess;
    }
    bool found = tca_board_take(context, count, &desc->board_index);
    if (!found) {
        idle_chains_release(context);
        found = tca_board_take(context, count, &desc->board_index);
    }
    if (!found) {
        return tca_refuse(
            context, tcaErrorBoardMemory,
            "%s: %u descriptors (of copies and notifications) do not fit the board's memory beside those that "
            "are set on channels: it has room for %u; use descriptors in host memory",
            call, count, TCA_BOARD_SLOTS);
    }
    desc->board_count = count;
    return tcaSuccess;
}

int tca_desc_build(tcaDesc *desc, const char *call)
{
    struct tca_context *context = desc->context;
    struct builder counting = {0};
    copies_add(&counting, desc);
    int error = board_memory_take(desc, call, counting.count);
    if (error == tcaSuccess) {
        error = tags_alloc(desc, call, counting.tags);
    }
    // In pinned memory, which belongs to the node: the process may end while the chain is written.
    struct backend_buffer scratch = {0};
    const struct backend *backend = &context->backend;
    if (error == tcaSuccess &&
        backend->ops->alloc_pinned(backend->ctx, counting.count * sizeof(struct peach2_transfer), &scratch) != 0) {
        error = tca_refuse(context, tcaErrorNoMemory, "%s: no memory for %u descriptors", call, counting.count);
    }
    if (error != tcaSuccess) {
        tca_desc_release(desc);
        return error;
    }
    struct builder builder = {.transfers = scratch.address};
    copies_add(&builder, desc);
    int failure = peach2_chain_create(context->board, desc->board_count != 0 ? PEACH2_CHAIN_BOARD : PEACH2_CHAIN_HOST,
                                      desc->board_index, builder.transfers, builder.count, &desc->chain);
    backend->ops->free_pinned(backend->ctx, &scratch);
    if (failure != 0) {
        tca_desc_release(desc);
        return tca_refuse(context, tcaErrorNoMemory, "%s: no memory for %u descriptors", call, builder.count);
    }
    return tcaSuccess;
}
