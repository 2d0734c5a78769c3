// The memory of attached processes, as devices access it: at the simulated instant of each access.
//
// A system call for every packet would be most of the cost of a transfer. While no program of its node runs, only
// devices can change the private memory of a process, and all of them access it through this file. So the simulator
// caches pages for that time (an epoch). It reads whole pages, and what devices wrote into them goes to the process
// before one of those programs runs again (attach_memory_settle).
// Memory that another mapping may show as well (shared, or of a file) is not cached. If it is not known whether a page
// is writable, the first write to it goes to the process, which shows it.
#include <stdlib.h>
#include <string.h>

#include "sim/attach/internal.h"
#include "sim/attach/mapping.h"

// Sequential reads fetch more pages at once. A read of STREAM_BYTES is taken as part of a stream: its page is cached at
// once.
enum { CACHED_PAGES = 256, CACHED_BYTES = CACHED_PAGES * ATTACH_PAGE_BYTES };
enum { AHEAD_PAGES = 16, STREAM_BYTES = 128, RANGES = 256 };

struct cached_page {
    uint64_t va;    // of the page
    uint64_t epoch; // of the accesses; if it is not the memory's epoch, nothing is known
    bool touched;   // there was an access
    bool filled;    // the bytes are those of the page
    bool writable;  // a write to it succeeded
    bool dirty;     // part of it is in `ranges`
};

// Bytes to be written to the process.
struct dirty_range {
    uint64_t va;
    uint32_t bytes;
};

// The bytes of an address are at the address modulo CACHED_BYTES, so neighbours are neighbours except at the end.
struct attach_memory {
    uint64_t epoch; // ends when a program of the node runs
    struct attach_mapping mapping;
    struct cached_page pages[CACHED_PAGES];
    struct dirty_range ranges[RANGES];
    unsigned range_count;
    uint64_t next_va; // after the pages that were filled last
    unsigned ahead;   // how many pages that were
    unsigned char bytes[CACHED_BYTES];
};

// --- the process ----------------------------------------------------------------------------------------------------

static size_t process_read_some(struct attach_process *process, uint64_t va, void *data, size_t bytes)
{
    const struct iovec to = {data, bytes}, from = {(void *)(uintptr_t)va, bytes};
    ssize_t done = attach_reach_read(process, &to, &from, 1);
    return done > 0 ? (size_t)done : 0;
}

static bool process_read(struct attach_process *process, uint64_t va, void *data, uint32_t bytes)
{
    return process_read_some(process, va, data, bytes) == bytes;
}

static bool process_write(struct attach_process *process, uint64_t va, const void *data, uint32_t bytes)
{
    const struct iovec from = {(void *)(uintptr_t)data, bytes}, to = {(void *)(uintptr_t)va, bytes};
    return attach_reach_write(process, &from, 1, &to, 1) == (ssize_t)bytes;
}

// --- life -----------------------------------------------------------------------------------------------------------

static struct attach_memory *memory_create(const struct attach_process *process)
{
    struct attach_memory *memory = calloc(1, sizeof *memory);
    if (memory != NULL) {
        memory->epoch = 1;
        attach_mapping_init(&memory->mapping, process->reach.pid);
    }
    return memory;
}

void attach_memory_destroy(struct attach_memory *memory)
{
    if (memory != NULL) {
        attach_mapping_fini(&memory->mapping);
    }
    free(memory);
}

static enum attach_page_kind page_kind(const struct attach_process *process, uint64_t page_va)
{
    return attach_mapping_kind(&process->memory->mapping, process->memory->epoch, page_va);
}

// --- cached pages ---------------------------------------------------------------------------------------------------

static unsigned char *bytes_of(struct attach_memory *memory, uint64_t va)
{
    return memory->bytes + va % CACHED_BYTES;
}

static struct cached_page *slot_of(struct attach_memory *memory, uint64_t va)
{
    return &memory->pages[va / ATTACH_PAGE_BYTES % CACHED_PAGES];
}

// Writes a range page by page, because one of its pages cannot be written any more.
static void range_rescue(struct attach_process *process, const struct dirty_range *range)
{
    uint64_t va = range->va, end = range->va + range->bytes;
    while (va < end) {
        uint64_t next = (va | (ATTACH_PAGE_BYTES - 1)) + 1;
        next = next < end ? next : end;
        (void)process_write(process, va, bytes_of(process->memory, va), (uint32_t)(next - va));
        va = next;
    }
}

