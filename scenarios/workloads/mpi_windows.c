// Bandwidth as osu_bw measures it: windows of 64 messages into one buffer, each window answered by a message, 1 B to
// argv[1] (4194304). Prints bytes per second in MB/s. Checks only that each window has written the buffer.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define WINDOW  64
#define WARM_UP 2
#define ROUNDS  20

static MPI_Status statuses[WINDOW];
static int wrong;

static void send_window(char *buffer, int bytes, MPI_Request *requests)
{
    char answer;
    for (int i = 0; i < WINDOW; i++) {
        MPI_Isend(buffer, bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(WINDOW, requests, statuses);
    MPI_Recv(&answer, 1, MPI_BYTE, 1, WINDOW, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_window(char *buffer, int bytes, MPI_Request *requests)
{
    char answer = 0;
    buffer[0] = 0;
    for (int i = 0; i < WINDOW; i++) {
        MPI_Irecv(buffer, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(WINDOW, requests, statuses);
    wrong += buffer[0] != 'x';
    MPI_Send(&answer, 1, MPI_BYTE, 0, WINDOW, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank, all = 0;
    MPI_Request requests[WINDOW];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int largest = argc > 1 ? atoi(argv[1]) : 4194304;
    char *buffer = calloc(1, (size_t)largest);
    for (int bytes = 1; bytes <= largest; bytes *= 2) {
        double began_s = 0;
        buffer[0] = 'x';
        for (int i = -WARM_UP; i < ROUNDS; i++) {
            began_s = i == 0 ? MPI_Wtime() : began_s;
            if (rank == 0) {
                send_window(buffer, bytes, requests);
            } else {
                receive_window(buffer, bytes, requests);
            }
        }
        if (rank == 0) {
            printf("%8d bytes %10.2f MB/s\n", bytes, (double)bytes * WINDOW * ROUNDS / (MPI_Wtime() - began_s) / 1e6);
        }
    }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d wrong\n", all);
    }
    free(buffer);
    MPI_Finalize();
    return wrong != 0;
}
