// The backend of verbs-shim for programs that run as threads of the simulation: every access goes through a simulated
// core. The only place where both sides of the border are seen.
#pragma once

#include "models/host/core.h"
#include "models/host/memory.h"
#include "verbs-shim/backend.h"

struct plat_bar {
    uint64_t base, bytes;
};

struct plat_backend_inproc {
    sim_t *sim;
    host_core_t *core;
    host_memory_t *memory;
    struct plat_bar bars[BACKEND_BARS]; // of the node's devices
    uint64_t interrupt_ps;              // handling of one
    // of plat_backend_enter
    struct backend_process process;
    const char *thread; // the simulated thread that runs the process; NULL: none has
    struct plat_backend_inproc *next;
};

// ctx must outlive the backend.
struct backend plat_backend_inproc(struct plat_backend_inproc *ctx);

// The calling thread is the process of this backend from now on, for backend_current. Once for each backend.
void plat_backend_enter(struct plat_backend_inproc *ctx, struct peach2_board_handle *board);
// From outside threads, when none runs any more: frees what libraries kept for the process.
void plat_backend_leave(struct plat_backend_inproc *ctx);
