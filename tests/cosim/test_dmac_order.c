// Ordering: fences, STATUS after the data, registers after START, status words, and failures while a descriptor is
// being fetched.
#include <string.h>

#include "tests/cosim/dmac.h"

// --- starting -------------------------------------------------------------------------------------------------------

static void overwrite_registers(struct dmac *dmac, unsigned channel)
{
    dmac_set64(dmac, channel, PEACH2_DMAC_SOURCE, 0x1111);
    dmac_set64(dmac, channel, PEACH2_DMAC_DESTINATION, dmac_window(SPACE_WEST, TARGET_OFFSET));
    dmac_set32(dmac, channel, PEACH2_DMAC_LENGTH, 8);
    dmac_set64(dmac, channel, PEACH2_DMAC_DESCRIPTOR, 0x22);
    dmac_set64(dmac, channel, PEACH2_DMAC_NOTIFY_LOCAL, dmac_window(SPACE_WEST, TARGET_OFFSET + 0x100));
    dmac_set64(dmac, channel, PEACH2_DMAC_NOTIFY_REMOTE, dmac_window(SPACE_WEST, TARGET_OFFSET + 0x200));
    dmac_set32(dmac, channel, PEACH2_DMAC_NOTIFY_VALUE, 0x5555);
    dmac_set32(dmac, channel, PEACH2_DMAC_STRIDE_WIDTH, 0);
    dmac_set32(dmac, channel, PEACH2_DMAC_STRIDE_SOURCE_PITCH, 1);
    dmac_set32(dmac, channel, PEACH2_DMAC_STRIDE_DESTINATION_PITCH, 2);
    dmac_set32(dmac, channel, PEACH2_DMAC_CONTROL, 0);
}

static void start_and_overwrite(uint32_t start_cycles, unsigned mode)
{
    struct cosim_peach2_config config = chip_config();
    config.start_cycles = start_cycles;
    struct dmac *dmac = dmac_create(&config);
    struct dmac_transfer rows = dmac_copy(0, SPACE_EAST, 0, 0x200);
    rows.stride = true;
    rows.width = 0x84;
    rows.source_pitch = 0x104;
    rows.destination_pitch = 0x94;
    struct dmac_order order = dmac_order_chain(2, mode, dmac_address(SPACE_HOST, CHAIN_OFFSET));
    order.transfer = rows;
    dmac_chain(dmac, PEACH2_MODE_CHAIN_HOST, order.descriptor, &rows, 1);
    dmac_start(dmac, &order);
    overwrite_registers(dmac, 2);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    dmac_expect(dmac, &rows);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacOrder, RegistersAreTakenOverAtTheStart)
{
    for (uint32_t start_cycles = 0; start_cycles < 100; start_cycles += 7) {
        start_and_overwrite(start_cycles, PEACH2_MODE_REGISTER);
        start_and_overwrite(start_cycles, PEACH2_MODE_CHAIN_HOST);
    }
}

TEST(DmacOrder, StartsOfABusyChannelAreIgnoredAndCounted)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(2, dmac_copy(0, SPACE_EAST, 0, 0x1000));
    dmac_start(dmac, &order);
    for (unsigned i = 0; i < 3; i++) {
        dmac_set64(dmac, 2, PEACH2_DMAC_DESTINATION, dmac_window(SPACE_WEST, TARGET_OFFSET));
        dmac_set32(dmac, 2, PEACH2_DMAC_CONTROL, PEACH2_DMAC_CONTROL_START_MASK);
    }
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    EXPECT_EQ(dmac_status(dmac, 2) >> PEACH2_DMAC_STATUS_IGNORED_STARTS_LSB, 3);
    dmac_expect(dmac, &order.transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

// Times at which the two reads of a chain of one descriptor left N: the descriptor's and the data's.
static void fetch_times(uint32_t fetch_cycles, uint64_t times_ps[2])
{
    struct cosim_peach2_config config = chip_config();
    config.start_cycles = 300;
    config.fetch_cycles = fetch_cycles;
    struct dmac *dmac = dmac_create(&config);
    struct dmac_transfer transfer = dmac_copy(0, SPACE_EAST, 0, 64);
    struct dmac_order order = dmac_order_chain(0, PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET));
    unsigned from = dmac->chip->ports[PORT_N].count, reads = 0;
    dmac_chain(dmac, PEACH2_MODE_CHAIN_HOST, order.descriptor, &transfer, 1);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    for (unsigned i = from; i < dmac->chip->ports[PORT_N].count && reads < 2; i++) {
        if (dmac->chip->ports[PORT_N].left[i].tlp->kind == PCIE_TLP_MRD) {
            times_ps[reads++] = dmac->chip->ports[PORT_N].left[i].time_ps;
        }
    }
    EXPECT_EQ(reads, 2);
    dmac_destroy(dmac);
}

