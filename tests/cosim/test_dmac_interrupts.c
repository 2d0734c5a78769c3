// Interrupts to the own host: their sources, when the message is sent, and that it is sent once.
#include <string.h>

#include "tests/cosim/dmac.h"

enum { MESSAGE_OFFSET = SPACE_BYTES - 0x80, MESSAGE_VALUE = 0x4d534921 };

struct messages {
    unsigned count;
    unsigned writes_before; // writes at N before the last message
    unsigned writes;
};

static void count_message(struct dmac *dmac, unsigned port, uint64_t address, uint32_t bytes)
{
    struct messages *messages = dmac->user;
    if (address == dmac_address(SPACE_HOST, MESSAGE_OFFSET)) {
        EXPECT_EQ(port, PORT_N);
        EXPECT_EQ(bytes, 4);
        messages->count++;
        messages->writes_before = messages->writes;
    } else {
        messages->writes += port == PORT_N;
    }
}

static void set32(struct dmac *dmac, uint32_t offset, uint32_t value)
{
    chip_send(dmac->chip, PORT_N, BAR_REGISTERS,
              pcie_tlp_write(dmac->chip->pool, REQUESTER_HOST, PEACH2_INTERRUPT_BASE + offset, sizeof value, &value));
}

static struct dmac *create(struct messages *messages, uint32_t enable)
{
    struct dmac *dmac = dmac_create(NULL);
    const uint32_t value = MESSAGE_VALUE;
    *messages = (struct messages){0};
    dmac->user = messages;
    dmac->on_write = count_message;
    chip_set64(dmac->chip, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_ADDRESS, dmac_address(SPACE_HOST, MESSAGE_OFFSET));
    set32(dmac, PEACH2_INTERRUPT_VALUE, MESSAGE_VALUE);
    set32(dmac, PEACH2_INTERRUPT_ENABLE, enable);
    dmac_run(dmac);
    EXPECT_EQ(messages->count, 0);
    dmac_expect_bytes(dmac, dmac_address(SPACE_HOST, MESSAGE_OFFSET), sizeof value, &value);
    return dmac;
}

static uint32_t pending(struct dmac *dmac)
{
    return dmac_get32(dmac, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_PENDING);
}

static void raise_from(struct dmac *dmac, unsigned port, uint32_t bits)
{
    uint64_t raise = PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_RAISE;
    chip_send(dmac->chip, port, port == PORT_N ? BAR_REGISTERS : 0,
              pcie_tlp_write(dmac->chip->pool, 1, port == PORT_N ? raise : chip_window(OWN_NODE, BLOCK_BOARD, raise),
                             sizeof bits, &bits));
}

static struct dmac_order copy_with_interrupt(unsigned channel)
{
    struct dmac_order order = dmac_order(channel, dmac_copy(0x1000 * channel, SPACE_HOST, 0x1000 * channel, 0x400));
    order.interrupt = true;
    return order;
}

TEST(DmacInterrupts, TellTheHostOfTheEndAfterDataAndStatusWord)
{
    for (unsigned channel = 0; channel < DMAC_CHANNELS; channel++) {
        struct messages messages;
        struct dmac *dmac = create(&messages, 1u << channel);
        struct dmac_order order = copy_with_interrupt(channel);
        dmac_start(dmac, &order);
        dmac_stall(dmac, 30);
        dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
        dmac_expect(dmac, &order.transfer);
        EXPECT_EQ(pending(dmac), 1u << channel);
        EXPECT_EQ(messages.count, 1);
        EXPECT_EQ(messages.writes_before, 5); // four data writes, the status word
        dmac_compare(dmac);
        dmac_destroy(dmac);
    }
}

TEST(DmacInterrupts, TellTheHostOfTheEndWithAnErrorToo)
{
    struct messages messages;
    struct dmac *dmac = create(&messages, 1);
    struct dmac_order order = copy_with_interrupt(0);
    order.transfer.bytes = 0;
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_LENGTH);
    EXPECT_EQ(pending(dmac), 1);
    EXPECT_EQ(messages.count, 1);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacInterrupts, AreNotSentUnlessAskedFor)
{
    struct messages messages;
    struct dmac *dmac = create(&messages, UINT32_MAX);
    struct dmac_order order = copy_with_interrupt(0);
    order.interrupt = false;
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    EXPECT_EQ(pending(dmac), 0);
    EXPECT_EQ(messages.count, 0);
    dmac_destroy(dmac);
}

