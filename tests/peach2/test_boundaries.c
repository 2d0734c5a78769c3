// Transfers at the edges of what a channel takes, on the bare RTL and its twin: lengths, alignments, the ends of nodes and
// of the board's memory, descriptors and rows. Each is started twice, so that a channel that refused one does the same
// with the next; every packet and its time agree on both.
#include <stdlib.h>
#include <string.h>

#include "chip_bench.h"

#define OWN          (WINDOW + ((uint64_t)OWN_NODE << PEACH2_NODE_BITS))
#define MEMORY       (OWN + (3ull << PEACH2_BLOCK_BITS) + PEACH2_MEMORY_BASE)
#define MEMORY_BYTES (PEACH2_MEMORY_DESCRIPTORS * PEACH2_DESCRIPTOR_BYTES)
#define BLOCK_BYTES  (1ull << PEACH2_BLOCK_BITS)
#define EAST         (WINDOW + (2ull << PEACH2_NODE_BITS))
#define EAST_END     (WINDOW + (3ull << PEACH2_NODE_BITS)) // node 3 follows, which is behind another port
#define NOBODY       (WINDOW + (9ull << PEACH2_NODE_BITS))
#define WINDOW_END   (WINDOW + (1ull << PEACH2_WINDOW_BITS))
#define NOTIFY       (HOST + 0x800000)
#define BEGIN_PS     1000100u // when the routes are set
#define EPISODE_PS   100000000u
#define LENGTH_END   (1u << PEACH2_LENGTH_BITS)
#define WIDTH_END    (1u << PEACH2_WIDTH_BITS)
#define PITCH_END    (1u << PEACH2_PITCH_BITS)
enum { EPISODES = 2 };

struct row {
    const char *what;
    uint64_t source, destination;
    uint32_t bytes;
    unsigned error;
    uint32_t width, source_pitch, destination_pitch; // width not 0: rows
    uint32_t mode, next;                             // chains: the descriptor's position
};

