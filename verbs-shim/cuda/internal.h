// What the files of the CUDA library share. Private to the folder; pin.h is what the rest of the room may use.
//
// All state hangs on the process that backend_current() names. What is on the heap is in lists of the context before
// time can pass, so that nothing is lost when a program is abandoned in the middle of a call; what the driver gave
// (device memory, queues, pinned memory) is the driver's to take back when the process has ended.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/backend/backend.h"
#include "verbs-shim/cuda/cuda_runtime_api.h"
#include "verbs-shim/cuda/pin.h"

#define CUDA_BASE         0x2300000000ull // of device 0's pointers
#define CUDA_DEVICE_SHIFT 36              // 64 GB each
#define CUDA_NONE         UINT32_MAX

// Pageable memory up to this size is in the device some time after the call.
#define CUDA_STAGED_RETURN_MAX 65536u

struct cuda_allocation {
    struct cuda_allocation *next;
    uint64_t device_address, bytes;
    uint64_t number;
    bool sync_memops;
};

// A queue of the backend. It outlives its stream, as events and bounce buffers name its tickets.
struct cuda_queue {
    struct cuda_queue *next;
    unsigned gpu;
    uint32_t id;
    uint64_t last;          // ticket submitted last
    uint64_t ended;         // all tickets up to this one are known to have ended
    uint64_t after_default; // it already waits for the default queue up to this ticket
    uint64_t default_after; // the default queue already waits for this one up to this ticket
    bool blocking;          // in order with the default queue
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
    uint64_t number; // which cudaMallocHost of the process
};

struct cuda_device {
    struct backend_gpu_info info;
    struct cuda_queue *first;  // the default one; NULL: the device was not used yet
    struct cuda_queue *helper; // for work in the order of a stream of another device; NULL: not needed yet
    struct cuda_queue *queues; // all, in the order they were made
    struct cuda_allocation *allocations;
    struct cuda_pin *pins;
    uint32_t peers; // bit of each device that it was given access to
};

// Half of what copies are staged through.
struct cuda_bounce {
    struct backend_buffer buffer;
    struct cuda_queue *queue; // which still reads or writes it, up to the ticket; NULL: none
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
    struct cuda_kernel *kernels; // that the program has registered
    struct cuda_bounce bounces[2];
    unsigned bounce_next;
    uint64_t allocation_count; // ever made, of the host's as well
    cudaError_t last;          // for cudaGetLastError
    cudaError_t broken;        // what every call gives since a GPU failed
    uint32_t said;             // bit of each unsupported call that was told of
};

// --- context.c ------------------------------------------------------------------------------------------------------

// Each call begins and ends with these. cudaErrorNoDevice, or what the process is broken with.
cudaError_t cuda_enter(struct cuda_context **context_out);
// The process's state whatever it is broken with; made on first use. NULL: no process, no GPU, or no memory.
struct cuda_context *cuda_context_current(void);
// Notes a failure and returns it. context may be NULL.
cudaError_t cuda_leave(struct cuda_context *context, cudaError_t error);
// What a code of the backend means; -EIO breaks the process.
cudaError_t cuda_error_of(struct cuda_context *context, int error);
void cuda_pay_call(struct cuda_context *context);
void cuda_pay_ns(struct cuda_context *context, uint64_t ns);

// --- queue.c --------------------------------------------------------------------------------------------------------

// The device with its default queue.
cudaError_t cuda_device_use(struct cuda_context *context, unsigned gpu, struct cuda_device **device_out);
// For a stream: one that has run dry, or a new one.
cudaError_t cuda_queue_take(struct cuda_context *context, unsigned gpu, bool blocking, struct cuda_queue **queue_out);
void cuda_queue_give(struct cuda_queue *queue);
// Behind what is in the queue, and in order with the default queue. The ticket is queue->last then.
cudaError_t cuda_submit(struct cuda_context *context, struct cuda_queue *queue, const struct backend_gpu_work *work);
// The queue goes on when the ticket has ended.
cudaError_t cuda_submit_after(struct cuda_context *context, struct cuda_queue *queue, struct cuda_queue *other,
                              uint64_t ticket);
