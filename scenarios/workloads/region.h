// A buffer in pinned host memory, or in a GPU's memory, with guards around it, a pattern that differs from that of
// other buffers, and a check of both. A buffer in a GPU is filled and checked through an image in host memory. Private
// to the room.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs-shim/backend/backend.h"

#define REGION_HOST (-1)

struct region {
    struct backend_buffer buffer; // the image, or the buffer itself
    size_t capacity;
    int gpu; // its number, or REGION_HOST: in host memory
    uint32_t queue;
    uint64_t device_address, window_offset, bus_address; // in the GPU, of the first guard
};

// The data begins at a page. gpu: the number of the node's GPU, whose memory is pinned for the board; or REGION_HOST.
int region_alloc_in(const struct backend *backend, int gpu, size_t capacity, struct region *region_out);
int region_alloc(const struct backend *backend, size_t capacity, struct region *region_out);
// Copies the image to the GPU, or from there. Nothing to do in host memory.
int region_push(const struct backend *backend, const struct region *region);
int region_pull(const struct backend *backend, const struct region *region);
void region_free(const struct backend *backend, struct region *region);
// A region over existing memory of region_memory_bytes. It has no bus address and is not freed.
size_t region_memory_bytes(size_t capacity);
void region_over(void *memory, size_t capacity, struct region *region_out);

uint8_t *region_data(const struct region *region);
uint64_t region_bus_address(const struct region *region);
// For a region in a GPU: the data's offset in the GPU's window, for the CPU.
uint64_t region_window_offset(const struct region *region);

// Writes the pattern of `seed` to bytes [offset, offset + bytes).
void region_fill(const struct region *region, size_t offset, size_t bytes, uint32_t seed);
// Writes the inverse of the pattern there, and guards to a page on either side.
void region_expect(const struct region *region, size_t offset, size_t bytes, uint32_t seed);
// Are pattern and guards right? Otherwise *bad_out is the first wrong byte, counted from offset (negative in the guard
// before it).
bool region_check(const struct region *region, size_t offset, size_t bytes, uint32_t seed, long *bad_out);

// --- several messages in one region ----------------------------------------------------------------------------------

// Writes guards to the pages around the region; checks them.
void region_guard(const struct region *region);
bool region_is_guarded(const struct region *region);
// Writes the inverse of the pattern to the bytes.
void region_invert(const struct region *region, size_t offset, size_t bytes, uint32_t seed);
// Do the bytes hold the pattern? Otherwise *bad_out is the first wrong one, from offset on.
bool region_holds(const struct region *region, size_t offset, size_t bytes, uint32_t seed, long *bad_out);
// Marks a message of the pattern: its first word, one in each page, and its last differ by `stamp`, so that every
// repetition differs from the previous one. bytes is a multiple of 4.
void region_stamp(const struct region *region, size_t offset, size_t bytes, uint32_t seed, uint32_t stamp);
bool region_is_stamped(const struct region *region, size_t offset, size_t bytes, uint32_t seed, uint32_t stamp,
                       long *bad_out);

// The largest of the sizes that a program uses; 0 without any.
uint64_t region_largest(const uint64_t *values, uint32_t count);
