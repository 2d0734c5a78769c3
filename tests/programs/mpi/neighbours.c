// Neighbours in rank play ping-pong, which on one node uses shared memory: no message may be late, although only stores
// announce it. Prints half a round trip. neighbours [rounds]
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_BYTES = 16384 };
#define LATE_S 20e-6

static unsigned char buffer[LARGEST_BYTES];
static int wrong;

static void exchange(int rank, int bytes, int value)
{
    int partner = rank ^ 1;
    if (rank % 2 == 0) {
        memset(buffer, value, (size_t)bytes);
        MPI_Send(buffer, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
    }
    MPI_Recv(buffer, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; i++) {
        wrong += buffer[i] != (unsigned char)value;
    }
    if (rank % 2 == 1) {
        MPI_Send(buffer, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank, all, rounds = argc > 1 ? atoi(argv[1]) : 40;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int bytes = 8; bytes <= LARGEST_BYTES; bytes *= 4) {
        double total_s = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        exchange(rank, bytes, 0);
        for (int i = 1; i <= rounds; i++) {
            double began_s = MPI_Wtime();
            exchange(rank, bytes, i);
            double s = MPI_Wtime() - began_s;
            wrong += s > LATE_S;
            total_s += s;
        }
        if (rank == 0) {
            printf("%5d B %8.3f us\n", bytes, total_s / rounds / 2 * 1e6);
        }
    }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d wrong\n", all);
    }
    MPI_Finalize();
    return 0;
}
