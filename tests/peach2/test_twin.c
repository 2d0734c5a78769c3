// The bare twin compared with the bare RTL: the same packets and stalls on all four ports; the packets that leave are
// compared field by field with their times.
#include <stdlib.h>
#include <string.h>

#include "chip_bench.h"

// --- random packets -------------------------------------------------------------------------------------------------

// A random address for a request of so many bytes that stays within 4 KB.
static uint64_t random_address(struct bench *bench, uint32_t bytes)
{
    uint64_t page_offset = bench_dice(bench, 4096 - bytes + 1);
    uint64_t window = WINDOW + ((uint64_t)bench_dice(bench, 5) << 35) + ((uint64_t)bench_dice(bench, 4) << 33);
    switch (bench_dice(bench, 4)) {
    case 0:
        return window + page_offset;
    case 1:
        return window + PEACH2_MEMORY_BASE + 4096 * bench_dice(bench, 9) + page_offset;
    case 2:
        return 4096 * bench_dice(bench, 40) + page_offset;
    default:
        return PEACH2_MEMORY_BASE + page_offset;
    }
}

static void random_packet(struct bench *bench)
{
    uint32_t port = bench_dice(bench, 4), bytes = 1 + bench_dice(bench, bench_dice(bench, 2) == 0 ? 12 : 256);
    uint64_t address = random_address(bench, bytes);
    uint8_t data[256], tag = (uint8_t)bench_dice(bench, 256);
    pcie_tlp_t *tlp;
    for (uint32_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)bench_dice(bench, 256);
    }
    // The routes and the channels are not changed.
    bool registers = (address & 0x1ffff) < 0x1000;
    switch (bench_dice(bench, 8)) {
    case 0:
    case 1:
    case 2:
        tlp = pcie_tlp_read(bench->pool, (uint16_t)(8 + port), tag, address, bytes);
        break;
    case 3: {
        pcie_tlp_t *read = pcie_tlp_read(bench->pool, 0x100, 200, address, bytes);
        tlp = pcie_tlp_completion(read, 1, 0, bytes, data);
        pcie_tlp_unref(read);
        break;
    }
    default:
        address += port == PEACH2_PORT_N && registers ? 0x1000 : 0;
        bytes = bytes > 4096 - address % 4096 ? 1 : bytes;
        tlp = pcie_tlp_write(bench->pool, (uint16_t)(8 + port), address, bytes, data);
        break;
    }
    bench->ops->rx(bench->core, port, address < WINDOW ? 0 : 2, tlp);
}

static void random_dma(struct bench *bench)
{
    uint32_t base = bench_dice(bench, 4) * PEACH2_DMAC_STRIDE;
    uint32_t from = 4 * bench_dice(bench, 256);
    bench_write64(bench, base + DMAC(PEACH2_DMAC_SOURCE), HOST + from);
    bench_write64(bench, base + DMAC(PEACH2_DMAC_DESTINATION),
                  WINDOW + ((uint64_t)bench_dice(bench, 4) << 35) + 16 * bench_dice(bench, 64) + from % 16);
    bench_write32(bench, base + DMAC(PEACH2_DMAC_LENGTH), 4 * (1 + bench_dice(bench, 600)));
    bench_write64(bench, base + DMAC(PEACH2_DMAC_NOTIFY_LOCAL), HOST + 8 * bench_dice(bench, 8));
    bench_write64(bench, base + DMAC(PEACH2_DMAC_NOTIFY_REMOTE),
                  WINDOW + ((uint64_t)bench_dice(bench, 4) << 35) + 8 * bench_dice(bench, 8));
    uint32_t notify = bench_dice(bench, 4) << PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_LSB; // and NOTIFY_REMOTE, the next bit
    bench_write32(bench, base + DMAC(PEACH2_DMAC_CONTROL), PEACH2_DMAC_CONTROL_START_MASK | notify);
}

// DONE must be visible after the status words.
static void status_ask(struct bench *bench)
{
    uint32_t offset = bench_dice(bench, 4) * PEACH2_DMAC_STRIDE + DMAC(PEACH2_DMAC_STATUS);
    bench->ops->rx(bench->core, PEACH2_PORT_N, 0, pcie_tlp_read(bench->pool, 7, STATUS_TAG, offset, 4));
}

