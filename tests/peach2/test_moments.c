// Two things that meet inside the chip, on the bare RTL and its twin: one of them comes at each edge in turn.
#include <stdlib.h>
#include <string.h>

#include "chip_bench.h"

#define BEGIN_PS 1000100u // when the routes are set
#define ASK_PS   400000000u
#define EAST     (WINDOW + (2ull << PEACH2_NODE_BITS))
#define MESSAGE  (HOST + 0x700)
#define STATUS   (HOST + 0x800)

static unsigned moment; // edges from BEGIN_PS on

// `first` runs at BEGIN_PS and `second` at the moment.
static void meet(struct bench *bench, void (*first)(void *bench), void (*second)(void *bench))
{
    sim_event_init(&bench->step_event, first, bench);
    sim_event_schedule(bench->sim, &bench->step_event, BEGIN_PS);
    sim_event_init(&bench->begin_event, second, bench);
    sim_event_schedule(bench->sim, &bench->begin_event, BEGIN_PS + moment * PERIOD_PS);
}

static void read_of(struct bench *bench, uint32_t offset, uint32_t bytes)
{
    bench->ops->rx(bench->core, PEACH2_PORT_N, 0, pcie_tlp_read(bench->pool, 7, STATUS_TAG, offset, bytes));
}

static void interrupts_enable(struct bench *bench, uint32_t bits)
{
    bench_write64(bench, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_ADDRESS, MESSAGE);
    bench_write32(bench, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_VALUE, 1);
    bench_write32(bench, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_ENABLE, bits);
}

// The number of writes to that address.
static unsigned writes_to(const struct bench *bench, uint64_t address)
{
    unsigned count = 0;
    for (unsigned i = 0; i < bench->count; i++) {
        count += bench->left[i].fields[1] == PCIE_TLP_MWR && bench->left[i].address == address;
    }
    return count;
}

// The program on both; then what `seen` says about the twin.
static unsigned compare_and_see(void (*program)(struct bench *bench), unsigned (*seen)(const struct bench *bench))
{
    bench_compare(1, program, NULL);
    struct bench *bench = calloc(1, sizeof *bench);
    bench_run(bench, true, 1, program);
    unsigned result = seen(bench);
    free(bench->left);
    free(bench);
    return result;
}

// --- the end of a DMA, and interrupts -------------------------------------------------------------------------------

static void dma_prepare(struct bench *bench, uint32_t bytes)
{
    bench_write64(bench, DMAC(PEACH2_DMAC_SOURCE), HOST);
    bench_write64(bench, DMAC(PEACH2_DMAC_DESTINATION), EAST);
    bench_write32(bench, DMAC(PEACH2_DMAC_LENGTH), bytes);
    bench_write64(bench, DMAC(PEACH2_DMAC_NOTIFY_LOCAL), STATUS);
}

static void ask_run(void *ctx)
{
    struct bench *bench = ctx;
    read_of(bench, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_PENDING, 4);
    read_of(bench, DMAC(PEACH2_DMAC_STATUS), 8); // and COMPLETED
}

static void dma_begin(struct bench *bench, uint32_t control)
{
    bench_write32(bench, DMAC(PEACH2_DMAC_CONTROL), PEACH2_DMAC_CONTROL_START_MASK | control);
    sim_event_init(&bench->step_event, ask_run, bench);
    sim_event_schedule(bench->sim, &bench->step_event, ASK_PS);
}

static void notifying_begin(void *ctx)
{
    dma_begin(ctx, PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_MASK);
}

static void raise_run(void *ctx)
{
    bench_write32(ctx, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_RAISE, 0x100);
}

static void status_and_message(struct bench *bench)
{
    interrupts_enable(bench, 0x100);
    dma_prepare(bench, 64);
    meet(bench, notifying_begin, raise_run);
}

static unsigned message_is_first(const struct bench *bench)
{
    for (unsigned i = 0; i < bench->count; i++) {
        if (bench->left[i].fields[1] == PCIE_TLP_MWR && bench->left[i].fields[0] == PEACH2_PORT_N) {
            return bench->left[i].address == MESSAGE;
        }
    }
    return 0;
}

TEST(ChipMoments, OfAStatusWordAndAMessageAreTheSameOnBoth)
{
    enum { MOMENTS = 64 };
    unsigned first = 0;
    for (moment = 70; moment < 70 + MOMENTS; moment++) { // the answer to its read takes 75 edges
        TEST_TRACE("RAISE at edge %u", moment);
        first += compare_and_see(status_and_message, message_is_first);
    }
    EXPECT_BETWEEN(first, 1, MOMENTS - 1); // both orders occurred
}

