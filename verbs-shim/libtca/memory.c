// Memory that boards reach.
#include <stdlib.h>

#include "verbs-shim/libtca/internal.h"

#define SLOTS_BYTES     ((size_t)tcaSlots * TCA_SLOT_BYTES)
#define SLOTS_UNITS     (uint32_t)(SLOTS_BYTES / TCA_BOARD_UNIT_BYTES)
#define SLOTS_ALIGNMENT 64u
#define ALLOCATION_MAX  (SIZE_MAX / 2)

static bool is_freed(const struct tca_allocation *allocation)
{
    return allocation->pin != NULL ? allocation->pin->revoked : tca_host_is_freed(allocation);
}

struct tca_allocation *tca_allocation_find(const struct tca_context *context, uint32_t number)
{
    struct tca_allocation *allocation = context->allocations;
    while (allocation != NULL && allocation->number != number) {
        allocation = allocation->next;
    }
    return allocation != NULL && !is_freed(allocation) ? allocation : NULL;
}

struct tca_allocation *tca_allocation_around(const struct tca_context *context, const void *ptr, tcaMemoryType type)
{
    for (struct tca_allocation *a = context->allocations; a != NULL; a = a->next) {
        bool kind = (a->pin != NULL) == (type == tcaMemoryGPU);
        if (kind && !is_freed(a) && (uintptr_t)ptr - (uintptr_t)a->address < a->size) {
            return a;
        }
    }
    return NULL;
}

void tca_allocations_free(struct tca_context *context)
{
    while (context->allocations != NULL) {
        struct tca_allocation *allocation = context->allocations;
        context->allocations = allocation->next;
        free(allocation);
    }
}

// Slots that a notification may have been left in before start out empty.
static void board_slots_take(struct tca_context *context, struct tca_allocation *allocation)
{
    uint32_t first;
    allocation->slots_board = TCA_BOARD_NONE;
    if (!tca_board_take_high(context, SLOTS_UNITS, &first)) {
        return;
    }
    allocation->slots_board = first * TCA_BOARD_UNIT_BYTES;
    for (uint32_t slot = 0; slot < tcaSlots; slot++) {
        (void)peach2_board_memory_write(context->board, allocation->slots_board + slot * TCA_SLOT_BYTES, 0);
    }
}

struct tca_allocation *tca_allocation_make(struct tca_context *context, size_t data_bytes)
{
    struct tca_allocation *allocation = data_bytes <= ALLOCATION_MAX ? calloc(1, sizeof *allocation) : NULL;
    if (allocation == NULL) {
        return NULL;
    }
    allocation->slots = (data_bytes + SLOTS_ALIGNMENT - 1) / SLOTS_ALIGNMENT * SLOTS_ALIGNMENT;
    const struct backend *backend = &context->backend;
    if (backend->ops->alloc_pinned(backend->ctx, allocation->slots + SLOTS_BYTES, &allocation->buffer) != 0) {
        free(allocation);
        return NULL;
    }
    allocation->number = ++context->allocation_count;
    allocation->next = context->allocations;
    context->allocations = allocation;
    board_slots_take(context, allocation);
    return allocation;
}

void tca_allocation_drop(struct tca_context *context, struct tca_allocation *allocation)
{
    struct tca_allocation **link = &context->allocations;
    while (*link != allocation) {
        link = &(*link)->next;
    }
    *link = allocation->next;
    if (allocation->slots_board != TCA_BOARD_NONE) {
        tca_board_give(context, allocation->slots_board / TCA_BOARD_UNIT_BYTES, SLOTS_UNITS);
    }
    context->backend.ops->free_pinned(context->backend.ctx, &allocation->buffer);
    free(allocation);
}

int tcaMalloc(void **ptr, size_t size, tcaMemoryType type)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    if (ptr == NULL || size == 0 || (type != tcaMemoryCPU && type != tcaMemoryGPU)) {
        return tca_refuse(context, tcaErrorArgument, "tcaMalloc: needs a pointer, bytes, and a kind of memory");
    }
    if (type == tcaMemoryGPU) {
        return tca_gpu_malloc(context, ptr, size);
    }
    struct tca_allocation *allocation = tca_allocation_make(context, size);
    if (allocation == NULL) {
        return tca_refuse(context, tcaErrorNoMemory, "tcaMalloc: no pinned memory for %zu B: free some with tcaFree",
                          size);
    }
    allocation->size = size;
    allocation->address = allocation->buffer.address;
    allocation->bus_address = allocation->buffer.bus_address;
    *ptr = allocation->address;
    return tcaSuccess;
}

bool tca_allocation_is_used(struct tca_context *context, const struct tca_allocation *allocation)
{
    for (unsigned channel = 0; channel < tcaChannels; channel++) {
        if (!tca_channel_is_running(context, channel)) {
            continue;
        }
        for (const struct tca_copy *copy = context->channels[channel].desc->copies; copy != NULL; copy = copy->next) {
            bool writes = copy->to.node == peach2_node(context->board) && copy->to.allocation == allocation->number;
            if (copy->from.allocation == allocation->number || writes) {
                return true;
            }
        }
    }
    return false;
}

int tcaFree(void *ptr, tcaMemoryType type)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    if (type == tcaMemoryGPU) {
        return tca_gpu_free(context, ptr);
    }
    struct tca_allocation *allocation = tca_allocation_around(context, ptr, tcaMemoryCPU);
    if (allocation == NULL || allocation->address != ptr || allocation->borrowed) {
        return tca_refuse(context, tcaErrorNotTcaMemory,
                          "tcaFree: not what tcaMalloc gave, or freed before: pass the pointer that tcaMalloc gave");
    }
    if (tca_allocation_is_used(context, allocation)) {
        return tca_refuse(context, tcaErrorBusy, "tcaFree: a DMA uses the memory: call tcaWaitDMAC first");
    }
    tca_allocation_drop(context, allocation);
    return tcaSuccess;
}