TEST(DmacOrder, AChainsFirstFetchBeginsWhileTheSequencerStarts)
{
    uint64_t early[2], late[2], latest[2];
    fetch_times(100, early);
    fetch_times(300, late);
    fetch_times(65535, latest);
    EXPECT_EQ(late[0] - early[0], 200 * CHIP_PERIOD_PS);
    EXPECT_GE(early[1] - early[0], 200 * CHIP_PERIOD_PS); // the data still wait for the sequencer
    EXPECT_LT(early[1], late[1]);
    EXPECT_EQ(latest[0], late[0]);
    EXPECT_EQ(latest[1], late[1]);
}

// --- STATUS ---------------------------------------------------------------------------------------------------------

enum { STATUS_0 = PEACH2_DMAC_BASE + PEACH2_DMAC_STATUS };

static void ask_status(struct dmac *dmac, unsigned tag)
{
    chip_send(dmac->chip, PORT_N, BAR_REGISTERS,
              pcie_tlp_read(dmac->chip->pool, REQUESTER_HOST, (uint8_t)tag, STATUS_0, 4));
}

static void stall_north(struct dmac *dmac, unsigned ready)
{
    cosim_peach2_set_tx_ready(dmac->chip->board, PORT_N, ready != 0);
}

// Checks the packets that left N from `from` on; 1 if an answer was DONE, and all such answers came after `writes`
// writes.
static unsigned count_done(struct dmac *dmac, unsigned from, unsigned writes)
{
    const struct chip_port *north = &dmac->chip->ports[PORT_N];
    unsigned seen = 0, done = 0;
    for (unsigned i = from; i < north->count; i++) {
        pcie_tlp_t *tlp = north->left[i].tlp;
        seen += tlp->kind == PCIE_TLP_MWR;
        if (tlp->kind == PCIE_TLP_CPLD && (pcie_tlp_data(tlp)[0] & PEACH2_DMAC_STATUS_DONE_MASK) != 0) {
            EXPECT_EQ(seen, writes);
            done++;
        }
    }
    return done;
}

// words: status words to the host.
static void poll_while_north_stalls(uint32_t finish_cycles, unsigned words)
{
    struct cosim_peach2_config config = chip_config();
    config.start_cycles = 0;
    config.finish_cycles = finish_cycles;
    struct dmac *dmac = dmac_create(&config);
    unsigned done = 0;
    for (uint32_t stall = 1; stall < 160; stall++) {
        struct dmac_order order = dmac_order(0, dmac_copy(16 * stall, SPACE_HOST, 16 * stall, 16));
        unsigned from = dmac->chip->ports[PORT_N].count;
        order.notify_local = words >= 1;
        order.notify_remote = words >= 2;
        order.remote = dmac_status_address(SPACE_HOST, 1);
        dmac->delay_cycles = 20;
        dmac_set32(dmac, 0, PEACH2_DMAC_CONTROL, 0); // DONE of the last one is not read before this one starts
        dmac_start(dmac, &order);
        dmac_after(dmac, stall, stall_north, 0);
        for (unsigned i = 0; i < 12; i++) {
            dmac_after(dmac, 80 + stall % 13 + 13 * i, ask_status, i);
        }
        dmac_after(dmac, stall + 97, stall_north, 1);
        dmac_run(dmac);
        done += count_done(dmac, from, 1 + words) > 0;
        dmac_expect(dmac, &order.transfer);
        dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    }
    EXPECT_GT(done, 50);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacOrder, StatusSaysDoneOnlyAfterTheDataLeft)
{
    poll_while_north_stalls(0, 0);
    poll_while_north_stalls(5, 0);
}

TEST(DmacOrder, StatusSaysDoneOnlyAfterTheStatusWordLeft)
{
    for (uint32_t finish_cycles = 0; finish_cycles <= 6; finish_cycles += 3) {
        poll_while_north_stalls(finish_cycles, 1);
        poll_while_north_stalls(finish_cycles, 2);
    }
}

static void let_north_breathe(struct dmac *dmac, unsigned number)
{
    stall_north(dmac, number % 5 == 0);
}