static void pages_flush(struct attach_process *process)
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
        for (uint64_t va = range->va & ~(uint64_t)(ATTACH_PAGE_BYTES - 1); va < range->va + range->bytes;
             va += ATTACH_PAGE_BYTES) {
            slot_of(memory, va)->dirty = false;
        }
    }
    if (attach_reach_write(process, from, count, to, count) != total) {
        for (unsigned i = 0; i < count; i++) {
            range_rescue(process, &memory->ranges[i]);
        }
    }
    memory->range_count = 0;
}

// Processes of other nodes have no memory in common with the program that will run.
void attach_memory_settle(const struct attach_server *server, uint32_t node)
{
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        if (process->node == node && process->memory != NULL && !process->ended) {
            pages_flush(process);
            process->memory->epoch++;
        }
    }
}

static void slot_begin(const struct attach_process *process, struct cached_page *page, uint64_t page_va)
{
    uint64_t epoch = process->memory->epoch;
    if (page->va != page_va || page->epoch != epoch) {
        *page = (struct cached_page){.va = page_va, .epoch = epoch};
    }
}

// NULL: the page is not cached.
static struct cached_page *page_of(struct attach_process *process, uint64_t va)
{
    if (process->server->options->functional) { // programs run at the same time
        return NULL;
    }
    if (process->memory == NULL) {
        process->memory = memory_create(process);
    }
    if (process->memory == NULL) {
        return NULL;
    }
    uint64_t page_va = va & ~(uint64_t)(ATTACH_PAGE_BYTES - 1);
    struct cached_page *page = slot_of(process->memory, va);
    if (page->dirty && page->va != page_va) {
        pages_flush(process);
    }
    slot_begin(process, page, page_va);
    return page;
}

// How many pages to fill: if reads are sequential also the next ones, as far as they replace nothing.
static unsigned fill_count(const struct attach_process *process, uint64_t page_va)
{
    struct attach_memory *memory = process->memory;
    unsigned count = 1, twice = 2 * memory->ahead, most = twice < AHEAD_PAGES ? twice : AHEAD_PAGES;
    most = page_va == memory->next_va ? most : 1;
    while (count < most) {
        uint64_t va = page_va + count * ATTACH_PAGE_BYTES;
        const struct cached_page *page = slot_of(memory, va);
        bool has = page->va == va && page->epoch == process->memory->epoch && page->filled;
        if (va % CACHED_BYTES == 0 || page->dirty || has || page_kind(process, va) == ATTACH_PAGE_OTHER) {
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
    if (page_kind(process, page_va) == ATTACH_PAGE_OTHER) {
        return false;
    }
    unsigned count = fill_count(process, page_va);
    size_t done = process_read_some(process, page_va, bytes_of(memory, page_va), (size_t)count * ATTACH_PAGE_BYTES);
    for (unsigned i = 0; i < done / ATTACH_PAGE_BYTES; i++) {
        slot_begin(process, page + i, page_va + i * ATTACH_PAGE_BYTES);
        page[i].filled = true;
    }
    memory->next_va = page_va + count * ATTACH_PAGE_BYTES;
    memory->ahead = count;
    return page->filled;
}

// Notes that bytes have been written into the page.
static void dirty_note(struct attach_process *process, struct cached_page *page, uint64_t va, uint32_t bytes)
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

// The first write to a page in this epoch. Ordinary memory accepts it; other memory is written to find out. false:
// refused.
static bool first_write(struct attach_process *process, struct cached_page *page, uint64_t va, const void *data,
                        uint32_t bytes)
{
    enum attach_page_kind kind = page_kind(process, page->va);
    if (kind != ATTACH_PAGE_ORDINARY) {
        if (!process_write(process, va, data, bytes)) {
            return false;
        }
        kind = page_kind(process, page->va);
    }
    page->writable = kind != ATTACH_PAGE_OTHER;
    page->filled = page->filled && page->writable; // other threads may have written to it as well
    return true;
}

static bool memory_write(void *ctx, uint64_t va, const void *data, uint32_t bytes)
{
    struct attach_process *process = ctx;
    struct cached_page *page = page_of(process, va);
    if (page == NULL) {
        return process_write(process, va, data, bytes);
    }
    if (!page->touched && !page->filled &&
        bytes < STREAM_BYTES) { // it may be the only read: one system call instead of two
        page->touched = true;
        return process_write(process, va, data, bytes);
    }
    page->touched = true;
    if (!page->writable && !first_write(process, page, va, data, bytes)) {
        return false;
    }
    if (page->writable) {
        memcpy(bytes_of(process->memory, va), data, bytes);
        dirty_note(process, page, va, bytes);
    }
    return true;
}

const struct host_owner_ops attach_memory_ops = {memory_read, memory_write, attach_own_memory_written};
