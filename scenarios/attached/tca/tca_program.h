// Shared by the programs of this folder: buffers in GPU memory with a handle for each rank, and patterns in which the
// words of a run all differ.
#pragma once

#include <cuda_runtime.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tca-api.h>

// Descriptors and notifications in the boards' memory.
#define ON_THE_BOARD (tcaDMAUseInternal | tcaDMAUseNotifyInternal)

static int rank, ranks;

static inline void die(const char *what, const char *why)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

#define TCA(call)                                                                                                      \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        if (code_ != TCA_SUCCESS) {                                                                                    \
            die(#call, tcaLastMessage());                                                                              \
        }                                                                                                              \
    } while (0)

#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t code_ = (call);                                                                                    \
        if (code_ != cudaSuccess) {                                                                                    \
            die(#call, cudaGetErrorString(code_));                                                                     \
        }                                                                                                              \
    } while (0)

struct buffer {
    size_t bytes;
    void *device;       // GPU 0
    uint32_t *host;     // pinned, of the same size
    tcaHandle *handles; // of this buffer, one for each rank
};

static inline void program_init(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int code = tcaInit();
    if (code != TCA_SUCCESS) {
        die("tcaInit", tcaGetErrorString(code));
    }
    CUDA(cudaSetDevice(0));
}

// All ranks call it, in the same order.
static inline struct buffer buffer_make(size_t bytes)
{
    struct buffer buffer = {.bytes = bytes};
    TCA(tcaMalloc(&buffer.device, bytes, tcaMemoryGPU));
    CUDA(cudaMallocHost((void **)&buffer.host, bytes));
    TCA(tcaCreateHandleList(&buffer.handles, ranks, buffer.device, bytes));
    return buffer;
}

static inline void buffer_free(struct buffer *buffer)
{
    free(buffer->handles);
    TCA(tcaFree(buffer->device, tcaMemoryGPU));
    CUDA(cudaFreeHost(buffer->host));
}

static inline void buffer_push(const struct buffer *buffer)
{
    CUDA(cudaMemcpy(buffer->device, buffer->host, buffer->bytes, cudaMemcpyDefault));
    CUDA(cudaDeviceSynchronize());
}

static inline void buffer_pull(const struct buffer *buffer)
{
    CUDA(cudaMemcpy(buffer->host, buffer->device, buffer->bytes, cudaMemcpyDefault));
}

// Word `index` of the data that `from` sends in this round.
static inline uint32_t word_of(int from, uint32_t round, size_t index)
{
    return (uint32_t)(index * 2654435761u) ^ (round * 40503u + 1u) ^ (uint32_t)from << 24;
}

static inline void expect_word(const struct buffer *buffer, size_t index, uint32_t expected, const char *what)
{
    if (buffer->host[index] != expected) {
        char why[96];
        snprintf(why, sizeof why, "byte %zu holds 0x%08x, not 0x%08x", 4 * index, buffer->host[index], expected);
        die(what, why);
    }
}
