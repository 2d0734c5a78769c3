// Every error of the DMA controller by name: STATUS and the status word agree, the other side hears nothing, nothing is
// moved that should not be, and the channel works afterwards.
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

static void refuse(struct dmac *dmac, const struct dmac_order *order, unsigned error)
{
    dmac_start(dmac, order);
    dmac_expect_end(dmac, order, error);
    EXPECT_EQ(dmac_completed(dmac, order->channel), 0);
    dmac_compare(dmac);
    dmac_expect_works(dmac, order->channel);
}

static void refuse_in_register_mode(struct dmac_transfer transfer, unsigned error)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(2, transfer);
    refuse(dmac, &order, error);
    EXPECT_EQ(dmac_get32(dmac, PEACH2_COUNTER_BASE + PEACH2_COUNTER_UNROUTABLE_WRITES), 0);
    EXPECT_EQ(dmac_get32(dmac, PEACH2_COUNTER_BASE + PEACH2_COUNTER_REFUSED_WRITES), 0);
    dmac_destroy(dmac);
}

// The second of three descriptors; the first is moved, as the second waits for it.
static void refuse_in_chain(unsigned mode, struct dmac_transfer transfer, unsigned error)
{
    struct dmac *dmac = dmac_create(NULL);
    uint64_t at = mode == MODE_CHAIN_HOST ? dmac_address(SPACE_HOST, CHAIN_OFFSET) : 0x20;
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
    refuse_in_chain(MODE_CHAIN_HOST, transfer, error);
    refuse_in_chain(MODE_CHAIN_BOARD, transfer, error);
}

// --- what a transfer may be ----------------------------------------------------------------------------------------------

TEST(DmacErrors, MisalignedAreAddressesThatAreNoMultipleOf4)
{
    for (unsigned i = 1; i < 4; i++) {
        struct dmac_transfer transfer = good();
        transfer.source += i;
        transfer.destination += i;
        refuse_everywhere(transfer, DMAC_MISALIGNED);
    }
}

TEST(DmacErrors, MisalignedAreAddressesThatDifferInTheirLowFourBits)
{
    for (unsigned i = 1; i < 16; i++) {
        struct dmac_transfer transfer = good();
        transfer.destination += i;
        refuse_everywhere(transfer, DMAC_MISALIGNED);
    }
}

TEST(DmacErrors, MisalignedAreLengthsThatAreNoMultipleOf4)
{
    for (unsigned i = 1; i < 4; i++) {
        struct dmac_transfer transfer = good();
        transfer.bytes += i;
        refuse_everywhere(transfer, DMAC_MISALIGNED);
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
        refuse_in_register_mode(wide, DMAC_MISALIGNED);
        refuse_in_register_mode(source, DMAC_MISALIGNED);
        refuse_in_register_mode(both, DMAC_MISALIGNED);
    }
}

TEST(DmacErrors, MisalignedArePitchesThatDifferInTheirLowFourBits)
{
    for (unsigned i = 4; i < 16; i += 4) {
        struct dmac_transfer rows = good_rows();
        rows.destination_pitch += i;
        refuse_everywhere(rows, DMAC_MISALIGNED);
    }
}

TEST(DmacErrors, LengthIsNeitherZeroNorMoreThan24Bits)
{
    struct dmac_transfer none = good(), large = good(), larger = good();
    none.bytes = 0;
    large.bytes = 0x1000000;
    larger.bytes = 0x80000100;
    refuse_everywhere(none, DMAC_LENGTH);
    refuse_in_register_mode(large, DMAC_LENGTH);
    refuse_in_register_mode(larger, DMAC_LENGTH);
}

TEST(DmacErrors, LengthIsTheErrorOfRowsThatAreEmptyOrTooWide)
{
    struct dmac_transfer none = good_rows(), wide = good_rows(), source = good_rows(), destination = good_rows();
    none.width = 0;
    wide.width = 0x40000;
    source.source_pitch = 0x400000;
    destination.destination_pitch = 0x400000;
    refuse_everywhere(none, DMAC_LENGTH);
    refuse_in_register_mode(wide, DMAC_LENGTH);
    refuse_in_register_mode(source, DMAC_LENGTH);
    refuse_in_register_mode(destination, DMAC_LENGTH);
}

TEST(DmacErrors, InvalidIsModeThree)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(1, good());
    order.mode = 3;
    refuse(dmac, &order, DMAC_INVALID);
    dmac_destroy(dmac);
}

