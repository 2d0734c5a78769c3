// One-sided: put and get of 8 B to 64 KiB between ranks 0 and 1, and accumulate of 8 KiB to 512 KiB, with a check of
// every element. Prints the time of a put with its fence and a barrier, for each size.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 10

static int rank, wrong;

static double *window_make(int count, MPI_Win *window)
{
    double *memory;
    MPI_Win_allocate((MPI_Aint)count * (MPI_Aint)sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     window);
    for (int i = 0; i < count; i++) {
        memory[i] = rank;
    }
    MPI_Win_fence(0, *window);
    return memory;
}

static void put_and_get(int count)
{
    MPI_Win window;
    double *memory = window_make(count, &window), *own = malloc((size_t)count * sizeof *own), began_s = 0;
    for (int i = -1; i < ROUNDS; i++) {
        began_s = i == 0 ? MPI_Wtime() : began_s;
        for (int j = 0; j < count; j++) {
            own[j] = i * 1000.0 + j;
        }
        if (rank == 0) {
            MPI_Put(own, count, MPI_DOUBLE, 1, 0, count, MPI_DOUBLE, window);
        }
        MPI_Win_fence(0, window);
        for (int j = 0; j < count && rank == 1; j++) {
            wrong += memory[j] != own[j];
        }
        MPI_Barrier(MPI_COMM_WORLD); // before the next one
    }
    if (rank == 0) {
        printf("%5d B %8.3f us\n", count * (int)sizeof *own, (MPI_Wtime() - began_s) / ROUNDS * 1e6);
    }
    MPI_Win_fence(0, window);
    if (rank == 0) {
        MPI_Get(own, count, MPI_DOUBLE, 1, 0, count, MPI_DOUBLE, window);
    }
    MPI_Win_fence(0, window);
    for (int j = 0; j < count && rank == 0; j++) {
        wrong += own[j] != (ROUNDS - 1) * 1000.0 + j;
    }
    MPI_Win_free(&window);
    free(own);
}

static void accumulate(int count)
{
    MPI_Win window;
    double *memory = window_make(count, &window), *own = malloc((size_t)count * sizeof *own);
    for (int i = 0; i < count; i++) {
        own[i] = i;
    }
    if (rank == 0) {
        MPI_Accumulate(own, count, MPI_DOUBLE, 1, 0, count, MPI_DOUBLE, MPI_SUM, window);
    }
    MPI_Win_fence(0, window);
    for (int i = 0; i < count && rank == 1; i++) {
        wrong += memory[i] != 1.0 + i;
    }
    MPI_Win_free(&window);
    free(own);
}

int main(int argc, char **argv)
{
    int all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int count = 1; count <= 8192; count *= 8) {
        put_and_get(count);
    }
    for (int count = 1024; count <= 65536; count *= 4) {
        accumulate(count);
    }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d wrong\n", all);
    }
    MPI_Finalize();
    return wrong != 0;
}
