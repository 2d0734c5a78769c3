// Rows of a message between the GPUs of two nodes, side by side and far apart: a ping-pong of one chain with a block
// stride. A message is on 1 to 128 pages of 64 KiB of the window.
//
//     block_stride
//
// Prints rows, their bytes, and the microseconds of half a round trip of contiguous bytes, of rows with gaps of their
// own size, and of rows spread over 8 MiB. Fails if rows are more than 3 % faster than contiguous bytes (a ping-pong moves
// in steps of a load), or if far rows are more than 5 % slower than near ones.
#include "tca_program.h"

enum { CHANNEL = 0, SLOT = 0, TAG = 0x100, WARM_UP = 2, TURNS = 5, SPREAD = 8 << 20 };

static struct buffer send_buffer, receive_buffer;

static void turn(tcaDesc *desc, int starts)
{
    if (starts) {
        TCA(tcaDescSet(desc, CHANNEL));
        TCA(tcaStartDMADesc(CHANNEL));
    } else {
        TCA(tcaWaitDMARecvDesc(&send_buffer.handles[1 - rank], SLOT, TAG));
    }
}

static double round_trips(tcaDesc *desc)
{
    double start = 0;
    for (int i = 0; i < WARM_UP + TURNS; i++) {
        if (i == WARM_UP) {
            MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
        }
        turn(desc, rank == 0);
        turn(desc, rank == 1);
    }
    return (MPI_Wtime() - start) * 1e6 / (2.0 * TURNS);
}

// Every word of the rows has arrived, and no other word has changed. Then clears the buffer for the next message.
static void rows_check(size_t row, size_t count, size_t pitch)
{
    MPI_Barrier(MPI_COMM_WORLD);
    buffer_pull(&receive_buffer);
    for (size_t i = 0; i < SPREAD / 4; i++) {
        int sent = 4 * i % pitch < row && 4 * i / pitch < count;
        expect_word(&receive_buffer, i, sent ? word_of(1 - rank, 0, i) : 0, "rows");
    }
    memset(receive_buffer.host, 0, SPREAD);
    buffer_push(&receive_buffer);
    MPI_Barrier(MPI_COMM_WORLD);
}

static double measure(size_t row, size_t count, size_t pitch)
{
    const int flags = ON_THE_BOARD | tcaDMANotify | tcaDMAPipeline;
    tcaDesc *desc = tcaDescNew();
    const tcaHandle *to = &receive_buffer.handles[1 - rank], *from = &send_buffer.handles[rank];
    if (pitch == row) {
        TCA(tcaDescSetMemcpy(desc, to, 0, from, 0, row * count, flags, SLOT, TAG));
    } else {
        TCA(tcaDescSetMemcpy2D(desc, to, 0, pitch, from, 0, pitch, row, count, flags, SLOT, TAG));
    }
    double microseconds = round_trips(desc);
    rows_check(row, count, pitch);
    TCA(tcaDescFree(desc));
    return microseconds;
}

int main(int argc, char **argv)
{
    static const size_t messages[][2] = {{64, 1024}, {1024, 128}, {4096, 64}}; // bytes of a row, rows
    program_init(&argc, &argv);
    if (ranks != 2) {
        die("block_stride", "two ranks");
    }
    send_buffer = buffer_make(SPREAD);
    receive_buffer = buffer_make(SPREAD);
    for (size_t i = 0; i < SPREAD / 4; i++) {
        send_buffer.host[i] = word_of(rank, 0, i);
    }
    memset(receive_buffer.host, 0, SPREAD);
    buffer_push(&send_buffer);
    buffer_push(&receive_buffer);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("#  rows        row   contiguous[us]     near[us]      far[us]\n");
    }
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        size_t row = messages[i][0], count = messages[i][1];
        double run = measure(row, count, row), near = measure(row, count, 2 * row);
        double far = measure(row, count, SPREAD / count);
        if (rank == 0) {
            printf("%7zu %10zu %16.3f %12.3f %12.3f\n", count, row, run, near, far);
            fflush(stdout);
            if (near < 0.97 * run || far < 0.97 * run || far > 1.05 * near) {
                die("block_stride", "where rows lie decides how long they take");
            }
        }
    }
    buffer_free(&send_buffer);
    buffer_free(&receive_buffer);
    MPI_Finalize();
    return 0;
}
