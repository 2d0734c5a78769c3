// Data moved by the DMA controller, compared byte for byte with a reference: destinations and the bytes around them.
#include <string.h>

#include "tests/cosim/dmac.h"

static void move(struct dmac *dmac, struct dmac_transfer transfer)
{
    struct dmac_order order = dmac_order(0, transfer);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    dmac_expect(dmac, &transfer);
}

TEST(DmacMove, ReachesEveryMemory)
{
    struct dmac *dmac = dmac_create(NULL);
    for (unsigned space = 0; space < SPACE_COUNT; space++) {
        move(dmac, dmac_copy(0x100 * space, space, 0x100, 0x400));
    }
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacMove, TakesSourceAndDestinationWithinAndOutsideTheWindow)
{
    struct dmac *dmac = dmac_create(NULL);
    for (unsigned i = 0; i < 4; i++) {
        struct dmac_transfer transfer = {.bytes = 300};
        transfer.source = i % 2 != 0 ? dmac_window(SPACE_GPU, 4096 * i) : dmac_address(SPACE_GPU, 4096 * i);
        transfer.destination = i / 2 != 0 ? dmac_window(SPACE_HOST, TARGET_OFFSET + 4096 * i)
                                          : dmac_address(SPACE_HOST, TARGET_OFFSET + 4096 * i);
        move(dmac, transfer);
    }
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacMove, TakesEveryLengthAndAlignment)
{
    struct dmac *dmac = dmac_create(NULL);
    for (uint32_t bytes = 4; bytes <= 560; bytes += 4) {
        for (uint32_t offset = bytes % 8; offset < 16; offset += 8) {
            move(dmac, dmac_copy(bytes * 16 + offset, SPACE_EAST, bytes * 64 + offset, bytes));
        }
    }
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

// 32 reads use the whole reorder buffer; the slots' generations wrap around four times.
TEST(DmacMove, TakesATransferLongerThanTheReorderBufferManyTimes)
{
    struct cosim_peach2_config config = chip_config();
    config.read_tags = 32;
    config.read_bytes = 512;
    struct dmac *dmac = dmac_create(&config);
    dmac->shuffle = true;
    for (unsigned i = 0; i < 6; i++) {
        move(dmac, dmac_copy(0x10 * i, SPACE_WEST, 0x5a0 * i, 0x7f00));
    }
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacMove, MovesRowsOfABlock)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_transfer block = dmac_copy(0x24, SPACE_WEST, 0x104, 7 * 300 + 16); // the last row is short
    block.stride = true;
    block.width = 300;
    block.source_pitch = 0x33c;
    block.destination_pitch = 0x22c;
    move(dmac, block);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacMove, GathersAndScattersWithAPitchOfTheWidthOnOneSide)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_transfer gather = dmac_copy(0, SPACE_EAST, 0, 64 * 16);
    gather.stride = true;
    gather.width = 16;
    gather.source_pitch = 0x100;
    gather.destination_pitch = 16;
    struct dmac_transfer scatter = dmac_copy(0x20, SPACE_SOUTH, 0, 64 * 16);
    scatter.stride = true;
    scatter.width = 16;
    scatter.source_pitch = 16;
    scatter.destination_pitch = 0x100;
    move(dmac, gather);
    move(dmac, scatter);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacMove, TakesTheWidestRowsAndPitchesOfADescriptor)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_transfer block = dmac_copy(0, SPACE_EAST, 0, 0x1000);
    block.stride = true;
    block.width = 0x3fffc; // one row
    block.source_pitch = block.destination_pitch = 0x3ffffc;
    struct dmac_transfer rows = dmac_copy(0, SPACE_EAST, 0x2000, 3 * 0x100); // pitches of more than 16 bits of DWs...
    rows.stride = true;
    rows.width = 0x100;
    rows.source_pitch = 0; // ...would leave the memory, so the same row is used again
    rows.destination_pitch = 0x1000;
    struct dmac_transfer chain[] = {block, rows};
    struct dmac_order order = dmac_order_chain(1, PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET));
    dmac_chain(dmac, PEACH2_MODE_CHAIN_HOST, order.descriptor, chain, 2);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    dmac_expect(dmac, &block);
    dmac_expect(dmac, &rows);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

