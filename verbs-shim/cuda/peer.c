// Copies between two devices: straight into the other device's window, or through the bounce buffers. The GPUs wait for
// each other; the program does not wait.
#include "verbs-shim/cuda/internal.h"

static bool is_direct(const struct cuda_context *context, const struct cuda_copy *copy)
{
    return (context->devices[copy->from.gpu].peers & 1u << copy->to.gpu) != 0 ||
           (context->devices[copy->to.gpu].peers & 1u << copy->from.gpu) != 0;
}

static cudaError_t copy_direct(struct cuda_context *context, const struct cuda_copy *copy)
{
    const struct backend_gpu_work work = {
        .kind = BACKEND_GPU_TO_PEER,
        .device_address = copy->from.device_address,
        .other_address = copy->to.device_address,
        .peer = copy->to.gpu,
        .bytes = copy->width,
        .rows = copy->rows,
        .device_pitch = copy->from.pitch,
        .other_pitch = copy->to.pitch,
    };
    struct cuda_queue *queue;
    cudaError_t error = cuda_detour_begin(context, copy->queue, copy->from.gpu, &queue);
    if (error == cudaSuccess) {
        error = cuda_submit(context, queue, &work);
    }
    return error == cudaSuccess ? cuda_detour_end(context, copy->queue, queue) : error;
}

// One of the two hops of a piece; it starts after the buffer's last use.
static cudaError_t half(struct cuda_context *context, struct cuda_queue *queue, const struct cuda_side *side,
                        const struct cuda_piece *piece, struct cuda_bounce *bounce, enum backend_gpu_work_kind kind)
{
    const struct backend_gpu_work work = {
        .kind = kind,
        .device_address = side->device_address + cuda_side_offset(side, piece),
        .other_address = bounce->buffer.bus_address,
        .bytes = piece->bytes,
        .rows = piece->rows,
        .device_pitch = side->pitch,
        .other_pitch = piece->bytes,
    };
    cudaError_t error = cudaSuccess;
    if (bounce->queue != NULL) {
        error = cuda_submit_after(context, queue, bounce->queue, bounce->ticket);
    }
    if (error == cudaSuccess) {
        error = cuda_submit(context, queue, &work);
    }
    bounce->queue = queue;
    bounce->ticket = queue->last;
    return error;
}

static cudaError_t pieces_move(struct cuda_context *context, const struct cuda_copy *copy, struct cuda_queue *from,
                               struct cuda_queue *to)
{
    uint64_t limit = context->devices[copy->from.gpu].info.staging_bytes;
    struct cuda_piece piece = {0};
    cudaError_t error = cudaSuccess;
    while (error == cudaSuccess && cuda_piece_next(copy, limit, &piece)) {
        struct cuda_bounce *bounce = cuda_bounce_next(context);
        error = half(context, from, &copy->from, &piece, bounce, BACKEND_GPU_TO_HOST);
        if (error == cudaSuccess) {
            error = half(context, to, &copy->to, &piece, bounce, BACKEND_GPU_TO_DEVICE);
        }
    }
    return error;
}

static cudaError_t copy_staged(struct cuda_context *context, const struct cuda_copy *copy)
{
    struct cuda_queue *from = NULL, *to = NULL;
    cudaError_t error = cuda_bounce_prepare(context);
    if (error == cudaSuccess) {
        error = cuda_detour_begin(context, copy->queue, copy->from.gpu, &from);
    }
    if (error == cudaSuccess) {
        error = cuda_detour_begin(context, copy->queue, copy->to.gpu, &to);
    }
    if (error == cudaSuccess) {
        error = pieces_move(context, copy, from, to);
    }
    return error == cudaSuccess ? cuda_detour_end(context, copy->queue, to) : error;
}

cudaError_t cuda_copy_peer(struct cuda_context *context, const struct cuda_copy *copy)
{
    return is_direct(context, copy) ? copy_direct(context, copy) : copy_staged(context, copy);
}
