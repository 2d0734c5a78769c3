// The backend of verbs-shim for programs that run as threads of the simulation: every access goes through a simulated
// core. The only place where both sides of the border are seen.
#pragma once

#include "models/hca/hca.h"
#include "models/host/core.h"
#include "models/host/memory.h"
#include "sim/platform/gpus.h"
#include "sim/scenario/scenario.h"
#include "sim/platform/process_memory.h"
#include "verbs-shim/backend/backend.h"

struct plat_bar {
    uint64_t base, bytes;
};

// A library's thread of a process (backend_thread.c).
struct plat_helper {
    host_core_t *core;  // its own; NULL: none was ever started
    const char *thread; // the simulated thread's name, which is its own in memory; NULL: none runs
    struct plat_backend_inproc *backend;
    void (*run)(void *arg);
    void *arg;
    bool running, stopping;
    sim_condition_t ended, released, woken;
    uint64_t ticket, served; // of the lock: given out, and which one has it
};

// What is pinned for a region.
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
    uint64_t interrupt_ps;              // handling of one
    uint32_t number;                    // of the process
    hca_t *hca;                         // NULL: the node has none
    struct backend_ops ops;             // of plat_backend_inproc
    struct host_owner owner;            // of the process's own memory
    struct plat_pinned_region *pinned;  // the newest first
    uint64_t allocated_bytes;           // of pinned memory that the process has
    // of plat_backend_enter
    struct backend_process process;
    const char *thread; // the simulated thread that runs the process; NULL: none has
    struct plat_backend_inproc *next;
};

// The kernel's driver of the HCA (backend_hca.c). Its commands take no time, but for those that end
// something: they return when nothing is under way that its memory is needed for.
int plat_backend_hca_command(void *ctx, struct hca_command *command); // ctx: struct plat_backend_inproc *
// As of now: when the HCA goes away, every process with an event queue gets HCA_EVENT_DEVICE_FATAL.
void plat_hca_watch(hca_t *hca, host_memory_t *memory);

// backend_thread.c
extern const struct backend_thread_ops plat_backend_thread_ops; // ctx: struct plat_backend_inproc *
// The library's thread that calls; NULL: the program does.
const struct plat_helper *plat_backend_helper(const struct plat_backend_inproc *ctx);
// Ends all of them.
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

// The calling thread is the process of this backend from now on, for backend_current. Once for each backend.
void plat_backend_enter(struct plat_backend_inproc *ctx, struct peach2_board_handle *board);
// The process has ended, devices reach its own memory no more.
void plat_backend_end(struct plat_backend_inproc *ctx);
// From outside threads, when none runs any more: frees what libraries kept for the process.
void plat_backend_leave(struct plat_backend_inproc *ctx);
