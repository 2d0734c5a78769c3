#include "sim/attach/mapping.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void attach_mapping_init(struct attach_mapping *mapping, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/pagemap", (int)pid);
    *mapping = (struct attach_mapping){.pagemap = open(path, O_RDONLY | O_CLOEXEC)};
    plat_maps_open(&mapping->maps, pid);
}

void attach_mapping_fini(struct attach_mapping *mapping)
{
    plat_maps_close(&mapping->maps);
    if (mapping->pagemap >= 0) {
        close(mapping->pagemap);
    }
}

// An older kernel does not know this query; then groups of pages are queried.
static bool ordinary(struct attach_mapping *mapping, uint64_t epoch, uint64_t page_va)
{
    if (mapping->epoch == epoch && page_va >= mapping->begin_va && page_va < mapping->end_va) {
        return mapping->ordinary;
    }
    struct plat_map map;
    if (!plat_maps_ask(&mapping->maps, page_va, &map)) {
        return false;
    }
    mapping->ordinary = map.inode == 0 && map.readable && map.writable && !map.shared;
    mapping->begin_va = map.begin;
    mapping->end_va = map.end;
    mapping->epoch = epoch;
    return mapping->ordinary;
}

// Linux, Documentation/admin-guide/mm/pagemap.rst: bit 63, the page is present; bit 61, it belongs to a file or is
// shared.
static void group_ask(const struct attach_mapping *mapping, struct attach_page_group *group)
{
    uint64_t entries[ATTACH_GROUP_PAGES];
    off_t at = (off_t)(group->va / ATTACH_PAGE_BYTES * sizeof *entries);
    ssize_t done = pread(mapping->pagemap, entries, sizeof entries, at);
    group->present = group->private = 0;
    for (unsigned i = 0; done > 0 && i < (size_t)done / sizeof *entries; i++) {
        unsigned present = entries[i] >> 63 & 1, shared = entries[i] >> 61 & 1;
        group->present |= (uint16_t)(present << i);
        group->private |= (uint16_t)((present & ~shared) << i);
    }
}

static bool page_private(struct attach_mapping *mapping, uint64_t epoch, uint64_t page_va)
{
    uint64_t number = page_va / ATTACH_PAGE_BYTES;
    uint64_t group_va = page_va - number % ATTACH_GROUP_PAGES * ATTACH_PAGE_BYTES;
    struct attach_page_group *group = &mapping->groups[number / ATTACH_GROUP_PAGES % ATTACH_GROUPS];
    unsigned bit = 1u << number % ATTACH_GROUP_PAGES;
    if (group->epoch != epoch || group->va != group_va || (group->present & bit) == 0) {
        group->va = group_va;
        group->epoch = epoch;
        group_ask(mapping, group);
    }
    return (group->private & bit) != 0;
}

enum attach_page_kind attach_mapping_kind(struct attach_mapping *mapping, uint64_t epoch, uint64_t page_va)
{
    if (ordinary(mapping, epoch, page_va)) {
        return ATTACH_PAGE_ORDINARY;
    }
    return page_private(mapping, epoch, page_va) ? ATTACH_PAGE_PRIVATE : ATTACH_PAGE_OTHER;
}