static void holds_ask(struct bench *bench)
{
    uint32_t offset = PEACH2_COUNTER_BASE + PEACH2_COUNTER_RING_HOLDS_E;
    bench->ops->rx(bench->core, PEACH2_PORT_N, 0, pcie_tlp_read(bench->pool, 7, HOLDS_TAG, offset, 8));
}

// No packets come while the routes are programmed: the twin decides on a packet when it comes, the RTL some edges later.
#define ROUTES_EDGES 200

static void step_run(void *ctx)
{
    struct bench *bench = ctx;
    if (bench->steps == 0) {
        for (unsigned port = 0; port < PEACH2_PORTS; port++) {
            bench->ops->set_tx_ready(bench->core, port, true);
            bench->ops->set_tx_room(bench->core, port, true);
        }
        holds_ask(bench);
        return;
    }
    bench->steps--;
    uint32_t what = bench_dice(bench, 20), port = bench_dice(bench, 4);
    bool resets = bench->may_reset && bench_dice(bench, 40) == 0;
    if (resets) {
        bench_reset(bench);
    } else if (what == 0) {
        bench->ops->set_tx_ready(bench->core, port, true);
    } else if (what == 1) {
        bench->ops->set_tx_room(bench->core, port, bench_dice(bench, 3) != 0);
    } else if (what == 2) {
        random_dma(bench);
    } else if (what <= 6) {
        status_ask(bench);
    } else {
        random_packet(bench);
    }
    // Between two edges, so that nothing depends on the order of events at an edge.
    uint64_t edge = sim_now_ps(bench->sim) / PERIOD_PS + bench_dice(bench, 30) + (resets ? ROUTES_EDGES : 0);
    sim_event_schedule_at(bench->sim, &bench->step_event, edge * PERIOD_PS + PERIOD_PS + 100 + bench_dice(bench, 3000));
}

static void traffic(struct bench *bench)
{
    bench->steps = 1500;
    sim_event_init(&bench->step_event, step_run, bench);
    sim_event_schedule(bench->sim, &bench->step_event, 1000100);
}

TEST(TwinChip, MovesEveryPacketAtTheEdgeAtWhichTheRtlDoes)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        bench_compare(seed, traffic, NULL);
    }
}

static void traffic_with_resets(struct bench *bench)
{
    bench->may_reset = true;
    traffic(bench);
}

TEST(TwinChip, IsResetAsTheRtlWhateverIsInside)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        TEST_TRACE("seed %llu", (unsigned long long)seed);
        bench_compare(seed, traffic_with_resets, NULL);
    }
}

// --- saturated rings ------------------------------------------------------------------------------------------------

static void crowd(struct bench *bench, unsigned port, uint64_t node, unsigned packets)
{
    for (unsigned i = 0; i < packets; i++) {
        uint32_t bytes = 4 * (1 + bench_dice(bench, 64));
        pcie_tlp_t *tlp = pcie_tlp_write(bench->pool, (uint16_t)(8 + port), WINDOW + (node << 35) + 4096, bytes, NULL);
        bench->ops->rx(bench->core, port, 2, tlp);
    }
}

// Both directions of the ring have through traffic, and N and S send into both. E is emptied faster than W.
static void saturate_run(void *ctx)
{
    struct bench *bench = ctx;
    bench->drains[PEACH2_PORT_E].period_ps = (8 + bench_dice(bench, 16)) * (uint64_t)PERIOD_PS;
    bench->drains[PEACH2_PORT_W].period_ps = (10 + bench_dice(bench, 50)) * (uint64_t)PERIOD_PS;
    crowd(bench, PEACH2_PORT_W, 2, 3000);
    crowd(bench, PEACH2_PORT_E, 0, 3000);
    for (unsigned i = 0; i < 200; i++) {
        crowd(bench, PEACH2_PORT_N, 2 * bench_dice(bench, 2), 7);
        crowd(bench, PEACH2_PORT_S, 2 * bench_dice(bench, 2), 7);
    }
    sim_event_schedule(bench->sim, &bench->step_event, 1000000000);
}