cudaError_t cuda_submit_after_device(struct cuda_context *context, struct cuda_queue *queue, unsigned gpu);
cudaError_t cuda_wait(struct cuda_context *context, struct cuda_queue *queue, uint64_t ticket);
// cudaErrorNotReady. ended_ps_out may be NULL.
cudaError_t cuda_poll(struct cuda_context *context, struct cuda_queue *queue, uint64_t ticket, uint64_t *ended_ps_out);
// What must have ended when this queue is waited for: itself, and for the default one all that are in order with it.
cudaError_t cuda_queue_wait_all(struct cuda_context *context, struct cuda_queue *queue);
cudaError_t cuda_device_wait(struct cuda_context *context, unsigned gpu); // all queues
// A queue of `gpu` whose work comes in the order of `queue`: the same, or a helper between these two.
cudaError_t cuda_detour_begin(struct cuda_context *context, struct cuda_queue *queue, unsigned gpu,
                              struct cuda_queue **queue_out);
cudaError_t cuda_detour_end(struct cuda_context *context, struct cuda_queue *queue, struct cuda_queue *detour);
void cuda_queues_free(struct cuda_device *device); // the heap's part alone

// --- memory.c -------------------------------------------------------------------------------------------------------

void cuda_kernels_free(struct cuda_context *context); // kernel.c
// Of whatever device such a pointer would be; false: none.
bool cuda_pointer_split(const void *pointer, unsigned *gpu_out, uint64_t *device_address_out);
// Whose range the pointer is in; false: of no device.
bool cuda_pointer_device(const struct cuda_context *context, const void *pointer, unsigned *gpu_out,
                         uint64_t *device_address_out);
void *cuda_pointer_make(unsigned gpu, uint64_t device_address);
struct cuda_allocation *cuda_allocation_around(const struct cuda_context *context, unsigned gpu,
                                               uint64_t device_address);
struct cuda_pinned *cuda_pinned_around(const struct cuda_context *context, const void *pointer);
cudaError_t cuda_allocations_drop(struct cuda_context *context, unsigned gpu); // of the driver as well
void cuda_memory_free(struct cuda_context *context);                           // the heap's part alone

// --- stream.c, event.c ----------------------------------------------------------------------------------------------

// 0 and cudaStreamLegacy are the current device's default one.
cudaError_t cuda_stream_queue(struct cuda_context *context, cudaStream_t stream, struct cuda_queue **queue_out);
void cuda_streams_drop(struct cuda_context *context, unsigned gpu);
void cuda_events_drop(struct cuda_context *context, unsigned gpu);

// --- pin.c ----------------------------------------------------------------------------------------------------------

// Closes the windows onto this memory.
extern const struct backend_peer_memory cuda_peer_memory; // pin.c
void cuda_pins_revoke(struct cuda_context *context, unsigned gpu, uint64_t device_address, uint64_t bytes);

// --- copies ---------------------------------------------------------------------------------------------------------

enum cuda_place { CUDA_PAGEABLE, CUDA_PINNED, CUDA_DEVICE };

// One side of a copy: rows, a pitch apart.
struct cuda_side {
    enum cuda_place place;
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
    struct cuda_queue *queue; // in whose order
    bool waits;               // cudaMemcpy rather than cudaMemcpyAsync
};

// A part of a copy that fits a bounce buffer: whole rows, or a run of one row.
struct cuda_piece {
    uint64_t row, column, rows, bytes;
};
// The next one, up to limit bytes; the first when *piece is all zero. false: there is none.
bool cuda_piece_next(const struct cuda_copy *copy, uint64_t limit, struct cuda_piece *piece);
uint64_t cuda_side_offset(const struct cuda_side *side, const struct cuda_piece *piece);

// staging.c: the bounce buffers in turn, once they exist.
cudaError_t cuda_bounce_prepare(struct cuda_context *context);
struct cuda_bounce *cuda_bounce_next(struct cuda_context *context);
void cuda_bounces_forget(struct cuda_context *context, unsigned gpu); // all its work has ended
cudaError_t cuda_copy_staged(struct cuda_context *context, const struct cuda_copy *copy);
// peer.c: between two devices.
cudaError_t cuda_copy_peer(struct cuda_context *context, const struct cuda_copy *copy);
