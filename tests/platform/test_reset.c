// Boards that are reset while programs run: what their neighbours see, and how they come back.
#include <errno.h>
#include <string.h>

#include "sim/kernel/counter.h"
#include "tests/shim/test.h"
#include "tests/support/platform_fixture.h"
#include "tests/support/site.h"

#define US 1000000ull

struct outcome {
    struct plat_result result;
    struct plat_point point;
    struct plat_fault fault;
    uint64_t arrived, received, missing;
};

static void note_point(void *ctx, const struct plat_point *point)
{
    ((struct outcome *)ctx)->point = *point;
}

static void note_fault(void *ctx, const struct plat_fault *fault)
{
    ((struct outcome *)ctx)->fault = *fault;
}

static void note_counter(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct outcome *outcome = ctx;
    if (strstr(component, ".program") != NULL) {
        outcome->arrived += strcmp(desc->name, "arrived") == 0 ? value : 0;
        outcome->received += strcmp(desc->name, "received") == 0 ? value : 0;
        outcome->missing += strcmp(desc->name, "missing") == 0 ? value : 0;
    }
}

static struct scn_fault reset_of(uint32_t node, uint64_t at_ps, uint64_t for_ps)
{
    return (struct scn_fault){.kind = SCN_FAULT_RESET,
                              .node = node,
                              .device = SCN_FAULT_BOARD,
                              .at_ps = at_ps,
                              .after_tlps = SCN_NOT_GIVEN,
                              .for_ps = for_ps};
}

// Messages through three boards, one of which is reset; the workload compares what is announced with what arrived.
static struct outcome deliver(enum scn_fidelity fidelity, enum scn_method method, uint32_t node, uint64_t at_ps)
{
    struct scn_scenario *scenario = platform_fixture_line(3);
    struct scn_run *series = platform_fixture_run_add(scenario, SCN_WORKLOAD_DELIVERY, method);
    struct outcome outcome = {0};
    const struct plat_hooks hooks = {
        .ctx = &outcome, .point = note_point, .fault = note_fault, .counter = note_counter};
    series->node = 0;
    series->peer = 2;
    series->iterations = method == SCN_METHOD_PIO ? 100 : 20;
    platform_fixture_size_add(series, 1024, method == SCN_METHOD_REGISTER || method == SCN_METHOD_PIO ? 1 : 3);
    for (unsigned i = 0; i < 3; i++) {
        scenario->nodes[i].board.fidelity = fidelity;
    }
    scenario->faults[scenario->fault_count++] = reset_of(node, at_ps, 3 * US);
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome.result), SIM_OK);
    EXPECT_STREQ(outcome.result.text, "");
    EXPECT_EQ(outcome.result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(outcome.missing, 0); // no word comes behind a gap
    EXPECT_GE(outcome.arrived, outcome.received);
    platform_fixture_free(scenario);
    return outcome;
}

static const enum scn_method methods[] = {SCN_METHOD_REGISTER, SCN_METHOD_CHAIN_HOST, SCN_METHOD_CHAIN_BOARD,
                                          SCN_METHOD_PIO};

TEST(BoardReset, IsTheSameToTheRtlAndItsTwin)
{
    for (uint32_t i = 0; i < 12; i++) {
        TEST_TRACE("step %u", i);
        struct outcome rtl = deliver(SCN_FIDELITY_RTL, methods[i % 4], i % 3, i * 5717213);
        struct outcome twin = deliver(SCN_FIDELITY_TWIN, methods[i % 4], i % 3, i * 5717213);
        EXPECT_EQ(twin.point.operations, rtl.point.operations);
        EXPECT_EQ(twin.point.total_ps, rtl.point.total_ps);
        EXPECT_EQ(twin.result.simulated_ps, rtl.result.simulated_ps);
        EXPECT_TRUE(rtl.fault.happened);
        EXPECT_EQ(twin.fault.at_ps, rtl.fault.at_ps);
        EXPECT_EQ(twin.fault.back_ps, rtl.fault.back_ps);
        EXPECT_LT(rtl.fault.at_ps, rtl.fault.back_ps);
    }
}

TEST(BoardReset, LeavesNoProgramWaiting)
{
    for (uint64_t i = 0; i < 60; i++) {
        TEST_TRACE("step %llu", (unsigned long long)i);
        struct outcome outcome = deliver(SCN_FIDELITY_TWIN, methods[i % 4], (uint32_t)(i % 3), i * 1317211);
        EXPECT_LT(outcome.result.simulated_ps, 2000 * US);
    }
}

// --- afterwards ------------------------------------------------------------------------------------------------------

enum { FIRST = 0, SECOND = 4096, THIRD = 8192, BYTES = 512 };

static void rest(const struct backend *backend, uint64_t us)
{
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, us * 1000);
}

static unsigned dma(peach2_handle_t *board, uint32_t to, uint64_t from, uint64_t offset)
{
    return site_dma(board, 0, from, peach2_window_address(board, to, offset), BYTES);
}