static const struct row rows[] = {
    {"nothing", HOST, EAST, 0, PEACH2_DMA_LENGTH, 0, 0, 0, 0, 0},
    {"a word", HOST, EAST, 4, PEACH2_DMA_OK, 0, 0, 0, 0, 0},
    {"a word and a byte", HOST, EAST, 5, PEACH2_DMA_MISALIGNED, 0, 0, 0, 0, 0},
    {"a packet", HOST, EAST, 256, PEACH2_DMA_OK, 0, 0, 0, 0, 0},
    {"a packet and a word", HOST, EAST, 260, PEACH2_DMA_OK, 0, 0, 0, 0, 0},
    {"across a page", HOST + 4092, EAST + 8188, 8, PEACH2_DMA_OK, 0, 0, 0, 0, 0},
    {"a length of 25 bits", HOST, EAST, LENGTH_END, PEACH2_DMA_LENGTH, 0, 0, 0, 0, 0},
    {"a length of 32 bits", HOST, EAST, UINT32_MAX - 3, PEACH2_DMA_LENGTH, 0, 0, 0, 0, 0},
    {"an odd source", HOST + 2, EAST + 2, 64, PEACH2_DMA_MISALIGNED, 0, 0, 0, 0, 0},
    {"ends of other 16 B", HOST + 4, EAST + 8, 64, PEACH2_DMA_MISALIGNED, 0, 0, 0, 0, 0},
    {"the last 16 B before 16 B", HOST + 12, EAST + 12, 64, PEACH2_DMA_OK, 0, 0, 0, 0, 0},
    {"the last word of a node", HOST + 12, EAST_END - 4, 4, PEACH2_DMA_OK, 0, 0, 0, 0, 0},
    {"up to the end of a node", HOST, EAST_END - 4096, 4096, PEACH2_DMA_OK, 0, 0, 0, 0, 0},
    {"a word across the end of a node", HOST + 12, EAST_END - 4, 8, PEACH2_DMA_UNROUTABLE, 0, 0, 0, 0, 0},
    {"a node that no route takes", HOST, NOBODY, 64, PEACH2_DMA_UNROUTABLE, 0, 0, 0, 0, 0},
    {"the last word of the window", HOST + 12, WINDOW_END - 4, 4, PEACH2_DMA_UNROUTABLE, 0, 0, 0, 0, 0},
    {"from another node", EAST, HOST, 64, PEACH2_DMA_UNROUTABLE, 0, 0, 0, 0, 0},
    {"from the own node's window", OWN + HOST, EAST, 64, PEACH2_DMA_OK, 0, 0, 0, 0, 0},
    {"across the end of a block of the own node", OWN + BLOCK_BYTES - 64, EAST, 128, PEACH2_DMA_UNROUTABLE, 0, 0, 0, 0,
     0},
    {"to the own host", HOST, HOST + 0x10000, 64, PEACH2_DMA_OK, 0, 0, 0, 0, 0},
    {"the board's last word", HOST + 12, MEMORY + MEMORY_BYTES - 4, 4, PEACH2_DMA_OK, 0, 0, 0, 0, 0},
    {"all of the board's memory", HOST, MEMORY, MEMORY_BYTES, PEACH2_DMA_OK, 0, 0, 0, 0, 0},
    {"a word behind the board's memory", HOST + 12, MEMORY + MEMORY_BYTES - 4, 8, PEACH2_DMA_UNROUTABLE, 0, 0, 0, 0, 0},
    {"behind the board's memory", HOST, MEMORY + MEMORY_BYTES, 4, PEACH2_DMA_UNROUTABLE, 0, 0, 0, 0, 0},
    {"more than the board's memory", HOST, MEMORY, MEMORY_BYTES + 4, PEACH2_DMA_UNROUTABLE, 0, 0, 0, 0, 0},
    {"one row", HOST, EAST, 64, PEACH2_DMA_OK, 64, 64, 64, 0, 0},
    {"a row of a word", HOST, EAST, 16, PEACH2_DMA_OK, 4, 16, 32, 0, 0},
    {"a last row that is shorter", HOST, EAST, 68, PEACH2_DMA_OK, 64, 128, 64, 0, 0},
    {"the widest row", HOST, EAST, 64, PEACH2_DMA_OK, WIDTH_END - 4, 64, 64, 0, 0},
    {"a row that is too wide", HOST, EAST, 64, PEACH2_DMA_LENGTH, WIDTH_END, 64, 64, 0, 0},
    {"the largest pitch", HOST, EAST, 8, PEACH2_DMA_OK, 4, PITCH_END - 16, PITCH_END - 16, 0, 0},
    {"too large a pitch", HOST, EAST, 64, PEACH2_DMA_LENGTH, 64, PITCH_END, 64, 0, 0},
    {"a pitch of other 16 B", HOST, EAST, 64, PEACH2_DMA_MISALIGNED, 16, 20, 16, 0, 0},
    {"rows across the end of a node", HOST, EAST_END - 64, 128, PEACH2_DMA_UNROUTABLE, 64, 64, 64, 0, 0},
    {"the first descriptor", HOST, EAST, 64, PEACH2_DMA_OK, 0, 0, 0, PEACH2_MODE_CHAIN_BOARD, 0},
    {"the last descriptor", HOST, EAST, 64, PEACH2_DMA_OK, 0, 0, 0, PEACH2_MODE_CHAIN_BOARD, MEMORY_BYTES - 32},
    {"a descriptor behind the last", HOST, EAST, 64, PEACH2_DMA_DESCRIPTOR, 0, 0, 0, PEACH2_MODE_CHAIN_BOARD,
     MEMORY_BYTES},
    {"half a descriptor", HOST, EAST, 64, PEACH2_DMA_DESCRIPTOR, 0, 0, 0, PEACH2_MODE_CHAIN_BOARD, 16},
    // It is no descriptor: its reserved bits are set.
    {"a descriptor at the end of a page", HOST, EAST, 64, PEACH2_DMA_INVALID, 0, 0, 0, PEACH2_MODE_CHAIN_HOST,
     HOST + 4096 - 32},
    {"no such mode", HOST, EAST, 64, PEACH2_DMA_INVALID, 0, 0, 0, 3, 0},
};

static const struct row *row;

