// All-gather by recursive doubling between GPUs: in step k each rank exchanges all blocks it has with the rank whose
// number differs in bit k. Each step has its own slot, because the partner may be a step ahead.
//
//     allgather [LARGEST [TURNS]]        bytes of a rank's block (4096), timed all-gathers of each size (5)
//
// The number of ranks is a power of two. Prints the bytes of a block, and the microseconds of an all-gather including
// the barrier after it. After each size, every rank checks every byte of every block.
#include "tca_program.h"

enum { CHANNEL = 0, TAG = 0x100, WARM_UP = 2, CHECKED = 2, SMALLEST = 8, STEPS_MAX = 4 };

static struct buffer buffer;
static int steps;

static void descs_make(tcaDesc *descs[STEPS_MAX], size_t bytes)
{
    const int flags = ON_THE_BOARD | tcaDMANotify | tcaDMANotifySelf | tcaDMAPipeline;
    for (int step = 0; step < steps; step++) {
        int partner = rank ^ 1 << step, first = rank >> step << step;
        size_t offset = (size_t)first * bytes;
        descs[step] = tcaDescNew();
        TCA(tcaDescSetMemcpy(descs[step], &buffer.handles[partner], offset, &buffer.handles[rank], offset,
                             bytes << step, flags, step, TAG));
    }
}

static void allgather(tcaDesc *descs[STEPS_MAX])
{
    for (int step = 0; step < steps; step++) {
        TCA(tcaDescSet(descs[step], CHANNEL));
        TCA(tcaStartDMADesc(CHANNEL));
        TCA(tcaWaitDMARecvDesc(&buffer.handles[rank], step, TAG));
        TCA(tcaWaitDMARecvDesc(&buffer.handles[rank ^ 1 << step], step, TAG));
    }
}

static uint32_t round_number;

static void round_begin(size_t words)
{
    round_number++;
    for (size_t i = 0; i < buffer.bytes / 4; i++) {
        uint32_t word = word_of((int)(i / words), round_number, i);
        buffer.host[i] = i / words == (size_t)rank ? word : ~word;
    }
    buffer_push(&buffer);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void round_check(size_t words)
{
    buffer_pull(&buffer);
    for (size_t i = 0; i < buffer.bytes / 4; i++) {
        uint32_t word = word_of((int)(i / words), round_number, i);
        expect_word(&buffer, i, i / words < (size_t)ranks ? word : ~word, "all-gather");
    }
}

static double timed(tcaDesc *descs[STEPS_MAX], int turns)
{
    double start = 0;
    for (int i = 0; i < WARM_UP + turns; i++) {
        if (i == WARM_UP) {
            start = MPI_Wtime();
        }
        allgather(descs);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) * 1e6 / turns;
}

static double measure(size_t bytes, int turns)
{
    tcaDesc *descs[STEPS_MAX];
    descs_make(descs, bytes);
    for (int i = 0; i < CHECKED; i++) {
        round_begin(bytes / 4);
        allgather(descs);
        round_check(bytes / 4); // the last notification means that the data are there
        MPI_Barrier(MPI_COMM_WORLD);
    }
    round_begin(bytes / 4);
    double microseconds = timed(descs, turns);
    round_check(bytes / 4);
    for (int step = 0; step < steps; step++) {
        TCA(tcaDescFree(descs[step]));
    }
    return microseconds;
}

int main(int argc, char **argv)
{
    program_init(&argc, &argv);
    size_t largest = argc > 1 ? strtoul(argv[1], NULL, 0) : 4096;
    int turns = argc > 2 ? atoi(argv[2]) : 5;
    while (1 << steps < ranks) {
        steps++;
    }
    if (1 << steps != ranks || steps > STEPS_MAX || largest < SMALLEST || turns < 1) {
        die("allgather", "2, 4, 8 or 16 ranks, [LARGEST [TURNS]]");
    }
    buffer = buffer_make(largest * (size_t)ranks);
    if (rank == 0) {
        printf("#  block  all-gather[us]\n");
    }
    for (size_t bytes = SMALLEST; bytes <= largest; bytes *= 8) {
        double microseconds = measure(bytes, turns);
        if (rank == 0) {
            printf("%8zu %15.3f\n", bytes, microseconds);
            fflush(stdout);
        }
    }
    buffer_free(&buffer);
    MPI_Finalize();
    return 0;
}
