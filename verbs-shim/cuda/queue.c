// Queues of the GPUs: creation, ordering, waiting.
#include <stdlib.h>

#include "verbs-shim/cuda/internal.h"

// --- life -----------------------------------------------------------------------------------------------------------

static cudaError_t queue_make(struct cuda_context *context, unsigned gpu, bool blocking, struct cuda_queue **queue_out)
{
    struct cuda_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return cudaErrorMemoryAllocation;
    }
    uint32_t id = 0;
    // It enters the list now, as the driver's call may take time.
    struct cuda_queue **link = &context->devices[gpu].queues;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *queue = (struct cuda_queue){.gpu = gpu, .blocking = blocking, .used = true};
    *link = queue;
    int error = context->gpu->queue_create(context->backend.ctx, gpu, &id);
    if (error != 0) {
        *link = NULL;
        free(queue);
        return cuda_error_of(context, error);
    }
    queue->id = id;
    *queue_out = queue;
    return cudaSuccess;
}

cudaError_t cuda_device_use(struct cuda_context *context, unsigned gpu, struct cuda_device **device_out)
{
    struct cuda_device *device = &context->devices[gpu];
    *device_out = device;
    return device->first != NULL ? cudaSuccess : queue_make(context, gpu, false, &device->first);
}

static bool is_dry(struct cuda_context *context, struct cuda_queue *queue)
{
    return cuda_poll(context, queue, queue->last, NULL) == cudaSuccess;
}

cudaError_t cuda_queue_take(struct cuda_context *context, unsigned gpu, bool blocking, struct cuda_queue **queue_out)
{
    for (struct cuda_queue *queue = context->devices[gpu].queues; queue != NULL; queue = queue->next) {
        if (!queue->used && is_dry(context, queue)) {
            queue->used = true;
            queue->blocking = blocking;
            *queue_out = queue;
            return cudaSuccess;
        }
    }
    return queue_make(context, gpu, blocking, queue_out);
}

void cuda_queue_give(struct cuda_queue *queue)
{
    queue->used = false;
}

void cuda_queues_free(struct cuda_device *device)
{
    while (device->queues != NULL) {
        struct cuda_queue *queue = device->queues;
        device->queues = queue->next;
        free(queue);
    }
    device->first = device->helper = NULL;
}

// --- submission -----------------------------------------------------------------------------------------------------

static cudaError_t push(struct cuda_context *context, struct cuda_queue *queue, const struct backend_gpu_work *work)
{
    uint64_t ticket;
    int error = context->gpu->submit(context->backend.ctx, queue->gpu, queue->id, work, &ticket);
    if (error == 0) {
        queue->last = ticket;
    }
    return cuda_error_of(context, error);
}

cudaError_t cuda_submit_after(struct cuda_context *context, struct cuda_queue *queue, struct cuda_queue *other,
                              uint64_t ticket)
{
    if (queue == other || ticket <= other->ended) {
        return cudaSuccess;
    }
    const struct backend_gpu_work work = {
        .kind = BACKEND_GPU_AFTER, .peer = other->gpu, .queue = other->id, .ticket = ticket};
    return push(context, queue, &work);
}

// Makes the default queue wait for all queues that are ordered with it.
static cudaError_t default_join(struct cuda_context *context, struct cuda_queue *first)
{
    cudaError_t error = cudaSuccess;
    for (struct cuda_queue *queue = context->devices[first->gpu].queues; error == cudaSuccess && queue != NULL;
         queue = queue->next) {
        if (queue->blocking && queue->last > queue->default_after) {
            error = cuda_submit_after(context, first, queue, queue->last);
            queue->default_after = queue->last;
        }
    }
    return error;
}

static cudaError_t join(struct cuda_context *context, struct cuda_queue *queue)
{
    struct cuda_queue *first = context->devices[queue->gpu].first;
    if (queue == first) {
        return default_join(context, first);
    }
    if (!queue->blocking || first == NULL || first->last <= queue->after_default) {
        return cudaSuccess;
    }
    queue->after_default = first->last;
    return cuda_submit_after(context, queue, first, first->last);
}

cudaError_t cuda_submit(struct cuda_context *context, struct cuda_queue *queue, const struct backend_gpu_work *work)
{
    cudaError_t error = join(context, queue);
    return error == cudaSuccess ? push(context, queue, work) : error;
}

cudaError_t cuda_submit_after_device(struct cuda_context *context, struct cuda_queue *queue, unsigned gpu)
{
    struct cuda_queue *first = context->devices[gpu].first;
    if (first == NULL || queue->gpu == gpu) {
        return cudaSuccess;
    }
    cudaError_t error = default_join(context, first);
    return error == cudaSuccess ? cuda_submit_after(context, queue, first, first->last) : error;
}

cudaError_t cuda_detour_begin(struct cuda_context *context, struct cuda_queue *queue, unsigned gpu,
                              struct cuda_queue **queue_out)
{
    struct cuda_device *device;
    *queue_out = queue;
    cudaError_t error = join(context, queue);
    if (error != cudaSuccess || queue->gpu == gpu) {
        return error;
    }
    error = cuda_device_use(context, gpu, &device);
    if (error == cudaSuccess && device->helper == NULL) {
        error = queue_make(context, gpu, false, &device->helper);
    }
    if (error != cudaSuccess) {
        return error;
    }
    *queue_out = device->helper;
    return cuda_submit_after(context, device->helper, queue, queue->last);
}

cudaError_t cuda_detour_end(struct cuda_context *context, struct cuda_queue *queue, struct cuda_queue *detour)
{
    return cuda_submit_after(context, queue, detour, detour->last);
}

// --- waiting --------------------------------------------------------------------------------------------------------

cudaError_t cuda_wait(struct cuda_context *context, struct cuda_queue *queue, uint64_t ticket)
{
    if (ticket <= queue->ended) {
        return cudaSuccess;
    }
    int error = context->gpu->wait(context->backend.ctx, queue->gpu, queue->id, ticket);
    if (error == 0 && queue->ended < ticket) {
        queue->ended = ticket;
    }
    return cuda_error_of(context, error);
}

cudaError_t cuda_poll(struct cuda_context *context, struct cuda_queue *queue, uint64_t ticket, uint64_t *ended_ps_out)
{
    if (ended_ps_out == NULL && ticket <= queue->ended) {
        return cudaSuccess;
    }
    int ended = context->gpu->poll(context->backend.ctx, queue->gpu, queue->id, ticket, ended_ps_out);
    if (ended < 0) {
        return cuda_error_of(context, ended);
    }
    if (ended == 0) {
        return cudaErrorNotReady;
    }
    queue->ended = queue->ended < ticket ? ticket : queue->ended;
    return cudaSuccess;
}

cudaError_t cuda_queue_wait_all(struct cuda_context *context, struct cuda_queue *queue)
{
    const struct cuda_device *device = &context->devices[queue->gpu];
    cudaError_t error = cuda_wait(context, queue, queue->last);
    if (queue != device->first) {
        return error;
    }
    for (struct cuda_queue *other = device->queues; error == cudaSuccess && other != NULL; other = other->next) {
        if (other->blocking) {
            error = cuda_wait(context, other, other->last);
        }
    }
    return error;
}

cudaError_t cuda_device_wait(struct cuda_context *context, unsigned gpu)
{
    cudaError_t error = cudaSuccess;
    for (struct cuda_queue *queue = context->devices[gpu].queues; error == cudaSuccess && queue != NULL;
         queue = queue->next) {
        error = cuda_wait(context, queue, queue->last);
    }
    return error;
}
