#include "verbs-shim/fpga/fpga_driver.h"

#include <errno.h>
#include <stdlib.h>

struct fpga_handle {
    struct backend backend;
    enum backend_bar memory_bar, control_bar;
    uint64_t memory_bytes;
    bool in_flight[FPGA_DIRECTIONS][FPGA_IDS];
    unsigned in_flight_count[FPGA_DIRECTIONS];
};

// --- registers -------------------------------------------------------------------------------------------------------

static void control_write(const fpga_handle_t *handle, enum fpga_direction direction, uint32_t offset, uint32_t value)
{
    const struct backend *backend = &handle->backend;
    backend->ops->write(backend->ctx, handle->control_bar, direction * FPGA_CONTROLLER_STRIDE + offset, value, 4);
}

static int control_read(const fpga_handle_t *handle, enum fpga_direction direction, uint32_t offset,
                        uint32_t *value_out)
{
    const struct backend *backend = &handle->backend;
    uint64_t value = 0;
    int result = backend->ops->read(backend->ctx, handle->control_bar, direction * FPGA_CONTROLLER_STRIDE + offset,
                                    4, &value);
    *value_out = (uint32_t)value;
    return result;
}

// --- life ------------------------------------------------------------------------------------------------------------

// Resets a descriptor that an abandoned program may have written in part.
static int controllers_check(const fpga_handle_t *handle)
{
    for (enum fpga_direction direction = FPGA_READ; direction < FPGA_DIRECTIONS; direction++) {
        uint32_t level = 0;
        control_write(handle, direction, FPGA_WORDS, 0);
        int result = control_read(handle, direction, FPGA_LEVEL, &level);
        if (result != 0) {
            return result;
        }
        if (level != 0) {
            return -EBUSY;
        }
    }
    return 0;
}

int fpga_open(const struct backend *backend, enum backend_bar memory_bar, enum backend_bar control_bar,
              fpga_handle_t **handle_out)
{
    backend->ops->cost(backend->ctx, BACKEND_COST_CALL, 1);
    if (backend->ops->bar_bytes(backend->ctx, control_bar) < FPGA_CONTROL_BYTES) {
        return -ENODEV;
    }
    fpga_handle_t *handle = calloc(1, sizeof *handle);
    if (handle == NULL) {
        return -ENOMEM;
    }
    handle->backend = *backend;
    handle->memory_bar = memory_bar;
    handle->control_bar = control_bar;
    handle->memory_bytes = backend->ops->bar_bytes(backend->ctx, memory_bar);
    int result = controllers_check(handle);
    if (result != 0) {
        free(handle);
        return result;
    }
    *handle_out = handle;
    return 0;
}

void fpga_close(fpga_handle_t *handle)
{
    free(handle);
}

const struct backend *fpga_backend(const fpga_handle_t *handle)
{
    return &handle->backend;
}

// --- the on-chip memory ----------------------------------------------------------------------------------------------

uint64_t fpga_memory_bytes(const fpga_handle_t *handle)
{
    return handle->memory_bytes;
}

uint64_t fpga_memory_bus_address(const fpga_handle_t *handle, uint64_t offset)
{
    return handle->backend.ops->bar_bus_address(handle->backend.ctx, handle->memory_bar) + offset;
}

static bool lies_in_memory(const fpga_handle_t *handle, uint64_t offset, size_t bytes)
{
    return offset <= handle->memory_bytes && bytes <= handle->memory_bytes - offset;
}

int fpga_store(fpga_handle_t *handle, uint64_t offset, const void *data, size_t bytes)
{
    const struct backend *backend = &handle->backend;
    if (!lies_in_memory(handle, offset, bytes)) {
        return -EINVAL;
    }
    backend->ops->write_combined(backend->ctx, handle->memory_bar, offset, data, bytes);
    backend->ops->fence(backend->ctx);
    return 0;
}

int fpga_load(fpga_handle_t *handle, uint64_t offset, void *data, size_t bytes)
{
    const struct backend *backend = &handle->backend;
    if (!lies_in_memory(handle, offset, bytes)) {
        return -EINVAL;
    }
    return backend->ops->read_combined(backend->ctx, handle->memory_bar, offset, data, bytes);
}

// --- descriptors -----------------------------------------------------------------------------------------------------

