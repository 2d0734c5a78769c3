// Events: positions in a queue, and the times at which the GPU reached them.
#include <stdlib.h>

#include "verbs-shim/cuda/internal.h"

#define PS_PER_MS 1000000000.0f

static cudaError_t event_check(const struct cuda_context *context, cudaEvent_t event)
{
    const struct CUevent_st *known = context->events;
    while (known != NULL && known != event) {
        known = known->next;
    }
    return known != NULL && event != NULL ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

static cudaError_t event_enter(cudaEvent_t event, struct cuda_context **context_out)
{
    cudaError_t error = cuda_enter(context_out);
    return error == cudaSuccess ? event_check(*context_out, event) : error;
}

// --- life -----------------------------------------------------------------------------------------------------------

void cuda_events_drop(struct cuda_context *context, unsigned gpu)
{
    for (struct CUevent_st **link = &context->events; *link != NULL;) {
        struct CUevent_st *event = *link;
        if (event->gpu == gpu) {
            *link = event->next;
            free(event);
        } else {
            link = &event->next;
        }
    }
}

static cudaError_t event_make(struct cuda_context *context, cudaEvent_t *event_out, unsigned flags)
{
    const unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if (event_out == NULL || (flags & ~known) != 0) {
        return cudaErrorInvalidValue;
    }
    if ((flags & cudaEventInterprocess) != 0) {
        return cudaErrorNotSupported;
    }
    cuda_pay_call(context);
    struct CUevent_st *event = malloc(sizeof *event);
    if (event == NULL) {
        return cudaErrorMemoryAllocation;
    }
    *event = (struct CUevent_st){.next = context->events, .gpu = context->current, .flags = flags};
    context->events = event;
    *event_out = event;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : event_make(context, event, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    struct cuda_context *context;
    cudaError_t error = event_enter(event, &context);
    if (error == cudaSuccess) {
        cuda_pay_call(context);
        struct CUevent_st **link = &context->events;
        while (*link != event) {
            link = &(*link)->next;
        }
        *link = event->next;
        free(event);
    }
    return cuda_leave(context, error);
}

// --- use ------------------------------------------------------------------------------------------------------------

static cudaError_t event_record(struct cuda_context *context, cudaEvent_t event, cudaStream_t stream)
{
    struct cuda_queue *queue;
    cudaError_t error = cuda_stream_queue(context, stream, &queue);
    if (error != cudaSuccess || queue->gpu != event->gpu) {
        return error != cudaSuccess ? error : cudaErrorInvalidResourceHandle;
    }
    cuda_pay_ns(context, context->devices[queue->gpu].info.submit_call_ns);
    const struct backend_gpu_work work = {.kind = BACKEND_GPU_MARK};
    error = cuda_submit(context, queue, &work);
    if (error == cudaSuccess) {
        event->queue = queue;
        event->ticket = queue->last;
    }
    return error;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct cuda_context *context;
    cudaError_t error = event_enter(event, &context);
    return cuda_leave(context, error != cudaSuccess ? error : event_record(context, event, stream));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    struct cuda_context *context;
    cudaError_t error = event_enter(event, &context);
    if (error == cudaSuccess && event->queue != NULL) {
        cuda_pay_call(context);
        error = cuda_poll(context, event->queue, event->ticket, NULL);
    }
    return cuda_leave(context, error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    struct cuda_context *context;
    cudaError_t error = event_enter(event, &context);
    if (error == cudaSuccess && event->queue != NULL) {
        cuda_pay_call(context);
        error = cuda_wait(context, event->queue, event->ticket);
    }
    return cuda_leave(context, error);
}

static cudaError_t elapsed(struct cuda_context *context, float *ms, cudaEvent_t start, cudaEvent_t end)
{
    uint64_t start_ps, end_ps;
    cudaError_t error = event_check(context, start);
    if (error == cudaSuccess) {
        error = event_check(context, end);
    }
    if (error != cudaSuccess) {
        return error;
    }
    if (start->queue == NULL || end->queue == NULL || ((start->flags | end->flags) & cudaEventDisableTiming) != 0) {
        return cudaErrorInvalidResourceHandle;
    }
    error = cuda_poll(context, start->queue, start->ticket, &start_ps);
    if (error == cudaSuccess) {
        error = cuda_poll(context, end->queue, end->ticket, &end_ps);
    }
    if (error == cudaSuccess) {
        *ms = (float)(int64_t)(end_ps - start_ps) / PS_PER_MS; // the API's type
    }
    return error;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    if (error == cudaSuccess && ms == NULL) {
        error = cudaErrorInvalidValue;
    }
    return cuda_leave(context, error != cudaSuccess ? error : elapsed(context, ms, start, end));
}

static cudaError_t stream_wait(struct cuda_context *context, cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    struct cuda_queue *queue;
    if (flags != 0) {
        return cudaErrorInvalidValue;
    }
    cudaError_t error = cuda_stream_queue(context, stream, &queue);
    if (error != cudaSuccess || event->queue == NULL) {
        return error;
    }
    cuda_pay_ns(context, context->devices[queue->gpu].info.submit_call_ns);
    return cuda_submit_after(context, queue, event->queue, event->ticket);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    struct cuda_context *context;
    cudaError_t error = event_enter(event, &context);
    return cuda_leave(context, error != cudaSuccess ? error : stream_wait(context, stream, event, flags));
}
