// The memory of attached processes, as devices reach it: at the simulated instant of each access.
//
// A system call for every packet would be most of a transfer's cost. While no program runs its memory cannot change but
// by devices, so pages that are accessed more than once are kept here, and what was written into them goes to the
// process before any program runs again (attach_memory_settle). The first access to a page asks the process, and so
// finds out whether it has it.
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "sim/attach/internal.h"

#define PAGE_BYTES 4096u
// A read of so much is one of many: the page is kept at once.
enum { CACHED_PAGES = 256, STREAM_BYTES = 128 };

struct cached_page {
    uint64_t va;    // of the page
    uint64_t epoch; // of the accesses; others than the server's: nothing is known
    bool filled, writable;
    uint32_t dirty_from, dirty_to; // [from, to) is to be written; to 0: nothing
    unsigned char bytes[PAGE_BYTES];
};

struct attach_memory {
    struct cached_page pages[CACHED_PAGES];
    struct cached_page *dirty[CACHED_PAGES];
    unsigned dirty_count;
};

// --- the process ----------------------------------------------------------------------------------------------------

static bool process_read(const struct attach_process *process, uint64_t va, void *data, uint32_t bytes)
{
    const struct iovec to = {data, bytes}, from = {(void *)(uintptr_t)va, bytes};
    return process_vm_readv(process->pid, &to, 1, &from, 1, 0) == (ssize_t)bytes;
}

static bool process_write(const struct attach_process *process, uint64_t va, const void *data, uint32_t bytes)
{
    const struct iovec from = {(void *)(uintptr_t)data, bytes}, to = {(void *)(uintptr_t)va, bytes};
    return process_vm_writev(process->pid, &from, 1, &to, 1, 0) == (ssize_t)bytes;
}

// --- what is kept ---------------------------------------------------------------------------------------------------

static void pages_flush(struct attach_process *process)
{
    struct attach_memory *memory = process->memory;
    struct iovec from[CACHED_PAGES], to[CACHED_PAGES];
    for (unsigned i = 0; i < memory->dirty_count; i++) {
        struct cached_page *page = memory->dirty[i];
        size_t bytes = page->dirty_to - page->dirty_from;
        from[i] = (struct iovec){page->bytes + page->dirty_from, bytes};
        to[i] = (struct iovec){(void *)(uintptr_t)(page->va + page->dirty_from), bytes};
        page->dirty_to = 0;
    }
    if (memory->dirty_count != 0) {
        (void)process_vm_writev(process->pid, from, memory->dirty_count, to, memory->dirty_count, 0);
        memory->dirty_count = 0;
    }
}

// bytes: of a read that tells of others behind it; else 0. NULL: the access is to be made in the process.
static struct cached_page *page_of(struct attach_process *process, uint64_t va, uint32_t bytes)
{
    uint64_t epoch = process->server->memory_epoch, page_va = va & ~(uint64_t)(PAGE_BYTES - 1);
    if (process->server->options->functional) { // programs run meanwhile
        return NULL;
    }
    if (process->memory == NULL) {
        process->memory = calloc(1, sizeof *process->memory);
    }
    if (process->memory == NULL) {
        return NULL;
    }
    struct cached_page *page = &process->memory->pages[page_va / PAGE_BYTES % CACHED_PAGES];
    if (page->epoch != epoch || page->va != page_va) {
        if (page->dirty_to != 0) {
            pages_flush(process);
        }
        page->va = page_va;
        page->epoch = epoch;
        page->filled = page->writable = false;
        if (bytes < STREAM_BYTES) {
            return NULL;
        }
    }
    page->filled = page->filled || process_read(process, page_va, page->bytes, PAGE_BYTES);
    return page->filled ? page : NULL;
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

// --- devices --------------------------------------------------------------------------------------------------------
// Accesses do not cross pages.

static bool memory_read(void *ctx, uint64_t va, void *data, uint32_t bytes)
{
    struct attach_process *process = ctx;
    const struct cached_page *page = page_of(process, va, bytes);
    if (page == NULL) {
        return process_read(process, va, data, bytes);
    }
    memcpy(data, page->bytes + va % PAGE_BYTES, bytes);
    return true;
}

static bool memory_write(void *ctx, uint64_t va, const void *data, uint32_t bytes)
{
    struct attach_process *process = ctx;
    struct cached_page *page = page_of(process, va, 0);
    uint32_t from = (uint32_t)(va % PAGE_BYTES), to = from + bytes;
    if (page == NULL) {
        return process_write(process, va, data, bytes);
    }
    if (!page->writable) { // a page's first write tells
        page->writable = process_write(process, va, data, bytes);
        page->filled = false;
        return page->writable;
    }
    memcpy(page->bytes + from, data, bytes);
    if (page->dirty_to == 0) {
        process->memory->dirty[process->memory->dirty_count++] = page;
        page->dirty_from = from;
        page->dirty_to = to;
    }
    page->dirty_from = from < page->dirty_from ? from : page->dirty_from;
    page->dirty_to = to > page->dirty_to ? to : page->dirty_to;
    return true;
}

const struct host_owner_ops attach_memory_ops = {memory_read, memory_write, attach_own_memory_written};
