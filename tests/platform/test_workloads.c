// Workloads that run on more than two nodes, and those on libtca: each moves its bytes, checks them, and reports.
#include <stdlib.h>
#include <string.h>

#include "models/pcie/tlp.h"
#include "rtl/peach2_regs.h"
#include "sim/platform/machine.h"
#include "sim/platform/platform.h"
#include "tests/shim/test.h"
#include "tests/support/platform_fixture.h"

struct outcome {
    struct plat_result result;
    unsigned points;
    struct plat_point last;
};

static void note_point(void *ctx, const struct plat_point *point)
{
    struct outcome *outcome = ctx;
    outcome->points++;
    outcome->last = *point;
}

static void ignore_point(void *ctx, const struct plat_point *point)
{
    (void)ctx, (void)point;
}

static void run(const struct scn_scenario *scenario, enum sim_status expected, struct outcome *outcome)
{
    const struct plat_hooks hooks = {.ctx = outcome, .point = note_point};
    *outcome = (struct outcome){0};
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome->result), expected);
}

static struct scn_scenario *ring(unsigned nodes)
{
    struct scn_scenario *scenario = platform_fixture_line(nodes);
    struct scn_cable *closing = &scenario->cables[scenario->cable_count++];
    *closing = scenario->cables[0];
    closing->from_node = nodes - 1;
    closing->to_node = 0;
    return scenario;
}

// Measures three sizes, each moved `factor` times in a repetition.
static void expect_program(struct scn_scenario *scenario, enum scn_workload workload, enum scn_method method,
                           enum scn_notify notify, uint64_t factor)
{
    struct scn_run *series = platform_fixture_run_add(scenario, workload, method);
    struct outcome outcome;
    series->peer = scenario->node_count - 1;
    series->notify = notify;
    series->columns = 2;
    platform_fixture_size_add(series, 4, 1);
    platform_fixture_size_add(series, 1000, 1);
    platform_fixture_size_add(series, 20000, 1);
    run(scenario, SIM_OK, &outcome);
    EXPECT_STREQ(outcome.result.text, "");
    EXPECT_EQ(outcome.result.outcome, SIM_RUN_DONE);
    EXPECT_FALSE(outcome.result.failed);
    EXPECT_EQ(outcome.points, 3);
    EXPECT_EQ(outcome.last.bytes, 20000 * factor);
    EXPECT_GT(outcome.last.total_ps, 0);
    EXPECT_GT(outcome.last.min_ps, 0);
    EXPECT_LE(outcome.last.min_ps, outcome.last.max_ps);
    platform_fixture_free(scenario);
}

TEST(Workloads, PlayPingPongOnLibtca)
{
    expect_program(platform_fixture_line(2), SCN_WORKLOAD_TCA_PINGPONG, SCN_METHOD_CHAIN_HOST, SCN_NOTIFY_HOST, 1);
    expect_program(platform_fixture_line(2), SCN_WORKLOAD_TCA_PINGPONG, SCN_METHOD_CHAIN_BOARD, SCN_NOTIFY_HOST, 1);
    expect_program(platform_fixture_line(2), SCN_WORKLOAD_TCA_PINGPONG, SCN_METHOD_CHAIN_BOARD, SCN_NOTIFY_BOARD, 1);
}

TEST(Workloads, ExchangeWithNeighboursOnARing)
{
    expect_program(ring(2), SCN_WORKLOAD_RING_EXCHANGE, SCN_METHOD_CHAIN_HOST, SCN_NOTIFY_HOST, 2);
    expect_program(ring(5), SCN_WORKLOAD_RING_EXCHANGE, SCN_METHOD_CHAIN_BOARD, SCN_NOTIFY_BOARD, 2);
}

TEST(Workloads, ShareALink)
{
    expect_program(platform_fixture_line(3), SCN_WORKLOAD_TWO_FLOWS, SCN_METHOD_CHAIN_BOARD, SCN_NOTIFY_HOST, 2);
}

TEST(Workloads, SendFromAllToAll)
{
    expect_program(ring(4), SCN_WORKLOAD_ALL_TO_ALL, SCN_METHOD_CHAIN_BOARD, SCN_NOTIFY_HOST, 3);
    expect_program(ring(7), SCN_WORKLOAD_ALL_TO_ALL, SCN_METHOD_CHAIN_HOST, SCN_NOTIFY_BOARD, 6);
}

struct starts {
    unsigned of_channel[PEACH2_DMAC_COUNT];
};

// Counts what the board of node0 receives at the registers that start its channels.
static void note_start(void *ctx, const struct sim_trace_record *record)
{
    struct starts *starts = ctx;
    if (strncmp(record->component, "node0.slot.", strlen("node0.slot.")) != 0 ||
        strcmp(record->point->name, "tlp_received") != 0 || record->values[0] != PCIE_TLP_MWR) {
        return;
    }
    for (uint64_t i = 0; i < PEACH2_DMAC_COUNT; i++) {
        uint64_t start = PLAT_BAR0_BASE + PEACH2_DMAC_BASE + i * PEACH2_DMAC_STRIDE + PEACH2_DMAC_CONTROL;
        starts->of_channel[i] += record->values[1] == start;
    }
}

