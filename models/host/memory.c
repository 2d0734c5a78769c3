#include "models/host/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "models/host/pages.h"
#include "models/host/pinned.h"
#include "sim/kernel/cause.h"
#include "sim/kernel/counter.h"

// The memory below is what a machine reserves for itself; also, no buffer has bus address 0.
#define FIRST_PAGE (1ull << 20)
#define WORD_BYTES 8u
// Of the simulating machine.
#define CACHE_LINE_BYTES 64u
// Waiters by page: a device's write never crosses a page, so only one bucket is searched.
#define BUCKETS 64u

// On the stack of the waiting thread.
struct waiter {
    uint64_t address;
    sim_condition_t written;
    struct waiter *next;
    bool gone; // the page is no longer pinned
};

// A word that a program polls, and the write since the last poll.
struct polled {
    uint64_t address;
    sim_cause_t written; // 0: not since its last poll
    uint64_t written_ps;
    struct polled *next;
};

enum counter { WRITES, WRITTEN_BYTES, READS, READ_BYTES, COUNTERS };

static const struct sim_counter_desc counter_descs[COUNTERS] = {
    [WRITES] = {"writes", "writes", "writes of devices that became visible"},
    [WRITTEN_BYTES] = {"written_bytes", "bytes", "bytes that devices wrote"},
    [READS] = {"reads", "reads", "reads of devices"},
    [READ_BYTES] = {"read_bytes", "bytes", "bytes that devices read"},
};

struct host_memory {
    sim_t *sim;
    char *name;
    uint64_t bytes;
    uint8_t *base;
    struct host_pages pages;
    struct host_pinned pinned; // from `bytes` on
    struct waiter *waiters[BUCKETS];
    struct polled *polled; // while causes are recorded
    uint64_t changes;
    sim_condition_t changed;
    const struct host_watch **watches; // by page; NULL: there never was one
    uint64_t counters[COUNTERS];
};

// --- creation and destruction --------------------------------------------------------------------------------------

enum sim_status host_memory_create(sim_t *sim, const char *name, uint64_t bytes, host_memory_t **memory_out)
{
    if (bytes <= FIRST_PAGE || bytes % HOST_PAGE_BYTES != 0) {
        return SIM_ERR_INVALID;
    }
    host_memory_t *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    enum sim_status status = SIM_ERR_NO_MEMORY;
    memory->sim = sim;
    sim_condition_init(&memory->changed);
    memory->bytes = bytes;
    memory->name = strdup(name);
    if (memory->name == NULL) {
        goto free_memory;
    }
    memory->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory->base == MAP_FAILED) {
        goto free_name;
    }
    status = sim_counters_register(sim, name, counter_descs, memory->counters, COUNTERS);
    if (status != SIM_OK) {
        goto unmap;
    }
    host_pages_init(&memory->pages, FIRST_PAGE, bytes);
    host_pinned_init(&memory->pinned, bytes, bytes);
    *memory_out = memory;
    return SIM_OK;

unmap:
    munmap(memory->base, bytes);
free_name:
    free(memory->name);
free_memory:
    free(memory);
    return status;
}

static size_t watches_bytes(const host_memory_t *memory)
{
    return memory->bytes / HOST_PAGE_BYTES * sizeof *memory->watches;
}

void host_memory_destroy(host_memory_t *memory)
{
    if (memory == NULL) {
        return;
    }
    while (memory->polled != NULL) {
        struct polled *polled = memory->polled;
        memory->polled = polled->next;
        free(polled);
    }
    host_pages_fini(&memory->pages);
    host_pinned_fini(&memory->pinned);
    sim_counters_unregister(memory->sim, memory->counters);
    munmap(memory->base, memory->bytes);
    if (memory->watches != NULL) {
        munmap(memory->watches, watches_bytes(memory));
    }
    free(memory->name);
    free(memory);
}

const char *host_memory_name(const host_memory_t *memory)
{
    return memory->name;
}

void *host_memory_at(host_memory_t *memory, uint64_t bus_address)
{
    if (bus_address >= memory->bytes) {
        sim_panic(memory->name, "bus address 0x%llx is not memory", (unsigned long long)bus_address);
    }
    return memory->base + bus_address;
}

bool host_memory_bus_address(const host_memory_t *memory, const void *pointer, uint64_t *address_out)
{
    uintptr_t offset = (uintptr_t)pointer - (uintptr_t)memory->base;
    if (offset >= memory->bytes) {
        return false;
    }
    *address_out = offset;
    return true;
}

