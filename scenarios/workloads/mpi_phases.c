// An MPI program for `tcasim exec`: 100 barriers, 100 broadcasts of 64 KiB and 100 all-reduces of 8 B over all ranks,
// with a check of every byte. It prints the time of one of each. Exit status 1: wrong data.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define WARM_UP     2
#define ROUNDS      100
#define LARGE_BYTES 65536

static int rank, ranks, wrong;

static void barrier(int round)
{
    (void)round;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void broadcast(int round)
{
    static unsigned char data[LARGE_BYTES], expected[LARGE_BYTES];
    memset(expected, round, sizeof expected);
    memset(data, rank == 0 ? round : ~round, sizeof data);
    MPI_Bcast(data, LARGE_BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
    wrong += memcmp(data, expected, sizeof data) != 0;
}

static void all_reduce(int round)
{
    double own = rank + round, sum = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    wrong += sum != ranks * (ranks - 1) / 2.0 + (double)ranks * round;
}

static void measure(const char *what, void (*phase)(int round))
{
    double began_s = 0;
    for (int round = -WARM_UP; round < ROUNDS; round++) {
        began_s = round == 0 ? MPI_Wtime() : began_s;
        phase(round);
    }
    if (rank == 0) {
        printf("%-10s %8.3f us\n", what, (MPI_Wtime() - began_s) / ROUNDS * 1e6);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    measure("barrier", barrier);
    measure("broadcast", broadcast);
    measure("all-reduce", all_reduce);
    int all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d wrong\n", all);
    }
    MPI_Finalize();
    return wrong != 0;
}
