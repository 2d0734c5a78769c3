// Device memory, pinned host memory, and the classification of pointers.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/cuda/internal.h"

// --- pointers -------------------------------------------------------------------------------------------------------

bool cuda_pointer_device(const struct cuda_context *context, const void *pointer, unsigned *gpu_out,
                         uint64_t *device_address_out)
{
    unsigned gpu;
    uint64_t device_address;
    bool is = cuda_pointer_split(pointer, &gpu, &device_address) && gpu < context->count;
    if (is) {
        *gpu_out = gpu;
        *device_address_out = device_address;
    }
    return is;
}

bool cuda_pointer_split(const void *pointer, unsigned *gpu_out, uint64_t *device_address_out)
{
    uint64_t offset = (uint64_t)(uintptr_t)pointer - CUDA_BASE;
    if ((uintptr_t)pointer < CUDA_BASE || offset >> CUDA_DEVICE_SHIFT >= BACKEND_GPUS_MAX) {
        return false;
    }
    *gpu_out = (unsigned)(offset >> CUDA_DEVICE_SHIFT);
    *device_address_out = offset & ((1ull << CUDA_DEVICE_SHIFT) - 1);
    return true;
}

void *cuda_pointer_make(unsigned gpu, uint64_t device_address)
{
    return (void *)(uintptr_t)(CUDA_BASE + ((uint64_t)gpu << CUDA_DEVICE_SHIFT) + device_address);
}

struct cuda_allocation *cuda_allocation_around(const struct cuda_context *context, unsigned gpu,
                                               uint64_t device_address)
{
    struct cuda_allocation *allocation = context->devices[gpu].allocations;
    while (allocation != NULL && device_address - allocation->device_address >= allocation->bytes) {
        allocation = allocation->next;
    }
    return allocation;
}

struct cuda_pinned *cuda_pinned_around(const struct cuda_context *context, const void *pointer)
{
    struct cuda_pinned *pinned = context->pinned;
    while (pinned != NULL && (uintptr_t)pointer - (uintptr_t)pinned->buffer.address >= pinned->buffer.bytes) {
        pinned = pinned->next;
    }
    return pinned;
}

void cuda_memory_free(struct cuda_context *context)
{
    for (unsigned gpu = 0; gpu < context->count; gpu++) {
        struct cuda_device *device = &context->devices[gpu];
        while (device->allocations != NULL) {
            struct cuda_allocation *allocation = device->allocations;
            device->allocations = allocation->next;
            free(allocation);
        }
        while (device->pins != NULL) {
            struct cuda_pin *pin = device->pins;
            device->pins = pin->next;
            free(pin);
        }
    }
    while (context->pinned != NULL) {
        struct cuda_pinned *pinned = context->pinned;
        context->pinned = pinned->next;
        free(pinned);
    }
}

// --- of the device --------------------------------------------------------------------------------------------------

static cudaError_t allocate(struct cuda_context *context, void **pointer, size_t bytes)
{
    struct cuda_device *device;
    if (pointer == NULL) {
        return cudaErrorInvalidValue;
    }
    if (bytes == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    cudaError_t error = cuda_device_use(context, context->current, &device);
    if (error != cudaSuccess) {
        return error;
    }
    cuda_pay_ns(context, device->info.manage_call_ns);
    uint64_t device_address;
    int failure = context->gpu->alloc(context->backend.ctx, context->current, bytes, &device_address);
    struct cuda_allocation *allocation = failure == 0 ? malloc(sizeof *allocation) : NULL;
    if (allocation == NULL) {
        if (failure == 0) {
            (void)context->gpu->free(context->backend.ctx, context->current, device_address);
        }
        return cudaErrorMemoryAllocation;
    }
    *allocation =
        (struct cuda_allocation){device->allocations, device_address, bytes, ++context->allocation_count, false};
    device->allocations = allocation;
    *pointer = cuda_pointer_make(context->current, device_address);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : allocate(context, pointer, bytes));
}

static cudaError_t allocation_drop(struct cuda_context *context, unsigned gpu, struct cuda_allocation **link)
{
    struct cuda_allocation *allocation = *link;
    cuda_pins_revoke(context, gpu, allocation->device_address, allocation->bytes);
    int error = context->gpu->free(context->backend.ctx, gpu, allocation->device_address);
    if (error == 0) {
        *link = allocation->next;
        free(allocation);
    }
    return cuda_error_of(context, error);
}

cudaError_t cuda_allocations_drop(struct cuda_context *context, unsigned gpu)
{
    cudaError_t error = cudaSuccess;
    while (error == cudaSuccess && context->devices[gpu].allocations != NULL) {
        error = allocation_drop(context, gpu, &context->devices[gpu].allocations);
    }
    return error;
}

