// CUDA memory: device memory, pinned into the GPU's window, and pinned host memory.
#include <errno.h>

#include "verbs-shim/cuda/cuda_runtime_api.h"
#include "verbs-shim/libtca/internal.h"

// context may be NULL.
static int pin_make(struct tca_context *context, const char *call, const void *ptr, size_t size,
                    struct cuda_pin **pin_out)
{
    switch (cuda_pin_create(ptr, size, false, pin_out)) {
    case 0:
        return tcaSuccess;
    case -ENODEV:
        return tca_refuse(context, tcaErrorNotSupported, "%s: this node has no GPU: use tcaMemoryCPU", call);
    case -EINVAL:
        return tca_refuse(context, tcaErrorNotTcaMemory,
                          "%s: %zu B there do not lie in one allocation of cudaMalloc or tcaMalloc", call, size);
    case -EIO:
        return tca_refuse(context, tcaErrorIO, "%s: the GPU failed: call cudaDeviceReset", call);
    default:
        return tca_refuse(context, tcaErrorNoMemory, "%s: the GPU's window has no room for %zu B: free some", call,
                          size);
    }
}

static bool is_reached(const struct cuda_pin *pin)
{
    return pin->gpu < PEACH2_GPUS_MAX && pin->bar_offset <= PEACH2_GPU_BYTES_MAX &&
           pin->bytes <= PEACH2_GPU_BYTES_MAX - pin->bar_offset;
}

static bool is_revoked(const struct tca_allocation *allocation)
{
    return allocation->pin != NULL ? allocation->pin->revoked : tca_host_is_freed(allocation);
}

// Drops the allocations that the program gave back to CUDA.
static void revoked_drop(struct tca_context *context)
{
    for (struct tca_allocation *next, *allocation = context->allocations; allocation != NULL; allocation = next) {
        next = allocation->next;
        if (is_revoked(allocation) && !tca_allocation_is_used(context, allocation)) {
            struct cuda_pin *pin = allocation->pin;
            tca_allocation_drop(context, allocation);
            if (pin != NULL) {
                cuda_pin_destroy(pin);
            }
        }
    }
}

// Opens a window onto memory that exists.
static int adopt(struct tca_context *context, const char *call, void *ptr, size_t size, bool borrowed,
                 struct tca_allocation **allocation_out)
{
    struct cuda_pin *pin;
    int error = pin_make(context, call, ptr, size, &pin);
    if (error != tcaSuccess) {
        return error;
    }
    if (!is_reached(pin)) {
        unsigned gpu = pin->gpu;
        cuda_pin_destroy(pin);
        return tca_refuse(context, tcaErrorWindow,
                          "%s: the fabric does not reach this memory of GPU %u: use one of the first two", call, gpu);
    }
    struct tca_allocation *allocation = tca_allocation_make(context, 0);
    if (allocation == NULL) {
        cuda_pin_destroy(pin);
        return tca_refuse(context, tcaErrorNoMemory, "%s: no memory", call);
    }
    allocation->address = ptr;
    allocation->size = size;
    allocation->pin = pin;
    allocation->borrowed = borrowed;
    *allocation_out = allocation;
    return tcaSuccess;
}

static int zeroed_malloc(struct tca_context *context, void **ptr, size_t size)
{
    cudaError_t error = cudaMalloc(ptr, size);
    if (error == cudaErrorNoDevice) {
        return tca_refuse(context, tcaErrorNotSupported, "tcaMalloc: this node has no GPU: use tcaMemoryCPU");
    }
    if (error == cudaSuccess) {
        error = cudaMemset(*ptr, 0, size);
        error = error == cudaSuccess ? cudaStreamSynchronize(NULL) : error;
        if (error != cudaSuccess) {
            (void)cudaFree(*ptr);
        }
    }
    return error == cudaSuccess ? tcaSuccess
                                : tca_refuse(context, tcaErrorNoMemory, "tcaMalloc: no GPU memory for %zu B: %s", size,
                                             cudaGetErrorString(error));
}

int tca_gpu_malloc(struct tca_context *context, void **ptr, size_t size)
{
    void *device = NULL;
    struct tca_allocation *allocation;
    revoked_drop(context);
    if (size == 0) {
        *ptr = NULL;
        return tcaSuccess;
    }
    int error = zeroed_malloc(context, &device, size);
    if (error != tcaSuccess) {
        return error;
    }
    error = adopt(context, "tcaMalloc", device, size, false, &allocation);
    if (error != tcaSuccess) {
        (void)cudaFree(device);
        return error;
    }
    *ptr = device;
    return tcaSuccess;
}

