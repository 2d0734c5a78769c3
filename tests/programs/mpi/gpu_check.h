// What the ranks of gpu.c have and check with: two buffers in device memory, bytes that tell who has sent them, and the
// number of those that are wrong.
#pragma once

#include <cuda_runtime.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 20, AROUND = 64 };

static int rank, ranks;
static long wrong;
static char *device, *other; // two buffers
static unsigned char host[ROOM + 2 * AROUND], seen[ROOM + 2 * AROUND];

static void cuda(cudaError_t error, int line)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(error));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}
#define CUDA(call) cuda(call, __LINE__)

static unsigned char byte_of(int from, size_t index, int seed)
{
    return (unsigned char)((index * 7 + index / 251 + (size_t)from * 31 + (size_t)seed * 17) & 0xff);
}

static void fill(char *to, size_t bytes, int from, int seed)
{
    for (size_t i = 0; i < bytes; i++) {
        host[i] = byte_of(from, i, seed);
    }
    CUDA(cudaMemcpy(to, host, bytes, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
}

static void clear(char *to, size_t bytes)
{
    CUDA(cudaMemset(to, 0xee, bytes));
    CUDA(cudaDeviceSynchronize());
}

static void expect(const char *from, size_t bytes, int sender, int seed, const char *what)
{
    long before = wrong;
    CUDA(cudaMemcpy(seen, from, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes; i++) {
        wrong += seen[i] != byte_of(sender, i, seed);
    }
    if (wrong != before) {
        fprintf(stderr, "rank %d: %s of %zu B: %ld wrong\n", rank, what, bytes, wrong - before);
    }
}

static void untouched(const char *from, size_t bytes, const char *what)
{
    CUDA(cudaMemcpy(seen, from, bytes, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes; i++) {
        if (seen[i] != 0xee) {
            fprintf(stderr, "rank %d: %s went beyond its end\n", rank, what);
            wrong++;
            return;
        }
    }
}

static void that(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "rank %d: %s does not hold\n", rank, what);
        wrong++;
    }
}
#define THAT(condition) that(condition, #condition)

static void ints_put(char *to, int count, int seed)
{
    int *numbers = (int *)(void *)host;
    for (int i = 0; i < count; i++) {
        numbers[i] = seed + i;
    }
    CUDA(cudaMemcpy(to, numbers, (size_t)count * sizeof *numbers, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
}

static void ints_expect(const char *from, int count, int begin, int step, const char *what)
{
    int *numbers = (int *)(void *)seen;
    long before = wrong;
    CUDA(cudaMemcpy(numbers, from, (size_t)count * sizeof *numbers, cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) {
        wrong += numbers[i] != begin + i * step;
    }
    if (wrong != before) {
        fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
    }
}
