// Errors that the DMA controller finds during execution, in chains and reads: STATUS and the status word agree, only
// the data before the error are moved, and the channel works afterwards.
#include <string.h>

#include "tests/cosim/dmac.h"

// --- chains ---------------------------------------------------------------------------------------------------------

static void refuse_loop(unsigned mode, uint32_t tail, uint32_t loop)
{
    struct dmac *dmac = dmac_create(NULL);
    uint64_t base = mode == PEACH2_MODE_CHAIN_HOST ? dmac_address(SPACE_HOST, CHAIN_OFFSET) : 0x400;
    struct dmac_order order = dmac_order_chain(1, mode, base);
    for (uint32_t i = 0; i < tail + loop; i++) {
        struct dmac_transfer transfer = dmac_copy(256 * i, SPACE_EAST, 256 * i, 200);
        dmac_describe(dmac, mode, base + 64 * i, &transfer, base + 64 * (i + 1 < tail + loop ? i + 1 : tail));
        dmac_expect(dmac, &transfer);
    }
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_CHAIN_LOOP);
    EXPECT_BETWEEN(dmac_completed(dmac, 1), 0, 3 * (tail + loop));
    dmac_compare_partly(dmac);
    dmac_expect_works(dmac, 1);
    dmac_destroy(dmac);
}

TEST(DmacErrors, ChainLoopIsAChainThatComesBackToADescriptorItHad)
{
    for (uint32_t tail = 0; tail < 9; tail++) {
        for (uint32_t loop = 1; loop < 9; loop++) {
            refuse_loop(PEACH2_MODE_CHAIN_HOST, tail, loop);
            refuse_loop(PEACH2_MODE_CHAIN_BOARD, tail, loop);
        }
    }
}

TEST(DmacErrors, ChainLoopIsFoundWhenTheLoopIsContiguous)
{
    struct dmac *dmac = dmac_create(NULL);
    uint64_t base = dmac_address(SPACE_HOST, CHAIN_OFFSET);
    struct dmac_order order = dmac_order_chain(1, PEACH2_MODE_CHAIN_HOST, base);
    for (uint32_t i = 0; i < 5; i++) {
        struct dmac_transfer transfer = dmac_copy(256 * i, SPACE_EAST, 256 * i, 200);
        dmac_describe(dmac, PEACH2_MODE_CHAIN_HOST, base + 32 * i, &transfer, base + 32 * ((i + 1) % 5));
        dmac_expect(dmac, &transfer);
    }
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_CHAIN_LOOP);
    dmac_compare_partly(dmac);
    dmac_destroy(dmac);
}

static void refuse_descriptor(unsigned mode, uint64_t descriptor)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order_chain(3, mode, descriptor);
    dmac_expect_refused(dmac, &order, PEACH2_DMA_DESCRIPTOR);
    dmac_destroy(dmac);
}

TEST(DmacErrors, DescriptorIsAnAddressThatIsNoMultipleOf32)
{
    for (uint32_t bit = 1; bit < 32; bit <<= 1) {
        refuse_descriptor(PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET + bit));
        refuse_descriptor(PEACH2_MODE_CHAIN_BOARD, bit);
    }
}

TEST(DmacErrors, DescriptorIsAnOffsetBeyondTheBoardsMemory)
{
    refuse_descriptor(PEACH2_MODE_CHAIN_BOARD, BOARD_BYTES);
    refuse_descriptor(PEACH2_MODE_CHAIN_BOARD, UINT64_C(1) << 40);
    refuse_descriptor(PEACH2_MODE_CHAIN_BOARD, UINT64_C(1) << 63);
}

static void refuse_next(unsigned mode, uint64_t at, uint64_t next)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order_chain(3, mode, at);
    struct dmac_transfer transfer = dmac_copy(0x200, SPACE_EAST, 0x400, 0x100);
    dmac_describe(dmac, mode, at, &transfer, next);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_DESCRIPTOR);
    dmac_expect(dmac, &transfer);
    dmac_compare_partly(dmac);
    dmac_expect_works(dmac, 3);
    dmac_destroy(dmac);
}

TEST(DmacErrors, DescriptorIsANextThatIsMisalignedOrBeyondTheBoardsMemory)
{
    refuse_next(PEACH2_MODE_CHAIN_BOARD, 0, 0x24);
    refuse_next(PEACH2_MODE_CHAIN_BOARD, BOARD_BYTES - 32, BOARD_BYTES);
    refuse_next(PEACH2_MODE_CHAIN_BOARD, 0, UINT64_C(0x8000000000));
    refuse_next(PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET),
                dmac_address(SPACE_HOST, CHAIN_OFFSET) + 0x30);
}

// --- reads that fail ------------------------------------------------------------------------------------------------

static unsigned error_of(enum dmac_answer answer)
{
    return answer == ANSWER_ABORT ? PEACH2_DMA_READ_ABORT : PEACH2_DMA_READ_UR;
}

static void fail_read(unsigned mode, enum dmac_answer answer)
{
    for (uint32_t segment = 0; segment < 4; segment++) {
        struct dmac *dmac = dmac_create(NULL);
        struct dmac_transfer transfer = dmac_copy(0x1000, SPACE_EAST, 0, 0x400);
        uint64_t at = mode == PEACH2_MODE_CHAIN_HOST ? dmac_address(SPACE_HOST, CHAIN_OFFSET) : 0x20;
        struct dmac_order order = dmac_order_chain(2, mode, at);
        order.transfer = transfer;
        dmac_chain(dmac, mode == PEACH2_MODE_REGISTER ? PEACH2_MODE_CHAIN_BOARD : mode, at, &transfer, 1);
        dmac->rules[0] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1000 + 0x100 * segment), 4, answer, 0, 0};
        dmac_start(dmac, &order);
        dmac_expect_end(dmac, &order, error_of(answer));
        EXPECT_EQ(dmac_completed(dmac, 2), 0);
        transfer.bytes = 0x100 * segment;
        dmac_expect(dmac, &transfer); // data read before it are written
        dmac_compare(dmac);
        dmac_expect_works(dmac, 2);
        dmac_destroy(dmac);
    }
}

