#include "chip_bench.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cosim/cosim.h"

#define ANSWER_PS 300100u // from a read of the chip to its first completion; no multiple of the period
#define LEFT_MAX  20000u
#define IP_TLPS   16u
#define IP_ROOM   12u // there is room up to here

// --- the chip's environment -----------------------------------------------------------------------------------------

static void answer_add(struct bench *bench, pcie_tlp_t *tlp)
{
    uint64_t due_ps = sim_now_ps(bench->sim) + ANSWER_PS;
    bench->answers[bench->answer_tail++ % ANSWERS] = (struct answer){tlp, due_ps};
    ASSERT_LE(bench->answer_tail - bench->answer_head, ANSWERS);
    if (!sim_event_pending(&bench->answer_event)) {
        sim_event_schedule_at(bench->sim, &bench->answer_event, due_ps);
    }
}

static uint8_t host_byte(const struct bench *bench, uint64_t address)
{
    uint64_t words[PEACH2_DESCRIPTOR_WORDS], offset = address - CHAIN;
    if (address < CHAIN || offset >= CHAIN_LENGTH * sizeof words) {
        return (uint8_t)(address * 7);
    }
    peach2_descriptor_pack(&bench->chain[offset / sizeof words], words);
    return (uint8_t)(words[offset / 8 % PEACH2_DESCRIPTOR_WORDS] >> 8 * (offset % 8));
}

// Completions of 64 bytes, as from a root complex.
static void answer_make(struct bench *bench, const pcie_tlp_t *read)
{
    if (bench->silent || read->address == bench->unanswered) {
        return;
    }
    if (bench->status != PCIE_CPL_SC) {
        answer_add(bench, pcie_tlp_error(read, 1, bench->status));
        return;
    }
    uint32_t total = pcie_tlp_byte_count(read), done = 0;
    while (done < total) {
        uint8_t data[64];
        uint32_t bytes = 64 - (uint32_t)((read->address + done) % 64);
        bytes = bytes < total - done ? bytes : total - done;
        for (uint32_t i = 0; i < bytes; i++) {
            data[i] = host_byte(bench, read->address + done + i);
        }
        answer_add(bench, pcie_tlp_completion(read, 1, done, bytes, data));
        done += bytes;
    }
}

static void answer_run(void *ctx)
{
    struct bench *bench = ctx;
    while (bench->answer_head != bench->answer_tail) {
        struct answer *answer = &bench->answers[bench->answer_head % ANSWERS];
        if (answer->due_ps > sim_now_ps(bench->sim)) {
            sim_event_schedule_at(bench->sim, &bench->answer_event, answer->due_ps);
            return;
        }
        bench->answer_head++;
        bench->ops->rx(bench->core, PEACH2_PORT_N, 0, answer->tlp);
    }
}

void bench_reset(struct bench *bench)
{
    sim_event_cancel(bench->sim, &bench->answer_event);
    while (bench->answer_head != bench->answer_tail) {
        pcie_tlp_unref(bench->answers[bench->answer_head++ % ANSWERS].tlp);
    }
    bench->resets++;
    bench->ops->reset(bench->core);
    bench_routes_write(bench);
}

// Between two edges, so that nothing depends on the order of events at an edge.
static void drain_schedule(struct drain *drain)
{
    uint64_t edge = (sim_now_ps(drain->bench->sim) + drain->period_ps) / PERIOD_PS;
    sim_event_schedule_at(drain->bench->sim, &drain->event, edge * PERIOD_PS + 700);
}

static void drain_run(void *ctx)
{
    struct drain *drain = ctx;
    struct bench *bench = drain->bench;
    drain->held--;
    if (drain->held == IP_TLPS - 1) {
        bench->ops->set_tx_ready(bench->core, drain->port, true);
    }
    if (drain->held == IP_ROOM) {
        bench->ops->set_tx_room(bench->core, drain->port, true);
    }
    if (drain->held != 0) {
        drain_schedule(drain);
    }
}