static void follow(unsigned mode, uint64_t base, const uint32_t *offsets, unsigned count)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order_chain(3, mode, base + offsets[0]);
    for (unsigned i = 0; i < count; i++) {
        struct dmac_transfer transfer = dmac_copy(64 * i, SPACE_EAST, 64 * i, 60);
        dmac_describe(dmac, mode, base + offsets[i], &transfer, i + 1 < count ? base + offsets[i + 1] : 0);
        dmac_expect(dmac, &transfer);
    }
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    EXPECT_EQ(dmac_completed(dmac, 3), count);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacMove, FollowsChainsThatAreScattered)
{
    static const uint32_t offsets[] = {0x400, 0x420, 0x20, 0x40, 0xfe0, 0x1000, 0x60, 0x460, 0x440};
    follow(PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET), offsets, sizeof offsets / sizeof offsets[0]);
    follow(PEACH2_MODE_CHAIN_BOARD, 0, offsets, sizeof offsets / sizeof offsets[0]);
}

TEST(DmacMove, FollowsChainsOfHundredsOfDescriptors)
{
    enum { COUNT = 500 };
    uint32_t offsets[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        offsets[i] = 32 * i;
    }
    follow(PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET), offsets, COUNT);
    follow(PEACH2_MODE_CHAIN_BOARD, 0, offsets, COUNT);
}

TEST(DmacMove, ReadsTheLastDescriptorOfTheBoardsMemory)
{
    static const uint32_t offsets[] = {0, BOARD_BYTES - 32};
    follow(PEACH2_MODE_CHAIN_BOARD, 0, offsets, 2);
}

// --- random transfers -----------------------------------------------------------------------------------------------

enum { CHAIN_MAX = 12 };

struct random_work {
    struct dmac_order orders[DMAC_CHANNELS];
    struct dmac_transfer transfers[DMAC_CHANNELS][CHAIN_MAX];
    unsigned counts[DMAC_CHANNELS];
    unsigned channels, notified; // status words seen
};

static uint32_t pick(struct dmac *dmac, uint32_t below)
{
    return chip_random(&dmac->random) % below;
}

static void make_rows(struct dmac *dmac, struct dmac_transfer *transfer)
{
    uint32_t low = pick(dmac, 4) * 4;
    transfer->stride = true;
    transfer->width = 4 + 4 * pick(dmac, 75);
    transfer->source_pitch = low + 16 * pick(dmac, 256);
    transfer->destination_pitch = low + 16 * pick(dmac, 32);
    transfer->bytes = transfer->width * pick(dmac, 8) + 4 + 4 * pick(dmac, transfer->width / 4);
}

static uint32_t span(const struct dmac_transfer *transfer, uint32_t pitch)
{
    return transfer->stride ? (transfer->bytes - 1) / transfer->width * pitch + transfer->width : transfer->bytes;
}

// Destinations of a channel are in its own quarter of every memory, and may overlap there.
static struct dmac_transfer make_transfer(struct dmac *dmac, unsigned channel)
{
    struct dmac_transfer transfer = {.bytes = 4 + 4 * pick(dmac, pick(dmac, 2) ? 16 : 700),
                                     .fence = pick(dmac, 5) == 0};
    if (pick(dmac, 3) == 0) {
        make_rows(dmac, &transfer);
    }
    unsigned space = pick(dmac, SPACE_COUNT);
    uint32_t from = 4 * pick(dmac, (SOURCE_BYTES - span(&transfer, transfer.source_pitch)) / 4);
    uint32_t start = space == SPACE_BOARD ? 0x2000 + 0x1400 * channel : TARGET_OFFSET + 0x3000 * channel;
    uint32_t room = (space == SPACE_BOARD ? 0x1400 : 0x3000) - span(&transfer, transfer.destination_pitch) - 16;
    uint32_t to = start + (pick(dmac, room) & ~15u) + from % 16;
    transfer.source = pick(dmac, 2) ? dmac_window(pick(dmac, 2), from) : dmac_address(pick(dmac, 2), from);
    transfer.destination = pick(dmac, 2) ? dmac_window(space, to) : dmac_address(space, to);
    return transfer;
}

static uint64_t descriptor_address(unsigned mode, unsigned channel, unsigned slot)
{
    uint32_t offset = 0x800 * channel + 32 * slot;
    return mode == PEACH2_MODE_CHAIN_HOST ? dmac_address(SPACE_HOST, CHAIN_OFFSET + offset) : offset;
}

// Mostly one after the other.
static void make_chain(struct dmac *dmac, struct random_work *work, unsigned channel)
{
    struct dmac_order *order = &work->orders[channel];
    unsigned slot = pick(dmac, 4);
    order->descriptor = descriptor_address(order->mode, channel, slot);
    for (unsigned i = 0; i < work->counts[channel]; i++) {
        uint64_t at = descriptor_address(order->mode, channel, slot);
        slot += 1 + (pick(dmac, 3) == 0 ? pick(dmac, 3) : 0);
        uint64_t next = i + 1 < work->counts[channel] ? descriptor_address(order->mode, channel, slot) : 0;
        dmac_describe(dmac, order->mode, at, &work->transfers[channel][i], next);
    }
}

