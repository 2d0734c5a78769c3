// Windows onto device memory.
#include "verbs-shim/cuda/pin.h"

#include <errno.h>
#include <stdlib.h>

#include "verbs-shim/cuda/internal.h"

// in_pages: the range may extend to the end of the allocation's last page.
static struct cuda_allocation *allocation_find(const struct cuda_context *context, const void *pointer, size_t bytes,
                                               bool in_pages, unsigned *gpu_out, uint64_t *device_address_out)
{
    if (!cuda_pointer_device(context, pointer, gpu_out, device_address_out)) {
        return NULL;
    }
    struct cuda_allocation *allocation = cuda_allocation_around(context, *gpu_out, *device_address_out);
    if (allocation == NULL || bytes == 0) {
        return NULL;
    }
    uint64_t page = in_pages ? CUDA_PIN_PAGE_BYTES : 1, end = allocation->device_address + allocation->bytes;
    return bytes <= (end + page - 1) / page * page - *device_address_out ? allocation : NULL;
}

static int window_open(struct cuda_context *context, struct cuda_pin *pin, uint64_t device_address, uint64_t bytes)
{
    uint64_t offset, bus_address, page = CUDA_PIN_PAGE_BYTES;
    int error = context->gpu->pin(context->backend.ctx, pin->gpu, device_address, bytes, &offset, &bus_address);
    if (error != 0) {
        return error;
    }
    uint64_t before = device_address % page;
    *pin = (struct cuda_pin){
        .next = pin->next,
        .gpu = pin->gpu,
        .device_address = device_address - before,
        .bytes = (before + bytes + page - 1) / page * page,
        .bar_offset = offset - before,
        .bus_address = bus_address - before,
        .start = before,
        .length = bytes,
    };
    return 0;
}

int cuda_pin_create(const void *pointer, size_t bytes, bool in_pages, struct cuda_pin **pin_out)
{
    struct cuda_context *context;
    unsigned gpu;
    uint64_t device_address;
    cudaError_t entered = cuda_enter(&context);
    if (entered != cudaSuccess) {
        return context == NULL ? -ENODEV : -EIO;
    }
    if (allocation_find(context, pointer, bytes, in_pages, &gpu, &device_address) == NULL) {
        return -EINVAL;
    }
    struct cuda_pin *pin = malloc(sizeof *pin);
    if (pin == NULL) {
        return -ENOMEM;
    }
    struct cuda_device *device = &context->devices[gpu];
    *pin = (struct cuda_pin){.next = device->pins, .gpu = gpu, .revoked = true}; // until it is opened
    device->pins = pin;
    cuda_pay_ns(context, device->info.manage_call_ns);
    int error = window_open(context, pin, device_address, bytes);
    if (error != 0) {
        device->pins = pin->next;
        free(pin);
        return error;
    }
    *pin_out = pin;
    return 0;
}

static void window_close(struct cuda_context *context, struct cuda_pin *pin)
{
    if (!pin->revoked) {
        pin->revoked = true;
        (void)context->gpu->unpin(context->backend.ctx, pin->gpu, pin->bar_offset + pin->start);
    }
}

void cuda_pin_destroy(struct cuda_pin *pin)
{
    struct cuda_context *context = cuda_context_current();
    cuda_pay_ns(context, context->devices[pin->gpu].info.manage_call_ns);
    window_close(context, pin);
    struct cuda_pin **link = &context->devices[pin->gpu].pins;
    while (*link != pin) {
        link = &(*link)->next;
    }
    *link = pin->next;
    free(pin);
}

// The first requested byte shows which allocation a pin belongs to: the rest of its pages may belong to a neighbour.
void cuda_pins_revoke(struct cuda_context *context, unsigned gpu, uint64_t device_address, uint64_t bytes)
{
    for (struct cuda_pin *pin = context->devices[gpu].pins; pin != NULL; pin = pin->next) {
        if (pin->device_address + pin->start - device_address < bytes) {
            window_close(context, pin);
        }
    }
}

uint64_t cuda_pin_offset(const struct cuda_pin *pin, const void *pointer)
{
    uint64_t offset = ((uint64_t)(uintptr_t)pointer - CUDA_BASE) & ((1ull << CUDA_DEVICE_SHIFT) - 1);
    return offset - pin->device_address;
}

bool cuda_host_pinned(const void *pointer, size_t bytes, uint64_t *bus_address_out, uint64_t *number_out)
{
    const struct cuda_context *context = cuda_context_current();
    const struct cuda_pinned *pinned = context != NULL ? cuda_pinned_around(context, pointer) : NULL;
    if (pinned == NULL) {
        return false;
    }
    uint64_t offset = (uintptr_t)pointer - (uintptr_t)pinned->buffer.address;
    *bus_address_out = pinned->buffer.bus_address + offset;
    *number_out = pinned->number;
    return bytes <= pinned->buffer.bytes - offset;
}

// The tokens encode the process and the device, so tokens of other processes differ.
bool cuda_tokens_of(const void *pointer, struct cuda_tokens *tokens_out)
{
    const struct cuda_context *context = cuda_context_current();
    unsigned gpu;
    uint64_t device_address;
    if (context == NULL || allocation_find(context, pointer, 1, false, &gpu, &device_address) == NULL) {
        return false;
    }
    uint32_t process = context->process->number;
    tokens_out->p2p = ((uint64_t)process << 8 | gpu | 0x80) * 0x9e3779b97f4a7c15ull;
    tokens_out->va_space = process + 1;
    return true;
}

// --- peer memory (struct backend_peer_memory) -----------------------------------------------------------------------

static bool peer_owns(const void *address)
{
    struct cuda_tokens tokens;
    return cuda_tokens_of(address, &tokens);
}

static int peer_pin(const void *address, size_t bytes, void **pin_out, uint64_t *bus_address_out)
{
    struct cuda_pin *pin;
    int status = cuda_pin_create(address, bytes, true, &pin);
    if (status == 0) {
        *pin_out = pin;
        *bus_address_out = pin->bus_address + cuda_pin_offset(pin, address);
    }
    return status;
}

static void peer_unpin(void *pin)
{
    cuda_pin_destroy(pin);
}

const struct backend_peer_memory cuda_peer_memory = {.owns = peer_owns, .pin = peer_pin, .unpin = peer_unpin};