TEST(DmacErrors, InvalidAreReservedBitsOfADescriptor)
{
    for (uint8_t bit = 1; bit < 16; bit = (uint8_t)(bit << 1)) {
        struct dmac_transfer transfer = good();
        transfer.reserved = bit;
        refuse_in_chain(MODE_CHAIN_HOST, transfer, DMAC_INVALID);
        refuse_in_chain(MODE_CHAIN_BOARD, transfer, DMAC_INVALID);
    }
}

// --- where it may go -----------------------------------------------------------------------------------------------------

static void refuse_destination(uint64_t destination)
{
    struct dmac_transfer transfer = good();
    transfer.destination = destination;
    refuse_everywhere(transfer, DMAC_UNROUTABLE);
}

TEST(DmacErrors, UnroutableIsADestinationWithoutARoute)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(0, dmac_copy(0, SPACE_WEST, 0, 256));
    uint32_t control = PEACH2_ROUTE_BASE + PORT_W * PEACH2_ROUTE_STRIDE + PEACH2_ROUTE_CONTROL;
    chip_set32(dmac->chip, control, 0);
    refuse(dmac, &order, DMAC_UNROUTABLE);
    chip_set32(dmac->chip, control, PEACH2_ROUTE_CONTROL_ENABLE_MASK);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, DMAC_OK);
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
    refuse_everywhere(rows, DMAC_UNROUTABLE);
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
        // What is read on the way to the edge is never written.
        transfer.destination = dmac_window(SPACE_WEST, 0x10000);
        refuse_everywhere(transfer, DMAC_UNROUTABLE);
    }
}

TEST(DmacErrors, UnroutableIsTheBoardOutsideItsMemory)
{
    static const uint32_t offsets[] = {0, PEACH2_DMAC_BASE, PEACH2_MEMORY_BASE - 0x100, PEACH2_MEMORY_BASE - 0x10,
                                       PEACH2_MEMORY_BASE + BOARD_BYTES, PEACH2_MEMORY_BASE + BOARD_BYTES - 0xf0};
    for (unsigned i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        refuse_destination(chip_window(OWN_NODE, BLOCK_BOARD, offsets[i]));
    }
}

// --- where the status words may go ---------------------------------------------------------------------------------------

static void refuse_notification(bool remote, uint64_t address, unsigned error)
{
    static const uint8_t well[8] = {0, 0, 0xcd, 0xab, PEACH2_DMAC_STATUS_DONE_MASK};
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(0, good());
    *(remote ? &order.remote : &order.local) = address;
    chip_set32(dmac->chip, PEACH2_ROUTE_BASE + PORT_W * PEACH2_ROUTE_STRIDE + PEACH2_ROUTE_CONTROL, 0);
    dmac_start(dmac, &order);
    dmac_expect(dmac, &order.transfer);
    // A remote word that cannot be sent is told to the local side; a local one only to STATUS, after the remote one.
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
    refuse_notification(true, dmac_window(SPACE_EAST, TARGET_OFFSET + 4), DMAC_MISALIGNED);
    refuse_notification(false, dmac_window(SPACE_HOST, TARGET_OFFSET + 1), DMAC_MISALIGNED);
}

TEST(DmacErrors, UnroutableIsAStatusWordWithoutARoute)
{
    refuse_notification(true, dmac_status_address(SPACE_WEST, 0), DMAC_UNROUTABLE);
    refuse_notification(false, dmac_status_address(SPACE_WEST, 0), DMAC_UNROUTABLE);
}

TEST(DmacErrors, UnroutableIsAStatusWordForTheBoardOutsideItsMemory)
{
    static const uint32_t offsets[] = {PEACH2_CHIP_BASE + PEACH2_CHIP_SCRATCH, PEACH2_MEMORY_BASE - 8,
                                       PEACH2_MEMORY_BASE + BOARD_BYTES};
    for (unsigned i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        refuse_notification(true, chip_window(OWN_NODE, BLOCK_BOARD, offsets[i]), DMAC_UNROUTABLE);
        refuse_notification(false, chip_window(OWN_NODE, BLOCK_BOARD, offsets[i]), DMAC_UNROUTABLE);
    }
}

// --- chains --------------------------------------------------------------------------------------------------------------