static void saturate(struct bench *bench)
{
    sim_event_init(&bench->step_event, step_run, bench);
    sim_event_init(&bench->begin_event, saturate_run, bench);
    sim_event_schedule(bench->sim, &bench->begin_event, 1000100); // when the routes are set
}

TEST(TwinChip, HoldsRingsBackAsTheRtlDoes)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        unsigned holds = 0;
        bench_compare(seed, saturate, &holds);
        EXPECT_GT(holds, 20);
    }
}

// --- reads that fail ------------------------------------------------------------------------------------------------

static void dma(struct bench *bench, uint32_t bytes)
{
    bench_write64(bench, DMAC(PEACH2_DMAC_SOURCE), HOST);
    bench_write64(bench, DMAC(PEACH2_DMAC_DESTINATION), WINDOW + (2ull << 35));
    bench_write32(bench, DMAC(PEACH2_DMAC_LENGTH), bytes);
    bench_write64(bench, DMAC(PEACH2_DMAC_NOTIFY_LOCAL), HOST);
    bench_write32(bench, DMAC(PEACH2_DMAC_CONTROL),
                  PEACH2_DMAC_CONTROL_START_MASK | PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_MASK);
}

static void dma_lost(struct bench *bench)
{
    bench->silent = true;
    dma(bench, 3000);
}

static void dma_aborted(struct bench *bench)
{
    bench->status = PCIE_CPL_CA;
    dma(bench, 3000);
}

static void chain_lost(struct bench *bench)
{
    bench->silent = true;
    bench_write64(bench, DMAC(PEACH2_DMAC_DESCRIPTOR), HOST);
    bench_write64(bench, DMAC(PEACH2_DMAC_NOTIFY_LOCAL), HOST);
    bench_write32(bench, DMAC(PEACH2_DMAC_CONTROL),
                  PEACH2_DMAC_CONTROL_START_MASK | 1u << PEACH2_DMAC_CONTROL_MODE_LSB |
                      PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_MASK);
}

static void chain(struct bench *bench, uint64_t address)
{
    bench_write64(bench, DMAC(PEACH2_DMAC_DESCRIPTOR), address);
    bench_write64(bench, DMAC(PEACH2_DMAC_NOTIFY_LOCAL), HOST);
    bench_write32(bench, DMAC(PEACH2_DMAC_CONTROL),
                  PEACH2_DMAC_CONTROL_START_MASK | PEACH2_MODE_CHAIN_HOST << PEACH2_DMAC_CONTROL_MODE_LSB |
                      PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_MASK);
}

static void looping_run(void *ctx)
{
    chain(ctx, CHAIN);
}

// Descriptors 2 and 3 are a chain; then comes 0, and 1 behind it again and again.
static void chain_and_loop(struct bench *bench)
{
    for (unsigned i = 0; i < CHAIN_LENGTH; i++) {
        bench->chain[i] = (struct peach2_descriptor){.source = HOST,
                                                     .destination = WINDOW + (2ull << 35),
                                                     .length = 64,
                                                     .last = i == 3,
                                                     .next = CHAIN + PEACH2_DESCRIPTOR_BYTES * (i < 2 ? 1 : 3)};
    }
    chain(bench, CHAIN + 2 * PEACH2_DESCRIPTOR_BYTES);
    sim_event_init(&bench->begin_event, looping_run, bench);
    sim_event_schedule(bench->sim, &bench->begin_event, 100000100); // the first has ended
}

// The error in the status word, which is the last packet that leaves.
static unsigned error_of(void (*program)(struct bench *bench))
{
    struct bench *bench = calloc(1, sizeof *bench);
    bench_run(bench, true, 1, program);
    unsigned error = bench->left[bench->count - 1].data[4] >> 4;
    free(bench->left);
    free(bench);
    return error;
}

TEST(TwinChip, GivesUpReadsThatNobodyAnswers)
{
    bench_compare(1, dma_lost, NULL);
    EXPECT_EQ(error_of(dma_lost), 6);
    bench_compare(1, chain_lost, NULL);
    EXPECT_EQ(error_of(chain_lost), 6);
}

