// Reads that are answered late, twice or never.
#include <string.h>

#include "tests/cosim/dmac.h"

enum { UNEXPECTED = PEACH2_COUNTER_BASE + PEACH2_COUNTER_UNEXPECTED_COMPLETIONS };

static struct dmac_rule never(uint32_t from, uint32_t bytes)
{
    return (struct dmac_rule){dmac_address(SPACE_HOST, from), bytes, ANSWER_NOTHING, 0, 0};
}

static struct dmac_rule late(uint32_t from, uint32_t bytes, uint32_t cycles)
{
    return (struct dmac_rule){dmac_address(SPACE_HOST, from), bytes, ANSWER_DATA, cycles, 0};
}

static void end_lost(struct dmac *dmac, const struct dmac_order *order)
{
    dmac_start(dmac, order);
    dmac_expect_end(dmac, order, PEACH2_DMA_READ_LOST);
    dmac_compare(dmac);
}

// --- never ----------------------------------------------------------------------------------------------------------

TEST(DmacReads, LostIsAReadThatIsNotAnswered)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(1, dmac_copy(0x1000, SPACE_EAST, 0, 0x400));
    dmac->rules[0] = never(0x1200, 4);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_READ_LOST);
    EXPECT_EQ(dmac_completed(dmac, 1), 0);
    order.transfer.bytes = 0x200;
    dmac_expect(dmac, &order.transfer);
    dmac_compare(dmac);
    dmac_expect_works(dmac, 1);
    dmac_destroy(dmac);
}

TEST(DmacReads, LostIsAReadOfWhichAPartIsNotAnswered)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(1, dmac_copy(0x1000, SPACE_EAST, 0, 0x100));
    dmac->split = true;
    dmac->rules[0] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1000), 4, ANSWER_DATA, 100, DMAC_TIMEOUT_CYCLES};
    end_lost(dmac, &order);
    EXPECT_EQ(dmac_get32(dmac, UNEXPECTED), 3); // the parts that arrived too late
    dmac_expect_works(dmac, 1);
    dmac_destroy(dmac);
}

TEST(DmacReads, LostIsADescriptorThatIsNotAnswered)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order_chain(1, PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET));
    dmac->rules[0] = never(CHAIN_OFFSET, 32);
    end_lost(dmac, &order);
    dmac_expect_works(dmac, 1);
    dmac_destroy(dmac);
}

static uint64_t cycles_until_lost(unsigned channels, uint32_t bytes)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order orders[DMAC_CHANNELS];
    dmac->rules[0] = never(0, SOURCE_BYTES);
    dmac_run(dmac);
    uint64_t before = cosim_peach2_cycles(dmac->chip->board);
    for (unsigned c = 0; c < channels; c++) {
        orders[c] = dmac_order(c, dmac_copy(0x1000 * c, SPACE_EAST, 0x1000 * c, bytes));
        dmac_start(dmac, &orders[c]);
    }
    dmac_run(dmac);
    uint64_t cycles = cosim_peach2_cycles(dmac->chip->board) - before;
    for (unsigned c = 0; c < channels; c++) {
        dmac_expect_end(dmac, &orders[c], PEACH2_DMA_READ_LOST);
    }
    dmac_compare(dmac);
    dmac_destroy(dmac);
    return cycles;
}

TEST(DmacReads, LostReadsOfAChannelEndTogether)
{
    EXPECT_BETWEEN(cycles_until_lost(1, 0x100), DMAC_TIMEOUT_CYCLES, DMAC_TIMEOUT_CYCLES + 1000);
    EXPECT_BETWEEN(cycles_until_lost(1, 0x1000), DMAC_TIMEOUT_CYCLES, DMAC_TIMEOUT_CYCLES + 1000);
}

TEST(DmacReads, LostReadsOfFourChannelsEndWithinATimeoutEach)
{
    EXPECT_BETWEEN(cycles_until_lost(4, 0x400), DMAC_TIMEOUT_CYCLES, 4 * DMAC_TIMEOUT_CYCLES + 4000);
}

