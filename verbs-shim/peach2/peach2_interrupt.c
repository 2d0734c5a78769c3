// Interrupts to the own host and to other nodes.
#include <errno.h>

#include "rtl/peach2_regs.h"
#include "verbs-shim/peach2/peach2_internal.h"

// The value that the board writes into the message word; any value but 0.
#define MESSAGE 1u

static uint64_t interrupt_register(unsigned reg)
{
    return PEACH2_INTERRUPT_BASE + reg;
}

static volatile uint64_t *message_word(const peach2_handle_t *handle)
{
    return handle->interrupt_word.address;
}

int peach2_interrupt_enable(peach2_handle_t *handle, uint32_t mask)
{
    if (handle == NULL) {
        return -EINVAL;
    }
    const struct backend *backend = &handle->backend;
    peach2_pay_call(handle);
    if (handle->interrupt_word.address == NULL) {
        int error = backend->ops->alloc_pinned(backend->ctx, sizeof(uint64_t), &handle->interrupt_word);
        if (error != 0) {
            return error;
        }
    }
    peach2_register_write(handle, interrupt_register(PEACH2_INTERRUPT_ENABLE), 0, 4);
    peach2_register_write(handle, interrupt_register(PEACH2_INTERRUPT_ADDRESS), handle->interrupt_word.bus_address, 8);
    peach2_register_write(handle, interrupt_register(PEACH2_INTERRUPT_VALUE), MESSAGE, 4);
    peach2_register_write(handle, interrupt_register(PEACH2_INTERRUPT_CLEAR), UINT32_MAX, 4);
    peach2_register_write(handle, interrupt_register(PEACH2_INTERRUPT_ENABLE), mask, 4);
    return 0;
}

void peach2_interrupt_disable(peach2_handle_t *handle)
{
    peach2_register_write(handle, interrupt_register(PEACH2_INTERRUPT_ENABLE), 0, 4);
}

const volatile uint64_t *peach2_interrupt_word(const peach2_handle_t *handle)
{
    return message_word(handle);
}

// The message word is free before CLEAR asks for the next message, so no message is lost. A message for bits that are
// already taken here may make the caller find nothing pending, which is allowed.
int peach2_interrupt_take(peach2_handle_t *handle, uint32_t *pending_out)
{
    if (handle == NULL || pending_out == NULL || handle->interrupt_word.address == NULL) {
        return -EINVAL;
    }
    if (*message_word(handle) == 0) {
        return -EAGAIN;
    }
    uint64_t pending;
    int error = peach2_register_read(handle, interrupt_register(PEACH2_INTERRUPT_PENDING), 4, &pending);
    if (error != 0) {
        return error;
    }
    *message_word(handle) = 0;
    peach2_register_write(handle, interrupt_register(PEACH2_INTERRUPT_CLEAR), pending, 4);
    *pending_out = (uint32_t)pending;
    return 0;
}

int peach2_interrupt_wait(peach2_handle_t *handle, uint64_t timeout_ns, uint32_t *pending_out)
{
    if (handle == NULL || pending_out == NULL || handle->interrupt_word.address == NULL) {
        return -EINVAL;
    }
    const struct backend *backend = &handle->backend;
    int error = backend->ops->wait_word(backend->ctx, message_word(handle), UINT32_MAX, MESSAGE, timeout_ns);
    if (error != 0) {
        return error;
    }
    backend->ops->cost(backend->ctx, BACKEND_COST_INTERRUPT, 1);
    return peach2_interrupt_take(handle, pending_out);
}

int peach2_interrupt_raise(peach2_handle_t *handle, uint32_t node, uint32_t bits)
{
    if (handle == NULL || node >= handle->routing.node_count || bits == 0 || (bits & ~PEACH2_INTERRUPT_RAISED) != 0) {
        return -EINVAL;
    }
    uint64_t address =
        peach2_block_address(handle, node, PEACH2_BLOCK_BOARD) + interrupt_register(PEACH2_INTERRUPT_RAISE);
    return peach2_pio_write(handle, address, &bits, sizeof bits);
}