// Among five nodes each has four messages to send: one on each channel, in the repetition before the measured ones and
// in the three measured ones.
TEST(Workloads, SendFromAllToAllOverEveryChannel)
{
    struct scn_scenario *scenario = ring(5);
    struct starts starts = {0};
    struct plat_result result;
    const struct plat_hooks hooks = {.ctx = &starts, .point = ignore_point, .trace = note_start};
    platform_fixture_size_add(platform_fixture_run_add(scenario, SCN_WORKLOAD_ALL_TO_ALL, SCN_METHOD_CHAIN_HOST), 64,
                              1);
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &result), SIM_OK);
    EXPECT_EQ(result.outcome, SIM_RUN_DONE);
    for (unsigned i = 0; i < PEACH2_DMAC_COUNT; i++) {
        TEST_TRACE("channel %u", i);
        EXPECT_EQ(starts.of_channel[i], 4);
    }
    platform_fixture_free(scenario);
}

// The time of a repetition ends with the last rank, so no sending lasts longer.
TEST(Workloads, CountTheTimeOfASingleRepetition)
{
    struct scn_scenario *scenario = ring(3);
    struct scn_run *series = platform_fixture_run_add(scenario, SCN_WORKLOAD_RING_EXCHANGE, SCN_METHOD_CHAIN_BOARD);
    struct outcome outcome;
    series->iterations = 1;
    platform_fixture_size_add(series, 4096, 1);
    run(scenario, SIM_OK, &outcome);
    EXPECT_EQ(outcome.last.operations, 1);
    EXPECT_GT(outcome.last.min_ps, 0);
    EXPECT_LE(outcome.last.min_ps, outcome.last.max_ps);
    EXPECT_LE(outcome.last.max_ps, outcome.last.total_ps);
    platform_fixture_free(scenario);
}

TEST(Workloads, ExchangeHalosOnAGrid)
{
    expect_program(ring(8), SCN_WORKLOAD_HALO, SCN_METHOD_CHAIN_BOARD, SCN_NOTIFY_HOST, 3); // 4 rows, 2 columns
    expect_program(ring(2), SCN_WORKLOAD_HALO, SCN_METHOD_CHAIN_HOST, SCN_NOTIFY_HOST, 1);
}

// Two rows, or two columns, are one neighbour and not two: each rank sends down or up, and right or left.
TEST(Workloads, ExchangeHalosOnceBetweenTwoRows)
{
    expect_program(ring(4), SCN_WORKLOAD_HALO, SCN_METHOD_CHAIN_BOARD, SCN_NOTIFY_HOST, 2);
}

TEST(Workloads, ReadByProxy)
{
    expect_program(platform_fixture_line(3), SCN_WORKLOAD_PROXY_READ, SCN_METHOD_REGISTER, SCN_NOTIFY_HOST, 1);
}

TEST(Workloads, MeasureOneChip)
{
    struct scn_scenario *scenario = platform_fixture_line(4);
    struct scn_run *series = platform_fixture_run_add(scenario, SCN_WORKLOAD_TRAVERSAL, SCN_METHOD_PIO);
    struct outcome outcome;
    series->peer = 3;
    platform_fixture_size_add(series, 8, 1);
    run(scenario, SIM_OK, &outcome);
    EXPECT_STREQ(outcome.result.text, "");
    EXPECT_EQ(outcome.last.operations, 12); // 3 round trips past 2 chips
    EXPECT_BETWEEN(outcome.last.min_ps, 200000, 300000);
    platform_fixture_free(scenario);
}

static void expect_refused(unsigned nodes, enum scn_workload workload, uint64_t bytes, enum sim_status status,
                           const char *why)
{
    struct scn_scenario *scenario = platform_fixture_line(nodes);
    struct scn_run *series = platform_fixture_run_add(scenario, workload, SCN_METHOD_CHAIN_BOARD);
    struct outcome outcome;
    series->peer = 1;
    series->columns = 2;
    platform_fixture_size_add(series, bytes, 1);
    run(scenario, status, &outcome);
    EXPECT_CONTAINS(outcome.result.text, why);
    EXPECT_EQ(outcome.points, 0);
    platform_fixture_free(scenario);
}

TEST(Workloads, RefuseWhatTheyCannotDo)
{
    expect_refused(2, SCN_WORKLOAD_TWO_FLOWS, 8, SIM_ERR_INVALID, "needs a node between");
    expect_refused(2, SCN_WORKLOAD_TCA_PINGPONG, 6, SIM_OK, "multiple of 4 B");
    expect_refused(3, SCN_WORKLOAD_HALO, 6, SIM_OK, "multiple of 4 B");
    expect_refused(3, SCN_WORKLOAD_HALO, 8, SIM_OK, "no grid of 2 columns"); // refused after it got libtca's memory
}

TEST(Workloads, GiveTheSameTimesTwice)
{
    struct outcome first, second;
    for (unsigned i = 0; i < 2; i++) {
        struct scn_scenario *scenario = ring(4);
        platform_fixture_size_add(platform_fixture_run_add(scenario, SCN_WORKLOAD_ALL_TO_ALL, SCN_METHOD_CHAIN_BOARD),
                                  4096, 1);
        run(scenario, SIM_OK, i == 0 ? &first : &second);
        platform_fixture_free(scenario);
    }
    EXPECT_EQ(first.last.total_ps, second.last.total_ps);
    EXPECT_EQ(first.result.events, second.result.events);
}
