// An MPI program for two ranks: MPI_Put and MPI_Get, each complete before the next begins, of 8 B to 4 MiB.
//
//     mpi_put_get put|get fence|flush [LARGEST]
//
// fence: a fence after each operation, as in IMB-EXT, which is also a barrier. flush: in one passive epoch. Rank 0
// prints comma-separated values, the microseconds of one operation. After each size, every byte is checked; before, it
// has another value. Exit status 1: wrong data.
#include <mpi.h>
#include <stdlib.h>

#include "put_get.h"

static int rank, wrong;
static unsigned char *data;
static MPI_Win window;

static void one(size_t bytes, bool get, bool fence)
{
    int count = (int)bytes;
    if (rank == 0 && get) {
        MPI_Get(data + PUT_GET_LARGEST, count, MPI_BYTE, 1, 0, count, MPI_BYTE, window);
    } else if (rank == 0) {
        MPI_Put(data, count, MPI_BYTE, 1, PUT_GET_LARGEST, count, MPI_BYTE, window);
    }
    if (fence) {
        MPI_Win_fence(0, window);
    } else {
        MPI_Win_flush(1, window);
    }
}

static double size_measure(size_t bytes, bool get, bool fence)
{
    int rounds = put_get_rounds(bytes);
    double began_s = 0;
    for (int i = -PUT_GET_WARM_UP; i < rounds; i++) {
        began_s = i == 0 ? MPI_Wtime() : began_s;
        if (fence || rank == 0) {
            one(bytes, get, fence);
        }
    }
    return (MPI_Wtime() - began_s) / rounds * 1e6;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    bool get = argc > 1 && strcmp(argv[1], "get") == 0, fence = argc > 2 && strcmp(argv[2], "fence") == 0;
    size_t largest = argc > 3 ? strtoul(argv[3], NULL, 10) : PUT_GET_LARGEST;
    if (largest > PUT_GET_LARGEST) {
        fprintf(stderr, "mpi_put_get: at most %d bytes\n", PUT_GET_LARGEST);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Win_allocate(2 * (MPI_Aint)PUT_GET_LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &data, &window);
    for (size_t bytes = PUT_GET_SMALLEST; bytes <= largest; bytes *= 2) {
        put_get_fill(data, bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        if (fence) {
            MPI_Win_fence(0, window);
        } else {
            MPI_Win_lock_all(0, window);
        }
        double us = size_measure(bytes, get, fence);
        if (!fence) {
            MPI_Win_unlock_all(window);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            put_get_print(bytes, us);
        }
        if (rank == (get ? 0 : 1)) {
            wrong += !put_get_holds(data + PUT_GET_LARGEST, bytes);
        }
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    if (wrong != 0) {
        fprintf(stderr, "mpi_put_get: wrong data\n");
    }
    return wrong != 0;
}
