// Two threads of OpenMP in each rank, with a ping-pong each at the same time (MPI_THREAD_MULTIPLE): threads share locks
// of the MPI library, and a polling thread must let the other one in. Prints the time of a round of both.
#include <mpi.h>
#include <omp.h>
#include <stdio.h>

#define ROUNDS 50

static int wrong;

static void turn(int rank, int tag, int value)
{
    int got = -1;
    if (rank == 0) {
        MPI_Send(&value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD);
    }
    MPI_Recv(&got, 1, MPI_INT, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) {
        MPI_Send(&got, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
    }
    if (got != value) {
#pragma omp atomic
        wrong++;
    }
}

static void rounds(int rank)
{
#pragma omp parallel num_threads(2)
    for (int i = 0; i < ROUNDS; i++) {
        turn(rank, omp_get_thread_num(), i);
    }
}

int main(int argc, char **argv)
{
    int rank, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    rounds(rank); // ranks connect
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    double began_s = MPI_Wtime();
    rounds(rank);
    if (rank == 0) {
        printf("    8 B %8.3f us\n", (MPI_Wtime() - began_s) / ROUNDS * 1e6);
        printf("%d wrong\n", wrong + (level < MPI_THREAD_MULTIPLE));
    }
    MPI_Finalize();
    return wrong != 0;
}