static void refuse_loop(unsigned mode, uint32_t tail, uint32_t loop)
{
    struct dmac *dmac = dmac_create(NULL);
    uint64_t base = mode == MODE_CHAIN_HOST ? dmac_address(SPACE_HOST, CHAIN_OFFSET) : 0x400;
    struct dmac_order order = dmac_order_chain(1, mode, base);
    for (uint32_t i = 0; i < tail + loop; i++) {
        struct dmac_transfer transfer = dmac_copy(256 * i, SPACE_EAST, 256 * i, 200);
        dmac_describe(dmac, mode, base + 64 * i, &transfer, base + 64 * (i + 1 < tail + loop ? i + 1 : tail));
        dmac_expect(dmac, &transfer);
    }
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, DMAC_CHAIN_LOOP);
    EXPECT_BETWEEN(dmac_completed(dmac, 1), 0, 3 * (tail + loop));
    dmac_compare_partly(dmac);
    dmac_expect_works(dmac, 1);
    dmac_destroy(dmac);
}

TEST(DmacErrors, ChainLoopIsAChainThatComesBackToADescriptorItHad)
{
    for (uint32_t tail = 0; tail < 9; tail++) {
        for (uint32_t loop = 1; loop < 9; loop++) {
            refuse_loop(MODE_CHAIN_HOST, tail, loop);
            refuse_loop(MODE_CHAIN_BOARD, tail, loop);
        }
    }
}

TEST(DmacErrors, ChainLoopIsFoundWhenTheLoopIsContiguous)
{
    struct dmac *dmac = dmac_create(NULL);
    uint64_t base = dmac_address(SPACE_HOST, CHAIN_OFFSET);
    struct dmac_order order = dmac_order_chain(1, MODE_CHAIN_HOST, base);
    for (uint32_t i = 0; i < 5; i++) {
        struct dmac_transfer transfer = dmac_copy(256 * i, SPACE_EAST, 256 * i, 200);
        dmac_describe(dmac, MODE_CHAIN_HOST, base + 32 * i, &transfer, base + 32 * ((i + 1) % 5));
        dmac_expect(dmac, &transfer);
    }
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, DMAC_CHAIN_LOOP);
    dmac_compare_partly(dmac);
    dmac_destroy(dmac);
}

static void refuse_descriptor(unsigned mode, uint64_t descriptor)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order_chain(3, mode, descriptor);
    refuse(dmac, &order, DMAC_DESCRIPTOR);
    dmac_destroy(dmac);
}

TEST(DmacErrors, DescriptorIsAnAddressThatIsNoMultipleOf32)
{
    for (uint32_t bit = 1; bit < 32; bit <<= 1) {
        refuse_descriptor(MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET + bit));
        refuse_descriptor(MODE_CHAIN_BOARD, bit);
    }
}

TEST(DmacErrors, DescriptorIsAnOffsetBeyondTheBoardsMemory)
{
    refuse_descriptor(MODE_CHAIN_BOARD, BOARD_BYTES);
    refuse_descriptor(MODE_CHAIN_BOARD, UINT64_C(1) << 40);
    refuse_descriptor(MODE_CHAIN_BOARD, UINT64_C(1) << 63);
}

static void refuse_next(unsigned mode, uint64_t at, uint64_t next)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order_chain(3, mode, at);
    struct dmac_transfer transfer = good();
    dmac_describe(dmac, mode, at, &transfer, next);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, DMAC_DESCRIPTOR);
    dmac_expect(dmac, &transfer);
    dmac_compare_partly(dmac);
    dmac_expect_works(dmac, 3);
    dmac_destroy(dmac);
}

TEST(DmacErrors, DescriptorIsANextThatIsMisalignedOrBeyondTheBoardsMemory)
{
    refuse_next(MODE_CHAIN_BOARD, 0, 0x24);
    refuse_next(MODE_CHAIN_BOARD, BOARD_BYTES - 32, BOARD_BYTES);
    refuse_next(MODE_CHAIN_BOARD, 0, UINT64_C(0x8000000000));
    refuse_next(MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET), dmac_address(SPACE_HOST, CHAIN_OFFSET) + 0x30);
}

// --- reads that fail -----------------------------------------------------------------------------------------------------

static unsigned error_of(enum dmac_answer answer)
{
    return answer == ANSWER_ABORT ? DMAC_READ_ABORT : DMAC_READ_UR;
}