// The second of three descriptors requests an interrupt; the third's data arrive much later.
TEST(DmacInterrupts, TellTheHostOfADescriptorAsSoonAsItIsWritten)
{
    struct messages messages;
    struct dmac *dmac = create(&messages, 4);
    struct dmac_order order = dmac_order_chain(2, PEACH2_MODE_CHAIN_BOARD, 0);
    struct dmac_transfer chain[3];
    for (uint32_t i = 0; i < 3; i++) {
        chain[i] = dmac_copy(0x1000 * i, SPACE_HOST, 0x1000 * i, 0x400);
        dmac_expect(dmac, &chain[i]);
    }
    chain[1].interrupt = true;
    dmac->rules[0] = (struct dmac_rule){chain[2].source, 0x400, ANSWER_DATA, 5000, 0};
    dmac_chain(dmac, PEACH2_MODE_CHAIN_BOARD, 0, chain, 3);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    EXPECT_EQ(pending(dmac), 4);
    EXPECT_EQ(messages.count, 1);
    EXPECT_EQ(messages.writes_before, 8);
    dmac_compare(dmac);
    dmac_destroy(dmac);
}

TEST(DmacInterrupts, AreNotRaisedByADescriptorThatIsDropped)
{
    struct messages messages;
    struct dmac *dmac = create(&messages, UINT32_MAX);
    struct dmac_order order = dmac_order_chain(2, PEACH2_MODE_CHAIN_BOARD, 0);
    struct dmac_transfer chain[] = {dmac_copy(0, SPACE_HOST, 0, 0x400), dmac_copy(0x1000, SPACE_HOST, 0x1000, 0x400)};
    chain[0].interrupt = chain[1].interrupt = true;
    dmac->rules[0] = (struct dmac_rule){chain[0].source + 0x300, 4, ANSWER_ABORT, 0, 0};
    dmac_chain(dmac, PEACH2_MODE_CHAIN_BOARD, 0, chain, 2);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_READ_ABORT);
    EXPECT_EQ(pending(dmac), 0);
    EXPECT_EQ(messages.count, 0);
    dmac_destroy(dmac);
}

TEST(DmacInterrupts, AreRaisedByOtherBoardsAndTheOwnHost)
{
    for (unsigned port = PORT_N; port <= PORT_S; port++) {
        struct messages messages;
        struct dmac *dmac = create(&messages, 0x100u << port);
        raise_from(dmac, port, 0x100u << port | 0xf); // ports may not raise the channels' bits
        EXPECT_EQ(pending(dmac), 0x100u << port);
        EXPECT_EQ(messages.count, 1);
        dmac_compare(dmac);
        dmac_destroy(dmac);
    }
}

TEST(DmacInterrupts, AreSentOnceUntilTheyAreCleared)
{
    struct messages messages;
    struct dmac *dmac = create(&messages, 0xffffff00);
    for (unsigned i = 0; i < 8; i++) {
        raise_from(dmac, PORT_E, 0x100u << i);
        EXPECT_EQ(pending(dmac), 0x100 * ((2u << i) - 1));
    }
    EXPECT_EQ(messages.count, 1);
    set32(dmac, PEACH2_INTERRUPT_CLEAR, 0xff00);
    EXPECT_EQ(pending(dmac), 0);
    EXPECT_EQ(messages.count, 1);
    raise_from(dmac, PORT_W, 0x100);
    EXPECT_EQ(pending(dmac), 0x100);
    EXPECT_EQ(messages.count, 2);
    dmac_destroy(dmac);
}

TEST(DmacInterrupts, AreSentAgainForWhatIsPendingAfterTheClear)
{
    struct messages messages;
    struct dmac *dmac = create(&messages, 0xffffff00);
    raise_from(dmac, PORT_E, 0x300);
    dmac_run(dmac);
    set32(dmac, PEACH2_INTERRUPT_CLEAR, 0x100);
    EXPECT_EQ(pending(dmac), 0x200);
    EXPECT_EQ(messages.count, 2);
    set32(dmac, PEACH2_INTERRUPT_CLEAR, 0x200);
    EXPECT_EQ(pending(dmac), 0);
    EXPECT_EQ(messages.count, 2);
    dmac_destroy(dmac);
}

TEST(DmacInterrupts, WaitUntilTheyAreEnabled)
{
    struct messages messages;
    struct dmac *dmac = create(&messages, 0x200);
    raise_from(dmac, PORT_E, 0x100);
    EXPECT_EQ(pending(dmac), 0x100);
    EXPECT_EQ(messages.count, 0);
    set32(dmac, PEACH2_INTERRUPT_ENABLE, 0x300);
    dmac_run(dmac);
    EXPECT_EQ(messages.count, 1);
    dmac_destroy(dmac);
}

