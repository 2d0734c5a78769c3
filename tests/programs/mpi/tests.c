// 200 calls of MPI_Test for a message that has not been sent: each costs one poll and nothing more. Prints the time of
// all of them.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, value = 0, done = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Request request;
        MPI_Irecv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
        double began_s = MPI_Wtime();
        for (int i = 0; i < 200; i++) {
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        printf("    8 B %8.3f us\n", (MPI_Wtime() - began_s) * 1e6);
        int go = 1;
        MPI_Send(&go, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("%d wrong\n", done != 0 || value != 7);
    } else if (rank == 1) {
        MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        value = 7;
        MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
