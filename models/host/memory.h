// Host memory of a node: a sparse range of real memory that devices and cores read and write, with waiters on words.
//
// Bus addresses start at 0. Untouched pages read as zero and cost nothing. Implements pcie_memory_ops. Above them lie
// the bus pages of memory that belongs to programs (below), in the order of pinning. Leaves out: caches and DRAM timing
// (their latency is part of the root complex and the core).
#pragma once

#include "models/pcie/root_complex.h"
#include "sim/kernel/sim.h"
#include "sim/kernel/thread.h"

typedef struct host_memory host_memory_t;

// SIM_ERR_INVALID: bytes is no multiple of a page, or not more than the first MiB, which is never allocated.
enum sim_status host_memory_create(sim_t *sim, const char *name, uint64_t bytes, host_memory_t **memory_out);
void host_memory_destroy(host_memory_t *memory);

extern const struct pcie_memory_ops host_memory_pcie_ops; // ctx: host_memory_t *

const char *host_memory_name(const host_memory_t *memory);
// The simulator's own pointer to a bus address, and the reverse.
void *host_memory_at(host_memory_t *memory, uint64_t bus_address);
bool host_memory_bus_address(const host_memory_t *memory, const void *pointer, uint64_t *address_out);

// Page-aligned, zeroed ranges for drivers. SIM_ERR_NO_MEMORY when no range is left; freed ranges are used again.
enum sim_status host_memory_alloc(host_memory_t *memory, uint64_t bytes, uint64_t *bus_address_out);
void host_memory_free(host_memory_t *memory, uint64_t bus_address);

// While causes are recorded (sim/kernel/cause.h): the program of `component` polled the 8 bytes there. If it finds
// something that a device wrote since its last empty poll, that write causes its next action. polled_ps: time of the
// poll, if that is before now.
void host_memory_polled(host_memory_t *memory, uint64_t address, bool found, uint64_t polled_ps, const char *component);

// Sleeps the calling thread until a device's write touches the 8 bytes at address (a multiple of 8), or until
// deadline_ps, or until the word's page is no longer pinned: false. reason: what a message names as the thread's wait;
// NULL: the write.
bool host_memory_wait_write(host_memory_t *memory, uint64_t address, uint64_t deadline_ps,
                            const struct sim_wait_reason *reason);
// Threads that wait for that word check it again, though nothing has written it.
void host_memory_wake(host_memory_t *memory, uint64_t address);

// --- memory of outside programs ------------------------------------------------------------------------------------

// An allocated range becomes the contents of fd from its beginning on, until it is private again (and zero).
enum sim_status host_memory_share(host_memory_t *memory, uint64_t bus_address, uint64_t bytes, int fd);
void host_memory_unshare(host_memory_t *memory, uint64_t bus_address, uint64_t bytes);

// Notified of every write of a device to the pages of an allocated range. NULL: no longer.
struct host_watch {
    void (*written)(void *ctx, uint64_t bus_address, uint32_t bytes);
    void *ctx;
};
enum sim_status host_memory_watch(host_memory_t *memory, uint64_t bus_address, uint64_t bytes,
                                  const struct host_watch *watch);

// For loops that poll many words: the number of writes by devices to any address and of calls of host_memory_touch; and
// sleeping until that number is not `seen` any more, or until deadline_ps: false.
uint64_t host_memory_changes(const host_memory_t *memory);
bool host_memory_wait_change(host_memory_t *memory, uint64_t seen, uint64_t deadline_ps);
// A core stored what another core may be waiting for in this way.
void host_memory_touch(host_memory_t *memory);

// --- memory of programs ----------------------------------------------------------------------------------------------
// Memory of a program other than pinned buffers: heap, static data, stacks. A driver pins pages of it, and from then on
// devices reach them at bus addresses. The bytes stay with their owner, which is called at the simulated instant of each
// access. An owner is identified by its address, which stays the same while pages of it are pinned.
//
// If a program gives memory back to the system while it is pinned, the owner answers false (a process that has lost the
// page) or, within the simulator's own process, the program has a use after free. On a real machine the pages would
// stay, unreachable to the program, until they are unpinned.

struct host_owner_ops {
    // Within a page. false: there is no such memory, or no longer. A device's read is then answered with Unsupported
    // Request, its write is dropped; the root complex counts both.
    bool (*read)(void *ctx, uint64_t va, void *data, uint32_t bytes);
    bool (*write)(void *ctx, uint64_t va, const void *data, uint32_t bytes);
    // Optional: a device has written these bytes. Threads that wait for them have been woken.
    void (*written)(void *ctx, uint64_t va, uint32_t bytes);
};
struct host_owner {
    const struct host_owner_ops *ops;
    void *ctx;
};

// Pins the pages (4 KiB) that hold [va, va + bytes), and returns the bus address of each. Each pin of a page is undone
// by one unpin; until then all pins of the page by this owner have the same bus page. At most as many bytes as the
// memory itself has can be pinned. SIM_ERR_INVALID: bytes is 0 or the range wraps. SIM_ERR_NO_MEMORY: nothing was
// pinned.
enum sim_status host_memory_pin(host_memory_t *memory, const struct host_owner *owner, uint64_t va, uint64_t bytes,
                                uint64_t *pages_out);
void host_memory_unpin(host_memory_t *memory, const uint64_t *pages, uint64_t count);
uint64_t host_memory_page_count(uint64_t va, uint64_t bytes); // pages that hold the range
// The bus address of pinned memory. false: it is not pinned.
bool host_memory_pinned_address(const host_memory_t *memory, const struct host_owner *owner, uint64_t va,
                                uint64_t *address_out);
// The owner has ended and is not called any more. Its pinned pages must still be unpinned.
void host_memory_owner_gone(host_memory_t *memory, const struct host_owner *owner);

// The aligned 8 bytes at a bus address, as the processor sees them. false: there is no such memory, or no longer.
bool host_memory_load_word(const host_memory_t *memory, uint64_t bus_address, uint64_t *word_out);
