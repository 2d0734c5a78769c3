// Ping-pong between the GPUs of two nodes, of contiguous bytes and of rows, with both notifications: each side first
// waits until its own message has left, then for the other's. Descriptor and notification words are in the boards'
// memory.
//
//     gpu_pingpong [LARGEST [TURNS]]        bytes (1048576), timed round trips of each size (10)
//
// Prints the bytes, and the microseconds of half a round trip of contiguous bytes and of rows of 64 B with gaps of 64
// B. After each size, every byte of both buffers is checked, also those between the rows.
#include "tca_program.h"

enum { CHANNEL = 0, SLOT = 0, TAG = 0x100, WARM_UP = 3, CHECKED = 2, ROW = 64, PITCH = 128, SMALLEST = 8 };

static struct buffer send_buffer, receive_buffer;

static void turn(tcaDesc *desc, int starts)
{
    if (starts) {
        TCA(tcaDescSet(desc, CHANNEL));
        TCA(tcaStartDMADesc(CHANNEL));
        TCA(tcaWaitDMARecvDesc(&send_buffer.handles[rank], SLOT, TAG));
    } else {
        TCA(tcaWaitDMARecvDesc(&send_buffer.handles[1 - rank], SLOT, TAG));
    }
}

static double round_trips(tcaDesc *desc, int turns)
{
    double start = 0;
    for (int i = 0; i < WARM_UP + turns; i++) {
        if (i == WARM_UP) {
            MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
        }
        turn(desc, rank == 0);
        turn(desc, rank == 1);
    }
    return (MPI_Wtime() - start) * 1e6 / (2.0 * turns);
}

static int is_sent(size_t index, size_t bytes, int rows)
{
    return rows ? 4 * index % PITCH < ROW && 4 * index / PITCH < bytes / ROW : 4 * index < bytes;
}

static uint32_t round_number;

// Writes a new pattern, and other values to everything that will be received.
static void round_begin(void)
{
    round_number++;
    for (size_t i = 0; i < send_buffer.bytes / 4; i++) {
        send_buffer.host[i] = word_of(rank, round_number, i);
        receive_buffer.host[i] = ~word_of(1 - rank, round_number, i);
    }
    buffer_push(&send_buffer);
    buffer_push(&receive_buffer);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void round_check(size_t bytes, int rows)
{
    MPI_Barrier(MPI_COMM_WORLD);
    buffer_pull(&receive_buffer);
    for (size_t i = 0; i < receive_buffer.bytes / 4; i++) {
        uint32_t sent = word_of(1 - rank, round_number, i);
        expect_word(&receive_buffer, i, is_sent(i, bytes, rows) ? sent : ~sent, rows ? "rows" : "run");
    }
}

static double measure(size_t bytes, int rows, int turns)
{
    const int flags = ON_THE_BOARD | tcaDMANotify | tcaDMANotifySelf | tcaDMAPipeline;
    tcaDesc *desc = tcaDescNew();
    const tcaHandle *to = &receive_buffer.handles[1 - rank], *from = &send_buffer.handles[rank];
    if (rows) {
        TCA(tcaDescSetMemcpy2D(desc, to, 0, PITCH, from, 0, PITCH, ROW, bytes / ROW, flags, SLOT, TAG));
    } else {
        TCA(tcaDescSetMemcpy(desc, to, 0, from, 0, bytes, flags, SLOT, TAG));
    }
    for (int i = 0; i < CHECKED; i++) {
        round_begin();
        turn(desc, rank == 0);
        turn(desc, rank == 1);
        round_check(bytes, rows);
    }
    round_begin();
    double microseconds = round_trips(desc, turns);
    round_check(bytes, rows);
    TCA(tcaDescFree(desc));
    return microseconds;
}

int main(int argc, char **argv)
{
    program_init(&argc, &argv);
    size_t largest = argc > 1 ? strtoul(argv[1], NULL, 0) : 1 << 20;
    int turns = argc > 2 ? atoi(argv[2]) : 10;
    if (ranks != 2 || largest < SMALLEST || turns < 1) {
        die("gpu_pingpong", "two ranks, [LARGEST [TURNS]]");
    }
    send_buffer = buffer_make(2 * largest);
    receive_buffer = buffer_make(2 * largest);
    if (rank == 0) {
        printf("#  bytes      run[us]     rows[us]\n");
    }
    for (size_t bytes = SMALLEST; bytes <= largest; bytes *= 2) {
        double run = measure(bytes, 0, turns);
        double rows = bytes >= 2 * ROW ? measure(bytes, 1, turns) : 0;
        if (rank == 0) {
            char text[16] = "-"; // not measured
            if (bytes >= 2 * ROW) {
                snprintf(text, sizeof text, "%.3f", rows);
            }
            printf("%8zu %12.3f %12s\n", bytes, run, text);
            fflush(stdout);
        }
    }
    buffer_free(&send_buffer);
    buffer_free(&receive_buffer);
    MPI_Finalize();
    return 0;
}
