// An MPI program for `tcasim run` and `tcasim exec --gpu-mpi`: a ping-pong between ranks 0 and 1 on host or device
// memory, of 4 B, 8 B, 16 B ... up to LARGEST (4194304).
//
//     mpi_memory host|device [LARGEST]
//
// Prints comma-separated values, the microseconds of half a round trip. After each size, every byte is checked; before,
// it has another value. Exit status 1: wrong data.
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 4, LARGEST = 4194304, LONG = 65536, WARM_UP = 3, ROUNDS = 20, ROUNDS_OF_LONG = 4 };

static int rank, wrong, on_device;
static unsigned char *buffer, *host; // equal if the buffer is in host memory
static size_t largest = LARGEST;

static void fail(const char *what)
{
    fprintf(stderr, "mpi_memory: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void cuda(cudaError_t error)
{
    if (error != cudaSuccess) {
        fail(cudaGetErrorString(error));
    }
}

static void buffer_make(void)
{
    if (cudaMallocHost((void **)&host, largest) != cudaSuccess) { // there is no driver or no device
        host = on_device ? NULL : malloc(largest);
    }
    buffer = host;
    if (host == NULL || (on_device && cudaMalloc((void **)&buffer, largest) != cudaSuccess)) {
        fail("no memory");
    }
}

static unsigned char byte_of(size_t index, size_t bytes)
{
    return (unsigned char)(index * 5 + index / 253 + bytes * 3);
}

// Writes the pattern: rank 0's data goes to rank 1 and back; before, rank 1 has the inverse.
static void pattern_put(size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        host[i] = rank == 0 ? byte_of(i, bytes) : (unsigned char)~byte_of(i, bytes);
    }
    if (on_device) {
        cuda(cudaMemcpy(buffer, host, bytes, cudaMemcpyHostToDevice));
        cuda(cudaDeviceSynchronize());
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void pattern_check(size_t bytes)
{
    if (on_device) {
        cuda(cudaMemcpy(host, buffer, bytes, cudaMemcpyDeviceToHost));
    }
    for (size_t i = 0; i < bytes; i++) {
        wrong += host[i] != byte_of(i, bytes);
    }
}

static void turn(int bytes)
{
    for (int sender = 0; sender < 2; sender++) {
        if (rank == sender) {
            MPI_Send(buffer, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buffer, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

static void size_measure(size_t bytes)
{
    int rounds = bytes <= LONG ? ROUNDS : ROUNDS_OF_LONG;
    double began = 0;
    pattern_put(bytes);
    for (int i = -WARM_UP; i < rounds; i++) {
        began = i == 0 ? MPI_Wtime() : began;
        turn((int)bytes);
    }
    double us = (MPI_Wtime() - began) * 1e6 / (2.0 * rounds);
    pattern_check(bytes);
    if (rank == 0) {
        printf("%zu,%d,%.6f\n", bytes, rounds, us);
    }
}

int main(int argc, char **argv)
{
    int ranks, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    on_device = argc > 1 && strcmp(argv[1], "device") == 0;
    largest = argc > 2 ? strtoull(argv[2], NULL, 10) : largest;
    if (argc < 2 || ranks != 2 || largest < SMALLEST || largest > 1u << 30 ||
        (!on_device && strcmp(argv[1], "host") != 0)) {
        fail("usage: mpi_memory host|device [LARGEST], two ranks");
    }
    buffer_make();
    if (rank == 0) {
        printf("bytes,operations,latency_us\n");
    }
    for (size_t bytes = SMALLEST; bytes <= largest; bytes *= 2) {
        size_measure(bytes);
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all != 0) {
        fprintf(stderr, "mpi_memory: %d bytes are wrong\n", all);
    }
    MPI_Finalize();
    return all != 0;
}
