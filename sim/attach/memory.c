// The memory of attached processes, as devices reach it: at the simulated instant of each access.
//
// A system call for every packet would be most of a transfer's cost. While no program runs, private memory of a process
// cannot change but by devices that reach it here. So its pages are kept in the simulator for as long (an epoch): read
// as a whole, and what was written into them goes to the process before any program runs again (attach_memory_settle).
// The first access to a page, and its first write, ask the process, and so find out whether it may be.
// Memory that another mapping may show as well (shared, or of a file) is not kept.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sim/attach/internal.h"

#define PAGE_BYTES 4096u
// Pages are asked about by groups. Reads in a row take more pages at once. A read of STREAM_BYTES is one of many: the
// page is kept at once.
enum { CACHED_PAGES = 256, CACHED_BYTES = CACHED_PAGES * PAGE_BYTES };
enum { GROUP_PAGES = 16, GROUPS = CACHED_PAGES / GROUP_PAGES, AHEAD_PAGES = 16, STREAM_BYTES = 128, RANGES = 256 };

struct cached_page {
    uint64_t va;    // of the page
    uint64_t epoch; // of the accesses; others than the server's: nothing is known
    bool touched;   // there was an access
    bool filled;    // the bytes are the page's
    bool writable;  // it took a write
    bool dirty;     // part of it is in a range
};

// Kinds of pages, a bit for each. Those that are not in memory are neither.
struct page_group {
    uint64_t va, epoch;
    uint16_t known, private;
};

// To be written to the process.
struct dirty_range {
    uint64_t va;
    uint32_t bytes;
};

// The bytes of an address are at the address modulo their number, so neighbours are neighbours but at the end.
struct attach_memory {
    int pagemap;
    struct cached_page pages[CACHED_PAGES];
    struct page_group groups[GROUPS];
    struct dirty_range ranges[RANGES];
    unsigned range_count;
    uint64_t next_va; // behind the pages that were filled last
    unsigned char bytes[CACHED_BYTES];
};

// --- the process ----------------------------------------------------------------------------------------------------

static size_t process_read_some(const struct attach_process *process, uint64_t va, void *data, size_t bytes)
{
    const struct iovec to = {data, bytes}, from = {(void *)(uintptr_t)va, bytes};
    ssize_t done = process_vm_readv(process->pid, &to, 1, &from, 1, 0);
    return done > 0 ? (size_t)done : 0;
}

static bool process_read(const struct attach_process *process, uint64_t va, void *data, uint32_t bytes)
{
    return process_read_some(process, va, data, bytes) == bytes;
}

static bool process_write(const struct attach_process *process, uint64_t va, const void *data, uint32_t bytes)
{
    const struct iovec from = {(void *)(uintptr_t)data, bytes}, to = {(void *)(uintptr_t)va, bytes};
    return process_vm_writev(process->pid, &from, 1, &to, 1, 0) == (ssize_t)bytes;
}

// --- life -----------------------------------------------------------------------------------------------------------

static struct attach_memory *memory_create(const struct attach_process *process)
{
    struct attach_memory *memory = calloc(1, sizeof *memory);
    if (memory != NULL) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/pagemap", (int)process->pid);
        memory->pagemap = open(path, O_RDONLY | O_CLOEXEC);
    }
    return memory;
}

void attach_memory_destroy(struct attach_memory *memory)
{
    if (memory != NULL && memory->pagemap >= 0) {
        close(memory->pagemap);
    }
    free(memory);
}

// --- what may be kept -----------------------------------------------------------------------------------------------

