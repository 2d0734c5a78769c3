// Kernels of a declared duration, and kernels that a program registers together with their computation
// (tcasim_kernel.h).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/cuda/internal.h"
#include "verbs-shim/cuda/tcasim_kernel.h"

// Limits of all GPUs since 2012 (compute capability 3.0).
enum { THREADS_MAX = 1024, BLOCK_Z_MAX = 64, GRID_YZ_MAX = 65535 };

struct cuda_kernel {
    struct cuda_kernel *next;
    const void *function;
    struct tcasim_kernel_definition definition;
};

// One launch with an effect. It belongs to its queue and outlives the program's context.
struct launch {
    void (*run)(const struct tcasim_launch *launch);
    unsigned gpu;
    struct tcasim_launch launch;
    void *args[TCASIM_KERNEL_ARGUMENTS_MAX];
    _Alignas(16) unsigned char data[TCASIM_KERNEL_ARGUMENT_BYTES_MAX];
};

// The target of launch->memory in a running kernel.
struct running {
    const struct backend_gpu_memory *memory;
    unsigned gpu;
};

void cuda_kernels_free(struct cuda_context *context)
{
    while (context->kernels != NULL) {
        struct cuda_kernel *kernel = context->kernels;
        context->kernels = kernel->next;
        free(kernel);
    }
}

// --- registration ---------------------------------------------------------------------------------------------------

static struct cuda_kernel *kernel_find(const struct cuda_context *context, const void *function)
{
    struct cuda_kernel *kernel = context->kernels;
    while (kernel != NULL && kernel->function != function) {
        kernel = kernel->next;
    }
    return kernel;
}

// Each argument starts at a multiple of 16 bytes, so that a value of any type can be read there.
static size_t room_of(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static bool definition_valid(const struct tcasim_kernel_definition *definition)
{
    if (definition == NULL || definition->name == NULL || definition->argument_count > TCASIM_KERNEL_ARGUMENTS_MAX ||
        (definition->argument_count > 0 && definition->argument_bytes == NULL)) {
        return false;
    }
    size_t left = TCASIM_KERNEL_ARGUMENT_BYTES_MAX;
    for (unsigned i = 0; i < definition->argument_count; i++) {
        if (definition->argument_bytes[i] > left || room_of(definition->argument_bytes[i]) > left) {
            return false;
        }
        left -= room_of(definition->argument_bytes[i]);
    }
    return definition->occupancy >= 0 && definition->occupancy <= 1;
}

static cudaError_t kernel_register(struct cuda_context *context, const void *function,
                                   const struct tcasim_kernel_definition *definition)
{
    if (function == NULL || !definition_valid(definition)) {
        return cudaErrorInvalidValue;
    }
    struct cuda_kernel *kernel = kernel_find(context, function);
    if (kernel == NULL) {
        kernel = malloc(sizeof *kernel);
        if (kernel == NULL) {
            return cudaErrorMemoryAllocation;
        }
        *kernel = (struct cuda_kernel){.next = context->kernels, .function = function};
        context->kernels = kernel;
    }
    kernel->definition = *definition;
    return cudaSuccess;
}

cudaError_t tcasimKernelRegister(const void *function, const struct tcasim_kernel_definition *definition)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : kernel_register(context, function, definition));
}

// --- the effect -----------------------------------------------------------------------------------------------------

void *tcasimKernelMemory(const struct tcasim_launch *launch, const void *device_pointer, size_t bytes)
{
    const struct running *running = launch->memory;
    unsigned gpu;
    uint64_t device_address;
    if (running == NULL || !cuda_pointer_split(device_pointer, &gpu, &device_address) || gpu != running->gpu) {
        return NULL;
    }
    return running->memory->at(running->memory->ctx, device_address, bytes);
}

static void effect(void *ctx, const struct backend_gpu_memory *memory)
{
    struct launch *launch = ctx;
    if (memory != NULL) {
        const struct running running = {memory, launch->gpu};
        launch->launch.memory = &running;
        launch->run(&launch->launch);
    }
    free(launch);
}

// --- launches -------------------------------------------------------------------------------------------------------

static cudaError_t submit(struct cuda_context *context, cudaStream_t stream, struct backend_gpu_work *work)
{
    struct cuda_queue *queue;
    cudaError_t error = cuda_stream_queue(context, stream, &queue);
    if (error != cudaSuccess || queue->gpu != context->current) {
        return error != cudaSuccess ? error : cudaErrorInvalidResourceHandle;
    }
    cuda_pay_ns(context, context->devices[queue->gpu].info.submit_call_ns);
    return cuda_submit(context, queue, work);
}