// --- ranges --------------------------------------------------------------------------------------------------------

enum sim_status host_memory_alloc(host_memory_t *memory, uint64_t bytes, uint64_t *bus_address_out)
{
    uint64_t base;
    if (!host_pages_take(&memory->pages, bytes, &base)) {
        return bytes == 0 ? SIM_ERR_INVALID : SIM_ERR_NO_MEMORY;
    }
    // Zeroes the pages without touching those that were never used.
    uint64_t pages_bytes = (bytes + HOST_PAGE_BYTES - 1) & ~(HOST_PAGE_BYTES - 1);
    if (madvise(memory->base + base, pages_bytes, MADV_DONTNEED) != 0) {
        memset(memory->base + base, 0, pages_bytes);
    }
    *bus_address_out = base;
    return SIM_OK;
}

void host_memory_free(host_memory_t *memory, uint64_t bus_address)
{
    if (!host_pages_give(&memory->pages, bus_address)) {
        sim_panic(memory->name, "0x%llx is freed but was not allocated", (unsigned long long)bus_address);
    }
}

// --- memory of programs --------------------------------------------------------------------------------------------

uint64_t host_memory_page_count(uint64_t va, uint64_t bytes)
{
    return bytes == 0 ? 0 : (va + bytes - 1) / HOST_PAGE_BYTES - va / HOST_PAGE_BYTES + 1;
}

enum sim_status host_memory_pin(host_memory_t *memory, const struct host_owner *owner, uint64_t va, uint64_t bytes,
                                uint64_t *pages_out)
{
    if (bytes == 0 || va + bytes - 1 < va) {
        return SIM_ERR_INVALID;
    }
    uint64_t count = host_memory_page_count(va, bytes);
    for (uint64_t i = 0; i < count; i++) {
        if (!host_pinned_add(&memory->pinned, owner, va + i * HOST_PAGE_BYTES, &pages_out[i])) {
            host_memory_unpin(memory, pages_out, i);
            return SIM_ERR_NO_MEMORY;
        }
    }
    return SIM_OK;
}

static struct waiter **bucket_of(host_memory_t *memory, uint64_t address)
{
    return &memory->waiters[address / HOST_PAGE_BYTES % BUCKETS];
}

static void waiters_wake(host_memory_t *memory, uint64_t address, uint32_t bytes)
{
    for (struct waiter *waiter = *bucket_of(memory, address); waiter != NULL; waiter = waiter->next) {
        if (waiter->address < address + bytes && address < waiter->address + WORD_BYTES) {
            sim_condition_signal(memory->sim, &waiter->written);
        }
    }
}

// The page is no longer pinned: the waits for its words end.
static void waiters_leave(host_memory_t *memory, uint64_t page)
{
    for (struct waiter *waiter = *bucket_of(memory, page); waiter != NULL; waiter = waiter->next) {
        if (waiter->address - page < HOST_PAGE_BYTES) {
            waiter->gone = true;
            sim_condition_signal(memory->sim, &waiter->written);
        }
    }
}

void host_memory_unpin(host_memory_t *memory, const uint64_t *pages, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!host_pinned_remove(&memory->pinned, pages[i])) {
            sim_panic(memory->name, "0x%llx is unpinned but was not pinned", (unsigned long long)pages[i]);
        }
        if (!host_pinned_holds(&memory->pinned, pages[i])) {
            waiters_leave(memory, pages[i]);
        }
    }
}

bool host_memory_pinned_address(const host_memory_t *memory, const struct host_owner *owner, uint64_t va,
                                uint64_t *address_out)
{
    return host_pinned_find(&memory->pinned, owner, va, address_out);
}

void host_memory_owner_gone(host_memory_t *memory, const struct host_owner *owner)
{
    host_pinned_owner_gone(&memory->pinned, owner);
}

bool host_memory_load_word(const host_memory_t *memory, uint64_t bus_address, uint64_t *word_out)
{
    if (bus_address < memory->bytes) {
        memcpy(word_out, memory->base + bus_address, sizeof *word_out);
        return true;
    }
    uint64_t va = 0;
    const struct host_owner *owner = host_pinned_owner(&memory->pinned, bus_address, &va);
    return owner != NULL && owner->ops->read(owner->ctx, va, word_out, sizeof *word_out);
}