static void interrupting_begin(void *ctx)
{
    dma_begin(ctx, PEACH2_DMAC_CONTROL_INTERRUPT_MASK);
}

static void clear_run(void *ctx)
{
    bench_write32(ctx, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_CLEAR, 1);
}

static void end_and_clear(struct bench *bench)
{
    interrupts_enable(bench, 1);
    dma_prepare(bench, 64);
    meet(bench, interrupting_begin, clear_run);
}

static unsigned messages(const struct bench *bench)
{
    return writes_to(bench, MESSAGE);
}

// The host gets the message of the end whenever the CLEAR comes.
TEST(ChipMoments, OfTheEndOfADmaAndAClearAreTheSameOnBoth)
{
    for (moment = 70; moment < 134; moment++) {
        TEST_TRACE("CLEAR at edge %u", moment);
        EXPECT_EQ(compare_and_see(end_and_clear, messages), 1);
    }
}

static void chain_begin(void *ctx)
{
    dma_begin(ctx, PEACH2_MODE_CHAIN_HOST << PEACH2_DMAC_CONTROL_MODE_LSB);
}

// The answer to the second fetch of channel 0: 1 in bit 7 of the tag, generation in bits 6:2, channel in bits 1:0.
static void second_fetch_fails(void *ctx)
{
    struct bench *bench = ctx;
    pcie_tlp_t *read = pcie_tlp_read(bench->pool, 0x100, 0x80 | 1u << 2, bench->unanswered, 64);
    bench->ops->rx(bench->core, PEACH2_PORT_N, 0, pcie_tlp_error(read, 1, PCIE_CPL_UR));
    pcie_tlp_unref(read);
}

static void end_of_chain_and_clear(struct bench *bench)
{
    interrupts_enable(bench, 1);
    bench->chain[0] =
        (struct peach2_descriptor){.source = HOST, .destination = EAST, .length = 128, .interrupt = true, .last = true};
    bench_write64(bench, DMAC(PEACH2_DMAC_DESCRIPTOR), CHAIN);
    meet(bench, chain_begin, clear_run);
}

TEST(ChipMoments, OfTheEndOfADescriptorAndAClearAreTheSameOnBoth)
{
    for (moment = 150; moment < 214; moment++) {
        TEST_TRACE("CLEAR at edge %u", moment);
        EXPECT_EQ(compare_and_see(end_of_chain_and_clear, messages), 1);
    }
}

// As the driver of a service does: every end has a message, and the CLEAR after it.
static void end_again_run(void *ctx)
{
    struct bench *bench = ctx;
    clear_run(ctx);
    sim_event_init(&bench->begin_event, clear_run, bench);
    sim_event_schedule(bench->sim, &bench->begin_event, 1000000);
}

static void end_twice_and_clear(struct bench *bench)
{
    interrupts_enable(bench, 1);
    dma_prepare(bench, 64);
    bench_write32(bench, DMAC(PEACH2_DMAC_CONTROL),
                  PEACH2_DMAC_CONTROL_START_MASK | PEACH2_DMAC_CONTROL_INTERRUPT_MASK);
    meet(bench, interrupting_begin, end_again_run);
}

TEST(ChipMoments, OfASecondEndAndTheClearOfTheFirstAreTheSameOnBoth)
{
    enum { MOMENTS = 64 };
    unsigned twice = 0;
    for (moment = 70; moment < 70 + MOMENTS; moment++) {
        TEST_TRACE("CLEAR at edge %u", moment);
        twice += compare_and_see(end_twice_and_clear, messages) == 2;
    }
    EXPECT_BETWEEN(twice, 1, MOMENTS - 1); // a CLEAR of both was for the message of the first
}

static void enable_run(void *ctx)
{
    bench_write32(ctx, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_ENABLE, 1);
}

static void end_and_enable(struct bench *bench)
{
    interrupts_enable(bench, 0);
    dma_prepare(bench, 64);
    meet(bench, interrupting_begin, enable_run);
}

TEST(ChipMoments, OfTheEndOfADmaAndItsEnableAreTheSameOnBoth)
{
    for (moment = 70; moment < 134; moment++) {
        TEST_TRACE("ENABLE at edge %u", moment);
        EXPECT_EQ(compare_and_see(end_and_enable, messages), 1);
    }
}

static void pending_ask(void *ctx)
{
    read_of(ctx, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_PENDING, 4);
}

static void end_and_question(struct bench *bench)
{
    dma_prepare(bench, 64);
    meet(bench, interrupting_begin, pending_ask);
}