static int descriptor_send(fpga_handle_t *handle, enum fpga_direction direction, uint64_t source, uint64_t destination,
                           uint32_t bytes, uint8_t id)
{
    if (bytes % 4 != 0 || bytes > FPGA_BYTES_MAX) {
        return -EINVAL;
    }
    if (handle->in_flight[direction][id]) {
        return -EBUSY;
    }
    if (handle->in_flight_count[direction] == FPGA_DESCRIPTORS) {
        return -EAGAIN;
    }
    const uint32_t words[FPGA_DESCRIPTOR_WORDS] = {
        (uint32_t)source,
        (uint32_t)(source >> 32),
        (uint32_t)destination,
        (uint32_t)(destination >> 32),
        bytes / 4 | (uint32_t)id << FPGA_ID_SHIFT,
    };
    for (unsigned i = 0; i < FPGA_DESCRIPTOR_WORDS; i++) {
        control_write(handle, direction, FPGA_DESCRIPTOR, words[i]);
    }
    handle->in_flight[direction][id] = true;
    handle->in_flight_count[direction]++;
    return 0;
}

int fpga_read(fpga_handle_t *handle, uint64_t source, uint64_t offset, uint32_t bytes, uint8_t id)
{
    return descriptor_send(handle, FPGA_READ, source, offset, bytes, id);
}

int fpga_write(fpga_handle_t *handle, uint64_t offset, uint64_t destination, uint32_t bytes, uint8_t id)
{
    return descriptor_send(handle, FPGA_WRITE, offset, destination, bytes, id);
}

// --- completion ------------------------------------------------------------------------------------------------------

static bool time_is_up(const fpga_handle_t *handle, uint64_t begin_ps, uint64_t timeout_ns)
{
    const struct backend *backend = &handle->backend;
    return timeout_ns != 0 && (backend->ops->time_ps(backend->ctx) - begin_ps) / 1000 >= timeout_ns;
}

int fpga_wait(fpga_handle_t *handle, enum fpga_direction direction, uint8_t id, uint64_t timeout_ns,
              enum fpga_error *error_out)
{
    const struct backend *backend = &handle->backend;
    if (!handle->in_flight[direction][id]) {
        return -ENOENT;
    }
    uint64_t begin_ps = timeout_ns == 0 ? 0 : backend->ops->time_ps(backend->ctx);
    uint32_t status = 0;
    for (;;) {
        int result = control_read(handle, direction, FPGA_STATUS + id * 4u, &status);
        if (result != 0) {
            return result;
        }
        if (status & FPGA_STATUS_DONE) {
            break;
        }
        if (time_is_up(handle, begin_ps, timeout_ns)) {
            return -ETIMEDOUT;
        }
    }
    handle->in_flight[direction][id] = false;
    handle->in_flight_count[direction]--;
    enum fpga_error error = (status & FPGA_STATUS_ERROR_MASK) >> FPGA_STATUS_ERROR_SHIFT;
    if (error_out != NULL) {
        *error_out = error;
    }
    return error == FPGA_OK ? 0 : -EREMOTEIO;
}

const char *fpga_error_name(enum fpga_error error)
{
    switch (error) {
    case FPGA_OK:
        return "no error";
    case FPGA_ERROR_LENGTH:
        return "a length of 0";
    case FPGA_ERROR_MISALIGNED:
        return "an address is no multiple of 4 B";
    case FPGA_ERROR_RANGE:
        return "beyond the on-chip memory";
    case FPGA_ERROR_UR:
        return "a read was answered Unsupported Request";
    case FPGA_ERROR_CA:
        return "a read was answered Completer Abort";
    case FPGA_ERROR_TIMEOUT:
        return "a read was not answered in time";
    case FPGA_ERROR_QUEUE_FULL:
        return "the controller held as many descriptors as it can";
    case FPGA_ERRORS:
        break;
    }
    return "unknown error";
}

int fpga_counter(fpga_handle_t *handle, enum fpga_direction direction, uint8_t id, uint64_t *ns_out)
{
    uint32_t cycles = 0;
    int result = control_read(handle, direction, FPGA_COUNT + id * 4u, &cycles);
    if (result == 0) {
        *ns_out = (uint64_t)cycles * FPGA_CYCLE_NS;
    }
    return result;
}
