// An MPI program: rank 0 puts to all others with MPI_Put (morie2016 5.1) and prints the memory that this takes: the
// growth of the process since MPI_Init.
//
//     mpi_one_put_all [DIVISOR]
//
// DIVISOR: divides the paper's number of repetitions. The window is on a buffer of 4 MiB that exists and is touched
// before.
#include <mpi.h>

#include "one_put_all.h"

int main(int argc, char **argv)
{
    unsigned char *data = malloc(ONE_PUT_LARGEST);
    int rank, ranks, divisor = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Win window;
    memset(data, 1, ONE_PUT_LARGEST);
    size_t before = one_put_memory();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_create(data, ONE_PUT_LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    for (size_t bytes = 0; rank == 0 && bytes <= ONE_PUT_LARGEST; bytes = one_put_next(bytes)) {
        for (int round = 0; round < one_put_rounds(bytes, divisor); round++) {
            for (int to = 1; to < ranks; to++) {
                MPI_Put(data, (int)bytes, MPI_BYTE, to, 0, (int)bytes, MPI_BYTE, window);
            }
            MPI_Win_flush_all(window);
        }
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        one_put_print("process", ranks, one_put_memory() - before);
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    free(data);
    return 0;
}