// At every moment, a bit that is raised after the read of CLEAR causes another message or is seen with the first one.
TEST(DmacInterrupts, AreNotLostWhenRaiseAndClearMeet)
{
    struct messages messages;
    struct dmac *dmac = create(&messages, 0xffffff00);
    for (unsigned gap = 0; gap < 40; gap++) {
        raise_from(dmac, PORT_E, 0x100);
        dmac_run(dmac);
        unsigned before = messages.count;
        for (unsigned i = 0; i < gap; i++) {
            raise_from(dmac, i % 2 == 0 ? PORT_W : PORT_S, 0); // takes time
        }
        set32(dmac, PEACH2_INTERRUPT_CLEAR, 0x100);
        raise_from(dmac, PORT_W, 0x200);
        EXPECT_EQ(pending(dmac), 0x200);
        EXPECT_EQ(messages.count, before + 1);
        set32(dmac, PEACH2_INTERRUPT_CLEAR, 0x200);
        EXPECT_EQ(pending(dmac), 0);
    }
    dmac_destroy(dmac);
}

TEST(DmacInterrupts, OfFourChannelsAreToldTogetherOrOneByOne)
{
    struct messages messages;
    struct dmac *dmac = create(&messages, 0xf);
    for (unsigned c = 0; c < DMAC_CHANNELS; c++) {
        struct dmac_order order = copy_with_interrupt(c);
        dmac_start(dmac, &order);
        dmac_expect(dmac, &order.transfer);
    }
    EXPECT_EQ(pending(dmac), 0xf);
    EXPECT_EQ(messages.count, 1);
    set32(dmac, PEACH2_INTERRUPT_CLEAR, 0x3);
    EXPECT_EQ(pending(dmac), 0xc);
    EXPECT_EQ(messages.count, 2);
    dmac_destroy(dmac);
}

TEST(DmacInterrupts, AreNotAskedForByAChainThatCameBefore)
{
    struct messages messages;
    struct dmac *dmac = create(&messages, UINT32_MAX);
    struct dmac_order order = dmac_order_chain(2, PEACH2_MODE_CHAIN_BOARD, 0), next = copy_with_interrupt(2);
    struct dmac_transfer last = dmac_copy(0, SPACE_HOST, 0, 0x400);
    last.interrupt = true;
    next.interrupt = false;
    dmac_chain(dmac, PEACH2_MODE_CHAIN_BOARD, 0, &last, 1);
    dmac_start(dmac, &order);
    dmac_expect_end(dmac, &order, PEACH2_DMA_OK);
    EXPECT_EQ(pending(dmac), 4);
    set32(dmac, PEACH2_INTERRUPT_CLEAR, 4);
    dmac_start(dmac, &next);
    dmac_expect_end(dmac, &next, PEACH2_DMA_OK);
    EXPECT_EQ(pending(dmac), 0);
    EXPECT_EQ(messages.count, 1);
    dmac_destroy(dmac);
}

static void clear_late(struct dmac *dmac, unsigned bits)
{
    set32(dmac, PEACH2_INTERRUPT_CLEAR, bits);
}

// Whenever CLEAR comes, also in the very cycle in which the channel ends, the host gets the message of the end.
TEST(DmacInterrupts, OfAChannelAreNotLostWhenItsEndMeetsAClear)
{
    enum { CYCLES = 240, CHANNEL = 1 };
    struct messages messages;
    struct dmac *dmac = create(&messages, 1u << CHANNEL);
    struct dmac_order order = copy_with_interrupt(CHANNEL);
    unsigned cleared = 0;
    order.notify_local = order.notify_remote = false;
    dmac_prepare(dmac, &order);
    dmac_run(dmac);
    for (uint32_t cycle = 0; cycle < CYCLES; cycle++) {
        TEST_TRACE("CLEAR in cycle %u", cycle);
        unsigned before = messages.count;
        dmac_go(dmac, &order);
        dmac_after(dmac, cycle, clear_late, 1u << CHANNEL);
        cleared += pending(dmac) == 0;
        EXPECT_EQ(messages.count, before + 1);
        set32(dmac, PEACH2_INTERRUPT_CLEAR, UINT32_MAX);
        dmac_run(dmac);
    }
    EXPECT_BETWEEN(cleared, 1, CYCLES - 1); // CLEAR came before the end, and behind it
    dmac_destroy(dmac);
}

TEST(DmacInterrupts, AreWrittenToAnyMultipleOf4)
{
    const uint32_t value = MESSAGE_VALUE;
    for (uint32_t lane = 0; lane < 4; lane++) {
        TEST_TRACE("word %u of 16 bytes", lane);
        struct messages messages;
        struct dmac *dmac = create(&messages, 0x100);
        uint64_t address = dmac_address(SPACE_HOST, SPACE_BYTES - 0x100 + 4 * lane);
        chip_set64(dmac->chip, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_ADDRESS, address);
        raise_from(dmac, PORT_E, 0x100);
        EXPECT_EQ(pending(dmac), 0x100);
        EXPECT_MEMEQ(dmac_got(dmac, address), &value, sizeof value);
        EXPECT_EQ(messages.writes, 1);
        dmac_destroy(dmac);
    }
}
