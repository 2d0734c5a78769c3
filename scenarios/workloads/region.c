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

void region_over(void *memory, size_t capacity, struct region *region_out)
{
    *region_out = (struct region){.buffer = {.address = memory}, .capacity = capacity};
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

void region_spoil(const struct region *region, size_t offset, size_t bytes, uint32_t seed)
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

// The stamp behind the one at index; bytes: there is none.
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