TEST(TwinChip, FindsALoopWhateverChainCameBefore)
{
    bench_compare(1, chain_and_loop, NULL);
    EXPECT_EQ(error_of(chain_and_loop), 7);
}

TEST(TwinChip, ReportsReadsThatAreAborted)
{
    bench_compare(1, dma_aborted, NULL);
    EXPECT_EQ(error_of(dma_aborted), 5);
}

static void second_lost(struct bench *bench)
{
    bench->unanswered = HOST + 256; // reads have 256 bytes
    dma(bench, 512);
}

// The first read is answered 300 ns after its request; the time of the second one begins then.
TEST(TwinChip, WaitsForAReadFromTheMomentAtWhichItIsTheOldest)
{
    bench_compare(1, second_lost, NULL);
    EXPECT_EQ(error_of(second_lost), 6);
}

// A completion for slot 0 as the tag of its next use names it: slot in bits 4:0, generation in bits 6:5.
static void stray_run(void *ctx)
{
    struct bench *bench = ctx;
    const uint8_t data[64] = {0xee};
    pcie_tlp_t *read = pcie_tlp_read(bench->pool, 0x100, 1u << 5, HOST, sizeof data);
    bench->ops->rx(bench->core, PEACH2_PORT_N, 0, pcie_tlp_completion(read, 1, 0, sizeof data, data));
    pcie_tlp_unref(read);
}

static void dma_stray(struct bench *bench)
{
    bench->silent = true;
    dma(bench, 64);
    sim_event_init(&bench->begin_event, stray_run, bench);
    sim_event_schedule(bench->sim, &bench->begin_event, 2000100);
}

TEST(TwinChip, TakesNoAnswerToAnEarlierReadOfASlot)
{
    bench_compare(1, dma_stray, NULL);
    EXPECT_EQ(error_of(dma_stray), 6);
}

static void dma_impatient(struct bench *bench)
{
    dma_lost(bench);
    for (unsigned i = 0; i < 300; i++) {
        bench_write32(bench, DMAC(PEACH2_DMAC_CONTROL),
                      PEACH2_DMAC_CONTROL_START_MASK | PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_MASK);
    }
}

// IGNORED_STARTS is 8 bits wide and stays at its largest value.
TEST(TwinChip, CountsUpTo255IgnoredStarts)
{
    bench_compare(1, dma_impatient, NULL);
    struct bench *bench = calloc(1, sizeof *bench);
    ASSERT_NOT_NULL(bench);
    bench_run(bench, true, 1, dma_impatient);
    ASSERT_GT(bench->count, 0);
    EXPECT_EQ(bench->left[bench->count - 1].data[6], 255); // bits 23:16 of STATUS, the upper half of the status word
    free(bench->left);
    free(bench);
}

// A chip with another value of one strap.
#define EXPECT_WITH(strap, value, expected)                                                                            \
    do {                                                                                                               \
        struct peach2_twin_config config = {                                                                           \
            .period_ps = PERIOD_PS, .mps_bytes = 256, .read_bytes = 256, .read_tags = 6, .prefetch = 2};               \
        peach2_twin_t *twin = NULL;                                                                                    \
        config.strap = (value);                                                                                        \
        EXPECT_EQ(peach2_twin_create(sim, pool, "twin", &config, &ops, NULL, &twin), expected);                        \
        peach2_twin_destroy(twin);                                                                                     \
    } while (0)