// node0, whose neighbour is reset after 20 us and back before 100 us.
static void before_and_after(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    const struct backend *backend = peach2_backend(board);
    site_fill(site_memory(site, 0, 0), BYTES, 7);
    EXPECT_EQ(dma(board, 1, 0, FIRST), PEACH2_DMA_OK);
    rest(backend, 30);
    EXPECT_EQ(dma(board, 1, 0, SECOND), PEACH2_DMA_OK); // posted: nobody answers
    rest(backend, 100);
    EXPECT_EQ(dma(board, 1, 0, THIRD), PEACH2_DMA_OK);
    rest(backend, 20);
}

// node1: its board does not answer while it is away, and answers to all as before when it is back.
static void away_and_back(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    const struct backend *backend = peach2_backend(board);
    uint64_t id = 0;
    rest(backend, 25);
    EXPECT_EQ(backend->ops->read(backend->ctx, BACKEND_BAR_REGISTERS, PEACH2_CHIP_BASE + PEACH2_CHIP_ID, 4, &id), -EIO);
    rest(backend, 100);
    EXPECT_EQ(backend->ops->read(backend->ctx, BACKEND_BAR_REGISTERS, PEACH2_CHIP_BASE + PEACH2_CHIP_ID, 4, &id), 0);
    EXPECT_EQ(id, PEACH2_CHIP_ID_RESET);
    site_fill(site_memory(site, 1, 0x10000), BYTES, 9);
    EXPECT_EQ(dma(board, 0, 0x10000, THIRD), PEACH2_DMA_OK);
    rest(backend, 40);
}

static void expect_back(enum scn_fidelity fidelity)
{
    struct site site;
    uint8_t sent[BYTES], none[BYTES] = {0};
    site_init(&site, 2);
    for (unsigned i = 0; i < 2; i++) {
        site.scenario->nodes[i].board.fidelity = fidelity;
    }
    site.scenario->faults[site.scenario->fault_count++] = reset_of(1, 20 * US, 10 * US);
    site_build(&site);
    ASSERT_NOT_NULL(site.machine);
    plat_machine_set_program(site.machine, 0, before_and_after, &site);
    plat_machine_set_program(site.machine, 1, away_and_back, &site);
    EXPECT_EQ(plat_machine_run(site.machine), SIM_RUN_DONE);
    site_fill(sent, BYTES, 7);
    EXPECT_MEMEQ(site_memory(&site, 1, FIRST), sent, BYTES);
    EXPECT_MEMEQ(site_memory(&site, 1, SECOND), none, BYTES);
    EXPECT_MEMEQ(site_memory(&site, 1, THIRD), sent, BYTES);
    site_fill(sent, BYTES, 9);
    EXPECT_MEMEQ(site_memory(&site, 0, THIRD), sent, BYTES);
    EXPECT_EQ(plat_machine_live_packets(site.machine), 0);
    site_fini(&site);
}

TEST(BoardReset, IsOverWhenTheDriverHasProgrammedTheRoutes)
{
    expect_back(SCN_FIDELITY_RTL);
    expect_back(SCN_FIDELITY_TWIN);
}

// Both ends of a cable, one of which is back earlier and must not send to the other.
static void before_and_late(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    const struct backend *backend = peach2_backend(board);
    site_fill(site_memory(site, 0, 0), BYTES, 5);
    rest(backend, 150);
    EXPECT_EQ(dma(board, 1, 0, FIRST), PEACH2_DMA_OK);
    rest(backend, 20);
}

TEST(BoardReset, OfBothEndsOfACableOpensItWhenBothAreBack)
{
    struct site site;
    uint8_t sent[BYTES];
    site_init(&site, 2);
    site.scenario->faults[site.scenario->fault_count++] = reset_of(0, 20 * US, 10 * US);
    site.scenario->faults[site.scenario->fault_count++] = reset_of(1, 25 * US, 60 * US);
    site_build(&site);
    ASSERT_NOT_NULL(site.machine);
    plat_machine_set_program(site.machine, 0, before_and_late, &site);
    EXPECT_EQ(plat_machine_run(site.machine), SIM_RUN_DONE);
    EXPECT_LT(site_counter(&site, "node0.slot.0", "up_at"), site_counter(&site, "node1.slot.0", "up_at"));
    EXPECT_LT(site_counter(&site, "node1.slot.0", "up_at"), site_counter(&site, "node0.E-node1.W.0", "up_at"));
    site_fill(sent, BYTES, 5);
    EXPECT_MEMEQ(site_memory(&site, 1, FIRST), sent, BYTES);
    site_fini(&site);
}

TEST(BoardReset, OpensTheCableToABoardThatIsResetLater)
{
    struct site site;
    uint8_t sent[BYTES];
    site_init(&site, 2);
    site.scenario->faults[site.scenario->fault_count++] = reset_of(0, 20 * US, 10 * US);
    site.scenario->faults[site.scenario->fault_count++] = reset_of(1, 5000 * US, 10 * US); // after the programs
    site_build(&site);
    ASSERT_NOT_NULL(site.machine);
    plat_machine_set_program(site.machine, 0, before_and_late, &site);
    EXPECT_EQ(plat_machine_run(site.machine), SIM_RUN_DONE);
    site_fill(sent, BYTES, 5);
    EXPECT_MEMEQ(site_memory(&site, 1, FIRST), sent, BYTES);
    site_fini(&site);
}
