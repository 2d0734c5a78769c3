// Streams.
#include <stdlib.h>

#include "verbs-shim/cuda/internal.h"

cudaError_t cuda_stream_queue(struct cuda_context *context, cudaStream_t stream, struct cuda_queue **queue_out)
{
    if (stream == NULL || stream == cudaStreamLegacy) {
        struct cuda_device *device;
        cudaError_t error = cuda_device_use(context, context->current, &device);
        *queue_out = device->first;
        return error;
    }
    const struct CUstream_st *known = context->streams;
    while (known != NULL && known != stream) {
        known = known->next;
    }
    if (known == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    *queue_out = known->queue;
    return cudaSuccess;
}

void cuda_streams_drop(struct cuda_context *context, unsigned gpu)
{
    for (struct CUstream_st **link = &context->streams; *link != NULL;) {
        struct CUstream_st *stream = *link;
        if (stream->queue->gpu == gpu) {
            *link = stream->next;
            free(stream);
        } else {
            link = &stream->next;
        }
    }
}

// --- life -----------------------------------------------------------------------------------------------------------

static cudaError_t stream_make(struct cuda_context *context, cudaStream_t *stream_out, unsigned flags)
{
    struct cuda_device *device;
    if (stream_out == NULL || (flags & ~(unsigned)cudaStreamNonBlocking) != 0) {
        return cudaErrorInvalidValue;
    }
    cuda_pay_ns(context, context->devices[context->current].info.manage_call_ns);
    cudaError_t error = cuda_device_use(context, context->current, &device);
    struct cuda_queue *queue = NULL;
    if (error == cudaSuccess) {
        error = cuda_queue_take(context, context->current, (flags & cudaStreamNonBlocking) == 0, &queue);
    }
    struct CUstream_st *stream = error == cudaSuccess ? malloc(sizeof *stream) : NULL;
    if (stream == NULL) {
        if (queue != NULL) {
            cuda_queue_give(queue);
        }
        return error != cudaSuccess ? error : cudaErrorMemoryAllocation;
    }
    *stream = (struct CUstream_st){context->streams, queue};
    context->streams = stream;
    *stream_out = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : stream_make(context, stream, flags));
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

static cudaError_t stream_drop(struct cuda_context *context, cudaStream_t stream)
{
    struct CUstream_st **link = &context->streams;
    while (*link != NULL && *link != stream) {
        link = &(*link)->next;
    }
    if (stream == NULL || *link == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    cuda_pay_call(context);
    *link = stream->next;
    cuda_queue_give(stream->queue);
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : stream_drop(context, stream));
}

// --- waiting --------------------------------------------------------------------------------------------------------

static cudaError_t stream_enter(cudaStream_t stream, struct cuda_context **context_out, struct cuda_queue **queue_out)
{
    cudaError_t error = cuda_enter(context_out);
    if (error == cudaSuccess) {
        error = cuda_stream_queue(*context_out, stream, queue_out);
    }
    if (error == cudaSuccess) {
        cuda_pay_call(*context_out);
    }
    return error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    struct cuda_context *context;
    struct cuda_queue *queue;
    cudaError_t error = stream_enter(stream, &context, &queue);
    return cuda_leave(context, error != cudaSuccess ? error : cuda_queue_wait_all(context, queue));
}

static cudaError_t queue_query(struct cuda_context *context, struct cuda_queue *queue)
{
    const struct cuda_device *device = &context->devices[queue->gpu];
    cudaError_t error = cuda_poll(context, queue, queue->last, NULL);
    if (queue != device->first) {
        return error;
    }
    for (struct cuda_queue *other = device->queues; error == cudaSuccess && other != NULL; other = other->next) {
        if (other->blocking) {
            error = cuda_poll(context, other, other->last, NULL);
        }
    }
    return error;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    struct cuda_context *context;
    struct cuda_queue *queue;
    cudaError_t error = stream_enter(stream, &context, &queue);
    return cuda_leave(context, error != cudaSuccess ? error : queue_query(context, queue));
}