// Each limit by itself, from both sides.
TEST(TwinChip, RefusesValuesThatTheChipCannotTake)
{
    static const struct peach2_twin_ops ops = {0};
    sim_t *sim = NULL;
    pcie_pool_t *pool = NULL;
    ASSERT_EQ(sim_create(&(struct sim_config){.seed = 1}, &sim), SIM_OK);
    ASSERT_EQ(pcie_pool_create(&pool), SIM_OK);
    EXPECT_WITH(period_ps, 0, SIM_ERR_RANGE);
    EXPECT_WITH(mps_bytes, 64, SIM_ERR_RANGE);
    EXPECT_WITH(mps_bytes, 128, SIM_OK);
    EXPECT_WITH(mps_bytes, 192, SIM_ERR_RANGE);
    EXPECT_WITH(mps_bytes, 4096, SIM_OK);
    EXPECT_WITH(mps_bytes, 8192, SIM_ERR_RANGE);
    EXPECT_WITH(start_cycles, 65535, SIM_OK);
    EXPECT_WITH(start_cycles, 65536, SIM_ERR_RANGE);
    EXPECT_WITH(fetch_cycles, 65535, SIM_OK);
    EXPECT_WITH(fetch_cycles, 65536, SIM_ERR_RANGE);
    EXPECT_WITH(finish_cycles, 65535, SIM_OK);
    EXPECT_WITH(finish_cycles, 65536, SIM_ERR_RANGE);
    EXPECT_WITH(read_bytes, 32, SIM_ERR_RANGE);
    EXPECT_WITH(read_bytes, 64, SIM_OK);
    EXPECT_WITH(read_bytes, 96, SIM_ERR_RANGE);
    EXPECT_WITH(read_bytes, 512, SIM_OK);
    EXPECT_WITH(read_bytes, 1024, SIM_ERR_RANGE);
    EXPECT_WITH(read_tags, 0, SIM_ERR_RANGE);
    EXPECT_WITH(read_tags, 1, SIM_OK);
    EXPECT_WITH(read_tags, 32, SIM_OK);
    EXPECT_WITH(read_tags, 33, SIM_ERR_RANGE);
    EXPECT_WITH(prefetch, 0, SIM_ERR_RANGE);
    EXPECT_WITH(prefetch, 1, SIM_OK);
    EXPECT_WITH(prefetch, 4, SIM_OK);
    EXPECT_WITH(prefetch, 5, SIM_ERR_RANGE);
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
    sim_destroy(sim);
}

static void long_raise_run(void *ctx)
{
    struct bench *bench = ctx;
    const uint32_t words[2] = {0x100, 0xffffffff};
    uint64_t at = WINDOW + ((uint64_t)OWN_NODE << 35) + (3ull << 33) + PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_RAISE;
    bench->ops->rx(bench->core, PEACH2_PORT_E, 2, pcie_tlp_write(bench->pool, 8, at, 8, words));
    bench->ops->rx(bench->core, PEACH2_PORT_N, 0, pcie_tlp_read(bench->pool, 7, STATUS_TAG, PEACH2_INTERRUPT_BASE, 16));
    bench->ops->rx(bench->core, PEACH2_PORT_N, 0,
                   pcie_tlp_read(bench->pool, 7, 77, PEACH2_COUNTER_BASE + PEACH2_COUNTER_REFUSED_WRITES, 4));
}

static void long_raise(struct bench *bench)
{
    sim_event_init(&bench->step_event, step_run, bench);
    sim_event_init(&bench->begin_event, long_raise_run, bench);
    sim_event_schedule(bench->sim, &bench->begin_event, 1000100);
}

TEST(TwinChip, RefusesAWriteFromACableThatGoesBeyondRaise)
{
    bench_compare(1, long_raise, NULL);
}

#define MESSAGE (HOST + 0x700)

// The first message tells of both bits, the second of what the CLEAR left.
static void clear_a_part(struct bench *bench)
{
    bench_write64(bench, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_ADDRESS, MESSAGE);
    bench_write32(bench, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_VALUE, 1);
    bench_write32(bench, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_ENABLE, 0x300);
    bench_write32(bench, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_RAISE, 0x300);
    bench_write32(bench, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_CLEAR, 0x100);
}

TEST(TwinChip, SendsAnotherMessageForWhatAClearLeaves)
{
    bench_compare(1, clear_a_part, NULL);
    struct bench *bench = calloc(1, sizeof *bench);
    ASSERT_NOT_NULL(bench);
    bench_run(bench, true, 1, clear_a_part);
    unsigned messages = 0;
    for (unsigned i = 0; i < bench->count; i++) {
        messages += bench->left[i].fields[1] == PCIE_TLP_MWR && bench->left[i].address == MESSAGE;
    }
    EXPECT_EQ(messages, 2);
    free(bench->left);
    free(bench);
}