TEST(DmacReads, AnswersAfterALostOneAreStillWaitedForByOtherChannels)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order lost = dmac_order(0, dmac_copy(0x1000, SPACE_EAST, 0, 0x400));
    struct dmac_order slow = dmac_order(1, dmac_copy(0x2000, SPACE_EAST, 0x1000, 0x400));
    dmac->rules[0] = never(0x1000, 0x400);
    dmac->rules[1] = late(0x2000, 0x400, DMAC_TIMEOUT_CYCLES + 5000);
    dmac_start(dmac, &lost);
    dmac_start(dmac, &slow);
    dmac_expect_end(dmac, &lost, PEACH2_DMA_READ_LOST);
    dmac_expect_end(dmac, &slow, PEACH2_DMA_OK);
    dmac_expect(dmac, &slow.transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

// --- late -----------------------------------------------------------------------------------------------------------

TEST(DmacReads, LateAnswersAreCountedAndChangeNothing)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(1, dmac_copy(0x1000, SPACE_EAST, 0, 0x400));
    dmac->rules[0] = late(0x1000, 0x400, DMAC_TIMEOUT_CYCLES + 2000);
    end_lost(dmac, &order);
    EXPECT_EQ(dmac_get32(dmac, UNEXPECTED), 4);
    dmac_expect_works(dmac, 1);
    dmac_destroy(dmac);
}

TEST(DmacReads, LateDescriptorsAreCountedAndChangeNothing)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_transfer transfer = dmac_copy(0x1000, SPACE_EAST, 0, 0x400);
    struct dmac_order order = dmac_order_chain(1, PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET));
    dmac_chain(dmac, PEACH2_MODE_CHAIN_HOST, order.descriptor, &transfer, 1);
    dmac->rules[0] = late(CHAIN_OFFSET, 32, DMAC_TIMEOUT_CYCLES + 2000);
    end_lost(dmac, &order);
    EXPECT_EQ(dmac_get32(dmac, UNEXPECTED), 1);
    dmac_expect_works(dmac, 1);
    dmac_destroy(dmac);
}

static void answer_first_reads_again(struct dmac *dmac, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        dmac_answer_again(dmac, dmac->reads[i]);
    }
}

// Every slot is open again, one generation later, when the late answers of the previous generation arrive.
TEST(DmacReads, LateAnswersAreToldFromThoseThatAreDueByTheirGeneration)
{
    struct cosim_peach2_config config = chip_config();
    config.read_tags = 32;
    struct dmac *dmac = dmac_create(&config);
    struct dmac_order order = dmac_order(1, dmac_copy(0, SPACE_EAST, 0, 0x2000));
    dmac->rules[0] = never(0, 0x2000);
    end_lost(dmac, &order);
    dmac->rules[0] = late(0, 0x2000, 3000);
    dmac_start(dmac, &order);
    dmac_after(dmac, 1500, answer_first_reads_again, 32);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    EXPECT_EQ(dmac->read_count, 64);
    EXPECT_EQ(dmac_get32(dmac, UNEXPECTED), 32);
    dmac_expect(dmac, &order.transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacReads, LateDescriptorsAreToldFromThoseThatAreDueByTheirGeneration)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_transfer transfer = dmac_copy(0x1000, SPACE_EAST, 0, 0x400);
    struct dmac_order order = dmac_order_chain(1, PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET));
    dmac_chain(dmac, PEACH2_MODE_CHAIN_HOST, order.descriptor, &transfer, 1);
    dmac->rules[0] = never(CHAIN_OFFSET, 32);
    end_lost(dmac, &order);
    dmac->rules[0] = late(CHAIN_OFFSET, 32, 3000);
    dmac_start(dmac, &order);
    dmac_after(dmac, 1500, answer_first_reads_again, 1);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    EXPECT_EQ(dmac_get32(dmac, UNEXPECTED), 1);
    dmac_expect(dmac, &transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacReads, AnswersThatComeTwiceAreCountedAndChangeNothing)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(1, dmac_copy(0x1000, SPACE_EAST, 0, 0x1000));
    dmac->rules[0] = late(0x1000, 0x100, 1000); // the others are complete, but wait for it
    dmac_start(dmac, &order);
    dmac_run(dmac);
    answer_first_reads_again(dmac, 16);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    EXPECT_EQ(dmac_get32(dmac, UNEXPECTED), 16);
    dmac_expect(dmac, &order.transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

static void answer_all_but_the_first_again(struct dmac *dmac, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        dmac_answer_again(dmac, dmac->reads[i]);
    }
}