TEST(DmacOrder, StatusSaysDoneOnlyAfterTheDataLeftWhenNorthIsBusy)
{
    struct cosim_peach2_config config = chip_config();
    config.finish_cycles = 0;
    struct dmac *dmac = dmac_create(&config);
    struct dmac_order order = dmac_order(0, dmac_copy(0, SPACE_HOST, 0, 16));
    unsigned from = dmac->chip->ports[PORT_N].count;
    order.notify_local = order.notify_remote = false;
    dmac_start(dmac, &order);
    for (unsigned i = 0; i < 60; i++) {
        chip_send(dmac->chip, PORT_E, 0,
                  pcie_tlp_write(dmac->chip->pool, 1, dmac_window(SPACE_GPU, TARGET_OFFSET), 256, NULL));
        dmac_after(dmac, 150 + 7 * i, ask_status, i);
        dmac_after(dmac, 150 + 10 * i, let_north_breathe, i);
    }
    dmac_after(dmac, 800, stall_north, 1);
    dmac_run(dmac);
    const struct chip_port *north = &dmac->chip->ports[PORT_N];
    bool moved = false;
    for (unsigned i = from; i < north->count; i++) {
        pcie_tlp_t *tlp = north->left[i].tlp;
        moved = moved || (tlp->kind == PCIE_TLP_MWR && tlp->requester == REQUESTER_CHIP);
        if (!moved && tlp->kind == PCIE_TLP_CPLD) {
            EXPECT_EQ(pcie_tlp_data(tlp)[0] & PEACH2_DMAC_STATUS_DONE_MASK, 0);
        }
    }
    EXPECT_TRUE(moved);
    dmac_destroy(dmac);
}

// --- fences ---------------------------------------------------------------------------------------------------------

// Four copies, each of the data that the previous one wrote.
static void hand_on(bool fence, struct dmac_transfer *hops)
{
    for (uint32_t i = 0; i < 4; i++) {
        hops[i] = dmac_copy(i == 0 ? 0x1000 : TARGET_OFFSET + 0x1000 * i, SPACE_HOST, 0x1000 * (i + 1), 0x700);
        hops[i].fence = fence;
    }
}

static void run_hops(struct dmac *dmac, unsigned mode, const struct dmac_transfer *hops)
{
    uint64_t at = mode == PEACH2_MODE_CHAIN_HOST ? dmac_address(SPACE_HOST, CHAIN_OFFSET) : 0;
    struct dmac_order order = dmac_order_chain(0, mode, at);
    dmac_chain(dmac, mode, at, hops, 4);
    dmac_run(dmac);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
}

TEST(DmacOrder, AFencedDescriptorReadsWhatEarlierOnesWrote)
{
    for (unsigned mode = PEACH2_MODE_CHAIN_HOST; mode <= PEACH2_MODE_CHAIN_BOARD; mode++) {
        struct dmac *dmac = dmac_create(NULL);
        struct dmac_transfer hops[4];
        hand_on(true, hops);
        dmac->shuffle = true;
        dmac_stall(dmac, 300);
        run_hops(dmac, mode, hops);
        for (unsigned i = 0; i < 4; i++) {
            dmac_expect(dmac, &hops[i]);
        }
        dmac_compare(dmac);
        dmac_destroy(dmac);
    }
}

TEST(DmacOrder, DescriptorsWithoutAFenceOverlap)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_transfer hops[4];
    hand_on(false, hops);
    run_hops(dmac, PEACH2_MODE_CHAIN_BOARD, hops);
    dmac_expect(dmac, &hops[0]);
    EXPECT_MEMEQ(dmac_got(dmac, hops[0].destination), dmac_got(dmac, hops[0].source), 0x700);
    EXPECT_EQ(dmac_got(dmac, hops[3].destination)[0], 0); // read before any write
    EXPECT_EQ(dmac->reads[7]->address, hops[1].source);
    dmac_destroy(dmac);
}

