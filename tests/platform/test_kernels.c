// Kernels of programs inside the simulation: each runs the function with which it was registered.
#include <cuda_runtime.h>
#include <tcasim_kernel.h>

#include "tests/support/site.h"

enum { NUMBERS = 1 << 20, BYTES = NUMBERS * sizeof(float), OPERATIONS = 2 };

static struct scn_scenario *no_board(void)
{
    struct scn_scenario *scenario = platform_fixture_line(1);
    scenario->nodes[0].board = (struct scn_board){0};
    platform_fixture_gpus(scenario, 0, 2);
    return scenario;
}

// --- the kernel: y = a * x + y --------------------------------------------------------------------------------------

static void saxpy(void) // the program's handle of the kernel
{
}

static void saxpy_cost(const struct tcasim_launch *launch, struct tcasim_kernel *cost)
{
    uint64_t count = *(const uint32_t *)launch->args[0];
    cost->memory_bytes = 3 * sizeof(float) * count;
    cost->flops = OPERATIONS * count;
}

static unsigned runs, refusals;

static void saxpy_run(const struct tcasim_launch *launch)
{
    uint32_t count = *(const uint32_t *)launch->args[0];
    float a = *(const float *)launch->args[1];
    const float *x = tcasimKernelMemory(launch, *(const void *const *)launch->args[2], count * sizeof *x);
    float *y = tcasimKernelMemory(launch, *(void *const *)launch->args[3], count * sizeof *y);
    runs++;
    if (x == NULL || y == NULL) {
        refusals++;
        return;
    }
    EXPECT_GE(launch->grid.x * launch->block.x, count);
    for (uint32_t i = 0; i < count; i++) {
        y[i] += a * x[i];
    }
}

static const size_t saxpy_arguments[] = {sizeof(uint32_t), sizeof(float), sizeof(void *), sizeof(void *)};
static const struct tcasim_kernel_definition saxpy_definition = {
    .name = "saxpy", .argument_count = 4, .argument_bytes = saxpy_arguments, .cost = saxpy_cost, .run = saxpy_run};

static cudaError_t launch(uint32_t count, float a, const void *x, void *y, cudaStream_t stream)
{
    void *args[] = {&count, &a, &x, &y};
    cudaError_t error =
        cudaLaunchKernel((const void *)saxpy, (dim3){(count + 255) / 256, 1, 1}, (dim3){256, 1, 1}, args, 0, stream);
    count = 0; // the launch has copies
    a = 0;
    return error;
}

static uint64_t now_ps(void)
{
    const struct backend *backend = &backend_current()->backend;
    return backend->ops->time_ps(backend->ctx);
}

// --- the program ----------------------------------------------------------------------------------------------------

static float *host;
static void *x, *y;

static void prepare(void)
{
    EXPECT_EQ(cudaMalloc(&x, BYTES), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&y, BYTES), cudaSuccess);
    EXPECT_EQ(cudaMallocHost((void **)&host, BYTES), cudaSuccess);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        host[i] = (float)(i % 1000);
    }
    EXPECT_EQ(cudaMemcpy(x, host, BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemset(y, 0, BYTES), cudaSuccess);
    EXPECT_EQ(tcasimKernelRegister((const void *)saxpy, &saxpy_definition), cudaSuccess);
}

static void in_order(void *arg, peach2_handle_t *board)
{
    (void)arg;
    (void)board;
    cudaStream_t one, two;
    cudaEvent_t done;
    prepare();
    EXPECT_EQ(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaEventCreate(&done), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    runs = 0;
    EXPECT_EQ(launch(NUMBERS, 2, x, y, one), cudaSuccess);
    EXPECT_EQ(launch(NUMBERS, 3, x, y, one), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(done, one), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(host, y, 4096, cudaMemcpyDeviceToHost, two), cudaSuccess); // concurrent with the kernels
    EXPECT_EQ(cudaStreamSynchronize(two), cudaSuccess);
    EXPECT_EQ(runs, 0);
    EXPECT_EQ(host[7], 0);
    EXPECT_EQ(cudaStreamWaitEvent(two, done, 0), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(host, y, BYTES, cudaMemcpyDeviceToHost, two), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(two), cudaSuccess);
    EXPECT_EQ(runs, 2);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        ASSERT_EQ(host[i], 5 * (float)(i % 1000));
    }
}