// --- waiters -------------------------------------------------------------------------------------------------------

bool host_memory_wait_write(host_memory_t *memory, uint64_t address, uint64_t deadline_ps,
                            const struct sim_wait_reason *reason)
{
    if (address % WORD_BYTES != 0) {
        sim_panic(memory->name, "0x%llx is not a word of memory to wait for", (unsigned long long)address);
    }
    if (address >= memory->bytes && !host_pinned_holds(&memory->pinned, address)) {
        return false; // unpinned since the caller last looked
    }
    const struct sim_wait_reason write = {memory->name, "a device's write to 0x%llx", address, 0};
    struct waiter waiter = {.address = address};
    sim_condition_init(&waiter.written);
    struct waiter **bucket = bucket_of(memory, address);
    waiter.next = *bucket;
    *bucket = &waiter;

    bool written = sim_condition_wait(memory->sim, &waiter.written, deadline_ps, reason != NULL ? reason : &write);

    struct waiter **link = bucket;
    while (*link != &waiter) {
        link = &(*link)->next;
    }
    *link = waiter.next;
    return written && !waiter.gone;
}

// --- what programs poll --------------------------------------------------------------------------------------------

void host_memory_polled(host_memory_t *memory, uint64_t address, bool found, uint64_t polled_ps, const char *component)
{
    static const struct sim_work until_poll = {"polling", "until the next poll", false};
    struct polled *polled = memory->polled;
    if (!sim_causes_recorded(memory->sim)) {
        return;
    }
    while (polled != NULL && polled->address != address) {
        polled = polled->next;
    }
    if (polled == NULL) {
        polled = malloc(sizeof *polled);
        if (polled == NULL) {
            sim_panic(memory->name, "no memory to watch 0x%llx", (unsigned long long)address);
        }
        *polled = (struct polled){.address = address, .next = memory->polled};
        memory->polled = polled;
    }
    if (found && polled->written != 0) {
        sim_cause_follow(memory->sim, polled->written, component, &until_poll);
    }
    polled->written = found || polled->written_ps < polled_ps ? 0 : polled->written;
}

static void polled_note(host_memory_t *memory, uint64_t address, uint32_t bytes)
{
    for (struct polled *polled = memory->polled; polled != NULL; polled = polled->next) {
        if (polled->written == 0 && polled->address < address + bytes && address < polled->address + WORD_BYTES) {
            polled->written = sim_cause_now(memory->sim);
            polled->written_ps = sim_now_ps(memory->sim);
        }
    }
}

uint64_t host_memory_changes(const host_memory_t *memory)
{
    return memory->changes;
}

void host_memory_touch(host_memory_t *memory)
{
    memory->changes++;
    sim_condition_signal(memory->sim, &memory->changed);
}

bool host_memory_wait_change(host_memory_t *memory, uint64_t seen, uint64_t deadline_ps)
{
    const struct sim_wait_reason reason = {memory->name, "anything to be written", 0, 0};
    while (memory->changes == seen) {
        if (!sim_condition_wait(memory->sim, &memory->changed, deadline_ps, &reason)) {
            return false;
        }
    }
    return true;
}

void host_memory_wake(host_memory_t *memory, uint64_t address)
{
    waiters_wake(memory, address, WORD_BYTES);
}

// --- memory of outside programs ------------------------------------------------------------------------------------

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + HOST_PAGE_BYTES - 1) & ~(HOST_PAGE_BYTES - 1);
}

enum sim_status host_memory_share(host_memory_t *memory, uint64_t bus_address, uint64_t bytes, int fd)
{
    void *at = mmap(host_memory_at(memory, bus_address), whole_pages(bytes), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED, fd, 0);
    return at == MAP_FAILED ? SIM_ERR_NO_MEMORY : SIM_OK;
}

