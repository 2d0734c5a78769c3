// The backend of verbs-shim for programs that run as threads of the simulation: every access goes through a simulated
// core. The only place where both sides of the border are seen.
#pragma once

#include "models/hca/hca.h"
#include "models/host/core.h"
#include "models/host/memory.h"
#include "sim/platform/gpus.h"
#include "verbs-shim/backend.h"

struct plat_bar {
    uint64_t base, bytes;
};

struct plat_backend_inproc {
    sim_t *sim;
    host_core_t *core;
    host_memory_t *memory;
    struct plat_bar bars[BACKEND_BARS]; // of the node's devices
    struct plat_gpus *gpus;             // of the node; NULL: none
    uint64_t interrupt_ps;              // handling of one
    uint32_t number;                    // of the process
    hca_t *hca;                         // NULL: the node has none
    uint64_t *hca_uars;                 // a bit for each page in use, shared by the node's processes
    struct backend_ops ops;             // of plat_backend_inproc
    // of plat_backend_enter
    struct backend_process process;
    const char *thread; // the simulated thread that runs the process; NULL: none has
    struct plat_backend_inproc *next;
};

// The kernel's driver of the HCA (backend_hca.c). Its commands take no time, but for those that end
// something: they return when nothing is under way that its memory is needed for.
extern const struct backend_hca_ops plat_backend_hca_ops; // ctx: struct plat_backend_inproc *

// ctx must outlive the backend.
struct backend plat_backend_inproc(struct plat_backend_inproc *ctx);

// The calling thread is the process of this backend from now on, for backend_current. Once for each backend.
void plat_backend_enter(struct plat_backend_inproc *ctx, struct peach2_board_handle *board);
// From outside threads, when none runs any more: frees what libraries kept for the process.
void plat_backend_leave(struct plat_backend_inproc *ctx);
