// An extension: kernels, as CUDA's own cannot be compiled here. A kernel occupies its stream for a declared time, and
// may have an effect: a C function that runs on the GPU's memory when that time is over.
//
// A kernel takes at least duration_ns, and as long as the GPU needs to move memory_bytes and to do flops at its own
// rates (a roofline: the longest of the three counts); its occupancy says how much of these rates it reaches. Flops are
// those of double precision, as the GPU's peak is; a kernel of single precision declares as many as take it as long.
//
// Left out: kernels side by side on a GPU, memory of other GPUs and of the host in an effect, effects with
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

// Without an effect. Does not wait. cudaErrorInvalidValue: no kernel. cudaErrorInvalidResourceHandle: a stream of
// another device.
cudaError_t tcasimLaunchKernel(const struct tcasim_kernel *kernel, cudaStream_t stream);

// --- kernels with an effect -----------------------------------------------------------------------------------------

#define TCASIM_KERNEL_ARGUMENTS_MAX      64
#define TCASIM_KERNEL_ARGUMENT_BYTES_MAX 4096 // of all, as CUDA has it

// One launch. The arguments are copies that cudaLaunchKernel made, as it does on a machine.
struct tcasim_launch {
    dim3 grid, block;
    size_t shared_bytes;
    void *const *args;
    const void *memory; // for tcasimKernelMemory
};

// What a program says of a kernel; it is copied, and name and argument_bytes stay the program's and as they are.
struct tcasim_kernel_definition {
    const char *name; // as messages call it
    unsigned argument_count;
    const size_t *argument_bytes; // of each
    // What a launch costs; NULL: no more than any launch. cost begins with zeros.
    void (*cost)(const struct tcasim_launch *launch, struct tcasim_kernel *cost);
    double occupancy; // over 0 to 1, of the GPU's rates; 0: 1
    // What it computes, when it ends on the GPU and before anything behind it in its stream; it takes no simulated
    // time. It runs on whatever thread waits for the simulator, perhaps within a lock of the C library: no CUDA, no
    // printing, no locks, no threads (OpenMP), no sleep. NULL: nothing.
    void (*run)(const struct tcasim_launch *launch);
};

// The kernel that cudaLaunchKernel finds by this function, in this process. cudaErrorInvalidValue: NULL, too many or
// too large arguments, an occupancy that is none. A function that is known gets the new definition.
cudaError_t tcasimKernelRegister(const void *function, const struct tcasim_kernel_definition *definition);

// In a kernel's run: device memory for the processor, until run returns. NULL: it is not in one allocation of the GPU
// on which the kernel runs.
void *tcasimKernelMemory(const struct tcasim_launch *launch, const void *device_pointer, size_t bytes);

#ifdef __cplusplus
}
#endif
