#include "verbs-shim/peach2/peach2_driver.h"

#include <errno.h>
#include <stdlib.h>

#include "verbs-shim/peach2/peach2_internal.h"

// The major version of the register map for which this driver was written: the upper half of VERSION.
#define VERSION_MAJOR (PEACH2_CHIP_VERSION_RESET >> 16)

#define BOARD_MEMORY_BYTES (PEACH2_BOARD_DESCRIPTORS * PEACH2_DESCRIPTOR_BYTES)

// --- open and close ------------------------------------------------------------------------------------------------

static int chip_identify(peach2_handle_t *handle)
{
    uint64_t id, version;
    if (peach2_register_read(handle, PEACH2_CHIP_BASE + PEACH2_CHIP_ID, 4, &id) != 0 || id != PEACH2_CHIP_ID_RESET) {
        return -ENXIO;
    }
    if (peach2_register_read(handle, PEACH2_CHIP_BASE + PEACH2_CHIP_VERSION, 4, &version) != 0 ||
        version >> 16 != VERSION_MAJOR) {
        return -ENXIO;
    }
    return 0;
}

// The GPUs for which the window has blocks.
static uint8_t gpus_count(const struct backend *backend)
{
    uint8_t gpus = 0;
    while (gpus < PEACH2_GPUS_MAX &&
           backend->ops->bar_bytes(backend->ctx, (enum backend_bar)(BACKEND_BAR_GPU0 + gpus)) != 0) {
        gpus++;
    }
    return gpus;
}

int peach2_open(const struct backend *backend, const struct peach2_routing *routing, peach2_handle_t **handle_out)
{
    if (backend == NULL || routing == NULL || handle_out == NULL) {
        return -EINVAL;
    }
    // On the stack until the board is ready: a thread that is abandoned in this function leaks nothing.
    peach2_handle_t opening = {.backend = *backend, .routing = *routing};
    opening.window_base = backend->ops->bar_bus_address(backend->ctx, BACKEND_BAR_WINDOW);
    opening.routing.gpus = gpus_count(backend);
    peach2_pay_call(&opening);
    int error = chip_identify(&opening);
    if (error != 0) {
        return error;
    }
    error = peach2_routes_program(&opening);
    if (error != 0) {
        return error;
    }
    peach2_handle_t *handle = malloc(sizeof *handle);
    if (handle == NULL) {
        return -ENOMEM;
    }
    *handle = opening;
    *handle_out = handle;
    return 0;
}

int peach2_restore(peach2_handle_t *handle)
{
    peach2_pay_call(handle);
    int error = chip_identify(handle);
    if (error == 0) {
        error = peach2_routes_program(handle);
    }
    return error == 0 ? chip_identify(handle) : error; // it answers behind the writes
}

void peach2_close(peach2_handle_t *handle)
{
    if (handle == NULL) {
        return;
    }
    while (handle->chains != NULL) {
        peach2_chain_destroy(handle->chains);
    }
    peach2_readers_destroy(handle);
    if (handle->interrupt_word.address != NULL) {
        handle->backend.ops->free_pinned(handle->backend.ctx, &handle->interrupt_word);
    }
    free(handle);
}

int peach2_open_booted(const struct backend *backend, const struct peach2_routing *routing,
                       peach2_handle_t **handle_out)
{
    if (backend == NULL || routing == NULL || handle_out == NULL) {
        return -EINVAL;
    }
    peach2_handle_t *handle = malloc(sizeof *handle);
    if (handle == NULL) {
        return -ENOMEM;
    }
    *handle = (peach2_handle_t){.backend = *backend,
                                .routing = *routing,
                                .window_base = backend->ops->bar_bus_address(backend->ctx, BACKEND_BAR_WINDOW)};
    *handle_out = handle;
    return 0;
}

int peach2_open_shared(const peach2_handle_t *open, const struct backend *backend, peach2_handle_t **handle_out)
{
    return open == NULL ? -EINVAL : peach2_open_booted(backend, &open->routing, handle_out);
}