static void start_run(void *ctx)
{
    struct bench *bench = ctx;
    bench_write32(bench, DMAC(PEACH2_DMAC_CONTROL),
                  PEACH2_DMAC_CONTROL_START_MASK | PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_MASK |
                      (row->width != 0 ? PEACH2_DMAC_CONTROL_STRIDE_MASK : 0) |
                      row->mode << PEACH2_DMAC_CONTROL_MODE_LSB);
    if (sim_now_ps(bench->sim) < BEGIN_PS + (EPISODES - 1) * EPISODE_PS) {
        sim_event_schedule(bench->sim, &bench->begin_event, EPISODE_PS);
    }
}

static void program(struct bench *bench)
{
    bench_write64(bench, DMAC(PEACH2_DMAC_SOURCE), row->source);
    bench_write64(bench, DMAC(PEACH2_DMAC_DESTINATION), row->destination);
    bench_write32(bench, DMAC(PEACH2_DMAC_LENGTH), row->bytes);
    bench_write32(bench, DMAC(PEACH2_DMAC_STRIDE_WIDTH), row->width);
    bench_write32(bench, DMAC(PEACH2_DMAC_STRIDE_SOURCE_PITCH), row->source_pitch);
    bench_write32(bench, DMAC(PEACH2_DMAC_STRIDE_DESTINATION_PITCH), row->destination_pitch);
    bench_write64(bench, DMAC(PEACH2_DMAC_NOTIFY_LOCAL), NOTIFY);
    bench_write64(bench, DMAC(PEACH2_DMAC_DESCRIPTOR), row->next);
    if (row->mode == PEACH2_MODE_CHAIN_BOARD && row->next % PEACH2_DESCRIPTOR_BYTES == 0 && row->next < MEMORY_BYTES) {
        uint32_t at = PEACH2_MEMORY_BASE + row->next;
        bench_write64(bench, at, row->source);
        bench_write64(bench, at + 8, row->destination);
        bench_write64(bench, at + 16, row->bytes | 1u << 31); // LAST
        bench_write64(bench, at + 24, 0);
    }
    sim_event_init(&bench->begin_event, start_run, bench);
    sim_event_schedule(bench->sim, &bench->begin_event, BEGIN_PS);
}

// The address in the destination of byte `done` of the transfer, and that in the source.
static uint64_t address_of(uint64_t begin, uint32_t pitch, uint32_t done)
{
    return row->width == 0 ? begin + done : begin + (uint64_t)(done / row->width) * pitch + done % row->width;
}

// The writes of one transfer, in order, from packet `first` on. Returns the packet behind its notification.
static unsigned expect_transfer(const struct bench *bench, unsigned first)
{
    uint32_t done = 0;
    unsigned i = first;
    for (; i < bench->count; i++) {
        const struct left *left = &bench->left[i];
        if (left->fields[1] != PCIE_TLP_MWR) {
            continue;
        }
        if (left->address == NOTIFY) {
            break;
        }
        uint32_t bytes = 4 * left->fields[4];
        for (uint32_t j = 0; j < bytes; j++, done++) {
            uint64_t destination = address_of(row->destination, row->destination_pitch, done);
            uint64_t source = address_of(row->source, row->source_pitch, done) & ((1ull << PEACH2_NODE_BITS) - 1);
            if (left->address + j != destination || left->data[j] != (uint8_t)(source * 7)) {
                FAIL("byte %u goes to %llx as %02x", done, (unsigned long long)left->address + j, left->data[j]);
                return bench->count;
            }
        }
    }
    if (i == bench->count) {
        FAIL("no notification");
        return i;
    }
    EXPECT_EQ(bench->left[i].data[4] >> 4, row->error);
    bool stays = row->destination >= MEMORY && row->destination < MEMORY + MEMORY_BYTES;
    EXPECT_EQ(done, row->error == PEACH2_DMA_OK && !stays ? row->bytes : 0);
    return i + 1;
}

TEST(ChipBoundaries, OfTransfersAreTheSameOnBothAndTwice)
{
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        row = &rows[i];
        TEST_TRACE("%s", row->what);
        bench_compare(1, program, NULL);
        struct bench *bench = calloc(1, sizeof *bench);
        ASSERT_NOT_NULL(bench);
        bench_run(bench, true, 1, program);
        unsigned next = 0;
        for (unsigned episode = 0; episode < EPISODES; episode++) {
            TEST_TRACE("episode %u", episode);
            next = expect_transfer(bench, next);
        }
        free(bench->left);
        free(bench);
    }
}