// Linux, Documentation/admin-guide/mm/pagemap.rst: bit 63, the page is present; bit 61, it is of a file or shared.
static void group_ask(const struct attach_memory *memory, struct page_group *group)
{
    uint64_t entries[GROUP_PAGES];
    off_t at = (off_t)(group->va / PAGE_BYTES * sizeof *entries);
    ssize_t done = pread(memory->pagemap, entries, sizeof entries, at);
    group->known = group->private = 0;
    for (unsigned i = 0; done > 0 && i < (size_t)done / sizeof *entries; i++) {
        unsigned present = entries[i] >> 63 & 1, shared = entries[i] >> 61 & 1;
        group->known |= (uint16_t)(present << i);
        group->private |= (uint16_t)((present & ~shared) << i);
    }
}

// Is it in memory, and nowhere else to be seen?
static bool page_private(const struct attach_process *process, uint64_t page_va)
{
    struct attach_memory *memory = process->memory;
    uint64_t number = page_va / PAGE_BYTES, epoch = process->server->memory_epoch;
    uint64_t group_va = page_va & ~(uint64_t)(GROUP_PAGES * PAGE_BYTES - 1);
    struct page_group *group = &memory->groups[number / GROUP_PAGES % GROUPS];
    unsigned bit = 1u << number % GROUP_PAGES;
    if (group->epoch != epoch || group->va != group_va || (group->known & bit) == 0) {
        group->va = group_va;
        group->epoch = epoch;
        group_ask(memory, group);
    }
    return (group->private & bit) != 0;
}

// --- what is kept ---------------------------------------------------------------------------------------------------

static unsigned char *bytes_of(struct attach_memory *memory, uint64_t va)
{
    return memory->bytes + va % CACHED_BYTES;
}

static struct cached_page *slot_of(struct attach_memory *memory, uint64_t va)
{
    return &memory->pages[va / PAGE_BYTES % CACHED_PAGES];
}

// Page by page: one of them cannot be written any more.
static void range_rescue(const struct attach_process *process, const struct dirty_range *range)
{
    uint64_t va = range->va, end = range->va + range->bytes;
    while (va < end) {
        uint64_t next = (va | (PAGE_BYTES - 1)) + 1;
        next = next < end ? next : end;
        (void)process_write(process, va, bytes_of(process->memory, va), (uint32_t)(next - va));
        va = next;
    }
}

static void pages_flush(const struct attach_process *process)
{
    struct attach_memory *memory = process->memory;
    struct iovec from[RANGES], to[RANGES];
    unsigned count = memory->range_count;
    ssize_t total = 0;
    if (count == 0) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        const struct dirty_range *range = &memory->ranges[i];
        from[i] = (struct iovec){bytes_of(memory, range->va), range->bytes};
        to[i] = (struct iovec){(void *)(uintptr_t)range->va, range->bytes};
        total += range->bytes;
        for (uint64_t va = range->va & ~(uint64_t)(PAGE_BYTES - 1); va < range->va + range->bytes; va += PAGE_BYTES) {
            slot_of(memory, va)->dirty = false;
        }
    }
    if (process_vm_writev(process->pid, from, count, to, count, 0) != total) {
        for (unsigned i = 0; i < count; i++) {
            range_rescue(process, &memory->ranges[i]);
        }
    }
    memory->range_count = 0;
}

void attach_memory_settle(struct attach_server *server)
{
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        if (process->memory != NULL && !process->ended) {
            pages_flush(process);
        }
    }
    server->memory_epoch++;
}

static void slot_begin(const struct attach_process *process, struct cached_page *page, uint64_t page_va)
{
    uint64_t epoch = process->server->memory_epoch;
    if (page->va != page_va || page->epoch != epoch) {
        *page = (struct cached_page){.va = page_va, .epoch = epoch};
    }
}

// NULL: nothing is kept.
static struct cached_page *page_of(struct attach_process *process, uint64_t va)
{
    if (process->server->options->functional) { // programs run meanwhile
        return NULL;
    }
    if (process->memory == NULL) {
        process->memory = memory_create(process);
    }
    if (process->memory == NULL) {
        return NULL;
    }
    uint64_t page_va = va & ~(uint64_t)(PAGE_BYTES - 1);
    struct cached_page *page = slot_of(process->memory, va);
    if (page->dirty && page->va != page_va) {
        pages_flush(process);
    }
    slot_begin(process, page, page_va);
    return page;
}

