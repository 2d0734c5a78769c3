#include "scenarios/workloads/region.h"

#include <errno.h>
#include <string.h>

#define GUARD_BYTES 4096u
#define GUARD_VALUE 0x5c

int region_alloc(const struct backend *backend, size_t capacity, struct region *region_out)
{
    struct region region = {.capacity = capacity, .gpu = REGION_HOST};
    int error = backend->ops->alloc_pinned(backend->ctx, capacity + 2 * GUARD_BYTES, &region.buffer);
    if (error == 0) {
        *region_out = region;
    }
    return error;
}

static int gpu_alloc(const struct backend *backend, struct region *region)
{
    const struct backend_gpu_ops *gpu = backend->ops->gpu;
    unsigned number = (unsigned)region->gpu;
    if (gpu == NULL || number >= gpu->count(backend->ctx)) {
        return -ENODEV;
    }
    size_t bytes = region_memory_bytes(region->capacity);
    int error = gpu->alloc(backend->ctx, number, bytes, &region->device_address);
    if (error != 0) {
        return error;
    }
    error = gpu->pin(backend->ctx, number, region->device_address, bytes, &region->window_offset, &region->bus_address);
    if (error != 0) {
        goto free_memory;
    }
    error = gpu->queue_create(backend->ctx, number, &region->queue);
    if (error != 0) {
        goto unpin;
    }
    return 0;

unpin:
    (void)gpu->unpin(backend->ctx, number, region->window_offset);
free_memory:
    (void)gpu->free(backend->ctx, number, region->device_address);
    return error;
}

int region_alloc_in(const struct backend *backend, int gpu, size_t capacity, struct region *region_out)
{
    struct region region;
    int error = region_alloc(backend, capacity, &region);
    if (error == 0 && gpu != REGION_HOST) {
        region.gpu = gpu;
        error = gpu_alloc(backend, &region);
        if (error != 0) {
            backend->ops->free_pinned(backend->ctx, &region.buffer);
        }
    }
    if (error == 0) {
        *region_out = region;
    }
    return error;
}

static int image_move(const struct backend *backend, const struct region *region, enum backend_gpu_work_kind kind)
{
    const struct backend_gpu_ops *gpu = backend->ops->gpu;
    const struct backend_gpu_work work = {
        .kind = kind,
        .device_address = region->device_address,
        .other_address = region->buffer.bus_address,
        .bytes = region_memory_bytes(region->capacity),
        .rows = 1,
    };
    uint64_t ticket;
    if (region->gpu == REGION_HOST) {
        return 0;
    }
    int error = gpu->submit(backend->ctx, (unsigned)region->gpu, region->queue, &work, &ticket);
    return error == 0 ? gpu->wait(backend->ctx, (unsigned)region->gpu, region->queue, ticket) : error;
}

int region_push(const struct backend *backend, const struct region *region)
{
    return image_move(backend, region, BACKEND_GPU_TO_DEVICE);
}

int region_pull(const struct backend *backend, const struct region *region)
{
    return image_move(backend, region, BACKEND_GPU_TO_HOST);
}

void region_free(const struct backend *backend, struct region *region)
{
    if (region->buffer.address != NULL && region->gpu != REGION_HOST) {
        unsigned number = (unsigned)region->gpu;
        (void)backend->ops->gpu->queue_destroy(backend->ctx, number, region->queue);
        (void)backend->ops->gpu->unpin(backend->ctx, number, region->window_offset);
        (void)backend->ops->gpu->free(backend->ctx, number, region->device_address);
    }
    if (region->buffer.address != NULL) {
        backend->ops->free_pinned(backend->ctx, &region->buffer);
        region->buffer.address = NULL;
    }
}

void region_over(void *memory, size_t capacity, struct region *region_out)
{
    *region_out = (struct region){.buffer = {.address = memory}, .capacity = capacity, .gpu = REGION_HOST};
}

size_t region_memory_bytes(size_t capacity)
{
    return capacity + 2 * GUARD_BYTES;
}

uint8_t *region_data(const struct region *region)
{
    return (uint8_t *)region->buffer.address + GUARD_BYTES;
}

uint64_t region_bus_address(const struct region *region)
{
    return (region->gpu == REGION_HOST ? region->buffer.bus_address : region->bus_address) + GUARD_BYTES;
}

