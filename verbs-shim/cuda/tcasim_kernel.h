// An extension: kernels, as CUDA's own cannot be compiled here. A kernel occupies its stream for a declared time, and
// may have an effect: a C function that runs on the GPU's memory when that time has passed.
//
// A kernel takes at least duration_ns, and at least as long as the GPU needs to move memory_bytes and to do flops at
// its own rates (a roofline: the longest of the three counts); its occupancy is the share of these rates that it
// reaches. Flops are double precision, like the GPU's peak rate; a single-precision kernel declares the number of
// double-precision flops that takes as long.
//
// Not modelled: concurrent kernels on a GPU, memory of other GPUs and of the host in an effect, effects with
// `tcasim exec --functional` (cudaErrorNotSupported).
#pragma once

#include <stdint.h>

#include "driver_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tcasim_kernel {
    uint64_t duration_ns, memory_bytes, flops;
};

// Launches a kernel without an effect. Does not wait. cudaErrorInvalidValue: NULL. cudaErrorInvalidResourceHandle: a
// stream of another device.
cudaError_t tcasimLaunchKernel(const struct tcasim_kernel *kernel, cudaStream_t stream);

// --- kernels with an effect -----------------------------------------------------------------------------------------

#define TCASIM_KERNEL_ARGUMENTS_MAX      64
#define TCASIM_KERNEL_ARGUMENT_BYTES_MAX 4096 // all arguments together; CUDA's limit

// One launch. The arguments are copies that cudaLaunchKernel made, as on a real machine.
struct tcasim_launch {
    dim3 grid, block;
    size_t shared_bytes;
    void *const *args;
    const void *memory; // passed to tcasimKernelMemory
};

// A program's definition of a kernel. The definition is copied, but not name and argument_bytes: they must stay valid.
struct tcasim_kernel_definition {
    const char *name; // for messages
    unsigned argument_count;
    const size_t *argument_bytes; // size of each argument
    // Declares the time of a launch in *cost, which begins with zeros; NULL: a launch takes only the driver's call.
    void (*cost)(const struct tcasim_launch *launch, struct tcasim_kernel *cost);
    double occupancy; // more than 0, up to 1: the share of the GPU's rates; 0 means 1
    // Computes the result when the kernel ends on the GPU, before later work of its stream, in no simulated time. It
    // runs on any thread that waits for the simulator, perhaps while a lock of the C library is held: no CUDA, no
    // printing, no locks, no threads (OpenMP), no sleep. NULL: no effect.
    void (*run)(const struct tcasim_launch *launch);
};

// Registers the kernel that cudaLaunchKernel finds by this function, in this process. cudaErrorInvalidValue: NULL, too
// many or too large arguments, an invalid occupancy. A registered function gets the new definition.
cudaError_t tcasimKernelRegister(const void *function, const struct tcasim_kernel_definition *definition);

// Called in a kernel's run: device memory for the processor, valid until run returns. NULL: it is not in one allocation
// of the GPU on which the kernel runs.
void *tcasimKernelMemory(const struct tcasim_launch *launch, const void *device_pointer, size_t bytes);

#ifdef __cplusplus
}
#endif