static void drain_take(struct drain *drain)
{
    if (drain->held++ == 0) {
        drain_schedule(drain);
    }
    if (drain->held == IP_ROOM + 1) {
        drain->bench->ops->set_tx_room(drain->bench->core, drain->port, false);
    }
    if (drain->held == IP_TLPS) {
        drain->bench->ops->set_tx_ready(drain->bench->core, drain->port, false);
    }
}

// More packets than a program of the tests can cause: a chain that has no end, as bytes from a fuzz target may make one.
static void endless_stop(struct bench *bench)
{
    EXPECT_TRUE(bench->may_be_endless);
    bench->endless = true;
    sim_stop(bench->sim);
}

static void on_tx(void *ctx, unsigned port, pcie_tlp_t *tlp)
{
    struct bench *bench = ctx;
    if (bench->count == LEFT_MAX) {
        endless_stop(bench);
        pcie_tlp_unref(tlp);
        return;
    }
    struct left *left = &bench->left[bench->count++];
    *left = (struct left){.time_ps = sim_now_ps(bench->sim),
                          .address = tlp->address,
                          .fields = {port, tlp->kind, tlp->requester, tlp->tag, tlp->dwords,
                                     (uint32_t)tlp->first_be << 8 | tlp->last_be, tlp->cpl_status,
                                     (uint32_t)tlp->byte_count << 8 | tlp->lower_address}};
    uint32_t bytes = pcie_tlp_payload_bytes(tlp);
    bool completion = pcie_tlp_class(tlp) == PCIE_COMPLETION;
    // Bytes that were not requested have undefined contents.
    bool requested = tlp->byte_count % 4 == 0 && tlp->lower_address % 4 == 0 && tlp->tag != HIDDEN_TAG;
    if (bytes != 0 && (!completion || requested)) {
        memcpy(left->data, pcie_tlp_data(tlp), bytes);
    }
    if (completion) {
        left->fields[4] = tlp->kind == PCIE_TLP_CPLD ? tlp->dwords : 0;
    }
    if (tlp->kind == PCIE_TLP_MRD) {
        answer_make(bench, tlp);
    }
    if (tlp->kind == PCIE_TLP_CPLD && tlp->tag == HOLDS_TAG) {
        uint32_t holds[2];
        memcpy(holds, pcie_tlp_data(tlp), sizeof holds);
        bench->holds = holds[0] + holds[1];
    }
    pcie_tlp_unref(tlp);
    if (bench->drains[port].period_ps != 0) {
        drain_take(&bench->drains[port]);
    }
    // The packet that fills the hard IP stalls the chip.
    if ((bench->fills >> port & 1) != 0 || (bench->steps != 0 && sim_random_below(&bench->stalls[port], 12) == 0)) {
        bench->ops->set_tx_ready(bench->core, port, false);
    }
}

static void on_rx_taken_at(void *ctx, unsigned port, pcie_tlp_t *tlp, uint64_t taken_ps)
{
    struct bench *bench = ctx;
    if (bench->taken[port] == TAKEN_MAX) {
        endless_stop(bench);
    } else {
        bench->taken_ps[port][bench->taken[port]++] = taken_ps;
    }
    pcie_tlp_unref(tlp);
}

static void on_rx_taken(void *ctx, unsigned port, pcie_tlp_t *tlp)
{
    on_rx_taken_at(ctx, port, tlp, sim_now_ps(((struct bench *)ctx)->sim));
}

// --- functions of the programs --------------------------------------------------------------------------------------

uint32_t bench_dice(struct bench *bench, uint32_t sides)
{
    return (uint32_t)sim_random_below(&bench->random, sides);
}

void bench_write32(struct bench *bench, uint32_t offset, uint32_t value)
{
    bench->ops->rx(bench->core, PEACH2_PORT_N, 0, pcie_tlp_write(bench->pool, 7, offset, sizeof value, &value));
}

void bench_write64(struct bench *bench, uint32_t offset, uint64_t value)
{
    bench->ops->rx(bench->core, PEACH2_PORT_N, 0, pcie_tlp_write(bench->pool, 7, offset, sizeof value, &value));
}

// --- both chips -----------------------------------------------------------------------------------------------------

static void rtl_rx(void *core, unsigned port, unsigned bar, pcie_tlp_t *tlp)
{
    cosim_peach2_rx(core, port, bar, tlp);
}

