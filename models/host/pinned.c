#include "models/host/pinned.h"

#include <stdlib.h>

#include "models/host/pages.h"

#define NONE        HOST_PINNED_NONE
#define PAGES_FIRST 64u

struct host_pinned_page {
    const struct host_owner *owner; // NULL: it has ended
    uint64_t va;
    uint32_t references; // 0: free
    uint32_t next;       // in its bucket, or in the queue of free ones
};

void host_pinned_init(struct host_pinned *pinned, uint64_t base, uint64_t bytes)
{
    uint64_t pages = bytes / HOST_PAGE_BYTES;
    *pinned = (struct host_pinned){
        .base = base, .limit = pages < NONE ? (uint32_t)pages : NONE, .free_first = NONE, .free_last = NONE};
}

void host_pinned_fini(struct host_pinned *pinned)
{
    free(pinned->pages);
    free(pinned->buckets);
}

// --- by owner and virtual page -------------------------------------------------------------------------------------
// The slot of an entry in the table depends on pointers; nothing else does.

static uint32_t *bucket_of(const struct host_pinned *pinned, const struct host_owner *owner, uint64_t va)
{
    uint64_t mixed = (va / HOST_PAGE_BYTES + (uintptr_t)owner) * UINT64_C(0x9e3779b97f4a7c15);
    return &pinned->buckets[(mixed >> 32) & (pinned->bucket_count - 1)];
}

static void entry_link(struct host_pinned *pinned, uint32_t index)
{
    struct host_pinned_page *page = &pinned->pages[index];
    uint32_t *bucket = bucket_of(pinned, page->owner, page->va);
    page->next = *bucket;
    *bucket = index;
    pinned->live++;
}

static void entry_unlink(struct host_pinned *pinned, uint32_t index)
{
    const struct host_pinned_page *page = &pinned->pages[index];
    uint32_t *link = bucket_of(pinned, page->owner, page->va);
    while (*link != index) {
        link = &pinned->pages[*link].next;
    }
    *link = page->next;
    pinned->live--;
}

static uint32_t entry_find(const struct host_pinned *pinned, const struct host_owner *owner, uint64_t va)
{
    if (pinned->live == 0) {
        return NONE;
    }
    uint32_t index = *bucket_of(pinned, owner, va);
    while (index != NONE && (pinned->pages[index].owner != owner || pinned->pages[index].va != va)) {
        index = pinned->pages[index].next;
    }
    return index;
}

static bool buckets_grow(struct host_pinned *pinned)
{
    uint32_t count = pinned->bucket_count == 0 ? PAGES_FIRST : 2 * pinned->bucket_count;
    uint32_t *buckets = malloc(count * sizeof *buckets);
    if (buckets == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        buckets[i] = NONE;
    }
    free(pinned->buckets);
    pinned->buckets = buckets;
    pinned->bucket_count = count;
    pinned->live = 0;
    for (uint32_t i = 0; i < pinned->used; i++) {
        if (pinned->pages[i].references > 0 && pinned->pages[i].owner != NULL) {
            entry_link(pinned, i);
        }
    }
    return true;
}

// --- pages ---------------------------------------------------------------------------------------------------------

static uint32_t free_pop(struct host_pinned *pinned)
{
    uint32_t index = pinned->free_first;
    if (index != NONE) {
        pinned->free_first = pinned->pages[index].next;
        pinned->free_last = pinned->free_first == NONE ? NONE : pinned->free_last;
    }
    return index;
}

static void free_push(struct host_pinned *pinned, uint32_t index)
{
    pinned->pages[index].next = NONE;
    if (pinned->free_first == NONE) {
        pinned->free_first = index;
    } else {
        pinned->pages[pinned->free_last].next = index;
    }
    pinned->free_last = index;
}

// Takes a new page while the table has room, then the one that has been free for longest; only then the table grows.
static uint32_t page_take(struct host_pinned *pinned)
{
    if (pinned->used == pinned->capacity || pinned->used == pinned->limit) {
        uint32_t index = free_pop(pinned);
        if (index != NONE || pinned->used == pinned->limit) {
            return index;
        }
        uint32_t capacity = pinned->capacity == 0 ? PAGES_FIRST : 2 * pinned->capacity;
        struct host_pinned_page *pages = realloc(pinned->pages, capacity * sizeof *pages);
        if (pages == NULL) {
            return NONE;
        }
        pinned->pages = pages;
        pinned->capacity = capacity;
    }
    return pinned->used++;
}

bool host_pinned_add(struct host_pinned *pinned, const struct host_owner *owner, uint64_t va, uint64_t *bus_out)
{
    va &= ~(HOST_PAGE_BYTES - 1);
    uint32_t index = entry_find(pinned, owner, va);
    if (index == NONE) {
        if (pinned->live == pinned->bucket_count && !buckets_grow(pinned)) {
            return false;
        }
        index = page_take(pinned);
        if (index == NONE) {
            return false;
        }
        pinned->pages[index] = (struct host_pinned_page){.owner = owner, .va = va};
        entry_link(pinned, index);
    }
    pinned->pages[index].references++;
    *bus_out = pinned->base + index * HOST_PAGE_BYTES;
    return true;
}

// The page of a pinned bus address, else NULL.
static struct host_pinned_page *page_at(const struct host_pinned *pinned, uint64_t bus)
{
    uint64_t index = (bus - pinned->base) / HOST_PAGE_BYTES; // an address below the base wraps to a large index
    return index < pinned->used && pinned->pages[index].references > 0 ? &pinned->pages[index] : NULL;
}

bool host_pinned_remove(struct host_pinned *pinned, uint64_t bus)
{
    struct host_pinned_page *page = page_at(pinned, bus);
    if (page == NULL) {
        return false;
    }
    page->references--;
    if (page->references == 0) {
        uint32_t index = (uint32_t)(page - pinned->pages);
        if (page->owner != NULL) {
            entry_unlink(pinned, index);
        }
        free_push(pinned, index);
    }
    return true;
}

bool host_pinned_find(const struct host_pinned *pinned, const struct host_owner *owner, uint64_t va, uint64_t *bus_out)
{
    uint32_t index = entry_find(pinned, owner, va & ~(HOST_PAGE_BYTES - 1));
    if (index == NONE) {
        return false;
    }
    *bus_out = pinned->base + index * HOST_PAGE_BYTES + va % HOST_PAGE_BYTES;
    return true;
}

bool host_pinned_holds(const struct host_pinned *pinned, uint64_t bus)
{
    return page_at(pinned, bus) != NULL;
}

const struct host_owner *host_pinned_owner(const struct host_pinned *pinned, uint64_t bus, uint64_t *va_out)
{
    const struct host_pinned_page *page = page_at(pinned, bus);
    if (page == NULL) {
        return NULL;
    }
    *va_out = page->va + bus % HOST_PAGE_BYTES;
    return page->owner;
}

void host_pinned_owner_gone(struct host_pinned *pinned, const struct host_owner *owner)
{
    for (uint32_t i = 0; i < pinned->used; i++) {
        if (pinned->pages[i].references > 0 && pinned->pages[i].owner == owner) {
            entry_unlink(pinned, i);
            pinned->pages[i].owner = NULL;
        }
    }
}
