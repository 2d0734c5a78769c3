// A buffer in pinned host memory, or in a GPU's memory, with guards around it, a pattern that no other place has, and a
// check of both. What is filled and checked of a buffer in a GPU is an image of it in host memory. Private to the room.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs-shim/backend/backend.h"

#define REGION_HOST (-1)

struct region {
    struct backend_buffer buffer; // the image, or the buffer itself
    size_t capacity;
    int gpu; // REGION_HOST: in host memory
    uint32_t queue;
    uint64_t device_address, window_offset, bus_address; // in the GPU, from the first guard on
};

// The data begins on a page. gpu: the node's GPU of that number, pinned so that the board reaches it; REGION_HOST.
int region_alloc_in(const struct backend *backend, int gpu, size_t capacity, struct region *region_out);
int region_alloc(const struct backend *backend, size_t capacity, struct region *region_out);
// The image goes to the GPU, or comes from there. Nothing to do in host memory.
int region_push(const struct backend *backend, const struct region *region);
int region_pull(const struct backend *backend, const struct region *region);
void region_free(const struct backend *backend, struct region *region);
// Over memory of somebody else's, of region_memory_bytes. It has no bus address and is not freed.
size_t region_memory_bytes(size_t capacity);
void region_over(void *memory, size_t capacity, struct region *region_out);

uint8_t *region_data(const struct region *region);
uint64_t region_bus_address(const struct region *region);
// Of a region in a GPU: the data's place in the GPU's window, for the CPU.
uint64_t region_window_offset(const struct region *region);

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