uint64_t region_window_offset(const struct region *region)
{
    return region->window_offset + GUARD_BYTES;
}

// Differs between neighbouring bytes, between pages, and between seeds.
static uint8_t pattern_byte(size_t index, uint32_t seed)
{
    return (uint8_t)(index * 13 + (index >> 8) * 101 + (index >> 16) * 37 + seed * 89 + 7);
}

void region_fill(const struct region *region, size_t offset, size_t bytes, uint32_t seed)
{
    uint8_t *data = region_data(region) + offset;
    for (size_t i = 0; i < bytes; i++) {
        data[i] = pattern_byte(i, seed);
    }
}

void region_expect(const struct region *region, size_t offset, size_t bytes, uint32_t seed)
{
    uint8_t *data = region_data(region) + offset;
    memset(data - GUARD_BYTES, GUARD_VALUE, GUARD_BYTES);
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)~pattern_byte(i, seed);
    }
    memset(data + bytes, GUARD_VALUE, GUARD_BYTES - offset);
}

bool region_check(const struct region *region, size_t offset, size_t bytes, uint32_t seed, long *bad_out)
{
    const uint8_t *data = region_data(region) + offset;
    long before = -(long)GUARD_BYTES, after = (long)(bytes + GUARD_BYTES - offset);
    for (long i = before; i < after; i++) {
        bool inside = i >= 0 && i < (long)bytes;
        uint8_t expected = inside ? pattern_byte((size_t)i, seed) : GUARD_VALUE;
        if (data[i] != expected) {
            *bad_out = i;
            return false;
        }
    }
    return true;
}

// --- several messages in one region ----------------------------------------------------------------------------------

void region_guard(const struct region *region)
{
    memset(region_data(region) - GUARD_BYTES, GUARD_VALUE, GUARD_BYTES);
    memset(region_data(region) + region->capacity, GUARD_VALUE, GUARD_BYTES);
}

bool region_is_guarded(const struct region *region)
{
    const uint8_t *before = region_data(region) - GUARD_BYTES, *behind = region_data(region) + region->capacity;
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        if (before[i] != GUARD_VALUE || behind[i] != GUARD_VALUE) {
            return false;
        }
    }
    return true;
}

void region_invert(const struct region *region, size_t offset, size_t bytes, uint32_t seed)
{
    uint8_t *data = region_data(region) + offset;
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)~pattern_byte(i, seed);
    }
}

bool region_holds(const struct region *region, size_t offset, size_t bytes, uint32_t seed, long *bad_out)
{
    const uint8_t *data = region_data(region) + offset;
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] != pattern_byte(i, seed)) {
            *bad_out = (long)i;
            return false;
        }
    }
    return true;
}

#define STAMP_EVERY_BYTES 4096u

static uint32_t pattern_word(size_t index, uint32_t seed)
{
    uint32_t word = 0;
    for (unsigned i = 0; i < sizeof word; i++) {
        word |= (uint32_t)pattern_byte(index + i, seed) << 8 * i;
    }
    return word;
}

// The position of the stamp after the one at index; bytes: there is none.
static size_t stamp_next(size_t index, size_t bytes)
{
    size_t last = bytes - sizeof(uint32_t);
    size_t next = index + STAMP_EVERY_BYTES;
    return index == last ? bytes : next < last ? next : last;
}

void region_stamp(const struct region *region, size_t offset, size_t bytes, uint32_t seed, uint32_t stamp)
{
    for (size_t i = 0; i < bytes; i = stamp_next(i, bytes)) {
        uint32_t word = pattern_word(i, seed) ^ stamp;
        memcpy(region_data(region) + offset + i, &word, sizeof word);
    }
}

bool region_is_stamped(const struct region *region, size_t offset, size_t bytes, uint32_t seed, uint32_t stamp,
                       long *bad_out)
{
    for (size_t i = 0; i < bytes; i = stamp_next(i, bytes)) {
        uint32_t word;
        memcpy(&word, region_data(region) + offset + i, sizeof word);
        if (word != (pattern_word(i, seed) ^ stamp)) {
            *bad_out = (long)i;
            return false;
        }
    }
    return true;
}

uint64_t region_largest(const uint64_t *values, uint32_t count)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        most = values[i] > most ? values[i] : most;
    }
    return most;
}
