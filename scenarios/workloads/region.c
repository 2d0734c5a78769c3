#include "scenarios/workloads/region.h"

#include <string.h>

#define GUARD_BYTES 4096u
#define GUARD_VALUE 0x5c

int region_alloc(const struct backend *backend, size_t capacity, struct region *region_out)
{
    struct region region = {.capacity = capacity};
    int error = backend->ops->alloc_pinned(backend->ctx, capacity + 2 * GUARD_BYTES, &region.buffer);
    if (error == 0) {
        *region_out = region;
    }
    return error;
}

void region_free(const struct backend *backend, struct region *region)
{
    if (region->buffer.address != NULL) {
        backend->ops->free_pinned(backend->ctx, &region->buffer);
        region->buffer.address = NULL;
    }
}

uint8_t *region_data(const struct region *region)
{
    return (uint8_t *)region->buffer.address + GUARD_BYTES;
}

uint64_t region_bus_address(const struct region *region)
{
    return region->buffer.bus_address + GUARD_BYTES;
}

// Differs between neighbours, between pages, and between seeds.
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

uint64_t region_largest(const uint64_t *values, uint32_t count)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        most = values[i] > most ? values[i] : most;
    }
    return most;
}
