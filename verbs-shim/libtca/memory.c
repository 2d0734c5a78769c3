// Memory that boards can reach.
#include <stdlib.h>

#include "verbs-shim/libtca/internal.h"

#define ALLOCATION_MAX (SIZE_MAX / 2)

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

struct tca_allocation *tca_allocation_make(struct tca_context *context, size_t pinned_bytes)
{
    struct tca_allocation *allocation = pinned_bytes <= ALLOCATION_MAX ? calloc(1, sizeof *allocation) : NULL;
    const struct backend *backend = &context->backend;
    if (allocation == NULL) {
        return NULL;
    }
    if (pinned_bytes != 0 && backend->ops->alloc_pinned(backend->ctx, pinned_bytes, &allocation->buffer) != 0) {
        free(allocation);
        return NULL;
    }
    allocation->number = ++context->allocation_count;
    allocation->next = context->allocations;
    context->allocations = allocation;
    return allocation;
}

void tca_allocation_drop(struct tca_context *context, struct tca_allocation *allocation)
{
    struct tca_allocation **link = &context->allocations;
    while (*link != allocation) {
        link = &(*link)->next;
    }
    *link = allocation->next;
    if (allocation->buffer.address != NULL) {
        context->backend.ops->free_pinned(context->backend.ctx, &allocation->buffer);
    }
    free(allocation);
}

int tcaMalloc(void **ptr, size_t size, tcaMemoryType type)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    if (ptr == NULL || (size == 0 && type != tcaMemoryGPU) || (type != tcaMemoryCPU && type != tcaMemoryGPU)) {
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