static void fail_read(unsigned mode, enum dmac_answer answer)
{
    for (uint32_t segment = 0; segment < 4; segment++) {
        struct dmac *dmac = dmac_create(NULL);
        struct dmac_transfer transfer = dmac_copy(0x1000, SPACE_EAST, 0, 0x400);
        uint64_t at = mode == MODE_CHAIN_HOST ? dmac_address(SPACE_HOST, CHAIN_OFFSET) : 0x20;
        struct dmac_order order = dmac_order_chain(2, mode, at);
        order.transfer = transfer;
        dmac_chain(dmac, mode == MODE_REGISTER ? MODE_CHAIN_BOARD : mode, at, &transfer, 1);
        dmac->rules[0] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1000 + 0x100 * segment), 4, answer, 0, 0};
        dmac_start(dmac, &order);
        dmac_expect_end(dmac, &order, error_of(answer));
        EXPECT_EQ(dmac_completed(dmac, 2), 0);
        transfer.bytes = 0x100 * segment;
        dmac_expect(dmac, &transfer); // what was read before it is written
        dmac_compare(dmac);
        dmac_expect_works(dmac, 2);
        dmac_destroy(dmac);
    }
}

TEST(DmacErrors, ReadUrIsAReadAnsweredUnsupportedRequest)
{
    fail_read(MODE_REGISTER, ANSWER_UNSUPPORTED);
    fail_read(MODE_CHAIN_HOST, ANSWER_UNSUPPORTED);
    fail_read(MODE_CHAIN_BOARD, ANSWER_UNSUPPORTED);
}

TEST(DmacErrors, ReadAbortIsAReadAnsweredCompleterAbort)
{
    fail_read(MODE_REGISTER, ANSWER_ABORT);
    fail_read(MODE_CHAIN_HOST, ANSWER_ABORT);
    fail_read(MODE_CHAIN_BOARD, ANSWER_ABORT);
}

// The third burst of two descriptors fails.
static void fail_descriptor(enum dmac_answer answer)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_transfer chain[6];
    struct dmac_order order = dmac_order_chain(1, MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET));
    for (uint32_t i = 0; i < 6; i++) {
        chain[i] = dmac_copy(256 * i, SPACE_EAST, 256 * i, 256);
        if (i < 4) {
            dmac_expect(dmac, &chain[i]);
        }
    }
    dmac_chain(dmac, MODE_CHAIN_HOST, order.descriptor, chain, 6);
    dmac->rules[0] = (struct dmac_rule){order.descriptor + 4 * 32, 4, answer, 0, 0};
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, error_of(answer));
    EXPECT_BETWEEN(dmac_completed(dmac, 1), 0, 4);
    dmac_compare_partly(dmac);
    dmac_expect_works(dmac, 1);
    dmac_destroy(dmac);
}

TEST(DmacErrors, ReadUrAndReadAbortAreTheErrorsOfDescriptorsToo)
{
    fail_descriptor(ANSWER_UNSUPPORTED);
    fail_descriptor(ANSWER_ABORT);
}

// --- which error -----------------------------------------------------------------------------------------------------------

TEST(DmacErrors, TheFirstFailedReadIsToldWhateverTheOrderOfTheAnswers)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(0, dmac_copy(0x1000, SPACE_EAST, 0, 0x400));
    dmac->rules[0] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1000), 4, ANSWER_UNSUPPORTED, 500, 0};
    dmac->rules[1] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1100), 4, ANSWER_ABORT, 10, 0};
    refuse(dmac, &order, DMAC_READ_UR);
    dmac_destroy(dmac);
}

TEST(DmacErrors, TheFirstErrorStaysWhenMoreFollow)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order_chain(0, MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET));
    struct dmac_transfer first = dmac_copy(0x1000, SPACE_EAST, 0, 0x400);
    order.remote |= 4; // which is never tried
    dmac_describe(dmac, MODE_CHAIN_HOST, order.descriptor, &first, order.descriptor + 0x44);
    dmac->rules[0] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1000), 0x400, ANSWER_ABORT, 10, 0};
    first.fence = true;
    refuse(dmac, &order, DMAC_DESCRIPTOR); // found at once, while the reads are under way
    order.descriptor += 0x400;
    dmac_describe(dmac, MODE_CHAIN_HOST, order.descriptor, &first, order.descriptor + 0x40);
    first.reserved = 1;
    dmac_describe(dmac, MODE_CHAIN_HOST, order.descriptor + 0x40, &first, 0); // not taken before the reads ended
    dmac->rules[0] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1000), 0x400, ANSWER_ABORT, 10, 0};
    refuse(dmac, &order, DMAC_READ_ABORT);
    dmac_destroy(dmac);
}

