// The backend of verbs-shim for programs that run as threads of the simulation: every access goes through a simulated
// core. The only place where both sides of the border are seen.
#pragma once

#include "models/host/core.h"
#include "models/host/memory.h"
#include "verbs-shim/backend.h"

struct plat_backend_inproc {
    sim_t *sim;
    host_core_t *core;
    host_memory_t *memory;
    uint64_t bar0_base, window_base;
};

// ctx must outlive the backend.
struct backend plat_backend_inproc(struct plat_backend_inproc *ctx);
