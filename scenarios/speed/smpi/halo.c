// The halo exchange of halo-4x4-128k.yaml as an MPI program, for SimGrid's SMPI: 200 iterations of 4 x 128 KiB on a 4x4
// grid, each with an all-reduce of 4 B.
#include <mpi.h>
#include <stdlib.h>

enum { SIDE = 4, BYTES = 131072, ITERATIONS = 200 };

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int row = rank / SIDE, column = rank % SIDE;
    const int peers[4] = {row * SIDE + (column + 1) % SIDE, row * SIDE + (column + SIDE - 1) % SIDE,
                          (row + 1) % SIDE * SIDE + column, (row + SIDE - 1) % SIDE * SIDE + column};
    char *out = calloc(4, BYTES), *in = calloc(4, BYTES);
    for (int i = 0; i < ITERATIONS; i++) {
        MPI_Request requests[8];
        for (int k = 0; k < 4; k++) {
            MPI_Irecv(in + k * BYTES, BYTES, MPI_CHAR, peers[k], k, MPI_COMM_WORLD, &requests[k]);
            MPI_Isend(out + k * BYTES, BYTES, MPI_CHAR, peers[k], k ^ 1, MPI_COMM_WORLD, &requests[4 + k]);
        }
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
        int mine = i + rank, sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sum != 16 * i + 120) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    free(in);
    free(out);
    return MPI_Finalize();
}