static void rtl_set_tx_ready(void *core, unsigned port, bool ready)
{
    cosim_peach2_set_tx_ready(core, port, ready);
}

static void rtl_set_tx_room(void *core, unsigned port, bool room)
{
    cosim_peach2_set_tx_room(core, port, room);
}

static void rtl_reset(void *core)
{
    cosim_peach2_reset(core);
}

static const struct peach2_core_ops rtl_ops = {
    .rx = rtl_rx, .set_tx_ready = rtl_set_tx_ready, .set_tx_room = rtl_set_tx_room, .reset = rtl_reset};

void bench_routes_write(struct bench *bench)
{
    static const uint8_t ports[] = {0, 1, 2, 3}; // node 0 by W, 1 is the own node, 2 by E, 3 by S
    static const uint8_t nodes[] = {OWN_NODE, 2, 0, 3};
    bench_write64(bench, PEACH2_CHIP_WINDOW_BASE, WINDOW);
    for (unsigned i = 0; i < 4; i++) {
        uint32_t base = PEACH2_ROUTE_BASE + ports[i] * PEACH2_ROUTE_STRIDE;
        uint64_t node = (uint64_t)nodes[i] << 35, last = node + (i == 0 ? 3ull << 33 : 1ull << 35) - 4096;
        bench_write64(bench, base + PEACH2_ROUTE_MASK, (1ull << 39) - 4096);
        bench_write64(bench, base + PEACH2_ROUTE_LOWER, node);
        bench_write64(bench, base + PEACH2_ROUTE_UPPER, last);
        bench_write32(bench, base + PEACH2_ROUTE_CONTROL, 1);
    }
    uint32_t board = PEACH2_ROUTE_BASE + 4 * PEACH2_ROUTE_STRIDE;
    bench_write64(bench, board + PEACH2_ROUTE_LOWER, 0);
    bench_write64(bench, board + PEACH2_ROUTE_UPPER, (1ull << 39) - 4096);
    bench_write64(bench, board + PEACH2_ROUTE_MASK, 0);
    bench_write32(bench, board + PEACH2_ROUTE_CONTROL, 1);
    bench_write64(bench, PEACH2_OFFSET_BASE, WINDOW + ((uint64_t)OWN_NODE << 35) - 0x100000);
}

static const struct cosim_peach2_config rtl_config = {.requester = 0x100,
                                                      .mps_bytes = 128,
                                                      .start_cycles = 5,
                                                      .fetch_cycles = 2,
                                                      .finish_cycles = 7,
                                                      .read_bytes = 256,
                                                      .read_tags = 6,
                                                      .prefetch = 2};
static const struct peach2_twin_config twin_config = {.period_ps = PERIOD_PS,
                                                      .requester = 0x100,
                                                      .mps_bytes = 128,
                                                      .start_cycles = 5,
                                                      .fetch_cycles = 2,
                                                      .finish_cycles = 7,
                                                      .read_bytes = 256,
                                                      .read_tags = 6,
                                                      .prefetch = 2};

