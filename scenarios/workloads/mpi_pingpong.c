// An MPI program for `tcasim exec`: a ping-pong between ranks 0 and 1 of 8 B, 64 B ... up to argv[1] (65536), with a
// check of every byte. It prints half a round trip for each size. Exit status 1: wrong data.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT       4096
#define LARGEST_BYTES   65536
#define WARM_UP         2
#define ROUNDS          50
#define ROUNDS_OF_LARGE 10

static unsigned char *buffer;
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
    int largest = argc > 1 ? atoi(argv[1]) : LARGEST_BYTES;
    buffer = aligned_alloc(ALIGNMENT, ((size_t)largest + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (buffer == NULL || largest <= 0) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int bytes = 8; bytes <= largest; bytes *= bytes <= largest / 8 ? 8 : 2) {
        double began_s = 0;
        int rounds = bytes <= LARGEST_BYTES ? ROUNDS : ROUNDS_OF_LARGE;
        for (int i = -WARM_UP; i < rounds; i++) {
            began_s = i == 0 ? MPI_Wtime() : began_s;
            turn(rank, bytes, i);
        }
        if (rank == 0) {
            printf("%7d B %8.3f us\n", bytes, (MPI_Wtime() - began_s) / rounds / 2 * 1e6);
        }
    }
    if (rank == 0) {
        printf("%d wrong\n", wrong);
    }
    free(buffer);
    MPI_Finalize();
    return wrong != 0;
}
