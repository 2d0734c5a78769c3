// Every error of a transfer by name, before it moves anything: STATUS and the status word agree, the other side is not
// notified, no other data are moved, and the channel works afterwards.
#include <string.h>

#include "tests/cosim/dmac.h"

static const uint64_t BLOCK_BYTES = UINT64_C(1) << 33;

static struct dmac_transfer good(void)
{
    return dmac_copy(0x200, SPACE_EAST, 0x400, 0x100);
}

static struct dmac_transfer good_rows(void)
{
    struct dmac_transfer rows = dmac_copy(0x200, SPACE_EAST, 0x400, 0x100);
    rows.stride = true;
    rows.width = 0x20;
    rows.source_pitch = 0x40;
    rows.destination_pitch = 0x80;
    return rows;
}

static void refuse_in_register_mode(struct dmac_transfer transfer, unsigned error)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(2, transfer);
    dmac_expect_refused(dmac, &order, error);
    EXPECT_EQ(dmac_get32(dmac, PEACH2_COUNTER_BASE + PEACH2_COUNTER_UNROUTABLE_WRITES), 0);
    EXPECT_EQ(dmac_get32(dmac, PEACH2_COUNTER_BASE + PEACH2_COUNTER_REFUSED_WRITES), 0);
    dmac_destroy(dmac);
}

// The second of three descriptors fails; the first is moved, because the second waits for it.
static void refuse_in_chain(unsigned mode, struct dmac_transfer transfer, unsigned error)
{
    struct dmac *dmac = dmac_create(NULL);
    uint64_t at = mode == PEACH2_MODE_CHAIN_HOST ? dmac_address(SPACE_HOST, CHAIN_OFFSET) : 0x20;
    struct dmac_order order = dmac_order_chain(2, mode, at);
    struct dmac_transfer chain[] = {dmac_copy(0x1000, SPACE_EAST, 0x1000, 0x300), transfer,
                                    dmac_copy(0x2000, SPACE_EAST, 0x2000, 0x300)};
    chain[1].fence = true;
    dmac_chain(dmac, mode, at, chain, 3);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, error);
    EXPECT_EQ(dmac_completed(dmac, 2), 1);
    dmac_expect(dmac, &chain[0]);
    dmac_compare(dmac);
    dmac_expect_works(dmac, 2);
    dmac_destroy(dmac);
}

static void refuse_everywhere(struct dmac_transfer transfer, unsigned error)
{
    refuse_in_register_mode(transfer, error);
    refuse_in_chain(PEACH2_MODE_CHAIN_HOST, transfer, error);
    refuse_in_chain(PEACH2_MODE_CHAIN_BOARD, transfer, error);
}

// --- limits of a transfer -------------------------------------------------------------------------------------------

TEST(DmacErrors, MisalignedAreAddressesThatAreNoMultipleOf4)
{
    for (unsigned i = 1; i < 4; i++) {
        struct dmac_transfer transfer = good();
        transfer.source += i;
        transfer.destination += i;
        refuse_everywhere(transfer, PEACH2_DMA_MISALIGNED);
    }
}

TEST(DmacErrors, MisalignedAreAddressesThatDifferInTheirLowFourBits)
{
    for (unsigned i = 1; i < 16; i++) {
        struct dmac_transfer transfer = good();
        transfer.destination += i;
        refuse_everywhere(transfer, PEACH2_DMA_MISALIGNED);
    }
}

TEST(DmacErrors, MisalignedAreLengthsThatAreNoMultipleOf4)
{
    for (unsigned i = 1; i < 4; i++) {
        struct dmac_transfer transfer = good();
        transfer.bytes += i;
        refuse_everywhere(transfer, PEACH2_DMA_MISALIGNED);
    }
}

TEST(DmacErrors, MisalignedAreRowsAndPitchesThatAreNoMultipleOf4)
{
    for (unsigned i = 1; i < 4; i++) {
        struct dmac_transfer wide = good_rows(), source = good_rows(), both = good_rows();
        wide.width += i;
        source.source_pitch += i;
        both.source_pitch += i;
        both.destination_pitch += i;
        refuse_in_register_mode(wide, PEACH2_DMA_MISALIGNED);
        refuse_in_register_mode(source, PEACH2_DMA_MISALIGNED);
        refuse_in_register_mode(both, PEACH2_DMA_MISALIGNED);
    }
}

TEST(DmacErrors, MisalignedArePitchesThatDifferInTheirLowFourBits)
{
    for (unsigned i = 4; i < 16; i += 4) {
        struct dmac_transfer rows = good_rows();
        rows.destination_pitch += i;
        refuse_everywhere(rows, PEACH2_DMA_MISALIGNED);
    }
}

