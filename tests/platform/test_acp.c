// Series of programs on ACP: where the ranks run, and what is reported of several numbers of ranks.
#include <string.h>

#include "sim/platform/platform.h"
#include "tests/shim/test.h"

#define PAIR TCASIM_SOURCE_DIR "/tests/platform/verbs-pair.yaml"

struct outcome {
    struct plat_result result;
    unsigned points, reports; // reports: of node0's HCA
    uint64_t sent[2], looped; // packets on the wire from each HCA, and from the first to itself
};

static void note_point(void *ctx, const struct plat_point *point)
{
    struct outcome *outcome = ctx;
    EXPECT_EQ(point->bytes, 8);
    outcome->points++;
}

static void note_counter(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct outcome *outcome = ctx;
    bool first = strcmp(component, "node0.hca") == 0, second = strcmp(component, "node1.hca") == 0;
    if ((first || second) && strcmp(desc->name, "port_xmit_packets") == 0) {
        outcome->sent[second] += value;
        outcome->reports += first;
    }
    outcome->looped += first && strcmp(desc->name, "loopback_packets") == 0 ? value : 0;
}

// The pair with a series of a program on ACP instead of the file's own. With its defaults for ranks and sizes.
static struct scn_scenario *series_load(enum scn_workload workload, enum scn_operation operation)
{
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs"};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    EXPECT_EQ(scn_load(PAIR, &options, &scenario, &messages), SIM_OK);
    struct scn_run *run = &scenario->runs[0];
    run->workload = workload;
    run->method = SCN_METHOD_NONE;
    run->from = run->to = SCN_MEMORY_HOST;
    run->peer = 1;
    run->verbs.device = SCN_DEVICE_IBSIM0;
    run->verbs.operation = operation;
    return scenario;
}

static void series_run(struct scn_scenario *scenario, const struct plat_hooks *hooks, struct plat_result *result)
{
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, hooks, result), SIM_OK);
    EXPECT_STREQ(result->text, "");
    EXPECT_EQ(result->outcome, SIM_RUN_DONE);
    scn_free(scenario);
}

// Puts of 8 B between ranks 0 and 1 of each number of ranks.
static struct outcome put(const uint64_t *ranks, uint32_t count)
{
    struct scn_scenario *scenario = series_load(SCN_WORKLOAD_ACP_LATENCY, SCN_OPERATION_PUT);
    struct outcome outcome = {0};
    const struct plat_hooks hooks = {.ctx = &outcome, .point = note_point, .counter = note_counter};
    memcpy(scenario->runs[0].ranks, ranks, count * sizeof *ranks);
    scenario->runs[0].ranks_count = count;
    series_run(scenario, &hooks, &outcome.result);
    EXPECT_EQ(outcome.points, count);
    return outcome;
}

TEST(AcpSeries, HaveTheirSecondRankOnThePeer)
{
    struct outcome outcome = put((const uint64_t[]){2}, 1);
    EXPECT_GT(outcome.sent[0], 0);
    EXPECT_GT(outcome.sent[1], 0);
    EXPECT_EQ(outcome.looped, 0);
}

TEST(AcpSeries, ReportTheCountersOfTheLastNumberOfRanks)
{
    struct outcome alone = put((const uint64_t[]){3}, 1), both = put((const uint64_t[]){2, 3}, 2);
    EXPECT_EQ(both.reports, 1);
    EXPECT_EQ(both.sent[0], alone.sent[0]);
}

// --- sizes -----------------------------------------------------------------------------------------------------------

#define LONG_BYTES 65536u

struct sizes {
    unsigned count;
    struct plat_point points[2];
};

static void note_size(void *ctx, const struct plat_point *point)
{
    struct sizes *sizes = ctx;
    if (EXPECT_LT(sizes->count, 2)) {
        sizes->points[sizes->count++] = *point;
    }
}

// Two ranks, with messages of these sizes one after the other.
static struct sizes sizes_run(enum scn_workload workload, enum scn_operation operation, const uint64_t *bytes,
                              uint32_t count)
{
    struct scn_scenario *scenario = series_load(workload, operation);
    struct scn_run *run = &scenario->runs[0];
    struct sizes sizes = {0};
    struct plat_result result;
    const struct plat_hooks hooks = {.ctx = &sizes, .point = note_size};
    memcpy(run->bytes, bytes, count * sizeof *bytes);
    run->bytes_count = count;
    run->ranks[0] = 2;
    run->ranks_count = 1;
    series_run(scenario, &hooks, &result);
    EXPECT_EQ(sizes.count, count);
    return sizes;
}

// 64 KiB alone take 16 us at 4 GB/s, and 8 B about a microsecond.
TEST(AcpSeries, HaveTheExtremesOfEachSize)
{
    const uint64_t bytes[] = {LONG_BYTES, 8};
    const struct sizes sizes = sizes_run(SCN_WORKLOAD_ACP_LATENCY, SCN_OPERATION_PUT, bytes, 2);
    for (unsigned i = 0; i < 2; i++) {
        TEST_TRACE("%llu B", (unsigned long long)bytes[i]);
        EXPECT_GT(sizes.points[i].min_ps, 0);
        EXPECT_LE(sizes.points[i].min_ps, sizes.points[i].max_ps);
    }
    EXPECT_LT(sizes.points[1].max_ps, sizes.points[0].min_ps);
}

static uint64_t memory_bytes(uint64_t bytes)
{
    return sizes_run(SCN_WORKLOAD_ACP_MEMORY, SCN_OPERATION_NONE, &bytes, 1).points[0].memory_bytes;
}

// The memory of a rank is the library's: the program's buffers, of which the driver pins whole pages, are not part of
// it.
TEST(AcpSeries, MeasureTheMemoryOfTheLibraryAlone)
{
    const uint64_t short_bytes = memory_bytes(8);
    EXPECT_GT(short_bytes, 0);
    EXPECT_EQ(memory_bytes(LONG_BYTES), short_bytes);
}
