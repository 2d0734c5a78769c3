#include "models/host/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "models/host/pages.h"
#include "sim/kernel/counter.h"

// Below lies what a machine keeps for itself; and so that a bus address of 0 is never a buffer's.
#define FIRST_PAGE (1ull << 20)
#define WORD_BYTES 8u
// Of the machine that simulates.
#define CACHE_LINE_BYTES 64u
// Waiters by page: a device's write never crosses one, so it looks into one bucket.
#define BUCKETS 64u

// On the stack of the thread that waits.
struct waiter {
    uint64_t address;
    sim_condition_t written;
    struct waiter *next;
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
    struct waiter *waiters[BUCKETS];
    const struct host_watch **watches; // of each page; NULL: there never was one
    uint64_t counters[COUNTERS];
};

// --- life ----------------------------------------------------------------------------------------------------------

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
    host_pages_fini(&memory->pages);
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

// --- waiters -------------------------------------------------------------------------------------------------------

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

bool host_memory_wait_write(host_memory_t *memory, uint64_t address, uint64_t deadline_ps,
                            const struct sim_wait_reason *reason)
{
    if (address % WORD_BYTES != 0 || address >= memory->bytes) {
        sim_panic(memory->name, "0x%llx is not a word of memory to wait for", (unsigned long long)address);
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
    return written;
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

static bool claims(void *ctx, uint64_t address, uint64_t bytes)
{
    const host_memory_t *memory = ctx;
    return address < memory->bytes && bytes <= memory->bytes - address;
}

static void read_bytes(void *ctx, uint64_t address, void *data, uint32_t bytes)
{
    host_memory_t *memory = ctx;
    memory->counters[READS]++;
    memory->counters[READ_BYTES] += bytes;
    memcpy(data, memory->base + address, bytes);
}

static void write_bytes(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    host_memory_t *memory = ctx;
    memory->counters[WRITES]++;
    memory->counters[WRITTEN_BYTES] += bytes;
    memcpy(memory->base + address, data, bytes);
    sim_progress(memory->sim);
    waiters_wake(memory, address, bytes);
    const struct host_watch *watch = memory->watches != NULL ? memory->watches[address / HOST_PAGE_BYTES] : NULL;
    if (watch != NULL) {
        watch->written(watch->ctx, address, bytes);
    }
}

static void soon(void *ctx, uint64_t address, uint32_t bytes)
{
    const host_memory_t *memory = ctx;
    for (uint32_t i = 0; i < bytes; i += CACHE_LINE_BYTES) {
        __builtin_prefetch(memory->base + address + i);
    }
}

const struct pcie_memory_ops host_memory_pcie_ops = {
    .claims = claims, .read = read_bytes, .write = write_bytes, .soon = soon};