TEST(DmacErrors, OneChannelsErrorLeavesTheOthersAlone)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order orders[DMAC_CHANNELS];
    dmac->rules[0] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x2800), 4, ANSWER_ABORT, 0, 0};
    for (uint32_t c = 0; c < DMAC_CHANNELS; c++) {
        orders[c] = dmac_order(c, dmac_copy(0x1000 * c, SPACE_EAST, 0x1000 * c, 0x1000));
        dmac_start(dmac, &orders[c]);
    }
    for (uint32_t c = 0; c < DMAC_CHANNELS; c++) {
        dmac_expect_end(dmac, &orders[c], c == 2 ? DMAC_READ_ABORT : DMAC_OK);
        orders[c].transfer.bytes = c == 2 ? 0x800 : 0x1000;
        dmac_expect(dmac, &orders[c].transfer);
    }
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

// --- failures at random ----------------------------------------------------------------------------------------------------

enum { WORK_BYTES = 0x1000, PART_BYTES = 0x400, SEGMENT_BYTES = 0x100 };

// A channel's 4 KB, in register mode or as a chain of four.
static struct dmac_order random_mode(struct dmac *dmac, uint32_t channel)
{
    struct dmac_transfer whole = dmac_copy(WORK_BYTES * channel, SPACE_EAST, WORK_BYTES * channel, WORK_BYTES);
    unsigned mode = chip_random(&dmac->random) % 3;
    uint64_t at = mode == MODE_CHAIN_HOST ? dmac_address(SPACE_HOST, CHAIN_OFFSET + 0x100 * channel) : 0x100 * channel;
    struct dmac_order order = dmac_order_chain(channel, mode, at);
    struct dmac_transfer parts[WORK_BYTES / PART_BYTES];
    for (uint32_t i = 0; i < WORK_BYTES / PART_BYTES; i++) {
        parts[i] = whole;
        parts[i].source += PART_BYTES * i;
        parts[i].destination += PART_BYTES * i;
        parts[i].bytes = PART_BYTES;
        parts[i].fence = chip_random(&dmac->random) % 4 == 0;
    }
    dmac_chain(dmac, mode == MODE_REGISTER ? MODE_CHAIN_BOARD : mode, at, parts, WORK_BYTES / PART_BYTES);
    order.transfer = whole;
    return order;
}

static void end_with_first_fault(struct dmac *dmac, const struct dmac_order *order, const uint32_t *faults)
{
    struct dmac_transfer moved = order->transfer;
    unsigned error = DMAC_OK;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t from = faults[i] - WORK_BYTES * order->channel;
        if (from < moved.bytes) {
            moved.bytes = from;
            error = error_of(dmac->rules[i].answer);
        }
    }
    dmac_expect_end(dmac, order, error);
    dmac_expect(dmac, &moved);
}

static void fail_at_random(uint64_t seed)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order orders[DMAC_CHANNELS];
    uint32_t faults[4];
    dmac->random = seed * UINT64_C(0x9e3779b97f4a7c15);
    dmac->shuffle = true;
    for (unsigned i = 0; i < 4; i++) {
        faults[i] = SEGMENT_BYTES * (chip_random(&dmac->random) % (DMAC_CHANNELS * WORK_BYTES / SEGMENT_BYTES));
        dmac->rules[i] = (struct dmac_rule){dmac_address(SPACE_HOST, faults[i]), SEGMENT_BYTES,
                                            i % 2 == 0 ? ANSWER_UNSUPPORTED : ANSWER_ABORT, 0, 0};
    }
    for (uint32_t c = 0; c < DMAC_CHANNELS; c++) {
        orders[c] = random_mode(dmac, c);
        dmac_start(dmac, &orders[c]);
    }
    dmac_stall(dmac, 100);
    for (uint32_t c = 0; c < DMAC_CHANNELS; c++) {
        end_with_first_fault(dmac, &orders[c], faults);
    }
    dmac_compare(dmac);
    for (uint32_t c = 0; c < DMAC_CHANNELS; c++) {
        dmac_expect_works(dmac, c);
    }
    dmac_destroy(dmac);
}

TEST(DmacErrors, WhatWasReadBeforeTheFirstFailureIsMovedAndNothingElse)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        fail_at_random(seed);
    }
}
