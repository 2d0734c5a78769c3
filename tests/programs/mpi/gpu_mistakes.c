// Ranks that end in the middle of a call on device memory: MPI ends the others. exit, segv: before a collective; send,
// receive: before the message of another rank's call. large: a message that is longer than a BAR.
#include <cuda_runtime.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 1000, LONG = 8 << 20 };

static int rank;
static float *device, *other;

static int is(char **argv, const char *what)
{
    return strcmp(argv[1], what) == 0;
}

static void last_call(char **argv)
{
    MPI_Request request;
    if (is(argv, "exit")) {
        exit(7);
    }
    if (is(argv, "segv")) {
        raise(SIGSEGV);
    }
    if (is(argv, "receive")) {
        MPI_Isend(device, LONG, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
    }
    abort();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 2 || cudaMalloc((void **)&device, LONG) != cudaSuccess ||
        cudaMalloc((void **)&other, LONG) != cudaSuccess) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Allreduce(device, other, SHORT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 1 && !is(argv, "large")) {
        last_call(argv);
    }
    if (rank == 0 && (is(argv, "send") || is(argv, "large"))) {
        MPI_Send(device, LONG, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else if (rank < 2 && (is(argv, "receive") || is(argv, "large"))) {
        MPI_Recv(device, LONG, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Allreduce(device, other, SHORT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d is over\n", rank);
    MPI_Finalize();
    return 0;
}