TEST(DmacErrors, LengthIsNeitherZeroNorMoreThan24Bits)
{
    struct dmac_transfer none = good(), large = good(), larger = good();
    none.bytes = 0;
    large.bytes = 0x1000000;
    larger.bytes = 0x80000100;
    refuse_everywhere(none, PEACH2_DMA_LENGTH);
    refuse_in_register_mode(large, PEACH2_DMA_LENGTH);
    refuse_in_register_mode(larger, PEACH2_DMA_LENGTH);
}

TEST(DmacErrors, LengthIsTheErrorOfRowsThatAreEmptyOrTooWide)
{
    struct dmac_transfer none = good_rows(), wide = good_rows(), source = good_rows(), destination = good_rows();
    none.width = 0;
    wide.width = 0x40000;
    source.source_pitch = 0x400000;
    destination.destination_pitch = 0x400000;
    refuse_everywhere(none, PEACH2_DMA_LENGTH);
    refuse_in_register_mode(wide, PEACH2_DMA_LENGTH);
    refuse_in_register_mode(source, PEACH2_DMA_LENGTH);
    refuse_in_register_mode(destination, PEACH2_DMA_LENGTH);
}

TEST(DmacErrors, InvalidIsModeThree)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(1, good());
    order.mode = 3;
    dmac_expect_refused(dmac, &order, PEACH2_DMA_INVALID);
    dmac_destroy(dmac);
}

TEST(DmacErrors, InvalidAreReservedBitsOfADescriptor)
{
    for (uint8_t bit = 1; bit < 16; bit = (uint8_t)(bit << 1)) {
        struct dmac_transfer transfer = good();
        transfer.reserved = bit;
        refuse_in_chain(PEACH2_MODE_CHAIN_HOST, transfer, PEACH2_DMA_INVALID);
        refuse_in_chain(PEACH2_MODE_CHAIN_BOARD, transfer, PEACH2_DMA_INVALID);
    }
}

// --- limits of destinations -----------------------------------------------------------------------------------------

static void refuse_destination(uint64_t destination)
{
    struct dmac_transfer transfer = good();
    transfer.destination = destination;
    refuse_everywhere(transfer, PEACH2_DMA_UNROUTABLE);
}

TEST(DmacErrors, UnroutableIsADestinationWithoutARoute)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(0, dmac_copy(0, SPACE_WEST, 0, 256));
    uint32_t control = PEACH2_ROUTE_BASE + PORT_W * PEACH2_ROUTE_STRIDE + PEACH2_ROUTE_CONTROL;
    chip_set32(dmac->chip, control, 0);
    dmac_expect_refused(dmac, &order, PEACH2_DMA_UNROUTABLE);
    chip_set32(dmac->chip, control, PEACH2_ROUTE_CONTROL_ENABLE_MASK);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    dmac_destroy(dmac);
}

TEST(DmacErrors, UnroutableIsADestinationThatRunsOutOfItsBlock)
{
    for (unsigned block = 0; block < 4; block++) {
        refuse_destination(chip_window(3, block, BLOCK_BYTES - 0xc0));
    }
    refuse_destination(chip_window(OWN_NODE, BLOCK_HOST, BLOCK_BYTES - 0x10));
    refuse_destination(chip_window(15, 3, BLOCK_BYTES - 0xf0)); // out of the window
}

TEST(DmacErrors, UnroutableAreRowsThatRunOutOfTheirBlock)
{
    struct dmac_transfer rows = good_rows();
    rows.destination = chip_window(3, 0, BLOCK_BYTES - 7 * 0x80 - 0x10);
    refuse_everywhere(rows, PEACH2_DMA_UNROUTABLE);
}

TEST(DmacErrors, UnroutableIsADestinationThatRunsIntoTheWindow)
{
    refuse_destination(WINDOW_BASE - 0x10);
    refuse_destination(WINDOW_BASE - 0xf0);
}

TEST(DmacErrors, UnroutableIsASourceThatIsNotTheOwnHosts)
{
    const uint64_t sources[] = {dmac_window(SPACE_EAST, 0),
                                dmac_window(SPACE_BOARD, 0),
                                chip_window(OWN_NODE, BLOCK_BOARD, 0),
                                chip_window(OWN_NODE, BLOCK_GPU1, BLOCK_BYTES - 0xf0),
                                chip_window(OWN_NODE, BLOCK_HOST, BLOCK_BYTES - 0x10),
                                WINDOW_BASE - 0x10};
    for (unsigned i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        struct dmac_transfer transfer = good();
        transfer.source = sources[i];
        // Data read on the way to the edge are never written.
        transfer.destination = dmac_window(SPACE_WEST, 0x10000);
        refuse_everywhere(transfer, PEACH2_DMA_UNROUTABLE);
    }
}

