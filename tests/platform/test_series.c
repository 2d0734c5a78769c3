// Series of scenarios, from the scenario's structs to points.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/platform/platform.h"
#include "tests/shim/test.h"
#include "tests/support/platform_fixture.h"

#define TEXT_MAX 16384

// All output of a series, as text.
struct record {
    char text[TEXT_MAX];
    size_t used;
    unsigned points, permille;
    struct plat_point last;
};

static void note_point(void *ctx, const struct plat_point *point)
{
    struct record *record = ctx;
    record->points++;
    record->last = *point;
    record->used += (size_t)snprintf(record->text + record->used, TEXT_MAX - record->used,
                                     "%s %llu %llu %llu %llu %llu\n", point->series, (unsigned long long)point->bytes,
                                     (unsigned long long)point->descriptors, (unsigned long long)point->total_ps,
                                     (unsigned long long)point->min_ps, (unsigned long long)point->max_ps);
}

static void note_counter(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct record *record = ctx;
    if (record->used + 128 < TEXT_MAX) {
        record->used += (size_t)snprintf(record->text + record->used, TEXT_MAX - record->used, "%s %s %llu\n",
                                         component, desc->name, (unsigned long long)value);
    }
}

static void note_progress(void *ctx, unsigned permille)
{
    struct record *record = ctx;
    EXPECT_GE(permille, record->permille);
    record->permille = permille;
}

static struct plat_result run(const struct scn_scenario *scenario, struct record *record)
{
    const struct plat_hooks hooks = {
        .ctx = record, .point = note_point, .counter = note_counter, .progress = note_progress};
    struct plat_result result;
    *record = (struct record){0};
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &result), SIM_OK);
    return result;
}

static void expect_series(enum scn_workload workload, enum scn_method method, uint64_t descriptors)
{
    struct scn_scenario *scenario = platform_fixture_line(2);
    struct scn_run *series = platform_fixture_run_add(scenario, workload, method);
    struct record *record = malloc(sizeof *record);
    ASSERT_NOT_NULL(record);
    platform_fixture_size_add(series, 4, descriptors);
    platform_fixture_size_add(series, 64, descriptors);
    platform_fixture_size_add(series, 1000, descriptors);
    struct plat_result result = run(scenario, record);
    EXPECT_EQ(result.outcome, SIM_RUN_DONE);
    EXPECT_STREQ(result.text, "");
    EXPECT_FALSE(result.failed);
    EXPECT_EQ(record->points, 3);
    EXPECT_EQ(record->permille, 1000);
    EXPECT_EQ(record->last.bytes, 1000 * descriptors);
    EXPECT_EQ(record->last.operations, workload == SCN_WORKLOAD_PINGPONG ? 6 : 3);
    EXPECT_LE(record->last.min_ps, record->last.total_ps / record->last.operations);
    EXPECT_GE(record->last.max_ps, record->last.total_ps / record->last.operations);
    free(record);
    platform_fixture_free(scenario);
}

TEST(Series, RunsAPingPongByPio)
{
    expect_series(SCN_WORKLOAD_PINGPONG, SCN_METHOD_PIO, 1);
}

TEST(Series, RunsAPingPongByRegisterMode)
{
    expect_series(SCN_WORKLOAD_PINGPONG, SCN_METHOD_REGISTER, 1);
}

TEST(Series, RunsAPingPongByChains)
{
    expect_series(SCN_WORKLOAD_PINGPONG, SCN_METHOD_CHAIN_HOST, 3);
    expect_series(SCN_WORKLOAD_PINGPONG, SCN_METHOD_CHAIN_BOARD, 3);
}

TEST(Series, RunsLocalDma)
{
    expect_series(SCN_WORKLOAD_LOCAL_DMA, SCN_METHOD_REGISTER, 1);
    expect_series(SCN_WORKLOAD_LOCAL_DMA, SCN_METHOD_CHAIN_HOST, 5);
    expect_series(SCN_WORKLOAD_LOCAL_DMA, SCN_METHOD_CHAIN_BOARD, 5);
}

TEST(Series, GiveTheSameBytesTwice)
{
    struct scn_scenario *scenario = platform_fixture_line(3);
    struct scn_run *series = platform_fixture_run_add(scenario, SCN_WORKLOAD_PINGPONG, SCN_METHOD_REGISTER);
    struct record *first = malloc(sizeof *first), *second = malloc(sizeof *second);
    ASSERT_NOT_NULL(first);
    ASSERT_NOT_NULL(second);
    series->peer = 2;
    platform_fixture_size_add(series, 8, 1);
    platform_fixture_size_add(series, 5000, 1);
    struct plat_result a = run(scenario, first), b = run(scenario, second);
    EXPECT_STREQ(first->text, second->text);
    EXPECT_EQ(a.simulated_ps, b.simulated_ps);
    EXPECT_EQ(a.events, b.events);
    EXPECT_EQ(a.rtl_cycles, b.rtl_cycles);
    free(first);
    free(second);
    platform_fixture_free(scenario);
}

