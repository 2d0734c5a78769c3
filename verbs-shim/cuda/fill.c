// Fills of device memory.
#include "verbs-shim/cuda/internal.h"

static cudaError_t fill_submit(struct cuda_context *context, struct cuda_queue *queue, unsigned gpu,
                               const struct backend_gpu_work *work)
{
    struct cuda_queue *detour;
    cudaError_t error = cuda_detour_begin(context, queue, gpu, &detour);
    if (error == cudaSuccess) {
        error = cuda_submit(context, detour, work);
    }
    return error == cudaSuccess ? cuda_detour_end(context, queue, detour) : error;
}

// own_order: the work is in the order of the default stream of the memory's device.
static cudaError_t fill(struct cuda_context *context, void *pointer, int value, size_t bytes, cudaStream_t stream,
                        bool own_order)
{
    struct cuda_queue *queue;
    unsigned gpu;
    struct backend_gpu_work work = {
        .kind = BACKEND_GPU_SET, .bytes = bytes, .rows = 1, .device_pitch = bytes, .value = (uint8_t)value};
    cudaError_t error = cuda_stream_queue(context, stream, &queue);
    if (error != cudaSuccess || bytes == 0) {
        return error;
    }
    if (!cuda_pointer_device(context, pointer, &gpu, &work.device_address)) {
        return cudaErrorInvalidValue;
    }
    const struct cuda_allocation *allocation = cuda_allocation_around(context, gpu, work.device_address);
    if (allocation == NULL || bytes > allocation->bytes - (work.device_address - allocation->device_address)) {
        return cudaErrorInvalidValue;
    }
    if (own_order) {
        struct cuda_device *device;
        error = cuda_device_use(context, gpu, &device);
        queue = device->first;
    }
    if (error != cudaSuccess) {
        return error;
    }
    cuda_pay_ns(context, context->devices[queue->gpu].info.submit_call_ns);
    error = fill_submit(context, queue, gpu, &work);
    return error == cudaSuccess && own_order && allocation->sync_memops ? cuda_wait(context, queue, queue->last)
                                                                        : error;
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : fill(context, pointer, value, bytes, NULL, true));
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : fill(context, pointer, value, bytes, stream, false));
}
