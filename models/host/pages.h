// The allocator of page ranges of a node's memory. First fit, in address order; private to the room.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HOST_PAGE_BYTES 4096ull

struct host_range {
    uint64_t base, bytes;
    struct host_range *next;
};

struct host_pages {
    uint64_t first, end;       // ranges lie in [first, end)
    struct host_range *ranges; // allocated, by address
};

void host_pages_init(struct host_pages *pages, uint64_t first, uint64_t end);
void host_pages_fini(struct host_pages *pages);

// Rounds bytes up to pages. Takes the lowest gap that is large enough; false: there is none, or bytes is 0.
bool host_pages_take(struct host_pages *pages, uint64_t bytes, uint64_t *base_out);
// false: no range begins at base.
bool host_pages_give(struct host_pages *pages, uint64_t base);