// Of channel 0: bit 0 of PENDING, in the first answer of the registers.
static unsigned is_pending(const struct bench *bench)
{
    for (unsigned i = 0; i < bench->count; i++) {
        const struct left *left = &bench->left[i];
        if (left->fields[1] == PCIE_TLP_CPLD && left->fields[3] == STATUS_TAG) {
            return left->data[0] & 1;
        }
    }
    FAIL("there is no answer");
    return 0;
}

TEST(ChipMoments, OfTheEndOfADmaAndAReadOfPendingAreTheSameOnBoth)
{
    enum { MOMENTS = 64 };
    unsigned pending = 0;
    for (moment = 70; moment < 70 + MOMENTS; moment++) {
        TEST_TRACE("read at edge %u", moment);
        pending += compare_and_see(end_and_question, is_pending);
    }
    EXPECT_BETWEEN(pending, 1, MOMENTS - 1);
}

static void end_and_failed_fetch(struct bench *bench)
{
    bench->chain[0] = (struct peach2_descriptor){
        .source = HOST, .destination = EAST, .length = 128, .interrupt = true, .next = CHAIN + 64};
    bench->unanswered = CHAIN + 64;
    bench_write64(bench, DMAC(PEACH2_DMAC_DESCRIPTOR), CHAIN);
    meet(bench, chain_begin, second_fetch_fails);
}

TEST(ChipMoments, OfADescriptorsEndAndAFailedFetchAreTheSameOnBoth)
{
    enum { MOMENTS = 64 };
    unsigned pending = 0;
    for (moment = 150; moment < 150 + MOMENTS; moment++) { // the answers to the fetch and the read take 75 edges each
        TEST_TRACE("the fetch fails at edge %u", moment);
        pending += compare_and_see(end_and_failed_fetch, is_pending);
    }
    EXPECT_BETWEEN(pending, 1, MOMENTS - 1); // the failure came before the end, and behind it
}

// --- a write to the board's memory, and a reset ---------------------------------------------------------------------

enum { WRITTEN_BYTES = 128 };

static void memory_ask(void *ctx)
{
    read_of(ctx, PEACH2_MEMORY_BASE, WRITTEN_BYTES);
}

static void memory_fill(struct bench *bench, uint8_t value)
{
    uint8_t data[WRITTEN_BYTES];
    memset(data, value, sizeof data);
    bench->ops->rx(bench->core, PEACH2_PORT_N, 0,
                   pcie_tlp_write(bench->pool, 7, PEACH2_MEMORY_BASE, sizeof data, data));
}

static void memory_write_begin(void *ctx)
{
    struct bench *bench = ctx;
    memory_fill(bench, 2);
    sim_event_init(&bench->step_event, memory_ask, bench);
    sim_event_schedule(bench->sim, &bench->step_event, ASK_PS);
}

static void reset_run(void *ctx)
{
    bench_reset(ctx);
}

static void write_and_reset(struct bench *bench)
{
    memory_fill(bench, 1);
    meet(bench, memory_write_begin, reset_run);
}

// How many bytes the second write has reached.
static unsigned written(const struct bench *bench)
{
    const struct left *left = &bench->left[bench->count - 1];
    unsigned count = 0;
    for (unsigned i = 0; i < WRITTEN_BYTES; i++) {
        count += left->data[i] == 2;
    }
    return count;
}

TEST(ChipMoments, OfAWriteToTheMemoryAndAResetAreTheSameOnBoth)
{
    unsigned last = 0;
    for (moment = 0; moment < 20; moment++) {
        TEST_TRACE("reset at edge %u", moment);
        unsigned bytes = compare_and_see(write_and_reset, written);
        EXPECT_BETWEEN(bytes, last, last + 16); // a beat at each edge
        last = bytes;
    }
    EXPECT_EQ(last, WRITTEN_BYTES);
}

// --- a hold of a ring, and room --------------------------------------------------------------------------------------

enum { RING_PACKETS = 400, ENTERING_PACKETS = 3, RING_BYTES = 64 };

static void packets_send(struct bench *bench, unsigned port, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        bench->ops->rx(bench->core, port, 2,
                       pcie_tlp_write(bench->pool, (uint16_t)(8 + port), EAST + 4096, RING_BYTES, NULL));
    }
}

static void room_at_last(void *ctx)
{
    struct bench *bench = ctx;
    bench->ops->set_tx_room(bench->core, PEACH2_PORT_E, true);
}

// The ring has packets without end, and N sends into it.
static void ring_begin(void *ctx)
{
    struct bench *bench = ctx;
    bench->ops->set_tx_room(bench->core, PEACH2_PORT_E, false);
    packets_send(bench, PEACH2_PORT_W, RING_PACKETS);
    packets_send(bench, PEACH2_PORT_N, ENTERING_PACKETS);
    sim_event_init(&bench->step_event, room_at_last, bench);
    sim_event_schedule(bench->sim, &bench->step_event, ASK_PS);
}

