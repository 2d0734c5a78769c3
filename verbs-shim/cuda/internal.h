// Shared by the files of the CUDA library. Private to the folder; other files of the room use only pin.h.
//
// All state belongs to the process that backend_current() names. Heap objects enter a list of the context before time
// can pass, so nothing leaks when a program is abandoned in the middle of a call. The driver takes back its own objects
// (device memory, queues, pinned memory) when the process has ended.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/backend/backend.h"
#include "verbs-shim/cuda/cuda_runtime_api.h"
#include "verbs-shim/cuda/pin.h"

#define CUDA_BASE         0x2300000000ull // device 0's pointers start here
#define CUDA_DEVICE_SHIFT 36              // 64 GB for each device
#define CUDA_NONE         UINT32_MAX

// Copies of pageable memory up to this size return before the data is in the device.
#define CUDA_STAGED_RETURN_MAX 65536u

struct cuda_allocation {
    struct cuda_allocation *next;
    uint64_t device_address, bytes;
    uint64_t number;
    bool sync_memops;
};

// A queue of the backend. It outlives its stream, as events and bounce buffers refer to its tickets.
struct cuda_queue {
    struct cuda_queue *next;
    unsigned gpu;
    uint32_t id;
    uint64_t last;          // the last submitted ticket
    uint64_t ended;         // all tickets up to this one are known to have ended
    uint64_t after_default; // it already waits for the default queue up to this ticket
    uint64_t default_after; // the default queue already waits for this one up to this ticket
    bool blocking;          // ordered with the default queue
    bool used;              // by a stream
};

struct CUstream_st {
    struct CUstream_st *next;
    struct cuda_queue *queue;
};

struct CUevent_st {
    struct CUevent_st *next;
    unsigned gpu, flags;
    struct cuda_queue *queue; // NULL: never recorded
    uint64_t ticket;
};

struct cuda_pinned {
    struct cuda_pinned *next;
    struct backend_buffer buffer;
    uint64_t number; // number of the process's cudaMallocHost call
};

struct cuda_device {
    struct backend_gpu_info info;
    struct cuda_queue *first;  // the default queue; NULL: the device was not used yet
    struct cuda_queue *helper; // for work in the order of another device's stream; NULL: not needed yet
    struct cuda_queue *queues; // all queues, in the order of their creation
    struct cuda_allocation *allocations;
    struct cuda_pin *pins;
    uint32_t peers; // a bit for each device to which it was given access
};

// One of the two buffers through which copies are staged.
struct cuda_bounce {
    struct backend_buffer buffer;
    struct cuda_queue *queue; // the queue that still uses the buffer, up to the ticket; NULL: none
    uint64_t ticket;
};

struct cuda_context {
    struct backend_process *process;
    struct backend backend;
    const struct backend_gpu_ops *gpu;
    unsigned count, current;
    struct cuda_device devices[BACKEND_GPUS_MAX];
    struct CUstream_st *streams;
    struct CUevent_st *events;
    struct cuda_pinned *pinned;
    struct cuda_kernel *kernels; // registered by the program
    struct cuda_bounce bounces[2];
    unsigned bounce_next;
    uint64_t allocation_count; // number of all allocations ever made, also of host memory
    cudaError_t last;          // for cudaGetLastError
    cudaError_t broken;        // the result of every call since a GPU failed
    uint32_t said;             // a bit for each unsupported call that was reported
};

// --- context.c ------------------------------------------------------------------------------------------------------

// Each call begins and ends with these. cudaErrorNoDevice, or the error of a broken process.
cudaError_t cuda_enter(struct cuda_context **context_out);
// The state of the process, also of a broken one; made on first use. NULL: no process, no GPU, or no memory.
struct cuda_context *cuda_context_current(void);
// Records a failure and returns it. context may be NULL.
cudaError_t cuda_leave(struct cuda_context *context, cudaError_t error);
// Translates an error of the backend; -EIO breaks the process.
cudaError_t cuda_error_of(struct cuda_context *context, int error);
void cuda_pay_call(struct cuda_context *context);
void cuda_pay_ns(struct cuda_context *context, uint64_t ns);

// --- queue.c --------------------------------------------------------------------------------------------------------

// Gets the device and creates its default queue.
cudaError_t cuda_device_use(struct cuda_context *context, unsigned gpu, struct cuda_device **device_out);
// For a stream: an unused queue whose work has ended, or a new one.
cudaError_t cuda_queue_take(struct cuda_context *context, unsigned gpu, bool blocking, struct cuda_queue **queue_out);
void cuda_queue_give(struct cuda_queue *queue);
// Appends the work to the queue, ordered with the default queue. Its ticket is then queue->last.
cudaError_t cuda_submit(struct cuda_context *context, struct cuda_queue *queue, const struct backend_gpu_work *work);
// The queue waits until the other queue's ticket has ended.
cudaError_t cuda_submit_after(struct cuda_context *context, struct cuda_queue *queue, struct cuda_queue *other,
                              uint64_t ticket);
