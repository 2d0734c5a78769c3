// The bus pages of pages of a program's own memory. Private to the room; memory.h describes them.
//
// A page of an owner has one bus page however often it is pinned. Bus pages are assigned in the order of pinning; a
// freed one is reused only after the others have been used, so that a late access of a device finds no memory instead
// of another program's.
#pragma once

#include "models/host/memory.h"

#define HOST_PINNED_NONE UINT32_MAX

struct host_pinned_page;

struct host_pinned {
    uint64_t base; // bus address of the first
    uint32_t limit, used, capacity;
    struct host_pinned_page *pages; // [capacity]; the first `used` have been assigned at least once
    uint32_t *buckets;              // by owner and virtual page; [bucket_count], a power of two or 0
    uint32_t bucket_count, live;    // live: pages with an owner
    uint32_t free_first, free_last; // a queue
};

void host_pinned_init(struct host_pinned *pinned, uint64_t base, uint64_t bytes);
void host_pinned_fini(struct host_pinned *pinned);

// For the page that holds va. false: no memory, or no bus page is left.
bool host_pinned_add(struct host_pinned *pinned, const struct host_owner *owner, uint64_t va, uint64_t *bus_out);
bool host_pinned_remove(struct host_pinned *pinned, uint64_t bus); // false: it is not pinned
// Bus address of va. false: it is not pinned.
bool host_pinned_find(const struct host_pinned *pinned, const struct host_owner *owner, uint64_t va, uint64_t *bus_out);
bool host_pinned_holds(const struct host_pinned *pinned, uint64_t bus);
// The owner of a pinned page, or NULL, and the virtual address of that byte.
const struct host_owner *host_pinned_owner(const struct host_pinned *pinned, uint64_t bus, uint64_t *va_out);
void host_pinned_owner_gone(struct host_pinned *pinned, const struct host_owner *owner);