void host_memory_unshare(host_memory_t *memory, uint64_t bus_address, uint64_t bytes)
{
    void *at = mmap(host_memory_at(memory, bus_address), whole_pages(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (at == MAP_FAILED) {
        sim_panic(memory->name, "0x%llx cannot be made private", (unsigned long long)bus_address);
    }
}

enum sim_status host_memory_watch(host_memory_t *memory, uint64_t bus_address, uint64_t bytes,
                                  const struct host_watch *watch)
{
    if (memory->watches == NULL) {
        void *watches = mmap(NULL, watches_bytes(memory), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (watches == MAP_FAILED) {
            return SIM_ERR_NO_MEMORY;
        }
        memory->watches = watches;
    }
    for (uint64_t at = 0; at < bytes; at += HOST_PAGE_BYTES) {
        memory->watches[(bus_address + at) / HOST_PAGE_BYTES] = watch;
    }
    return SIM_OK;
}

// --- the root complex's side ---------------------------------------------------------------------------------------

static uint32_t within_page(uint64_t address, uint32_t bytes)
{
    uint64_t room = HOST_PAGE_BYTES - address % HOST_PAGE_BYTES;
    return bytes < room ? bytes : (uint32_t)room;
}

static bool claims(void *ctx, uint64_t address, uint64_t bytes)
{
    const host_memory_t *memory = ctx;
    if (address < memory->bytes) {
        return bytes <= memory->bytes - address;
    }
    uint64_t pages = host_memory_page_count(address, bytes), first = address - address % HOST_PAGE_BYTES;
    bool held = pages > 0 && address + bytes - 1 >= address;
    for (uint64_t i = 0; i < pages && held; i++) {
        held = host_pinned_holds(&memory->pinned, first + i * HOST_PAGE_BYTES);
    }
    return held;
}

static bool owner_read(host_memory_t *memory, uint64_t address, uint8_t *data, uint32_t bytes)
{
    while (bytes > 0) {
        uint64_t va = 0;
        uint32_t part = within_page(address, bytes);
        const struct host_owner *owner = host_pinned_owner(&memory->pinned, address, &va);
        if (owner == NULL || !owner->ops->read(owner->ctx, va, data, part)) {
            return false;
        }
        address += part;
        data += part;
        bytes -= part;
    }
    return true;
}

static bool owner_write(host_memory_t *memory, uint64_t address, const uint8_t *data, uint32_t bytes)
{
    while (bytes > 0) {
        uint64_t va = 0;
        uint32_t part = within_page(address, bytes);
        const struct host_owner *owner = host_pinned_owner(&memory->pinned, address, &va);
        if (owner == NULL || !owner->ops->write(owner->ctx, va, data, part)) {
            return false;
        }
        polled_note(memory, address, part);
        waiters_wake(memory, address, part);
        if (owner->ops->written != NULL) {
            owner->ops->written(owner->ctx, va, part);
        }
        address += part;
        data += part;
        bytes -= part;
    }
    return true;
}

static bool read_bytes(void *ctx, uint64_t address, void *data, uint32_t bytes)
{
    host_memory_t *memory = ctx;
    if (address < memory->bytes) {
        memcpy(data, memory->base + address, bytes);
    } else if (!owner_read(memory, address, data, bytes)) {
        return false;
    }
    memory->counters[READS]++;
    memory->counters[READ_BYTES] += bytes;
    return true;
}

static void watch_notify(const host_memory_t *memory, uint64_t address, uint32_t bytes)
{
    const struct host_watch *watch = memory->watches != NULL ? memory->watches[address / HOST_PAGE_BYTES] : NULL;
    if (watch != NULL) {
        watch->written(watch->ctx, address, bytes);
    }
}

static bool write_bytes(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    host_memory_t *memory = ctx;
    sim_progress(memory->sim);
    if (address < memory->bytes) {
        memcpy(memory->base + address, data, bytes);
        polled_note(memory, address, bytes);
        waiters_wake(memory, address, bytes);
        watch_notify(memory, address, bytes);
    } else if (!owner_write(memory, address, data, bytes)) {
        return false;
    }
    memory->counters[WRITES]++;
    memory->counters[WRITTEN_BYTES] += bytes;
    host_memory_touch(memory);
    return true;
}

static void soon(void *ctx, uint64_t address, uint32_t bytes)
{
    const host_memory_t *memory = ctx;
    for (uint32_t i = 0; address < memory->bytes && i < bytes; i += CACHE_LINE_BYTES) {
        __builtin_prefetch(memory->base + address + i);
    }
}

static const void *bytes_at(void *ctx, uint64_t address, uint32_t bytes)
{
    host_memory_t *memory = ctx;
    if (address >= memory->bytes) {
        return NULL;
    }
    memory->counters[READS]++;
    memory->counters[READ_BYTES] += bytes;
    return memory->base + address;
}

const struct pcie_memory_ops host_memory_pcie_ops = {
    .claims = claims, .read = read_bytes, .write = write_bytes, .soon = soon, .at = bytes_at};
