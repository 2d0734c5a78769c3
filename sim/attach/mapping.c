#include "sim/attach/mapping.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

// Linux 6.11 and later, include/uapi/linux/fs.h; Debian 12's headers are older.
struct procmap_query {
    uint64_t size, query_flags, query_addr;
    uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
    uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
    uint64_t vma_name_addr, build_id_addr;
};
enum { QUERY_NUMBER = 17 };
enum vma_flag { VMA_READABLE = 1, VMA_WRITABLE = 2, VMA_SHARED = 8 };

static int proc_open(pid_t pid, const char *file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    return open(path, O_RDONLY | O_CLOEXEC);
}

void attach_mapping_init(struct attach_mapping *mapping, pid_t pid)
{
    *mapping = (struct attach_mapping){.maps = proc_open(pid, "maps"), .pagemap = proc_open(pid, "pagemap")};
}

void attach_mapping_fini(struct attach_mapping *mapping)
{
    if (mapping->maps >= 0) {
        close(mapping->maps);
    }
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
    struct procmap_query query = {.size = sizeof query, .query_addr = page_va};
    if (mapping->maps < 0 || ioctl(mapping->maps, _IOWR('f', QUERY_NUMBER, struct procmap_query), &query) != 0) {
        return false;
    }
    uint64_t rights = query.vma_flags & (VMA_READABLE | VMA_WRITABLE | VMA_SHARED);
    mapping->ordinary = query.inode == 0 && rights == (VMA_READABLE | VMA_WRITABLE);
    mapping->begin_va = query.vma_start;
    mapping->end_va = query.vma_end;
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
