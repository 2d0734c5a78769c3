// The backend of verbs-shim for programs that run as threads of the simulation: every access goes through a simulated
// core. This is the border between verbs-shim and the models.
#pragma once

#include "models/hca/hca.h"
#include "models/host/core.h"
#include "models/host/memory.h"
#include "sim/observe/observe.h"
#include "sim/platform/gpus.h"
#include "sim/scenario/scenario.h"
#include "sim/platform/process_memory.h"
#include "verbs-shim/backend/backend.h"

struct plat_bar {
    uint64_t base, bytes;
};

// A library's thread of a process (backend_thread.c).
struct plat_helper {
    host_core_t *core;  // its own; NULL: the thread was never started
    const char *thread; // the simulated thread's name, identified by its address; NULL: no thread runs
    struct plat_backend_inproc *backend;
    void (*run)(void *arg);
    void *arg;
    bool running, stopping;
    sim_condition_t ended, released, woken;
    uint64_t ticket, served; // of the lock: the next ticket, and the one that has the lock
};

// The memory that is pinned for a region.
struct plat_pinned_region {
    struct plat_pinned_region *next;
    uint32_t key;
    uint64_t count;
    uint64_t pages[];
};

struct plat_backend_inproc {
    sim_t *sim;
    host_core_t *core;
    host_memory_t *memory;
    pcie_rc_t *rc;
    const char *node; // its name
    struct plat_helper helpers[BACKEND_THREADS];
    struct plat_bar bars[BACKEND_BARS]; // of the node's devices
    struct plat_gpus *gpus;             // of the node; NULL: none
    uint64_t interrupt_ps;              // time to handle an interrupt
    uint32_t number;                    // of the process
    hca_t *hca;                         // NULL: the node has none
    struct backend_ops ops;             // of plat_backend_inproc
    struct host_owner owner;            // of the process's own memory
    struct plat_pinned_region *pinned;  // newest first
    uint64_t allocated_bytes;           // pinned memory of the process
    observe_t *observe;                 // who sees the calls of the process; NULL: nobody
    observe_process_t *observed;        // the process there
    struct observe_upcoming upcoming[1 + BACKEND_THREADS]; // of the program, and of libraries' threads
    // of plat_backend_enter
    struct backend_process process;
    const char *thread; // the simulated thread that runs the process; NULL: none
    struct plat_backend_inproc *next, *before, *next_in_bucket;
};

// The kernel driver of the HCA (backend_hca.c). Its commands take no time, except those that stop a queue pair
// (hca_fw_command_ps), and those that destroy an object: they
// return when no access to the object's memory is in flight.
int plat_backend_hca_command(void *ctx, struct hca_command *command); // ctx: struct plat_backend_inproc *
// From now on, every process with an event queue receives HCA_EVENT_DEVICE_FATAL when the HCA is removed.
void plat_hca_watch(hca_t *hca, host_memory_t *memory);

// backend_journal.c
extern const struct backend_journal_ops plat_backend_journal_ops; // ctx: struct plat_backend_inproc *

// backend_thread.c
extern const struct backend_thread_ops plat_backend_thread_ops; // ctx: struct plat_backend_inproc *
// The library's thread that is the caller; NULL: the program is.
const struct plat_helper *plat_backend_helper(const struct plat_backend_inproc *ctx);
// Ends all threads of libraries.
void plat_backend_threads_stop(struct plat_backend_inproc *ctx);
void plat_backend_threads_fini(struct plat_backend_inproc *ctx); // from outside threads
// The core of the calling thread.
static inline host_core_t *plat_backend_core(const struct plat_backend_inproc *ctx)
{
    const struct plat_helper *helper = plat_backend_helper(ctx);
    return helper != NULL ? helper->core : ctx->core;
}

// ctx must outlive the backend.
struct backend plat_backend_inproc(struct plat_backend_inproc *ctx);

// From now on backend_current returns this backend's process for the calling thread. Call once for each backend.
void plat_backend_enter(struct plat_backend_inproc *ctx, struct peach2_board_handle *board);
// The bus address of memory of this process, or of another one, that devices reach. false: none does.
bool plat_backend_bus_address(const struct plat_backend_inproc *ctx, uint64_t pointer, uint64_t *address_out);
// The process has ended: devices no longer reach its own memory.
void plat_backend_end(struct plat_backend_inproc *ctx);
// From outside threads, when none runs any more: frees the state of libraries for the process.
void plat_backend_leave(struct plat_backend_inproc *ctx);
