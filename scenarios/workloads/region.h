// A buffer in pinned memory with guards around it, a pattern that no other place has, and a check of both. Private to
// the room.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs-shim/backend.h"

struct region {
    struct backend_buffer buffer;
    size_t capacity;
};

// The data begins on a page.
int region_alloc(const struct backend *backend, size_t capacity, struct region *region_out);
void region_free(const struct backend *backend, struct region *region);
// Over memory of somebody else's, of region_memory_bytes. It has no bus address and is not freed.
size_t region_memory_bytes(size_t capacity);
void region_over(void *memory, size_t capacity, struct region *region_out);

uint8_t *region_data(const struct region *region);
uint64_t region_bus_address(const struct region *region);

// Bytes [offset, offset + bytes) become the pattern of `seed`.
void region_fill(const struct region *region, size_t offset, size_t bytes, uint32_t seed);
// They become something that differs from the pattern everywhere, and a page on either side becomes guard.
void region_expect(const struct region *region, size_t offset, size_t bytes, uint32_t seed);
// Pattern and guards as they should be? Otherwise *bad_out is the first byte that is not, counted from offset (negative
// in the guard before).
bool region_check(const struct region *region, size_t offset, size_t bytes, uint32_t seed, long *bad_out);

// --- several messages in one region ----------------------------------------------------------------------------------

// The pages around the region become guard; are they still?
void region_guard(const struct region *region);
bool region_is_guarded(const struct region *region);
// The bytes become something that differs from the pattern everywhere.
void region_spoil(const struct region *region, size_t offset, size_t bytes, uint32_t seed);
// Do they hold the pattern? Otherwise *bad_out is the first that does not, from offset on.
bool region_holds(const struct region *region, size_t offset, size_t bytes, uint32_t seed, long *bad_out);
// Marks a message of the pattern: its first word, one in each page, and its last differ by `stamp`, so that every
// repetition can be told from the one before. bytes is a multiple of 4.
void region_stamp(const struct region *region, size_t offset, size_t bytes, uint32_t seed, uint32_t stamp);
bool region_is_stamped(const struct region *region, size_t offset, size_t bytes, uint32_t seed, uint32_t stamp,
                       long *bad_out);

// Of the sizes that a program goes through; 0 without any.
uint64_t region_largest(const uint64_t *values, uint32_t count);