TEST(DmacOrder, AFenceCostsNothingWhenNothingIsUnderWay)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_transfer transfer = dmac_copy(0, SPACE_EAST, 0, 64);
    struct dmac_order order = dmac_order_chain(0, PEACH2_MODE_CHAIN_BOARD, 0);
    transfer.fence = true;
    dmac_chain(dmac, PEACH2_MODE_CHAIN_BOARD, 0, &transfer, 1);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    dmac_expect(dmac, &transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

// --- status words ---------------------------------------------------------------------------------------------------

TEST(DmacOrder, StatusWordsReachTheBoardsMemory)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(1, dmac_copy(0, SPACE_BOARD, 0, 0x400));
    order.local = dmac_status_address(SPACE_BOARD, 1);
    order.remote = dmac_status_address(SPACE_BOARD, 2);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    dmac_expect(dmac, &order.transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

static void note_write(struct dmac *dmac, unsigned port, uint64_t address, uint32_t bytes)
{
    uint64_t *order = dmac->user;
    (void)address;
    (void)bytes;
    *order = *order * 10 + port + 1;
}

TEST(DmacOrder, TheRemoteStatusWordGoesBeforeTheLocalOne)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(0, dmac_copy(0, SPACE_EAST, 0, 512));
    uint64_t ports = 0;
    dmac->user = &ports;
    dmac->on_write = note_write;
    dmac_start(dmac, &order);
    dmac_run(dmac);
    EXPECT_EQ(ports, 2221); // two writes and the status word east, then the status word north
    dmac_destroy(dmac);
}

TEST(DmacOrder, NoStatusWordIsSentThatWasNotAskedFor)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(0, dmac_copy(0, SPACE_EAST, 0, 512));
    order.notify_local = order.notify_remote = false;
    order.local = order.remote = 3; // no program polls them
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    dmac_expect(dmac, &order.transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

// --- failures while descriptors arrive ------------------------------------------------------------------------------

// A chain of five that begins in the middle of 64 bytes, so that a burst comes in several completions. The first
// descriptor's data fail while the second completion is `gap` cycles after the first.
static void fail_while_fetching(struct dmac *dmac, uint32_t gap, enum dmac_answer answer, unsigned error)
{
    struct dmac_order order = dmac_order_chain(1, PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET + 32));
    dmac->split = true;
    dmac->rules[0] = (struct dmac_rule){order.descriptor, 5 * 32, ANSWER_DATA, 50, gap};
    dmac->rules[1] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1000), 4, answer, 25, 0};
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, error);
}

static void sweep_failures(enum dmac_answer answer, unsigned error)
{
    for (uint32_t prefetch = 1; prefetch <= 4; prefetch++) {
        struct cosim_peach2_config config = chip_config();
        config.prefetch = prefetch;
        struct dmac *dmac = dmac_create(&config);
        struct dmac_transfer chain[5];
        for (uint32_t i = 0; i < 5; i++) {
            chain[i] = dmac_copy(0x1000 * (i + 1), SPACE_EAST, 0x1000 * i, 16);
        }
        dmac_chain(dmac, PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET + 32), chain, 5);
        for (uint32_t gap = 1; gap <= 60; gap++) {
            fail_while_fetching(dmac, gap, answer, error);
        }
        dmac_compare(dmac);
        dmac_expect_works(dmac, 1);
        dmac_destroy(dmac);
    }
}

TEST(DmacOrder, AReadThatFailsWhileDescriptorsArriveEndsTheChannel)
{
    sweep_failures(ANSWER_UNSUPPORTED, PEACH2_DMA_READ_UR);
    sweep_failures(ANSWER_ABORT, PEACH2_DMA_READ_ABORT);
}

// The same, but the second descriptor is bad, which is found as soon as it arrives.
TEST(DmacOrder, ABadDescriptorWhileOthersArriveEndsTheChannel)
{
    for (uint32_t prefetch = 1; prefetch <= 4; prefetch++) {
        struct cosim_peach2_config config = chip_config();
        config.prefetch = prefetch;
        struct dmac *dmac = dmac_create(&config);
        uint64_t at = dmac_address(SPACE_HOST, CHAIN_OFFSET + 32);
        struct dmac_transfer chain[5];
        for (uint32_t i = 0; i < 5; i++) {
            chain[i] = dmac_copy(0x1000 * (i + 1), SPACE_EAST, 0x1000 * i, 16);
        }
        chain[1].bytes = 0;
        dmac_chain(dmac, PEACH2_MODE_CHAIN_HOST, at, chain, 5);
        dmac_expect(dmac, &chain[0]);
        for (uint32_t gap = 1; gap <= 60; gap++) {
            fail_while_fetching(dmac, gap, ANSWER_DATA, PEACH2_DMA_LENGTH);
        }
        dmac_compare_partly(dmac);
        dmac_expect_works(dmac, 1);
        dmac_destroy(dmac);
    }
}
