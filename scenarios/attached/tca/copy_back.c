// The last layer of a cube of doubles goes from GPU to GPU and back, and then the whole cube from the GPU to the host,
// as in a solver. MPI's connections stay open meanwhile. The GPU writes the host's memory in packets of 256 B, which
// must not wake sleeping threads.
//
//     copy_back [LARGEST]        edge of the largest cube (256: 128 MiB)
//
// Prints the edge, and the microseconds of an exchange and of the copy. Every word of the copy is checked.
#include "tca_program.h"

enum { CHANNEL = 0, SLOT = 0, TAG = 0x100, SMALLEST = 32, TURNS = 24, ROWS_MAX = 256 };

static void exchange(const struct buffer *cube)
{
    for (int i = 0; i < TURNS; i++) {
        if (rank == 0) {
            TCA(tcaStartDMADesc(CHANNEL));
        }
        TCA(tcaWaitDMARecvDesc(&cube->handles[1 - rank], SLOT, TAG));
        if (rank == 1) {
            TCA(tcaStartDMADesc(CHANNEL));
        }
    }
}

// A word of the received first layer: the other rank has it in its last layer.
static uint32_t expected(size_t index, size_t layer, size_t words)
{
    return index < layer ? word_of(1 - rank, 0, words - layer + index) : word_of(rank, 0, index);
}

static void measure(size_t edge)
{
    struct buffer cube = buffer_make(edge * edge * edge * 8);
    const size_t words = cube.bytes / 4, layer = edge * edge * 2;
    tcaDesc *desc = tcaDescNew();
    for (size_t i = 0; i < words; i++) {
        cube.host[i] = word_of(rank, 0, i);
    }
    buffer_push(&cube);
    TCA(tcaDescSetMemcpy2D(desc, &cube.handles[1 - rank], 0, edge * 8, &cube.handles[rank], (words - layer) * 4,
                           edge * 8, edge * 8, edge, ON_THE_BOARD | tcaDMANotify, SLOT, TAG));
    TCA(tcaDescSet(desc, CHANNEL));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    double began_s = MPI_Wtime();
    exchange(&cube);
    double exchange_s = (MPI_Wtime() - began_s) / (2 * TURNS);
    MPI_Barrier(MPI_COMM_WORLD);
    began_s = MPI_Wtime();
    buffer_pull(&cube);
    double copy_s = MPI_Wtime() - began_s;
    for (size_t i = 0; i < words; i++) {
        expect_word(&cube, i, expected(i, layer, words), "cube");
    }
    if (rank == 0) {
        printf("%4zu %10.3f us %12.3f us\n", edge, exchange_s * 1e6, copy_s * 1e6);
        fflush(stdout);
    }
    TCA(tcaDescFree(desc));
    buffer_free(&cube);
}

int main(int argc, char **argv)
{
    program_init(&argc, &argv);
    size_t largest = argc > 1 ? strtoul(argv[1], NULL, 0) : ROWS_MAX;
    if (ranks != 2 || largest < SMALLEST || largest > ROWS_MAX) {
        die("copy_back", "two ranks, [LARGEST], an edge from 32 to 256");
    }
    for (size_t edge = SMALLEST; edge <= largest; edge *= 2) {
        measure(edge);
    }
    MPI_Finalize();
    return 0;
}