int tca_gpu_free(struct tca_context *context, void *ptr)
{
    struct tca_allocation *allocation = tca_allocation_around(context, ptr, tcaMemoryGPU);
    revoked_drop(context);
    if (ptr == NULL) {
        return tcaSuccess; // tcaMalloc returns NULL for no bytes
    }
    if (allocation == NULL || allocation->address != ptr || allocation->borrowed) {
        return tca_refuse(context, tcaErrorNotTcaMemory,
                          "tcaFree: not what tcaMalloc gave, or freed before; what cudaMalloc gave goes to cudaFree");
    }
    if (tca_allocation_is_used(context, allocation)) {
        return tca_refuse(context, tcaErrorBusy, "tcaFree: a DMA uses the memory: call tcaWaitDMAC first");
    }
    struct cuda_pin *pin = allocation->pin;
    tca_allocation_drop(context, allocation);
    cuda_pin_destroy(pin);
    return cudaFree(ptr) == cudaSuccess ? tcaSuccess : tca_refuse(context, tcaErrorIO, "tcaFree: the GPU failed");
}

int tca_gpu_borrow(struct tca_context *context, const char *call, void *ptr, size_t size,
                   const struct tca_allocation **allocation_out)
{
    struct tca_allocation *allocation = tca_allocation_around(context, ptr, tcaMemoryGPU);
    size_t offset = allocation != NULL ? (size_t)((uintptr_t)ptr - (uintptr_t)allocation->address) : 0;
    revoked_drop(context);
    if (size == 0 || (allocation != NULL && !allocation->borrowed && size > allocation->size - offset)) {
        return tca_refuse(context, tcaErrorRange, "%s: %zu B from byte %zu on do not lie in an allocation", call, size,
                          offset);
    }
    if (allocation == NULL || size > allocation->size - offset) {
        int error = adopt(context, call, ptr, size, true, &allocation);
        if (error != tcaSuccess) {
            return error;
        }
    }
    *allocation_out = allocation;
    return tcaSuccess;
}

// --- pinned host memory ---------------------------------------------------------------------------------------------

bool tca_host_is_freed(const struct tca_allocation *allocation)
{
    uint64_t bus_address, number;
    return allocation->host_number != 0 &&
           (!cuda_host_pinned(allocation->address, allocation->size, &bus_address, &number) ||
            number != allocation->host_number);
}

int tca_host_borrow(struct tca_context *context, const char *call, void *ptr, size_t size,
                    const struct tca_allocation **allocation_out)
{
    uint64_t bus_address, number;
    struct tca_allocation *allocation = tca_allocation_around(context, ptr, tcaMemoryCPU);
    revoked_drop(context);
    if (size == 0) {
        return tca_refuse(context, tcaErrorRange, "%s: no bytes", call);
    }
    if (!cuda_host_pinned(ptr, size, &bus_address, &number)) {
        return tca_refuse(context, tcaErrorNotTcaMemory,
                          "%s: %zu B there do not come from one tcaMalloc or cudaMallocHost, or were freed: the board "
                          "reaches no other",
                          call, size);
    }
    if (allocation == NULL || size > allocation->size - (size_t)((uintptr_t)ptr - (uintptr_t)allocation->address)) {
        allocation = tca_allocation_make(context, 0);
        if (allocation == NULL) {
            return tca_refuse(context, tcaErrorNoMemory, "%s: no memory", call);
        }
        allocation->address = ptr;
        allocation->size = size;
        allocation->bus_address = bus_address;
        allocation->host_number = number;
        allocation->borrowed = true;
    }
    *allocation_out = allocation;
    return tcaSuccess;
}

// --- for other devices ----------------------------------------------------------------------------------------------

tcaresult tcaCreateHandleGPU(unsigned long long *paddr, void *ptr, size_t size)
{
    struct tca_context *context = tca_context_current();
    struct cuda_pin *pin;
    if (paddr == NULL || ptr == NULL) {
        return tca_refuse(context, tcaErrorArgument, "tcaCreateHandleGPU: the address or the memory is null");
    }
    int error = pin_make(context, "tcaCreateHandleGPU", ptr, size, &pin);
    if (error == tcaSuccess) {
        *paddr = pin->bus_address + cuda_pin_offset(pin, ptr);
    }
    return error;
}
