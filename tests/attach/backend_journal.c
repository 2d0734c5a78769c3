// "records": a device and 2048 regions, one more record than the room between two attach calls. "regions", with --check:
// memory that is freed, resized or unmapped in and beside registered regions; prints how many mistakes there are.
// "watch": accesses to one byte of watched memory; prints which are noticed, or "none": the machine has no breakpoints.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "backend.h"

enum { REGIONS = 2048, PAGE = 4096 };

int backend_records(const struct backend *backend)
{
    struct journal_record record = {.call = JOURNAL_OPEN_DEVICE, .device = {.device = "ibsim0"}};
    backend->ops->journal->note(backend->ctx, &record);
    for (uint32_t i = 0; i < REGIONS; i++) {
        record = (struct journal_record){.call = JOURNAL_REG_MR, .mr = {.bytes = PAGE, .handle = i}};
        backend->ops->journal->note(backend->ctx, &record);
    }
    return 0;
}

static void region(const struct backend *backend, const char *memory, size_t bytes, bool registered)
{
    backend->ops->journal->memory(backend->ctx, memory, bytes, registered);
}

int backend_regions(const struct backend *backend)
{
    // No mistake: memory that only touches a region, and memory that stays where it is.
    char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *memory = malloc(PAGE);
    if (pages == MAP_FAILED || memory == NULL) {
        return 3;
    }
    region(backend, pages + PAGE, PAGE, true);
    (void)munmap(pages, PAGE);
    (void)munmap(pages + 2 * (size_t)PAGE, PAGE);
    region(backend, pages + PAGE, PAGE, false);
    region(backend, memory, PAGE, true);
    char *same = realloc(memory, PAGE);
    if (same == NULL) {
        return 4;
    }
    region(backend, same, PAGE, false);
    free(same);
    // Two mistakes: two regions of the same memory.
    memory = malloc(2 * (size_t)PAGE);
    if (memory == NULL) {
        return 5;
    }
    region(backend, memory, PAGE, true);
    region(backend, memory + PAGE, PAGE, true);
    free(memory);
    // One: a region's page goes.
    pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    region(backend, pages, PAGE, true);
    (void)munmap(pages, PAGE);
    printf("3\n");
    return 0;
}

// 0: the access was not noticed; -1: the memory cannot be watched.
static int noticed(const struct backend *backend, volatile char *memory, size_t bytes, size_t at)
{
    const struct backend_journal_ops *journal = backend->ops->journal;
    uint64_t instruction;
    attach_library_enter();
    int watch = journal->watch(backend->ctx, (const char *)(uintptr_t)memory, bytes);
    attach_library_leave();
    memory[at]++;
    attach_library_enter();
    bool hit = journal->unwatch(backend->ctx, watch, &instruction);
    attach_library_leave();
    return watch < 0 ? -1 : hit;
}

int backend_watch(const struct backend *backend)
{
    static _Alignas(64) char memory[128];
    static const size_t lengths[] = {64, 61, 9, 8, 3};
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t bytes = lengths[i];
        int first = noticed(backend, memory, bytes, 0), last = noticed(backend, memory, bytes, bytes - 1);
        if (first < 0 || last < 0) {
            printf("none\n");
            return 0;
        }
        printf("%zu: %d %d %d\n", bytes, first, last, noticed(backend, memory, bytes, bytes));
    }
    return 0;
}
