// The GPUs of a node, with the backend's state of each: queues by number, and the times at which their work ended.
// Private to the room.
#pragma once

#include "models/gpu/gpu.h"
#include "sim/kernel/thread.h"
#include "sim/scenario/scenario.h"
#include "verbs-shim/backend/backend.h"

// Address map of every node: the windows of the GPUs begin here, below the board's BAR 0.
#define PLAT_GPU_BASE       0x1000000000ull
#define PLAT_GPU_STEP_BYTES 0x800000000ull

#define PLAT_GPU_QUEUES_MAX 256

// Submitted work until its end. Marks are kept, because their times may be queried at any time.
struct plat_gpu_item {
    struct plat_gpu_queue *queue;
    uint64_t number; // of the model's item; a ticket is the number of its last item
    uint64_t ended_ps;
    bool is_mark;
    struct plat_gpu_window *window; // of the other GPU to which it writes; NULL: none
    void (*effect)(void *ctx,
                   const struct backend_gpu_memory *memory); // of struct backend_gpu_work; NULL after the call
    void *effect_ctx;
    gpu_t *gpu; // of the effect
    struct plat_gpu_item *next;
};

struct plat_gpu_queue {
    sim_t *sim;
    const char *gpu_name;                         // and
    uint32_t number;                              // for messages
    gpu_queue_t *queue;                           // NULL: the number is free
    struct plat_gpu_item *pending, *pending_last; // in the order in which they end
    struct plat_gpu_item *marks;                  // marks that have ended, the latest first
    uint64_t failed;                              // the first item that failed; 0: none
    sim_condition_t ended; // an item has; or the last user has left
    uint32_t users;        // threads in a call that names the queue
    bool ending;           // queue_destroy waits: no call finds the queue any more
};

struct plat_gpu {
    const struct scn_gpu *config;
    gpu_t *gpu;
    const char *name; // "node0.gpu0"
    struct plat_gpu_queue queues[PLAT_GPU_QUEUES_MAX];
    struct plat_gpu_window *windows; // gpu_window.h
};

struct plat_gpus {
    struct plat_gpu *list[SCN_GPUS_MAX];
    unsigned count;
};

// Adds a GPU whose model the caller creates (devices/gpu.c) and destroys before plat_gpus_fini. name must live as long.
enum sim_status plat_gpus_add(struct plat_gpus *gpus, sim_t *sim, const char *name, const struct scn_gpu *config,
                              struct plat_gpu **gpu_out);
void plat_gpus_fini(struct plat_gpus *gpus);

void plat_gpu_queue_clear(struct plat_gpu_queue *queue); // frees its items