TEST(Series, TakeLongerOverAnotherNode)
{
    uint64_t times_ps[2];
    struct record *record = malloc(sizeof *record);
    ASSERT_NOT_NULL(record);
    for (unsigned hops = 1; hops <= 2; hops++) {
        struct scn_scenario *scenario = platform_fixture_line(3);
        struct scn_run *series = platform_fixture_run_add(scenario, SCN_WORKLOAD_PINGPONG, SCN_METHOD_PIO);
        series->peer = hops;
        platform_fixture_size_add(series, 8, 1);
        (void)run(scenario, record);
        times_ps[hops - 1] = record->last.total_ps / record->last.operations;
        platform_fixture_free(scenario);
    }
    // One more chip traversal, with its hard IP: 200-300 ns (docs/component-facts.md).
    EXPECT_BETWEEN(times_ps[1] - times_ps[0], 200000, 400000);
    free(record);
}

// --- refusals and failures -----------------------------------------------------------------------------------------

static void expect_refusal(struct scn_scenario *scenario, const char *text)
{
    struct plat_result result;
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, NULL, &result), SIM_ERR_INVALID);
    EXPECT_CONTAINS(result.text, text);
    platform_fixture_free(scenario);
}

TEST(Series, RefusesPeersThatNoCablesJoin)
{
    struct scn_scenario *scenario = platform_fixture_line(2);
    scenario->cable_count = 0;
    platform_fixture_size_add(platform_fixture_run_add(scenario, SCN_WORKLOAD_PINGPONG, SCN_METHOD_PIO), 8, 1);
    expect_refusal(scenario, "series 'series': no cables join node0 and node1");
}

TEST(Series, RefusesAPingPongOfANodeWithItself)
{
    struct scn_scenario *scenario = platform_fixture_line(2);
    platform_fixture_size_add(platform_fixture_run_add(scenario, SCN_WORKLOAD_PINGPONG, SCN_METHOD_PIO), 8, 1);
    scenario->runs[0].peer = 0;
    expect_refusal(scenario, "node0 needs another node as its peer");
}

static void expect_failure(struct scn_scenario *scenario, const char *text)
{
    struct record *record = malloc(sizeof *record);
    ASSERT_NOT_NULL(record);
    struct plat_result result = run(scenario, record);
    EXPECT_TRUE(result.failed);
    EXPECT_CONTAINS(result.text, text);
    free(record);
    platform_fixture_free(scenario);
}

TEST(Series, FailWithTheNameOfTheDmaError)
{
    struct scn_scenario *scenario = platform_fixture_line(2);
    platform_fixture_size_add(platform_fixture_run_add(scenario, SCN_WORKLOAD_PINGPONG, SCN_METHOD_REGISTER), 6, 1);
    expect_failure(scenario, "node0: ping-pong of 6 B: the DMA failed: misaligned");
    scenario = platform_fixture_line(2);
    platform_fixture_size_add(platform_fixture_run_add(scenario, SCN_WORKLOAD_LOCAL_DMA, SCN_METHOD_REGISTER), 16 * MIB,
                              1);
    expect_failure(scenario, "local DMA of 1 x 16777216 B: bad length");
}

TEST(Series, FailWhereTheMethodCannotDoWhatIsAsked)
{
    struct scn_scenario *scenario = platform_fixture_line(2);
    platform_fixture_size_add(platform_fixture_run_add(scenario, SCN_WORKLOAD_LOCAL_DMA, SCN_METHOD_PIO), 8, 1);
    expect_failure(scenario, "local DMA is not done by PIO");
    scenario = platform_fixture_line(2);
    platform_fixture_size_add(platform_fixture_run_add(scenario, SCN_WORKLOAD_LOCAL_DMA, SCN_METHOD_CHAIN_BOARD), 8,
                              1025);
    expect_failure(scenario, "building the chain: No space left on device");
    scenario = platform_fixture_line(2);
    platform_fixture_size_add(platform_fixture_run_add(scenario, SCN_WORKLOAD_PINGPONG, SCN_METHOD_PIO), 6, 1);
    expect_failure(scenario, "needs a multiple of 4 B, not 6 B");
}

TEST(Series, EndAtTheTimeLimitAndSayWhoWaits)
{
    struct scn_scenario *scenario = platform_fixture_line(2);
    struct record *record = malloc(sizeof *record);
    ASSERT_NOT_NULL(record);
    platform_fixture_size_add(platform_fixture_run_add(scenario, SCN_WORKLOAD_PINGPONG, SCN_METHOD_REGISTER), 1 * MIB,
                              1);
    scenario->time_limit_ps = 100000000; // 100 us; a transfer takes 300
    struct plat_result result = run(scenario, record);
    EXPECT_EQ(result.outcome, SIM_RUN_TIME_LIMIT);
    EXPECT_EQ(result.simulated_ps, 100000000);
    EXPECT_CONTAINS(result.text, "node0 waits for node0.memory: word 0x");
    EXPECT_CONTAINS(result.text, "node1 waits for node1.memory: word 0x");
    free(record);
    platform_fixture_free(scenario);
}
