/// @file
/// An extension: kernels, as CUDA's own cannot be compiled here. A kernel occupies its stream for a declared time, and
/// may have an effect: a C function that runs on the GPU's memory when that time has passed.
///
/// A kernel takes at least duration_ns, and at least as long as the GPU needs to move memory_bytes and to do flops at
/// its own rates (a roofline: the longest of the three counts); its occupancy is the share of these rates that it
/// reaches. Flops are double precision, like the GPU's peak rate; a single-precision kernel declares the number of
/// double-precision flops that takes as long.
///
/// Errors are those of cuda_runtime_api.h.
///
/// Not modelled: concurrent kernels on a GPU, memory of other GPUs and of the host in an effect, effects with
/// `tcasim exec --functional` (cudaErrorNotSupported).
#pragma once

#include <stdint.h>

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What a kernel needs: nanoseconds, bytes of device memory, double-precision operations.
struct tcasim_kernel {
    uint64_t duration_ns;  ///< least duration
    uint64_t memory_bytes; ///< bytes that it reads and writes
    uint64_t flops;        ///< operations
};

/// Launches a kernel without an effect. Does not wait.
/// @param kernel copied
/// @param stream of the current device
/// @retval cudaSuccess it is queued
/// @retval cudaErrorInvalidValue kernel is null
/// @retval cudaErrorInvalidResourceHandle an unknown stream, or of another device
/// @return a general error
cudaError_t tcasimLaunchKernel(const struct tcasim_kernel *kernel, cudaStream_t stream);

// --- kernels with an effect -----------------------------------------------------------------------------------------

#define TCASIM_KERNEL_ARGUMENTS_MAX      64   ///< arguments of a kernel
#define TCASIM_KERNEL_ARGUMENT_BYTES_MAX 4096 ///< all arguments together, each rounded up to 16; CUDA's limit

/// One launch, as a kernel's functions see it. It is valid until they return.
struct tcasim_launch {
    dim3 grid;           ///< as given to cudaLaunchKernel
    dim3 block;          ///< as given to cudaLaunchKernel
    size_t shared_bytes; ///< as given to cudaLaunchKernel
    void *const *args;   ///< copies that cudaLaunchKernel made, as on a real machine
    const void *memory;  ///< for tcasimKernelMemory; NULL in `cost`
};

/// A program's definition of a kernel.
struct tcasim_kernel_definition {
    const char *name;             ///< for messages; must stay valid
    unsigned argument_count;      ///< up to TCASIM_KERNEL_ARGUMENTS_MAX
    const size_t *argument_bytes; ///< size of each argument; must stay valid
    /// Declares the time of a launch in *cost, which begins with zeros; NULL: a launch takes only the driver's call.
    void (*cost)(const struct tcasim_launch *launch, struct tcasim_kernel *cost);
    double occupancy; ///< more than 0, up to 1: the share of the GPU's rates; 0 means 1
    /// Computes the result when the kernel ends on the GPU, before later work of its stream, in no simulated time. It
    /// runs on any thread that waits for the simulator, perhaps while a lock of the C library is held: no CUDA, no
    /// printing, no locks, no threads (OpenMP), no sleep. NULL: no effect.
    void (*run)(const struct tcasim_launch *launch);
};

/// Registers the kernel that cudaLaunchKernel finds by a function, in this process. A registered function gets the new
/// definition.
/// @param function any address; it is not called
/// @param definition copied, but not what name and argument_bytes point to
/// @retval cudaSuccess it is registered
/// @retval cudaErrorInvalidValue a null pointer, too many or too large arguments, or an invalid occupancy
/// @retval cudaErrorMemoryAllocation no memory
/// @return a general error
cudaError_t tcasimKernelRegister(const void *function, const struct tcasim_kernel_definition *definition);

/// Called in a kernel's run: device memory for the processor.
/// @param launch as given to run
/// @param device_pointer of the GPU on which the kernel runs
/// @param bytes from there on
/// @return an address, valid until run returns; NULL: not in one allocation of that GPU
void *tcasimKernelMemory(const struct tcasim_launch *launch, const void *device_pointer, size_t bytes);

#ifdef __cplusplus
}
#endif
