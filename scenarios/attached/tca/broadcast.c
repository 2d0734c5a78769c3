// Broadcast along a binomial tree between GPUs: each rank forwards what its parent sent, to all of its children with
// one start of a chain. Every child is notified in slot 0, because notifications are distinguished only by their
// sender.
//
//     broadcast [LARGEST [TURNS]]        bytes (32768), timed broadcasts of each size (5)
//
// Prints the bytes, and the microseconds of a broadcast including the barrier after it, and of the barrier alone. After
// each size, every rank checks every byte.
#include "tca_program.h"

enum { CHANNEL = 0, SLOT = 0, TAG = 7, WARM_UP = 2, CHECKED = 2, SMALLEST = 8 };

static struct buffer buffer;

// The lowest set bit of a rank shows which child of its parent it is.
static int parent_of(int child)
{
    return child & (child - 1);
}

static int children_add(tcaDesc *desc, size_t bytes)
{
    const int flags = ON_THE_BOARD | tcaDMANotify | tcaDMAPipeline;
    int children = 0, lowest = rank == 0 ? ranks : rank & -rank;
    int step = 1;
    while (2 * step < lowest) {
        step *= 2;
    }
    for (; step > 0; step /= 2) { // the largest subtree first
        if (step < lowest && rank + step < ranks) {
            TCA(tcaDescSetMemcpy(desc, &buffer.handles[rank + step], 0, &buffer.handles[rank], 0, bytes, flags, SLOT,
                                 TAG));
            children++;
        }
    }
    return children;
}

static void broadcast(tcaDesc *desc, int children)
{
    if (rank != 0) {
        TCA(tcaWaitDMARecvDesc(&buffer.handles[parent_of(rank)], SLOT, TAG));
    }
    if (children > 0) {
        TCA(tcaDescSet(desc, CHANNEL));
        TCA(tcaStartDMADesc(CHANNEL));
        TCA(tcaWaitDMAC(CHANNEL));
    }
}

static double timed(tcaDesc *desc, int children, int turns)
{
    double start = 0;
    for (int i = 0; i < WARM_UP + turns; i++) {
        if (i == WARM_UP) {
            start = MPI_Wtime();
        }
        if (desc != NULL) {
            broadcast(desc, children);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) * 1e6 / turns;
}

static uint32_t round_number;

static void round_begin(void)
{
    round_number++;
    for (size_t i = 0; i < buffer.bytes / 4; i++) {
        buffer.host[i] = rank == 0 ? word_of(0, round_number, i) : ~word_of(0, round_number, i);
    }
    buffer_push(&buffer);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void round_check(size_t bytes)
{
    buffer_pull(&buffer);
    for (size_t i = 0; i < buffer.bytes / 4; i++) {
        uint32_t sent = word_of(0, round_number, i);
        expect_word(&buffer, i, rank == 0 || 4 * i < bytes ? sent : ~sent, "broadcast");
    }
}

static double measure(size_t bytes, int turns)
{
    tcaDesc *desc = tcaDescNew();
    int children = children_add(desc, bytes);
    for (int i = 0; i < CHECKED; i++) {
        round_begin();
        broadcast(desc, children);
        round_check(bytes); // the notification means that the data are there
        MPI_Barrier(MPI_COMM_WORLD);
    }
    round_begin();
    double microseconds = timed(desc, children, turns);
    round_check(bytes);
    TCA(tcaDescFree(desc));
    return microseconds;
}

int main(int argc, char **argv)
{
    program_init(&argc, &argv);
    size_t largest = argc > 1 ? strtoul(argv[1], NULL, 0) : 32768;
    int turns = argc > 2 ? atoi(argv[2]) : 5;
    if (largest < SMALLEST || turns < 1) {
        die("broadcast", "[LARGEST [TURNS]]");
    }
    buffer = buffer_make(largest);
    double barrier = timed(NULL, 0, turns);
    if (rank == 0) {
        printf("#  bytes  broadcast[us]  barrier[us]\n");
    }
    for (size_t bytes = SMALLEST; bytes <= largest; bytes *= 8) {
        double microseconds = measure(bytes, turns);
        if (rank == 0) {
            printf("%8zu %14.3f %12.3f\n", bytes, microseconds, barrier);
            fflush(stdout);
        }
    }
    buffer_free(&buffer);
    MPI_Finalize();
    return 0;
}