TEST(DmacErrors, UnroutableIsTheBoardOutsideItsMemory)
{
    static const uint32_t offsets[] = {0,
                                       PEACH2_DMAC_BASE,
                                       PEACH2_MEMORY_BASE - 0x100,
                                       PEACH2_MEMORY_BASE - 0x10,
                                       PEACH2_MEMORY_BASE + BOARD_BYTES,
                                       PEACH2_MEMORY_BASE + BOARD_BYTES - 0xf0};
    for (unsigned i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        refuse_destination(chip_window(OWN_NODE, BLOCK_BOARD, offsets[i]));
    }
}

// --- limits of status words -----------------------------------------------------------------------------------------

static void refuse_notification(bool remote, uint64_t address, unsigned error)
{
    static const uint8_t well[8] = {0, 0, 0xcd, 0xab, PEACH2_DMAC_STATUS_DONE_MASK};
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(0, good());
    *(remote ? &order.remote : &order.local) = address;
    chip_set32(dmac->chip, PEACH2_ROUTE_BASE + PORT_W * PEACH2_ROUTE_STRIDE + PEACH2_ROUTE_CONTROL, 0);
    dmac_start(dmac, &order);
    dmac_expect(dmac, &order.transfer);
    // A remote word that cannot be sent is reported to the local side; a local one only in STATUS, after the remote
    // one.
    struct dmac_order heard = order;
    heard.notify_local = remote;
    heard.notify_remote = false;
    dmac_expect_end(dmac, &heard, error);
    if (!remote) {
        dmac_expect_bytes(dmac, order.remote, sizeof well, well);
    }
    dmac_compare(dmac);
    dmac_expect_works(dmac, 0);
    dmac_destroy(dmac);
}

TEST(DmacErrors, MisalignedIsAStatusWordThatIsNoMultipleOf8)
{
    refuse_notification(true, dmac_window(SPACE_EAST, TARGET_OFFSET + 4), PEACH2_DMA_MISALIGNED);
    refuse_notification(false, dmac_window(SPACE_HOST, TARGET_OFFSET + 1), PEACH2_DMA_MISALIGNED);
}

TEST(DmacErrors, UnroutableIsAStatusWordWithoutARoute)
{
    refuse_notification(true, dmac_status_address(SPACE_WEST, 0), PEACH2_DMA_UNROUTABLE);
    refuse_notification(false, dmac_status_address(SPACE_WEST, 0), PEACH2_DMA_UNROUTABLE);
}

TEST(DmacErrors, UnroutableIsAStatusWordForTheBoardOutsideItsMemory)
{
    static const uint32_t offsets[] = {PEACH2_CHIP_BASE + PEACH2_CHIP_SCRATCH, PEACH2_MEMORY_BASE - 8,
                                       PEACH2_MEMORY_BASE + BOARD_BYTES};
    for (unsigned i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        refuse_notification(true, chip_window(OWN_NODE, BLOCK_BOARD, offsets[i]), PEACH2_DMA_UNROUTABLE);
        refuse_notification(false, chip_window(OWN_NODE, BLOCK_BOARD, offsets[i]), PEACH2_DMA_UNROUTABLE);
    }
}

static void route_east_enable(struct dmac *dmac, unsigned enable)
{
    uint32_t control = enable * PEACH2_ROUTE_CONTROL_ENABLE_MASK;
    uint32_t offset = PEACH2_ROUTE_BASE + PORT_E * PEACH2_ROUTE_STRIDE + PEACH2_ROUTE_CONTROL;
    chip_send(dmac->chip, PORT_N, BAR_REGISTERS,
              pcie_tlp_write(dmac->chip->pool, REQUESTER_HOST, offset, sizeof control, &control));
}

// The route's end comes in any cycle, also between a status word's header and its payload: the word arrives whole, or
// the channel says that it had no route.
TEST(DmacErrors, ARouteThatEndsUnderAStatusWordLeavesItWhole)
{
    enum { CYCLES = 240, CHANNEL = 3 };
    unsigned arrived = 0;
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(CHANNEL, dmac_copy(0, SPACE_WEST, 0, 16));
    order.notify_local = false;
    for (uint32_t cycle = 0; cycle < CYCLES; cycle++) {
        TEST_TRACE("the route ends in cycle %u", cycle);
        order.value = cycle + 1;
        route_east_enable(dmac, 1);
        dmac_prepare(dmac, &order);
        dmac_run(dmac);
        dmac_go(dmac, &order);
        dmac_after(dmac, cycle, route_east_enable, 0);
        uint32_t error = (dmac_status(dmac, CHANNEL) & PEACH2_DMAC_STATUS_ERROR_MASK) >> PEACH2_DMAC_STATUS_ERROR_LSB;
        if (error != PEACH2_DMA_OK) {
            EXPECT_EQ(error, PEACH2_DMA_UNROUTABLE);
        }
        dmac_expect_end(dmac, &order, error);
        arrived += error == PEACH2_DMA_OK;
    }
    EXPECT_BETWEEN(arrived, 1, CYCLES - 1);
    dmac_expect(dmac, &order.transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}