static cudaError_t declared_launch(struct cuda_context *context, const struct tcasim_kernel *kernel,
                                   cudaStream_t stream)
{
    if (kernel == NULL) {
        return cudaErrorInvalidValue;
    }
    struct backend_gpu_work work = {.kind = BACKEND_GPU_KERNEL,
                                    .duration_ns = kernel->duration_ns,
                                    .memory_bytes = kernel->memory_bytes,
                                    .flops = kernel->flops};
    return submit(context, stream, &work);
}

cudaError_t tcasimLaunchKernel(const struct tcasim_kernel *kernel, cudaStream_t stream)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess ? error : declared_launch(context, kernel, stream));
}

static bool shape_valid(dim3 grid, dim3 block)
{
    uint64_t threads = (uint64_t)block.x * block.y;
    return grid.x != 0 && grid.y != 0 && grid.z != 0 && grid.x <= INT32_MAX && grid.y <= GRID_YZ_MAX &&
           grid.z <= GRID_YZ_MAX && block.z <= BLOCK_Z_MAX && threads != 0 && block.z != 0 && threads <= THREADS_MAX &&
           threads * block.z <= THREADS_MAX;
}

static uint64_t scaled(uint64_t amount, double occupancy)
{
    double all = occupancy > 0 ? (double)amount / occupancy : (double)amount;
    const uint64_t most = UINT64_C(1) << 43; // hours
    return all < (double)most ? (uint64_t)all : most;
}

static struct launch *launch_make(const struct tcasim_kernel_definition *definition, dim3 grid, dim3 block,
                                  void *const *args, size_t shared_bytes)
{
    struct launch *launch = malloc(sizeof *launch);
    if (launch == NULL) {
        return NULL;
    }
    size_t at = 0;
    launch->run = definition->run;
    for (unsigned i = 0; i < definition->argument_count; i++) {
        launch->args[i] = launch->data + at;
        memcpy(launch->args[i], args[i], definition->argument_bytes[i]);
        at += room_of(definition->argument_bytes[i]);
    }
    launch->launch =
        (struct tcasim_launch){.grid = grid, .block = block, .shared_bytes = shared_bytes, .args = launch->args};
    return launch;
}

static cudaError_t kernel_launch(struct cuda_context *context, const struct cuda_kernel *kernel, struct launch *launch,
                                 cudaStream_t stream)
{
    struct tcasim_kernel cost = {0};
    const struct tcasim_kernel_definition *definition = &kernel->definition;
    launch->gpu = context->current;
    if (definition->cost != NULL) {
        definition->cost(&launch->launch, &cost);
    }
    struct backend_gpu_work work = {.kind = BACKEND_GPU_KERNEL,
                                    .duration_ns = cost.duration_ns,
                                    .memory_bytes = scaled(cost.memory_bytes, definition->occupancy),
                                    .flops = scaled(cost.flops, definition->occupancy),
                                    .effect = definition->run != NULL ? effect : NULL,
                                    .effect_ctx = launch};
    cudaError_t error = submit(context, stream, &work);
    if (error != cudaSuccess || definition->run == NULL) {
        free(launch);
    }
    return error;
}

static cudaError_t function_launch(struct cuda_context *context, const void *function, dim3 grid, dim3 block,
                                   void **args, size_t shared_bytes, cudaStream_t stream)
{
    const struct cuda_kernel *kernel = kernel_find(context, function);
    if (kernel == NULL) {
        fprintf(stderr, "tcasim: cudaLaunchKernel of a function that is no kernel: tcasimKernelRegister makes it one "
                        "(tcasim_kernel.h)\n");
        return cudaErrorInvalidDeviceFunction;
    }
    if (!shape_valid(grid, block)) {
        return cudaErrorInvalidConfiguration;
    }
    if (args == NULL && kernel->definition.argument_count > 0) {
        return cudaErrorInvalidValue;
    }
    struct launch *launch = launch_make(&kernel->definition, grid, block, args, shared_bytes);
    return launch != NULL ? kernel_launch(context, kernel, launch, stream) : cudaErrorMemoryAllocation;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                             cudaStream_t stream)
{
    struct cuda_context *context;
    cudaError_t error = cuda_enter(&context);
    return cuda_leave(context, error != cudaSuccess
                                   ? error
                                   : function_launch(context, function, grid, block, args, shared_bytes, stream));
}
