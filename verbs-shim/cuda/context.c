// The library's state of one process.
#include <errno.h>
#include <stdlib.h>

#include "verbs-shim/cuda/internal.h"

// The environment calls it when the process has ended, at whatever point.
static void context_release(void *library)
{
    struct cuda_context *context = library;
    context->process->peer_memory = NULL;
    for (unsigned gpu = 0; gpu < context->count; gpu++) {
        cuda_streams_drop(context, gpu);
        cuda_events_drop(context, gpu);
        cuda_queues_free(&context->devices[gpu]);
    }
    cuda_kernels_free(context);
    cuda_memory_free(context);
    free(context);
}

static struct cuda_context *context_make(struct backend_process *process, unsigned count)
{
    struct cuda_context *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return NULL;
    }
    context->process = process;
    context->backend = process->backend;
    context->gpu = process->backend.ops->gpu;
    context->count = count;
    for (unsigned gpu = 0; gpu < count; gpu++) {
        if (context->gpu->info(context->backend.ctx, gpu, &context->devices[gpu].info) != 0) {
            free(context);
            return NULL;
        }
    }
    return context;
}

struct cuda_context *cuda_context_current(void)
{
    struct backend_process *process = backend_current();
    if (process == NULL || process->backend.ops->gpu == NULL) {
        return NULL;
    }
    struct backend_library *library = &process->libraries[BACKEND_LIBRARY_CUDA];
    if (library->state == NULL) {
        unsigned count = process->backend.ops->gpu->count(process->backend.ctx);
        if (count == 0) {
            return NULL;
        }
        library->state = context_make(process, count < BACKEND_GPUS_MAX ? count : BACKEND_GPUS_MAX);
        library->release = library->state != NULL ? context_release : NULL;
        process->peer_memory = library->state != NULL ? &cuda_peer_memory : NULL;
    }
    return library->state;
}

cudaError_t cuda_enter(struct cuda_context **context_out)
{
    *context_out = cuda_context_current();
    return *context_out != NULL ? (*context_out)->broken : cudaErrorNoDevice;
}

cudaError_t cuda_leave(struct cuda_context *context, cudaError_t error)
{
    if (context != NULL && error != cudaSuccess) {
        context->last = error;
    }
    return error;
}

cudaError_t cuda_error_of(struct cuda_context *context, int error)
{
    switch (error) {
    case 0:
        return cudaSuccess;
    case -EOPNOTSUPP:
        return cudaErrorNotSupported;
    case -EINVAL:
        return cudaErrorInvalidValue;
    case -ENOMEM:
    case -ENOSPC:
        return cudaErrorMemoryAllocation;
    case -EIO:
        context->broken = cudaErrorIllegalAddress;
        return context->broken;
    default:
        return cudaErrorUnknown;
    }
}

void cuda_pay_call(struct cuda_context *context)
{
    context->backend.ops->cost(context->backend.ctx, BACKEND_COST_CALL, 1);
}

void cuda_pay_ns(struct cuda_context *context, uint64_t ns)
{
    context->backend.ops->cost(context->backend.ctx, BACKEND_COST_TIME, ns);
}