TEST(DmacErrors, ReadUrIsAReadAnsweredUnsupportedRequest)
{
    fail_read(PEACH2_MODE_REGISTER, ANSWER_UNSUPPORTED);
    fail_read(PEACH2_MODE_CHAIN_HOST, ANSWER_UNSUPPORTED);
    fail_read(PEACH2_MODE_CHAIN_BOARD, ANSWER_UNSUPPORTED);
}

TEST(DmacErrors, ReadAbortIsAReadAnsweredCompleterAbort)
{
    fail_read(PEACH2_MODE_REGISTER, ANSWER_ABORT);
    fail_read(PEACH2_MODE_CHAIN_HOST, ANSWER_ABORT);
    fail_read(PEACH2_MODE_CHAIN_BOARD, ANSWER_ABORT);
}

// The third burst, of two descriptors, fails.
static void fail_descriptor(enum dmac_answer answer)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_transfer chain[6];
    struct dmac_order order = dmac_order_chain(1, PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET));
    for (uint32_t i = 0; i < 6; i++) {
        chain[i] = dmac_copy(256 * i, SPACE_EAST, 256 * i, 256);
        if (i < 4) {
            dmac_expect(dmac, &chain[i]);
        }
    }
    dmac_chain(dmac, PEACH2_MODE_CHAIN_HOST, order.descriptor, chain, 6);
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

// --- which error ----------------------------------------------------------------------------------------------------

TEST(DmacErrors, TheFirstFailedReadIsToldWhateverTheOrderOfTheAnswers)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(0, dmac_copy(0x1000, SPACE_EAST, 0, 0x400));
    dmac->rules[0] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1000), 4, ANSWER_UNSUPPORTED, 500, 0};
    dmac->rules[1] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1100), 4, ANSWER_ABORT, 10, 0};
    dmac_expect_refused(dmac, &order, PEACH2_DMA_READ_UR);
    dmac_destroy(dmac);
}

TEST(DmacErrors, TheFirstErrorStaysWhenMoreFollow)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order_chain(0, PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET));
    struct dmac_transfer first = dmac_copy(0x1000, SPACE_EAST, 0, 0x400);
    order.remote |= 4; // never attempted
    dmac_describe(dmac, PEACH2_MODE_CHAIN_HOST, order.descriptor, &first, order.descriptor + 0x44);
    dmac->rules[0] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1000), 0x400, ANSWER_ABORT, 10, 0};
    first.fence = true;
    dmac_expect_refused(dmac, &order, PEACH2_DMA_DESCRIPTOR); // found at once, while the reads are outstanding
    order.descriptor += 0x400;
    dmac_describe(dmac, PEACH2_MODE_CHAIN_HOST, order.descriptor, &first, order.descriptor + 0x40);
    first.reserved = 1;
    dmac_describe(dmac, PEACH2_MODE_CHAIN_HOST, order.descriptor + 0x40, &first, 0); // not taken before the reads end
    dmac->rules[0] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1000), 0x400, ANSWER_ABORT, 10, 0};
    dmac_expect_refused(dmac, &order, PEACH2_DMA_READ_ABORT);
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
        dmac_expect_end(dmac, &orders[c], c == 2 ? PEACH2_DMA_READ_ABORT : PEACH2_DMA_OK);
        orders[c].transfer.bytes = c == 2 ? 0x800 : 0x1000;
        dmac_expect(dmac, &orders[c].transfer);
    }
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

// --- failures at random ---------------------------------------------------------------------------------------------

enum { WORK_BYTES = 0x1000, PART_BYTES = 0x400, SEGMENT_BYTES = 0x100 };

// A channel's 4 KB, in register mode or as a chain of four descriptors.
static struct dmac_order random_mode(struct dmac *dmac, uint32_t channel)
{
    struct dmac_transfer whole = dmac_copy(WORK_BYTES * channel, SPACE_EAST, WORK_BYTES * channel, WORK_BYTES);
    unsigned mode = chip_random(&dmac->random) % 3;
    uint64_t at =
        mode == PEACH2_MODE_CHAIN_HOST ? dmac_address(SPACE_HOST, CHAIN_OFFSET + 0x100 * channel) : 0x100 * channel;
    struct dmac_order order = dmac_order_chain(channel, mode, at);
    struct dmac_transfer parts[WORK_BYTES / PART_BYTES];
    for (uint32_t i = 0; i < WORK_BYTES / PART_BYTES; i++) {
        parts[i] = whole;
        parts[i].source += PART_BYTES * i;
        parts[i].destination += PART_BYTES * i;
        parts[i].bytes = PART_BYTES;
        parts[i].fence = chip_random(&dmac->random) % 4 == 0;
    }
    dmac_chain(dmac, mode == PEACH2_MODE_REGISTER ? PEACH2_MODE_CHAIN_BOARD : mode, at, parts, WORK_BYTES / PART_BYTES);
    order.transfer = whole;
    return order;
}

static void end_with_first_fault(struct dmac *dmac, const struct dmac_order *order, const uint32_t *faults)
{
    struct dmac_transfer moved = order->transfer;
    unsigned error = PEACH2_DMA_OK;
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