// How many pages are to be filled: of reads in a row those that come next as well, where that disturbs nothing.
static unsigned fill_count(const struct attach_process *process, uint64_t page_va)
{
    struct attach_memory *memory = process->memory;
    unsigned count = 1, most = page_va == memory->next_va ? AHEAD_PAGES : 1;
    while (count < most) {
        uint64_t va = page_va + count * PAGE_BYTES;
        const struct cached_page *page = slot_of(memory, va);
        bool has = page->va == va && page->epoch == process->server->memory_epoch && page->filled;
        if (va % CACHED_BYTES == 0 || page->dirty || has || !page_private(process, va)) {
            break;
        }
        count++;
    }
    return count;
}

static bool page_fill(struct attach_process *process, struct cached_page *page)
{
    struct attach_memory *memory = process->memory;
    uint64_t page_va = page->va;
    if (!page_private(process, page_va)) {
        return false;
    }
    unsigned count = fill_count(process, page_va);
    size_t done = process_read_some(process, page_va, bytes_of(memory, page_va), (size_t)count * PAGE_BYTES);
    for (unsigned i = 0; i < done / PAGE_BYTES; i++) {
        slot_begin(process, page + i, page_va + i * PAGE_BYTES);
        page[i].filled = true;
    }
    memory->next_va = page_va + count * PAGE_BYTES;
    return page->filled;
}

// The bytes have been written into the page.
static void dirty_note(const struct attach_process *process, struct cached_page *page, uint64_t va, uint32_t bytes)
{
    struct attach_memory *memory = process->memory;
    struct dirty_range *last = memory->range_count > 0 ? &memory->ranges[memory->range_count - 1] : NULL;
    page->dirty = true;
    if (last != NULL && last->va + last->bytes == va && va % CACHED_BYTES != 0) {
        last->bytes += bytes;
        return;
    }
    memory->ranges[memory->range_count++] = (struct dirty_range){va, bytes};
    if (memory->range_count == RANGES) {
        pages_flush(process);
    }
}

// --- devices --------------------------------------------------------------------------------------------------------
// Accesses do not cross pages.

static bool memory_read(void *ctx, uint64_t va, void *data, uint32_t bytes)
{
    struct attach_process *process = ctx;
    struct cached_page *page = page_of(process, va);
    if (page == NULL) {
        return process_read(process, va, data, bytes);
    }
    if (!page->filled) {
        bool keep = page->touched || bytes >= STREAM_BYTES;
        page->touched = true;
        if (page->dirty) {
            pages_flush(process);
        }
        if (!keep || !page_fill(process, page)) {
            return process_read(process, va, data, bytes);
        }
    }
    memcpy(data, bytes_of(process->memory, va), bytes);
    return true;
}

static bool memory_write(void *ctx, uint64_t va, const void *data, uint32_t bytes)
{
    struct attach_process *process = ctx;
    struct cached_page *page = page_of(process, va);
    if (page == NULL || !page->writable) { // a page's first write tells
        if (!process_write(process, va, data, bytes)) {
            return false;
        }
        if (page == NULL) {
            return true;
        }
        page->touched = true;
        page->writable = page_private(process, page->va);
        if (!page->writable) {
            return true;
        }
    }
    memcpy(bytes_of(process->memory, va), data, bytes);
    dirty_note(process, page, va, bytes);
    return true;
}

// No bus address: nobody polls a word there.
static void memory_written(void *ctx, uint64_t va, uint32_t bytes)
{
    (void)va;
    attach_memory_written(ctx, UINT64_MAX - bytes, bytes);
}

const struct host_owner_ops attach_memory_ops = {memory_read, memory_write, memory_written};