const struct peach2_routing *peach2_routing(const peach2_handle_t *handle)
{
    return &handle->routing;
}

const struct backend *peach2_backend(const peach2_handle_t *handle)
{
    return &handle->backend;
}

uint32_t peach2_node(const peach2_handle_t *handle)
{
    return handle->routing.node;
}

uint32_t peach2_node_count(const peach2_handle_t *handle)
{
    return handle->routing.node_count;
}

// --- addresses -----------------------------------------------------------------------------------------------------

uint64_t peach2_block_address(const peach2_handle_t *handle, uint32_t node, enum peach2_block block)
{
    return handle->window_base + ((uint64_t)node << PEACH2_NODE_BITS) + ((uint64_t)block << PEACH2_BLOCK_BITS);
}

uint64_t peach2_window_address(const peach2_handle_t *handle, uint32_t node, uint64_t bus_address)
{
    if (node >= PEACH2_NODES_MAX || bus_address >= PEACH2_HOST_BYTES_MAX) {
        return 0;
    }
    return peach2_block_address(handle, node, PEACH2_BLOCK_HOST) + bus_address;
}

uint64_t peach2_gpu_window_address(const peach2_handle_t *handle, uint32_t node, uint32_t gpu, uint64_t offset)
{
    if (node >= PEACH2_NODES_MAX || gpu >= PEACH2_GPUS_MAX || offset >= PEACH2_GPU_BYTES_MAX) {
        return 0;
    }
    return peach2_block_address(handle, node, (enum peach2_block)(PEACH2_BLOCK_GPU0 + gpu)) + offset;
}

uint64_t peach2_board_memory_address(const peach2_handle_t *handle, uint32_t node, uint32_t offset)
{
    if (node >= PEACH2_NODES_MAX || offset >= BOARD_MEMORY_BYTES) {
        return 0;
    }
    return peach2_block_address(handle, node, PEACH2_BLOCK_BOARD) + PEACH2_MEMORY_BASE + offset;
}

// --- accesses ------------------------------------------------------------------------------------------------------

int peach2_pio_write(peach2_handle_t *handle, uint64_t window_address, const void *data, size_t bytes)
{
    const struct backend *backend = &handle->backend;
    uint64_t window_bytes = backend->ops->bar_bytes(backend->ctx, BACKEND_BAR_WINDOW);
    uint64_t offset = window_address - handle->window_base;
    if (offset >= window_bytes || bytes > window_bytes - offset) {
        return -EINVAL;
    }
    backend->ops->write_combined(backend->ctx, BACKEND_BAR_WINDOW, offset, data, bytes);
    backend->ops->fence(backend->ctx);
    return 0;
}

int peach2_register_read(peach2_handle_t *handle, uint64_t offset, unsigned bytes, uint64_t *value_out)
{
    return handle->backend.ops->read(handle->backend.ctx, BACKEND_BAR_REGISTERS, offset, bytes, value_out);
}

void peach2_register_write(peach2_handle_t *handle, uint64_t offset, uint64_t value, unsigned bytes)
{
    handle->backend.ops->write(handle->backend.ctx, BACKEND_BAR_REGISTERS, offset, value, bytes);
}

int peach2_board_memory_read(peach2_handle_t *handle, uint32_t offset, uint64_t *value_out)
{
    if (offset % 8 != 0 || offset >= BOARD_MEMORY_BYTES) {
        return -EINVAL;
    }
    return peach2_register_read(handle, PEACH2_MEMORY_BASE + offset, 8, value_out);
}

int peach2_board_memory_write(peach2_handle_t *handle, uint32_t offset, uint64_t value)
{
    if (offset % 8 != 0 || offset >= BOARD_MEMORY_BYTES) {
        return -EINVAL;
    }
    peach2_register_write(handle, PEACH2_MEMORY_BASE + offset, value, 8);
    return 0;
}
