#include "models/host/pages.h"

#include <stdlib.h>

void host_pages_init(struct host_pages *pages, uint64_t first, uint64_t end)
{
    *pages = (struct host_pages){.first = first, .end = end};
}

void host_pages_fini(struct host_pages *pages)
{
    while (pages->ranges != NULL) {
        struct host_range *range = pages->ranges;
        pages->ranges = range->next;
        free(range);
    }
}

bool host_pages_take(struct host_pages *pages, uint64_t bytes, uint64_t *base_out)
{
    uint64_t size = (bytes + HOST_PAGE_BYTES - 1) & ~(HOST_PAGE_BYTES - 1);
    if (size == 0 || size < bytes) {
        return false;
    }
    uint64_t base = pages->first;
    struct host_range **link = &pages->ranges;
    while (*link != NULL && (*link)->base - base < size) {
        base = (*link)->base + (*link)->bytes;
        link = &(*link)->next;
    }
    if (base > pages->end || pages->end - base < size) {
        return false;
    }
    struct host_range *range = malloc(sizeof *range);
    if (range == NULL) {
        return false;
    }
    *range = (struct host_range){base, size, *link};
    *link = range;
    *base_out = base;
    return true;
}

bool host_pages_give(struct host_pages *pages, uint64_t base)
{
    for (struct host_range **link = &pages->ranges; *link != NULL; link = &(*link)->next) {
        struct host_range *range = *link;
        if (range->base == base) {
            *link = range->next;
            free(range);
            return true;
        }
    }
    return false;
}
