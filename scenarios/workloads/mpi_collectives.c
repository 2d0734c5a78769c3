// An MPI program for `tcasim exec`: the common collectives, with a check of every byte. Exit status 1: wrong data.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 3
#define COUNT  1024 // elements that a rank contributes
#define RANKS  16

static int rank, ranks, wrong;
static int mine[RANKS * COUNT], theirs[RANKS * COUNT];

static int value(int from, int to, int index)
{
    return from * 1000003 + to * 10007 + index;
}

static void expect(const char *what, int index, int got, int wanted)
{
    if (got != wanted && wrong++ == 0) {
        printf("rank %d: %s: element %d is %d, not %d\n", rank, what, index, got, wanted);
    }
}

static void check_bcast(int root)
{
    for (int i = 0; i < COUNT; i++) {
        mine[i] = rank == root ? value(root, 0, i) : -1;
    }
    MPI_Bcast(mine, COUNT, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) {
        expect("Bcast", i, mine[i], value(root, 0, i));
    }
}

static void check_reduce(int root)
{
    for (int i = 0; i < COUNT; i++) {
        mine[i] = rank + i;
    }
    MPI_Reduce(mine, theirs, COUNT, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT && rank == root; i++) {
        expect("Reduce", i, theirs[i], ranks * (ranks - 1) / 2 + ranks * i);
    }
    MPI_Allreduce(mine, theirs, COUNT, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) {
        expect("Allreduce", i, theirs[i], ranks - 1 + i);
    }
}

static void check_gather(int root)
{
    for (int i = 0; i < COUNT; i++) {
        mine[i] = value(rank, root, i);
    }
    MPI_Gather(mine, COUNT, MPI_INT, theirs, COUNT, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < ranks * COUNT && rank == root; i++) {
        expect("Gather", i, theirs[i], value(i / COUNT, root, i % COUNT));
    }
    memset(theirs, 0xff, sizeof theirs);
    MPI_Allgather(mine, COUNT, MPI_INT, theirs, COUNT, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < ranks * COUNT; i++) {
        expect("Allgather", i, theirs[i], value(i / COUNT, root, i % COUNT));
    }
}

static void check_alltoall(void)
{
    for (int i = 0; i < ranks * COUNT; i++) {
        mine[i] = value(rank, i / COUNT, i % COUNT);
    }
    memset(theirs, 0xff, sizeof theirs);
    MPI_Alltoall(mine, COUNT, MPI_INT, theirs, COUNT, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < ranks * COUNT; i++) {
        expect("Alltoall", i, theirs[i], value(i / COUNT, rank, i % COUNT));
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > RANKS) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        check_bcast(round % ranks);
        check_reduce(round % ranks);
        check_gather(round % ranks);
        check_alltoall();
    }
    int all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks, %d wrong\n", ranks, all);
    }
    MPI_Finalize();
    return wrong != 0;
}