static void make_work(struct dmac *dmac, struct random_work *work)
{
    work->channels = 1 + pick(dmac, DMAC_CHANNELS);
    for (unsigned c = 0; c < work->channels; c++) {
        struct dmac_order *order = &work->orders[c];
        *order = dmac_order(c, make_transfer(dmac, c));
        order->mode = pick(dmac, 3);
        order->local = dmac_status_address(pick(dmac, 2) ? SPACE_HOST : SPACE_BOARD, c);
        order->remote = dmac_status_address(SPACE_EAST + pick(dmac, 3), c);
        order->value += pick(dmac, 1 << 30);
        work->transfers[c][0] = order->transfer;
        work->counts[c] = order->mode == PEACH2_MODE_REGISTER ? 1 : 1 + pick(dmac, CHAIN_MAX);
        for (unsigned i = 1; i < work->counts[c]; i++) {
            work->transfers[c][i] = make_transfer(dmac, c);
        }
        for (unsigned i = 0; i < work->counts[c]; i++) {
            dmac_expect(dmac, &work->transfers[c][i]);
        }
        if (order->mode != PEACH2_MODE_REGISTER) {
            order->transfer = (struct dmac_transfer){0};
            make_chain(dmac, work, c);
        }
    }
}

static void check_sent(struct dmac *dmac, unsigned port, unsigned channel)
{
    uint32_t start = TARGET_OFFSET + 0x3000 * channel;
    for (unsigned i = 0; i < SPACE_COUNT; i++) {
        const struct dmac_space *space = &dmac->spaces[i];
        if (space->port == port) {
            EXPECT_MEMEQ(space->got + start, space->want + start, 0x3000);
        }
    }
}

// When a channel's status word has arrived, all its data to the same port have arrived.
static void check_order(struct dmac *dmac, unsigned port, uint64_t address, uint32_t bytes)
{
    struct random_work *work = dmac->user;
    const uint8_t *written = dmac_got(dmac, address);
    for (unsigned c = 0; c < work->channels && bytes == 8; c++) {
        if (written == dmac_got(dmac, work->orders[c].local) || written == dmac_got(dmac, work->orders[c].remote)) {
            work->notified++;
            check_sent(dmac, port, c);
        }
    }
}

static void run_random(uint64_t seed, const struct cosim_peach2_config *config, bool stalls)
{
    struct random_work work = {0};
    struct dmac *dmac = dmac_create(config);
    unsigned notified = 0;
    dmac->random = seed * UINT64_C(0x9e3779b97f4a7c15);
    dmac->shuffle = true;
    make_work(dmac, &work);
    dmac_run(dmac);
    dmac->on_write = check_order;
    dmac->user = &work;
    for (unsigned c = 0; c < work.channels; c++) {
        dmac_start(dmac, &work.orders[c]);
        notified +=
            work.orders[c].local == dmac_status_address(SPACE_BOARD, c) ? 1 : 2; // none leaves for the board's memory
    }
    if (stalls) {
        dmac_stall(dmac, 200);
    }
    for (unsigned c = 0; c < work.channels; c++) {
        dmac_expect_end(dmac, &work.orders[c], PEACH2_DMA_OK);
        EXPECT_EQ(dmac_completed(dmac, c), work.counts[c]);
    }
    EXPECT_EQ(work.notified, notified);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacMove, MovesWhatItIsToldWhateverTheOrderOfTheAnswers)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        run_random(seed, NULL, false);
    }
}

TEST(DmacMove, MovesWhatItIsToldWhilePortsStall)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        run_random(seed + 1000, NULL, true);
    }
}

TEST(DmacMove, MovesWhatItIsToldWithEveryConfiguration)
{
    static const uint32_t tags[] = {1, 2, 7, 16, 31, 32};
    uint64_t seed = 2000;
    for (uint32_t read_bytes = 64; read_bytes <= 512; read_bytes *= 2) {
        for (uint32_t mps_bytes = 128; mps_bytes <= 512; mps_bytes *= 2) {
            for (uint32_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
                struct cosim_peach2_config config = chip_config();
                config.read_bytes = read_bytes;
                config.mps_bytes = mps_bytes;
                config.read_tags = tags[i];
                config.prefetch = 1 + (uint32_t)seed % 4;
                config.start_cycles = config.finish_cycles = (uint32_t)seed % 3;
                config.fetch_cycles = (uint32_t)seed / 3 % 3;
                run_random(seed, &config, seed % 2 == 0);
                seed++;
            }
        }
    }
}
