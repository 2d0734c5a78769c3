// An extension: a kernel as a declared amount of work, as CUDA kernels cannot be compiled here.
//
// It occupies its stream for at least duration_ns, and for as long as the GPU needs to move memory_bytes and to do
// flops at its own rates. It computes nothing: device memory is the same before and after. A program that needs the
// result copies it in.
#pragma once

#include <stdint.h>

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tcasim_kernel {
    uint64_t duration_ns, memory_bytes, flops;
};

// Does not wait. cudaErrorInvalidValue: no kernel. cudaErrorInvalidResourceHandle: a stream of another device.
cudaError_t tcasimLaunchKernel(const struct tcasim_kernel *kernel, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
