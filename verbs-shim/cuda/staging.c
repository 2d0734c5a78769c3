// Copies of pageable memory, in pieces through two pinned buffers: the processor copies one while the GPU transfers the
// other.
#include <string.h>

#include "verbs-shim/cuda/internal.h"

// --- the bounce buffers ---------------------------------------------------------------------------------------------

cudaError_t cuda_bounce_prepare(struct cuda_context *context)
{
    uint64_t bytes = 0;
    for (unsigned gpu = 0; gpu < context->count; gpu++) {
        uint64_t wanted = context->devices[gpu].info.staging_bytes;
        if (wanted == 0) {
            return cudaErrorInitializationError; // the driver has no bounce buffers
        }
        bytes = wanted > bytes ? wanted : bytes;
    }
    for (unsigned i = 0; i < 2; i++) {
        struct backend_buffer *buffer = &context->bounces[i].buffer;
        if (buffer->address == NULL && context->backend.ops->alloc_pinned(context->backend.ctx, bytes, buffer) != 0) {
            return cudaErrorMemoryAllocation;
        }
    }
    return cudaSuccess;
}

struct cuda_bounce *cuda_bounce_next(struct cuda_context *context)
{
    struct cuda_bounce *bounce = &context->bounces[context->bounce_next];
    context->bounce_next ^= 1;
    return bounce;
}

void cuda_bounces_forget(struct cuda_context *context, unsigned gpu)
{
    for (unsigned i = 0; i < 2; i++) {
        if (context->bounces[i].queue != NULL && context->bounces[i].queue->gpu == gpu) {
            context->bounces[i].queue = NULL;
        }
    }
}

static cudaError_t bounce_wait(struct cuda_context *context, const struct cuda_bounce *bounce)
{
    return bounce->queue != NULL ? cuda_wait(context, bounce->queue, bounce->ticket) : cudaSuccess;
}

// --- pieces ---------------------------------------------------------------------------------------------------------

// Copies between a bounce buffer, where rows have no gaps, and the program's memory.
static void piece_copy(struct cuda_context *context, const struct cuda_side *host, const struct cuda_piece *piece,
                       const struct cuda_bounce *bounce, bool into_bounce)
{
    char *packed = bounce->buffer.address, *spread = host->host + cuda_side_offset(host, piece);
    for (uint64_t row = 0; row < piece->rows; row++) {
        char *near = packed + row * piece->bytes, *far = spread + row * host->pitch;
        memcpy(into_bounce ? near : far, into_bounce ? far : near, piece->bytes);
    }
    context->backend.ops->cost(context->backend.ctx, BACKEND_COST_COPY, piece->rows * piece->bytes);
}

static cudaError_t piece_submit(struct cuda_context *context, struct cuda_queue *queue, const struct cuda_side *device,
                                const struct cuda_piece *piece, struct cuda_bounce *bounce,
                                enum backend_gpu_work_kind kind)
{
    const struct backend_gpu_work work = {
        .kind = kind,
        .device_address = device->device_address + cuda_side_offset(device, piece),
        .other_address = bounce->buffer.bus_address,
        .bytes = piece->bytes,
        .rows = piece->rows,
        .device_pitch = device->pitch,
        .other_pitch = piece->bytes,
    };
    cudaError_t error = cuda_submit(context, queue, &work);
    bounce->queue = queue;
    bounce->ticket = queue->last;
    return error;
}

// --- paths ----------------------------------------------------------------------------------------------------------

static cudaError_t to_device(struct cuda_context *context, const struct cuda_copy *copy, struct cuda_queue *queue,
                             uint64_t limit)
{
    struct cuda_piece piece = {0};
    cudaError_t error = cudaSuccess;
    while (error == cudaSuccess && cuda_piece_next(copy, limit, &piece)) {
        struct cuda_bounce *bounce = cuda_bounce_next(context);
        error = bounce_wait(context, bounce);
        if (error == cudaSuccess) {
            piece_copy(context, &copy->from, &piece, bounce, true);
            error = piece_submit(context, queue, &copy->to, &piece, bounce, BACKEND_GPU_TO_DEVICE);
        }
    }
    return error;
}

static cudaError_t to_host_begin(struct cuda_context *context, const struct cuda_copy *copy, struct cuda_queue *queue,
                                 const struct cuda_piece *piece, struct cuda_bounce **bounce_out)
{
    *bounce_out = cuda_bounce_next(context);
    cudaError_t error = bounce_wait(context, *bounce_out);
    return error == cudaSuccess ? piece_submit(context, queue, &copy->from, piece, *bounce_out, BACKEND_GPU_TO_HOST)
                                : error;
}

static cudaError_t to_host(struct cuda_context *context, const struct cuda_copy *copy, struct cuda_queue *queue,
                           uint64_t limit)
{
    struct cuda_piece next = {0};
    struct cuda_bounce *next_bounce = NULL;
    bool more = cuda_piece_next(copy, limit, &next);
    cudaError_t error = to_host_begin(context, copy, queue, &next, &next_bounce);
    while (error == cudaSuccess && more) {
        const struct cuda_piece piece = next;
        struct cuda_bounce *bounce = next_bounce;
        more = cuda_piece_next(copy, limit, &next);
        if (more) {
            error = to_host_begin(context, copy, queue, &next, &next_bounce);
        }
        if (error == cudaSuccess) {
            error = bounce_wait(context, bounce);
        }
        if (error == cudaSuccess) {
            piece_copy(context, &copy->to, &piece, bounce, false);
        }
    }
    return error;
}

cudaError_t cuda_copy_staged(struct cuda_context *context, const struct cuda_copy *copy)
{
    bool down = copy->to.kind == CUDA_DEVICE;
    unsigned gpu = down ? copy->to.gpu : copy->from.gpu;
    uint64_t limit = context->devices[gpu].info.staging_bytes;
    struct cuda_queue *queue;
    cudaError_t error = cuda_bounce_prepare(context);
    if (error == cudaSuccess) {
        error = cuda_detour_begin(context, copy->queue, gpu, &queue);
    }
    if (error == cudaSuccess) {
        error = down ? to_device(context, copy, queue, limit) : to_host(context, copy, queue, limit);
    }
    if (error == cudaSuccess) {
        error = cuda_detour_end(context, copy->queue, queue);
    }
    bool waits = down && copy->waits && copy->rows * copy->width > CUDA_STAGED_RETURN_MAX;
    return error == cudaSuccess && waits ? cuda_wait(context, queue, queue->last) : error;
}
