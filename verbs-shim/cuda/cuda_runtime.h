/// @file
/// The header that programs include. Kernels cannot be compiled here; tcasim_kernel.h launches declared ones. C++
/// programs get overloads of cuda_runtime_api.h for pointers of any type, and with the default stream as the default
/// argument.
#pragma once

#include "cuda_runtime_api.h"

/// cudaDeviceSynchronize by its name before CUDA 4.
/// @return as cudaDeviceSynchronize
static inline cudaError_t cudaThreadSynchronize(void)
{
    return cudaDeviceSynchronize();
}

#ifdef __cplusplus
// Pointers of any type, and the default stream as the default argument.
template <class T> static inline cudaError_t cudaMalloc(T **pointer, size_t bytes)
{
    return cudaMalloc((void **)(void *)pointer, bytes);
}

template <class T> static inline cudaError_t cudaMallocHost(T **pointer, size_t bytes, unsigned flags = 0)
{
    return cudaHostAlloc((void **)(void *)pointer, bytes, flags);
}

template <class T> static inline cudaError_t cudaHostAlloc(T **pointer, size_t bytes, unsigned flags)
{
    return cudaHostAlloc((void **)(void *)pointer, bytes, flags);
}

static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    return cudaMemcpyAsync(to, from, bytes, kind, (cudaStream_t)0);
}

static inline cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                            size_t width, size_t height, cudaMemcpyKind kind)
{
    return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, (cudaStream_t)0);
}

static inline cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes)
{
    return cudaMemsetAsync(pointer, value, bytes, (cudaStream_t)0);
}

static inline cudaError_t cudaEventRecord(cudaEvent_t event)
{
    return cudaEventRecord(event, (cudaStream_t)0);
}
#endif
