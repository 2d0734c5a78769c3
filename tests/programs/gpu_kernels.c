// Kernels in a separate process: 100 steps of a stencil on a GPU, with copies at the same time, compared with the same
// steps on the host. argv[1]: a further check.
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tcasim_kernel.h>
#include <unistd.h>

enum { NUMBERS = 100000, STEPS = 100 };

static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

static void step(float *to, const float *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        to[i] = (from[i == 0 ? count - 1 : i - 1] + from[i] + from[i + 1 == count ? 0 : i + 1]) / 3;
    }
}

// --- the kernel -----------------------------------------------------------------------------------------------------

static void stencil(void)
{
}

static void stencil_cost(const struct tcasim_launch *launch, struct tcasim_kernel *cost)
{
    cost->memory_bytes = 2 * sizeof(float) * *(const uint32_t *)launch->args[2];
}

static int crashes;

static void stencil_run(const struct tcasim_launch *launch)
{
    uint32_t count = *(const uint32_t *)launch->args[2];
    float *to = tcasimKernelMemory(launch, *(void *const *)launch->args[0], count * sizeof *to);
    const float *from = tcasimKernelMemory(launch, *(const void *const *)launch->args[1], count * sizeof *from);
    if (crashes) {
        *(volatile int *)NULL = 0;
    }
    step(to, from, count);
}

static void launch(void *to, const void *from, cudaStream_t stream)
{
    uint32_t count = NUMBERS;
    void *args[] = {&to, &from, &count};
    CHECK(cudaLaunchKernel((const void *)stencil, (dim3){(NUMBERS + 127) / 128, 1, 1}, (dim3){128, 1, 1}, args, 0,
                           stream));
}

// --- the program ----------------------------------------------------------------------------------------------------

int main(int argc, char **argv)
{
    static const size_t arguments[] = {sizeof(void *), sizeof(void *), sizeof(uint32_t)};
    const struct tcasim_kernel_definition definition = {
        .name = "stencil", .argument_count = 3, .argument_bytes = arguments, .cost = stencil_cost, .run = stencil_run};
    static float expected[2][NUMBERS], got[NUMBERS];
    void *buffers[2], *beside, *pinned;
    cudaStream_t stream, other;
    cudaEvent_t start, end;
    float ms;
    crashes = argc > 1 && strcmp(argv[1], "crash") == 0;
    CHECK(tcasimKernelRegister((const void *)stencil, &definition));
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMalloc(&buffers[i], NUMBERS * sizeof(float)));
    }
    CHECK(cudaMalloc(&beside, 1 << 20));
    CHECK(cudaMallocHost(&pinned, 1 << 20));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    for (uint32_t i = 0; i < NUMBERS; i++) {
        expected[0][i] = (float)(i * 2654435761u % 1000);
    }
    CHECK(cudaMemcpy(buffers[0], expected[0], sizeof expected[0], cudaMemcpyHostToDevice));
    CHECK(cudaEventRecord(start, stream));
    for (int i = 0; i < STEPS; i++) {
        launch(buffers[1 - i % 2], buffers[i % 2], stream);
        step(expected[1 - i % 2], expected[i % 2], NUMBERS);
        CHECK(cudaMemcpyAsync(beside, pinned, 1 << 20, cudaMemcpyHostToDevice, other));
    }
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaEventElapsedTime(&ms, start, end));
    CHECK(cudaMemcpy(got, buffers[STEPS % 2], sizeof got, cudaMemcpyDeviceToHost));
    int wrong = memcmp(got, expected[STEPS % 2], sizeof got) != 0;
    // Freed memory may go to the other process, and is zero when it is allocated again.
    CHECK(cudaFree(buffers[0]));
    CHECK(cudaMalloc(&buffers[0], NUMBERS * sizeof(float)));
    launch(buffers[1], buffers[0], stream);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(got, buffers[1], sizeof got, cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < NUMBERS; i++) {
        wrong += got[i] != 0;
    }
    CHECK(cudaMemset(buffers[1], 0x3f, NUMBERS * sizeof(float)));
    CHECK(cudaMemset(buffers[1], 0, NUMBERS * sizeof(float)));
    CHECK(cudaMemcpy(got, buffers[1], sizeof got, cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < NUMBERS; i++) {
        wrong += got[i] != 0;
    }
    printf("%d steps: %.3f us each, %d wrong\n", STEPS, 1e3 * (double)ms / STEPS, wrong);
    launch(buffers[0], buffers[1], stream); // in flight when the program ends
    return wrong != 0;
}
