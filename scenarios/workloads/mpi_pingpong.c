// An MPI program for `tcasim exec`: a ping-pong between ranks 0 and 1, every byte checked. It prints half a round trip for
// each size. Exit status 1: something was wrong.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define LARGEST_BYTES 65536
#define WARM_UP       10
#define ROUNDS        50

static unsigned char buffer[LARGEST_BYTES];
static int wrong;

static void send(int bytes, int value, int to)
{
    memset(buffer, value, (size_t)bytes);
    MPI_Send(buffer, bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD);
}

static void receive(int bytes, int value, int from)
{
    memset(buffer, ~value, (size_t)bytes);
    MPI_Recv(buffer, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < bytes; i++) {
        wrong += buffer[i] != (unsigned char)value;
    }
}

static void turn(int rank, int bytes, int value)
{
    if (rank == 0) {
        send(bytes, value, 1);
        receive(bytes, value + 1, 1);
    } else if (rank == 1) {
        receive(bytes, value, 0);
        send(bytes, value + 1, 0);
    }
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int bytes = 8; bytes <= LARGEST_BYTES; bytes *= 8) {
        double began_s = 0;
        for (int i = -WARM_UP; i < ROUNDS; i++) {
            began_s = i == 0 ? MPI_Wtime() : began_s;
            turn(rank, bytes, i);
        }
        if (rank == 0) {
            printf("%5d B %8.3f us\n", bytes, (MPI_Wtime() - began_s) / ROUNDS / 2 * 1e6);
        }
    }
    if (rank == 0) {
        printf("%d wrong\n", wrong);
    }
    MPI_Finalize();
    return wrong != 0;
}
