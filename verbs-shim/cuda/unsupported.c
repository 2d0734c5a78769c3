// Calls that exist only by name.
#include <stdio.h>

#include "verbs-shim/cuda/internal.h"

enum call {
    HOST_REGISTER,
    HOST_UNREGISTER,
    HOST_GET_DEVICE_POINTER,
    MALLOC_MANAGED,
    MALLOC_PITCH,
    MEMSET_2D,
    IPC_GET,
    IPC_OPEN,
    IPC_CLOSE,
    STREAM_PRIORITY,
    STREAM_CALLBACK,
    SET_DEVICE_FLAGS
};

static cudaError_t refuse(enum call call, const char *name)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    if (error != cudaSuccess) {
        return cuda_leave(context, error);
    }
    if ((context->said & 1u << call) == 0) {
        context->said |= 1u << call;
        fprintf(stderr, "tcasim: %s is not supported and returns cudaErrorNotSupported\n", name);
    }
    return cuda_leave(context, cudaErrorNotSupported);
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    (void)pointer, (void)bytes, (void)flags;
    return refuse(HOST_REGISTER, "cudaHostRegister");
}

cudaError_t cudaHostUnregister(void *pointer)
{
    (void)pointer;
    return refuse(HOST_UNREGISTER, "cudaHostUnregister");
}

cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *host_pointer, unsigned flags)
{
    (void)device_pointer, (void)host_pointer, (void)flags;
    return refuse(HOST_GET_DEVICE_POINTER, "cudaHostGetDevicePointer");
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags)
{
    (void)pointer, (void)bytes, (void)flags;
    return refuse(MALLOC_MANAGED, "cudaMallocManaged");
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    (void)pointer, (void)pitch, (void)width, (void)height;
    return refuse(MALLOC_PITCH, "cudaMallocPitch");
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height)
{
    (void)pointer, (void)pitch, (void)value, (void)width, (void)height;
    return refuse(MEMSET_2D, "cudaMemset2D");
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
    (void)handle, (void)pointer;
    return refuse(IPC_GET, "cudaIpcGetMemHandle");
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned flags)
{
    (void)pointer, (void)handle, (void)flags;
    return refuse(IPC_OPEN, "cudaIpcOpenMemHandle");
}

cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
    (void)pointer;
    return refuse(IPC_CLOSE, "cudaIpcCloseMemHandle");
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    (void)stream, (void)flags, (void)priority;
    return refuse(STREAM_PRIORITY, "cudaStreamCreateWithPriority");
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, void (*callback)(cudaStream_t, cudaError_t, void *), void *arg,
                                  unsigned flags)
{
    (void)stream, (void)callback, (void)arg, (void)flags;
    return refuse(STREAM_CALLBACK, "cudaStreamAddCallback");
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    (void)flags;
    return refuse(SET_DEVICE_FLAGS, "cudaSetDeviceFlags");
}