cudaError_t cuda_submit_after_device(struct cuda_context *context, struct cuda_queue *queue, unsigned gpu);
cudaError_t cuda_wait(struct cuda_context *context, struct cuda_queue *queue, uint64_t ticket);
// cudaErrorNotReady. ended_ps_out may be NULL.
cudaError_t cuda_poll(struct cuda_context *context, struct cuda_queue *queue, uint64_t ticket, uint64_t *ended_ps_out);
// Waits for the queue; for the default queue also for all queues that are ordered with it.
cudaError_t cuda_queue_wait_all(struct cuda_context *context, struct cuda_queue *queue);
cudaError_t cuda_device_wait(struct cuda_context *context, unsigned gpu); // all queues
// A queue of `gpu` whose work runs in the order of `queue`: the same queue, or a helper queue.
cudaError_t cuda_detour_begin(struct cuda_context *context, struct cuda_queue *queue, unsigned gpu,
                              struct cuda_queue **queue_out);
cudaError_t cuda_detour_end(struct cuda_context *context, struct cuda_queue *queue, struct cuda_queue *detour);
void cuda_queues_free(struct cuda_device *device); // frees only the heap objects

// --- memory.c -------------------------------------------------------------------------------------------------------

void cuda_kernels_free(struct cuda_context *context); // kernel.c
// Splits any device pointer; false: it is not one.
bool cuda_pointer_split(const void *pointer, unsigned *gpu_out, uint64_t *device_address_out);
// The device in whose range the pointer is; false: none.
bool cuda_pointer_device(const struct cuda_context *context, const void *pointer, unsigned *gpu_out,
                         uint64_t *device_address_out);
void *cuda_pointer_make(unsigned gpu, uint64_t device_address);
struct cuda_allocation *cuda_allocation_around(const struct cuda_context *context, unsigned gpu,
                                               uint64_t device_address);
struct cuda_pinned *cuda_pinned_around(const struct cuda_context *context, const void *pointer);
cudaError_t cuda_allocations_drop(struct cuda_context *context, unsigned gpu); // also in the driver
void cuda_memory_free(struct cuda_context *context);                           // frees only the heap objects

// --- stream.c, event.c ----------------------------------------------------------------------------------------------

// 0 and cudaStreamLegacy mean the default stream of the current device.
cudaError_t cuda_stream_queue(struct cuda_context *context, cudaStream_t stream, struct cuda_queue **queue_out);
void cuda_streams_drop(struct cuda_context *context, unsigned gpu);
void cuda_events_drop(struct cuda_context *context, unsigned gpu);

// --- pin.c ----------------------------------------------------------------------------------------------------------

extern const struct backend_peer_memory cuda_peer_memory;
// Closes the windows onto this memory.
void cuda_pins_revoke(struct cuda_context *context, unsigned gpu, uint64_t device_address, uint64_t bytes);

// --- copies ---------------------------------------------------------------------------------------------------------

enum cuda_memory_kind { CUDA_PAGEABLE, CUDA_PINNED, CUDA_DEVICE };

// One side of a copy: rows at a distance of the pitch.
struct cuda_side {
    enum cuda_memory_kind kind;
    char *host;           // PAGEABLE, PINNED
    uint64_t bus_address; // PINNED
    unsigned gpu;         // DEVICE
    uint64_t device_address;
    struct cuda_allocation *allocation;
    uint64_t pitch;
};

struct cuda_copy {
    struct cuda_side to, from;
    uint64_t width, rows;
    struct cuda_queue *queue; // the queue that orders the copy
    bool waits;               // true: cudaMemcpy; false: cudaMemcpyAsync
};

// A part of a copy that fits in a bounce buffer: whole rows, or a run of one row.
struct cuda_piece {
    uint64_t row, column, rows, bytes;
};
// Advances to the next piece of up to limit bytes; to the first one if *piece is all zero. false: no piece is left.
bool cuda_piece_next(const struct cuda_copy *copy, uint64_t limit, struct cuda_piece *piece);
uint64_t cuda_side_offset(const struct cuda_side *side, const struct cuda_piece *piece);

// staging.c: returns the bounce buffers alternately, after they were prepared.
cudaError_t cuda_bounce_prepare(struct cuda_context *context);
struct cuda_bounce *cuda_bounce_next(struct cuda_context *context);
void cuda_bounces_forget(struct cuda_context *context, unsigned gpu); // called when all their work has ended
cudaError_t cuda_copy_staged(struct cuda_context *context, const struct cuda_copy *copy);
// peer.c: copies between two devices.
cudaError_t cuda_copy_peer(struct cuda_context *context, const struct cuda_copy *copy);