TEST(DmacReads, AnswersThatComeTwiceBeforeTheirTurnAreCountedAndChangeNothing)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(1, dmac_copy(0x1000, SPACE_EAST, 0, 0x1000));
    dmac->rules[0] = late(0x1000, 0x100, 2000);
    dmac_start(dmac, &order);
    dmac_after(dmac, 1200, answer_all_but_the_first_again, 16);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    EXPECT_EQ(dmac_get32(dmac, UNEXPECTED), 15);
    dmac_expect(dmac, &order.transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

static void answer_second_again(struct dmac *dmac, unsigned number)
{
    (void)number;
    dmac_answer_again(dmac, dmac->reads[1]);
}

// The read that failed waits for its turn behind the first one when it is answered a second time.
TEST(DmacReads, AnswersToAReadThatFailedAreCountedAndChangeNothing)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(1, dmac_copy(0x1000, SPACE_EAST, 0, 0x200));
    dmac->rules[0] = late(0x1000, 0x100, 2000);
    dmac->rules[1] = (struct dmac_rule){dmac_address(SPACE_HOST, 0x1100), 0x100, ANSWER_ABORT, 100, 0};
    dmac_start(dmac, &order);
    dmac_after(dmac, 1200, answer_second_again, 0);
    dmac_expect_end(dmac, &order, PEACH2_DMA_READ_ABORT);
    EXPECT_EQ(dmac_get32(dmac, UNEXPECTED), 1);
    order.transfer.bytes = 0x100;
    dmac_expect(dmac, &order.transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

// --- answers at the time-out -----------------------------------------------------------------------------------------

static uint64_t bits_of(const struct dmac_order *order, unsigned error)
{
    return (uint64_t)(PEACH2_DMAC_STATUS_DONE_MASK | error << PEACH2_DMAC_STATUS_ERROR_LSB) << 32 | order->value;
}

// In time or lost, but only one of both, and completely.
static bool ended_lost(struct dmac *dmac, const struct dmac_order *order)
{
    bool lost = dmac_status(dmac, order->channel) >> PEACH2_DMAC_STATUS_ERROR_LSB == PEACH2_DMA_READ_LOST;
    uint64_t word = 0;
    dmac_expect_end(dmac, order, lost ? PEACH2_DMA_READ_LOST : PEACH2_DMA_OK);
    memcpy(&word, dmac_got(dmac, order->local), sizeof word);
    EXPECT_EQ(word, bits_of(order, lost ? PEACH2_DMA_READ_LOST : PEACH2_DMA_OK));
    return lost;
}

// The last of channel 0's reads is answered around the timeout of the first, while channel 1 waits for its slot.
static bool answer_at_the_timeout(uint32_t from, uint32_t bytes, uint32_t cycles)
{
    struct cosim_peach2_config config = chip_config();
    config.read_tags = 32;
    config.read_bytes = 512;
    struct dmac *dmac = dmac_create(&config);
    struct dmac_order first = dmac_order(0, dmac_copy(from, SPACE_WEST, 0, bytes));
    struct dmac_order second = dmac_order(1, dmac_copy(0x300, SPACE_EAST, 0, 0x7d00));
    dmac->rules[0] = late(from + bytes - 0x100, 0x100, cycles);
    dmac->rules[1] = never(from, bytes - 0x100);
    dmac_start(dmac, &first);
    dmac_start(dmac, &second);
    bool lost = ended_lost(dmac, &first);
    dmac_expect_end(dmac, &second, PEACH2_DMA_OK);
    if (!lost) {
        dmac_expect(dmac, &first.transfer);
    }
    dmac_expect(dmac, &second.transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
    return lost;
}

TEST(DmacReads, AnswersAtTheTimeoutAreTakenOrLost)
{
    unsigned lost = 0;
    for (uint32_t cycles = 0; cycles < 48; cycles += 3) {
        lost += answer_at_the_timeout(0, 0x100, DMAC_TIMEOUT_CYCLES - 40 + cycles);
    }
    EXPECT_BETWEEN(lost, 3, 13); // so both cases occurred
}

TEST(DmacReads, AnswersToALostChannelDoNotReachTheNextUserOfTheirSlot)
{
    for (uint32_t cycles = 0; cycles < 48; cycles += 3) {
        EXPECT_TRUE(answer_at_the_timeout(0x100, 0x200, DMAC_TIMEOUT_CYCLES - 40 + cycles));
    }
}

static bool answer_descriptor_at_the_timeout(uint32_t cycles)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_transfer chain[] = {dmac_copy(0x1000, SPACE_EAST, 0, 0x40),
                                    dmac_copy(0x2000, SPACE_EAST, 0x1000, 0x40)};
    struct dmac_order order = dmac_order_chain(1, PEACH2_MODE_CHAIN_HOST, dmac_address(SPACE_HOST, CHAIN_OFFSET));
    dmac_chain(dmac, PEACH2_MODE_CHAIN_HOST, order.descriptor, chain, 2);
    dmac->rules[0] = late(CHAIN_OFFSET, 64, cycles);
    dmac_start(dmac, &order);
    bool lost = ended_lost(dmac, &order);
    dmac_expect(dmac, &chain[0]);
    dmac_expect(dmac, &chain[1]);
    dmac_compare_partly(dmac);
    dmac_expect_works(dmac, 1);
    dmac_destroy(dmac);
    return lost;
}

TEST(DmacReads, DescriptorsAtTheTimeoutAreTakenOrLost)
{
    unsigned lost = 0;
    for (uint32_t cycles = 0; cycles < 12; cycles++) {
        lost += answer_descriptor_at_the_timeout(DMAC_TIMEOUT_CYCLES - 11 + cycles);
    }
    EXPECT_BETWEEN(lost, 3, 9);
}

static void complete_first_with_too_much(struct dmac *dmac, unsigned number)
{
    (void)number;
    uint8_t data[512];
    memset(data, 0xee, sizeof data);
    pcie_tlp_t *read = dmac->reads[0];
    pcie_tlp_t *longer = pcie_tlp_read(dmac->chip->pool, read->requester, read->tag, read->address, 512);
    chip_send(dmac->chip, PORT_N, BAR_REGISTERS, pcie_tlp_completion(longer, REQUESTER_HOST, 0, 512, data));
    pcie_tlp_unref(longer);
}

TEST(DmacReads, CompletionsLongerThanTheirReadAreCountedAndChangeNothing)
{
    struct dmac *dmac = dmac_create(NULL);
    struct dmac_order order = dmac_order(1, dmac_copy(0x1000, SPACE_EAST, 0, 0x100));
    dmac->rules[0] = late(0x1000, 0x100, 3000);
    dmac_start(dmac, &order);
    dmac_after(dmac, 1500, complete_first_with_too_much, 0);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    EXPECT_EQ(dmac_get32(dmac, UNEXPECTED), 1);
    dmac_expect(dmac, &order.transfer);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}