void bench_run(struct bench *bench, bool twin, uint64_t seed, void (*program)(struct bench *bench))
{
    static const struct cosim_peach2_ops rtl_callbacks = {on_tx, on_rx_taken};
    static const struct peach2_twin_ops twin_callbacks = {.tx = on_tx, .rx_taken = on_rx_taken_at};
    const struct sim_config sim_config = {.seed = seed};
    cosim_clock_t *clock = NULL;
    ASSERT_EQ(sim_create(&sim_config, &bench->sim), SIM_OK);
    ASSERT_EQ(pcie_pool_create(&bench->pool), SIM_OK);
    sim_random_init(&bench->random, seed, "bench");
    for (unsigned port = 0; port < PEACH2_PORTS; port++) {
        sim_random_init(&bench->stalls[port], seed + port, "stalls");
        bench->drains[port].bench = bench;
        bench->drains[port].port = port;
        sim_event_init(&bench->drains[port].event, drain_run, &bench->drains[port]);
    }
    sim_event_init(&bench->answer_event, answer_run, bench);
    bench->left = calloc(LEFT_MAX, sizeof *bench->left);
    ASSERT_NOT_NULL(bench->left);
    if (twin) {
        bench->ops = &peach2_twin_core_ops;
        ASSERT_EQ(peach2_twin_create(bench->sim, bench->pool, "twin", &twin_config, &twin_callbacks, bench,
                                     (peach2_twin_t **)&bench->core),
                  SIM_OK);
    } else {
        bench->ops = &rtl_ops;
        ASSERT_EQ(cosim_clock_create(bench->sim, PERIOD_PS, &clock), SIM_OK);
        ASSERT_EQ(cosim_peach2_create(clock, bench->pool, "rtl", &rtl_config, &rtl_callbacks, bench, NULL,
                                      (cosim_peach2_t **)&bench->core),
                  SIM_OK);
    }
    bench_routes_write(bench);
    program(bench);
    EXPECT_EQ(sim_run(bench->sim), bench->endless ? SIM_RUN_STOPPED : SIM_RUN_DONE);
    if (twin) {
        peach2_twin_counters(bench->core, bench->counters);
        peach2_twin_destroy(bench->core);
    } else {
        cosim_peach2_counters(bench->core, bench->counters);
        cosim_peach2_destroy(bench->core);
        cosim_clock_destroy(clock);
    }
    unsigned live = pcie_pool_destroy(bench->pool);
    if (!bench->endless) {
        EXPECT_EQ(live, 0);
    }
    sim_destroy(bench->sim);
}

static int left_order(const void *a, const void *b)
{
    const struct left *x = a, *y = b;
    int by_time = (x->time_ps > y->time_ps) - (x->time_ps < y->time_ps);
    return by_time != 0 ? by_time : (int)x->fields[0] - (int)y->fields[0];
}

static void bench_free(struct bench *bench)
{
    free(bench->left);
    free(bench);
}

// Compares every packet with its time; each port sends one packet at an edge, so the order is that of time and port.
void bench_compare(uint64_t seed, void (*program)(struct bench *bench), unsigned *holds_out)
{
    struct bench *rtl = calloc(1, sizeof *rtl), *twin = calloc(1, sizeof *twin);
    ASSERT_NOT_NULL(rtl);
    ASSERT_NOT_NULL(twin);
    bench_run(rtl, false, seed, program);
    bench_run(twin, true, seed, program);
    EXPECT_EQ(twin->endless, rtl->endless);
    if (rtl->endless) { // where each of them stopped means nothing
        bench_free(rtl);
        bench_free(twin);
        return;
    }
    EXPECT_EQ(twin->count, rtl->count);
    EXPECT_MEMEQ(twin->taken, rtl->taken, sizeof rtl->taken);
    if (rtl->resets == 0) { // the twin says in advance when it takes what a reset then loses
        EXPECT_MEMEQ(twin->taken_ps, rtl->taken_ps, sizeof rtl->taken_ps);
    }
    EXPECT_MEMEQ(twin->counters, rtl->counters, sizeof rtl->counters);
    EXPECT_EQ(twin->holds, rtl->holds);
    if (holds_out != NULL) {
        *holds_out = rtl->holds;
    }
    qsort(rtl->left, rtl->count, sizeof *rtl->left, left_order);
    qsort(twin->left, twin->count, sizeof *twin->left, left_order);
    for (unsigned i = 0; i < rtl->count; i++) {
        if (memcmp(&twin->left[i], &rtl->left[i], sizeof *rtl->left) != 0) {
            const struct left *a = &rtl->left[i], *b = &twin->left[i];
            FAIL("seed %llu, packet %u of %u: rtl %llu ps port %u kind %u address 0x%llx, twin %llu ps port %u kind %u "
                 "address 0x%llx",
                 (unsigned long long)seed, i, rtl->count, (unsigned long long)a->time_ps, a->fields[0], a->fields[1],
                 (unsigned long long)a->address, (unsigned long long)b->time_ps, b->fields[0], b->fields[1],
                 (unsigned long long)b->address);
            break;
        }
    }
    bench_free(rtl);
    bench_free(twin);
}
