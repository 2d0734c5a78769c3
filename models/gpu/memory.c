// Device memory: allocation of pages, and threads that wait for writes.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "models/gpu/internal.h"

enum { WORD_BYTES = 8 };

// On the stack of the waiting thread.
struct gpu_waiter {
    uint64_t address;
    sim_condition_t written;
    struct gpu_waiter *next;
};

// --- allocations -----------------------------------------------------------------------------------------------------

enum sim_status gpu_memory_alloc(gpu_t *gpu, uint64_t bytes, uint64_t *address_out)
{
    if (bytes == 0) {
        return SIM_ERR_INVALID;
    }
    uint64_t size = gpu_pages_bytes(bytes), base = GPU_PAGE_BYTES;
    if (size < bytes) {
        return SIM_ERR_NO_MEMORY;
    }
    struct gpu_allocation **link = &gpu->allocations;
    while (*link != NULL && (*link)->base - base < size) {
        base = (*link)->base + gpu_pages_bytes((*link)->bytes);
        link = &(*link)->next;
    }
    struct gpu_allocation *allocation = gpu->config.memory_bytes - base < size ? NULL : malloc(sizeof *allocation);
    if (allocation == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    *allocation = (struct gpu_allocation){.base = base, .bytes = bytes, .next = *link};
    *link = allocation;
    *address_out = base;
    return SIM_OK;
}

uint64_t gpu_memory_free_bytes(const gpu_t *gpu)
{
    uint64_t bytes = gpu->config.memory_bytes - GPU_PAGE_BYTES; // no buffer has address 0
    for (const struct gpu_allocation *i = gpu->allocations; i != NULL; i = i->next) {
        bytes -= gpu_pages_bytes(i->bytes);
    }
    return bytes;
}

// Whole pages of the simulating machine; returns them to it.
static void pages_zero(uint8_t *begin, uint64_t bytes)
{
    if (madvise(begin, bytes, MADV_DONTNEED) != 0) {
        memset(begin, 0, bytes);
    }
}

// The link to the allocation that begins there, or to NULL.
static struct gpu_allocation **allocation_link(gpu_t *gpu, uint64_t address)
{
    struct gpu_allocation **link = &gpu->allocations;
    while (*link != NULL && (*link)->base != address) {
        link = &(*link)->next;
    }
    return link;
}

enum sim_status gpu_memory_share(gpu_t *gpu, uint64_t address, int fd)
{
    struct gpu_allocation *allocation = *allocation_link(gpu, address);
    if (allocation == NULL) {
        return SIM_ERR_NOT_FOUND;
    }
    static const uint8_t zeros[GPU_PAGE_BYTES];
    uint8_t *memory = gpu->memory + address;
    uint64_t bytes = gpu_pages_bytes(allocation->bytes);
    for (uint64_t at = 0; at < bytes; at += GPU_PAGE_BYTES) { // pages of the file are zero already
        if (memcmp(memory + at, zeros, sizeof zeros) != 0 &&
            pwrite(fd, memory + at, GPU_PAGE_BYTES, (off_t)at) != (ssize_t)GPU_PAGE_BYTES) {
            return SIM_ERR_NO_MEMORY;
        }
    }
    if (mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        return SIM_ERR_NO_MEMORY;
    }
    allocation->shared = true;
    return SIM_OK;
}

static void unshare(const gpu_t *gpu, const struct gpu_allocation *allocation)
{
    void *at = mmap(gpu->memory + allocation->base, gpu_pages_bytes(allocation->bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (at == MAP_FAILED) {
        sim_panic(gpu->name, "0x%llx cannot be made private", (unsigned long long)allocation->base);
    }
}

enum sim_status gpu_memory_free(gpu_t *gpu, uint64_t address)
{
    struct gpu_allocation **link = allocation_link(gpu, address);
    struct gpu_allocation *allocation = *link;
    if (allocation == NULL) {
        return SIM_ERR_NOT_FOUND;
    }
    if (allocation->uses > 0) {
        return SIM_ERR_BUSY;
    }
    if (allocation->shared) {
        unshare(gpu, allocation);
    } else {
        // The contents of later allocations do not depend on earlier ones.
        pages_zero(gpu->memory + address, gpu_pages_bytes(allocation->bytes));
    }
    *link = allocation->next;
    free(allocation);
    return SIM_OK;
}

struct gpu_allocation *gpu_memory_holder(const gpu_t *gpu, uint64_t address, uint64_t bytes)
{
    for (struct gpu_allocation *allocation = gpu->allocations; allocation != NULL; allocation = allocation->next) {
        uint64_t offset = address - allocation->base; // an address below the base wraps to a large offset
        if (offset < allocation->bytes) {
            return bytes <= allocation->bytes - offset ? allocation : NULL;
        }
    }
    return NULL;
}

void *gpu_memory_at(gpu_t *gpu, uint64_t address, uint64_t bytes)
{
    return gpu_memory_holder(gpu, address, bytes) == NULL ? NULL : gpu->memory + address;
}

bool gpu_memory_find(const gpu_t *gpu, uint64_t address, uint64_t *base_out, uint64_t *bytes_out)
{
    const struct gpu_allocation *allocation = gpu_memory_holder(gpu, address, 1);
    if (allocation == NULL) {
        return false;
    }
    *base_out = allocation->base;
    *bytes_out = allocation->bytes;
    return true;
}

// --- writes ----------------------------------------------------------------------------------------------------------

void gpu_memory_touched(gpu_t *gpu, uint64_t address, uint64_t bytes)
{
    sim_progress(gpu->sim);
    for (struct gpu_waiter *waiter = gpu->waiters; waiter != NULL; waiter = waiter->next) {
        if (waiter->address < address + bytes && address < waiter->address + WORD_BYTES) {
            sim_condition_signal(gpu->sim, &waiter->written);
        }
    }
}

void gpu_memory_store(gpu_t *gpu, uint64_t address, const void *data, uint64_t bytes)
{
    memcpy(gpu->memory + address, data, bytes);
    gpu_memory_touched(gpu, address, bytes);
}

void gpu_memory_fill(gpu_t *gpu, uint64_t address, uint8_t value, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = (address + page - 1) / page * page;
    uint64_t behind = (address + bytes) / page * page;
    const struct gpu_allocation *holder = gpu_memory_holder(gpu, address, bytes);
    bool shared = holder == NULL || holder->shared; // a file's pages would come back with their old contents
    if (value == 0 && first < behind && !shared) {
        memset(gpu->memory + address, 0, first - address);
        pages_zero(gpu->memory + first, behind - first);
        memset(gpu->memory + behind, 0, address + bytes - behind);
    } else {
        memset(gpu->memory + address, value, bytes);
    }
    gpu_memory_touched(gpu, address, bytes);
}

bool gpu_memory_wait_write(gpu_t *gpu, uint64_t address, uint64_t deadline_ps, const struct sim_wait_reason *reason)
{
    if (address % WORD_BYTES != 0 || gpu_memory_holder(gpu, address, 1) == NULL) {
        sim_panic(gpu->name, "0x%llx is not a word of allocated memory to wait for", (unsigned long long)address);
    }
    const struct sim_wait_reason write = {gpu->name, "a write to 0x%llx", address, 0};
    struct gpu_waiter waiter = {.address = address, .next = gpu->waiters};
    sim_condition_init(&waiter.written);
    gpu->waiters = &waiter;

    bool written = sim_condition_wait(gpu->sim, &waiter.written, deadline_ps, reason != NULL ? reason : &write);

    struct gpu_waiter **link = &gpu->waiters;
    while (*link != &waiter) {
        link = &(*link)->next;
    }
    *link = waiter.next;
    return written;
}