static void room_ends(void *ctx)
{
    struct bench *bench = ctx;
    bench->ops->set_tx_room(bench->core, PEACH2_PORT_E, false);
}

static void room_for_one(void *ctx)
{
    struct bench *bench = ctx;
    bench->ops->set_tx_room(bench->core, PEACH2_PORT_E, true);
    sim_event_init(&bench->begin_event, room_ends, bench);
    sim_event_schedule(bench->sim, &bench->begin_event, 3 * PERIOD_PS);
}

static void hold_and_room(struct bench *bench)
{
    meet(bench, ring_begin, room_for_one);
}

// How long port E pauses, in edges, for the first time after a packet has entered the ring there. 0: it does not.
static unsigned next_hold(const struct bench *bench)
{
    uint64_t before_ps = 0;
    bool entered = false;
    for (unsigned i = 0; i < bench->count; i++) {
        const struct left *left = &bench->left[i];
        if (left->fields[0] != PEACH2_PORT_E) {
            continue;
        }
        uint64_t pause = (left->time_ps - before_ps) / PERIOD_PS;
        if (entered && pause >= PEACH2_RING_HOLD_CYCLES) {
            return (unsigned)pause;
        }
        entered = entered || left->fields[2] == 8 + PEACH2_PORT_N;
        before_ps = left->time_ps;
    }
    return 0;
}

// The first hold, of 72 edges, lets nobody in: the next one lasts 144, and begins when 128 packets of five beats have
// passed. The one after it lasts 72 again if a quarter of it was enough.
TEST(ChipMoments, OfAHoldAndRoomAreTheSameOnBoth)
{
    enum { FIRST = 72 + 128 * 5 };
    unsigned halved = 0, kept = 0;
    for (moment = FIRST; moment < FIRST + 80; moment++) {
        TEST_TRACE("room at edge %u", moment);
        unsigned pause = compare_and_see(hold_and_room, next_hold);
        halved += pause >= 72 && pause < 72 + 16;
        kept += pause >= 144 && pause < 144 + 16;
    }
    EXPECT_GT(halved, 8);
    EXPECT_GT(kept, 8);
}

// The one that would enter finds no room: each hold is in vain, up to the longest one, which stays.
enum { HELD_PACKETS = (int)(PEACH2_RING_REST_TLPS << (PEACH2_RING_LEVELS + 1)) };

static void crowded_ring_begin(void *ctx)
{
    struct bench *bench = ctx;
    bench->ops->set_tx_room(bench->core, PEACH2_PORT_E, false);
    packets_send(bench, PEACH2_PORT_W, HELD_PACKETS);
    packets_send(bench, PEACH2_PORT_N, 1);
    sim_event_init(&bench->step_event, room_at_last, bench);
    sim_event_schedule(bench->sim, &bench->step_event, 2ull * ASK_PS);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static void crowded_ring(struct bench *bench)
{
    meet(bench, crowded_ring_begin, nothing);
}

enum { SEEN_HOLDS = PEACH2_RING_LEVELS + 2 };

// The pauses of port E, and the packets between them, double from level to level and then stay. Behind a hold one packet
// passes before those that are counted.
static unsigned levels_seen(const struct bench *bench)
{
    uint64_t before_ps = BEGIN_PS;
    unsigned holds = 0, packets = 0;
    for (unsigned i = 0; i < bench->count && holds < SEEN_HOLDS; i++) {
        const struct left *left = &bench->left[i];
        unsigned last = PEACH2_RING_LEVELS - 1, level = holds < last ? holds : last;
        uint64_t pause = (left->time_ps - before_ps) / PERIOD_PS;
        before_ps = left->time_ps;
        if (pause >= PEACH2_RING_HOLD_CYCLES) {
            EXPECT_BETWEEN(pause, PEACH2_RING_HOLD_CYCLES << level, (PEACH2_RING_HOLD_CYCLES << level) + 16);
            EXPECT_EQ(packets, holds == 0 ? 0 : (PEACH2_RING_REST_TLPS << (holds <= last ? holds - 1 : last)) + 1);
            packets = 0;
            holds++;
        }
        packets++;
    }
    return holds;
}

TEST(ChipMoments, OfHoldsInVainAreTheSameOnBothUpToTheLastLevelWhichStays)
{
    moment = 1;
    EXPECT_EQ(compare_and_see(crowded_ring, levels_seen), SEEN_HOLDS);
}