TEST(GpuKernels, ComputeInTheOrderOfTheirStreamsBesideCopiesOfOthers)
{
    struct site site = {.scenario = no_board()};
    site_build(&site);
    site_run(&site, in_order);
    site_fini(&site);
}

static uint64_t kernel_ps(double occupancy)
{
    struct tcasim_kernel_definition definition = saxpy_definition;
    definition.occupancy = occupancy;
    EXPECT_EQ(tcasimKernelRegister((const void *)saxpy, &definition), cudaSuccess);
    uint64_t start_ps = now_ps();
    EXPECT_EQ(launch(NUMBERS, 1, x, y, NULL), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return now_ps() - start_ps;
}

static void take_their_time(void *arg, peach2_handle_t *board)
{
    (void)arg;
    (void)board;
    prepare();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    // 12 MiB at the GPU's rate; twice as long at half of it.
    uint64_t all_ps = kernel_ps(0), half_ps = kernel_ps(0.5), quarter_ps = kernel_ps(0.25);
    EXPECT_EQ(quarter_ps - half_ps, 2 * (half_ps - all_ps));
    double bytes_per_us = 3.0 * BYTES * 1e6 / (double)(half_ps - all_ps);
    const struct scn_gpu *gpu = ((struct site *)arg)->scenario->nodes[0].gpus;
    EXPECT_BETWEEN(bytes_per_us, 0.999 * (double)gpu->memory_bytes_per_us, 1.001 * (double)gpu->memory_bytes_per_us);
}

TEST(GpuKernels, TakeWhatTheMemoryOfTheGpuTakesAtTheirOccupancy)
{
    struct site site = {.scenario = no_board()};
    site_build(&site);
    site_run(&site, take_their_time);
    site_fini(&site);
}

static void refuse(void *arg, peach2_handle_t *board)
{
    (void)arg;
    (void)board;
    struct tcasim_kernel_definition bad = saxpy_definition;
    uint32_t count = 1;
    float a = 1;
    void *args[] = {&count, &a, &x, &y}, *other;
    prepare();
    EXPECT_EQ(cudaLaunchKernel((const void *)refuse, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL),
              cudaErrorInvalidDeviceFunction);
    EXPECT_EQ(cudaLaunchKernel((const void *)saxpy, (dim3){0, 1, 1}, (dim3){1, 1, 1}, args, 0, NULL),
              cudaErrorInvalidConfiguration);
    EXPECT_EQ(cudaLaunchKernel((const void *)saxpy, (dim3){1, 1, 1}, (dim3){32, 33, 1}, args, 0, NULL),
              cudaErrorInvalidConfiguration);
    EXPECT_EQ(cudaLaunchKernel((const void *)saxpy, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL),
              cudaErrorInvalidValue);
    bad.occupancy = 1.5;
    EXPECT_EQ(tcasimKernelRegister((const void *)refuse, &bad), cudaErrorInvalidValue);
    bad = saxpy_definition;
    bad.argument_count = TCASIM_KERNEL_ARGUMENTS_MAX + 1;
    EXPECT_EQ(tcasimKernelRegister((const void *)refuse, &bad), cudaErrorInvalidValue);
    // Memory that the kernel may not access: beyond its allocation, of the other GPU, of the host.
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&other, BYTES), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    runs = refusals = 0;
    EXPECT_EQ(launch(NUMBERS + 1, 1, x, y, NULL), cudaSuccess);
    EXPECT_EQ(launch(NUMBERS, 1, other, y, NULL), cudaSuccess);
    EXPECT_EQ(launch(NUMBERS, 1, x, host, NULL), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(runs, 3);
    EXPECT_EQ(refusals, 3);
    EXPECT_EQ(launch(NUMBERS, 1, x, y, NULL), cudaSuccess); // the program ends while this one runs
}

TEST(GpuKernels, RefuseWhatIsNoneAndMemoryThatIsNotTheirs)
{
    struct site site = {.scenario = no_board()};
    site_build(&site);
    site_run(&site, refuse);
    site_fini(&site);
}