static cudaError_t release(struct cuda_context *context, void *pointer)
{
    unsigned gpu;
    uint64_t device_address;
    if (pointer == NULL) {
        return cudaSuccess;
    }
    if (!cuda_pointer_device(context, pointer, &gpu, &device_address)) {
        return cudaErrorInvalidValue;
    }
    struct cuda_allocation **link = &context->devices[gpu].allocations;
    while (*link != NULL && (*link)->device_address != device_address) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return cudaErrorInvalidValue;
    }
    cuda_pay_ns(context, context->devices[gpu].info.manage_call_ns);
    cudaError_t error = cuda_device_wait(context, gpu);
    return error == cudaSuccess ? allocation_drop(context, gpu, link) : error;
}

cudaError_t cudaFree(void *pointer)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : release(context, pointer));
}

static cudaError_t memory_info(struct cuda_context *context, size_t *free_bytes, size_t *total_bytes)
{
    struct backend_gpu_info info;
    if (free_bytes == NULL || total_bytes == NULL) {
        return cudaErrorInvalidValue;
    }
    int error = context->gpu->info(context->backend.ctx, context->current, &info);
    if (error == 0) {
        *free_bytes = info.memory_free_bytes;
        *total_bytes = info.memory_bytes;
    }
    cuda_pay_call(context);
    return cuda_error_of(context, error);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : memory_info(context, free_bytes, total_bytes));
}

// --- of the host ----------------------------------------------------------------------------------------------------

static cudaError_t host_allocate(struct cuda_context *context, void **pointer, size_t bytes, unsigned flags)
{
    if (pointer == NULL ||
        (flags & ~(unsigned)(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)) != 0) {
        return cudaErrorInvalidValue;
    }
    if (bytes == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    struct cuda_pinned *pinned = calloc(1, sizeof *pinned);
    if (pinned == NULL) {
        return cudaErrorMemoryAllocation;
    }
    pinned->number = ++context->allocation_count;
    pinned->next = context->pinned; // empty until the driver fills it in
    context->pinned = pinned;
    cuda_pay_ns(context, context->devices[context->current].info.manage_call_ns);
    if (context->backend.ops->alloc_pinned(context->backend.ctx, bytes, &pinned->buffer) != 0) {
        context->pinned = pinned->next;
        free(pinned);
        return cudaErrorMemoryAllocation;
    }
    *pointer = pinned->buffer.address;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : host_allocate(context, pointer, bytes, flags));
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

static cudaError_t host_release(struct cuda_context *context, const void *pointer)
{
    if (pointer == NULL) {
        return cudaSuccess;
    }
    struct cuda_pinned **link = &context->pinned;
    while (*link != NULL && (*link)->buffer.address != pointer) {
        link = &(*link)->next;
    }
    struct cuda_pinned *pinned = *link;
    if (pinned == NULL) {
        return cudaErrorInvalidValue;
    }
    cuda_pay_ns(context, context->devices[context->current].info.manage_call_ns);
    cudaError_t error = cudaSuccess;
    for (unsigned gpu = 0; error == cudaSuccess && gpu < context->count; gpu++) {
        error = cuda_device_wait(context, gpu);
    }
    if (error == cudaSuccess) {
        *link = pinned->next;
        context->backend.ops->free_pinned(context->backend.ctx, &pinned->buffer);
        free(pinned);
    }
    return error;
}

cudaError_t cudaFreeHost(void *pointer)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : host_release(context, pointer));
}

// --- attributes -----------------------------------------------------------------------------------------------------

static cudaError_t attributes_get(struct cuda_context *context, struct cudaPointerAttributes *attributes,
                                  const void *pointer)
{
    unsigned gpu;
    uint64_t device_address;
    if (attributes == NULL) {
        return cudaErrorInvalidValue;
    }
    *attributes = (struct cudaPointerAttributes){.device = (int)context->current};
    if (cuda_pointer_device(context, pointer, &gpu, &device_address)) {
        if (cuda_allocation_around(context, gpu, device_address) == NULL) {
            return cudaErrorInvalidValue;
        }
        attributes->memoryType = attributes->type = cudaMemoryTypeDevice;
        attributes->device = (int)gpu;
        attributes->devicePointer = cuda_pointer_make(gpu, device_address);
        return cudaSuccess;
    }
    struct cuda_pinned *pinned = cuda_pinned_around(context, pointer);
    if (pinned == NULL) {
        return cudaErrorInvalidValue;
    }
    attributes->memoryType = attributes->type = cudaMemoryTypeHost;
    attributes->hostPointer = (char *)pinned->buffer.address + ((uintptr_t)pointer - (uintptr_t)pinned->buffer.address);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : attributes_get(context, attributes, pointer));
}
