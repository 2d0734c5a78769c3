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

uint8_t *region_data(const struct region *region);
uint64_t region_bus_address(const struct region *region);

// Bytes [offset, offset + bytes) become the pattern of `seed`.
void region_fill(const struct region *region, size_t offset, size_t bytes, uint32_t seed);
// They become something that differs from the pattern everywhere, and a page on either side becomes guard.
void region_expect(const struct region *region, size_t offset, size_t bytes, uint32_t seed);
// Pattern and guards as they should be? Otherwise *bad_out is the first byte that is not, counted from offset (negative
// in the guard before).
bool region_check(const struct region *region, size_t offset, size_t bytes, uint32_t seed, long *bad_out);

// Of the sizes that a program goes through; 0 without any.
uint64_t region_largest(const uint64_t *values, uint32_t count);
