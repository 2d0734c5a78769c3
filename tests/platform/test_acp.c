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

// Puts of 8 B between ranks 0 and 1 of each number of ranks.
static struct outcome put(const uint64_t *ranks, uint32_t count)
{
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs"};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    struct outcome outcome = {0};
    const struct plat_hooks hooks = {.ctx = &outcome, .point = note_point, .counter = note_counter};
    EXPECT_EQ(scn_load(PAIR, &options, &scenario, &messages), SIM_OK);
    struct scn_run *run = &scenario->runs[0];
    run->workload = SCN_WORKLOAD_ACP_LATENCY;
    run->method = SCN_METHOD_NONE;
    run->from = run->to = SCN_MEMORY_HOST;
    run->peer = 1;
    run->verbs.device = SCN_DEVICE_IBSIM0;
    run->verbs.operation = SCN_OPERATION_PUT;
    memcpy(run->ranks, ranks, count * sizeof *ranks);
    run->ranks_count = count;
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome.result), SIM_OK);
    EXPECT_STREQ(outcome.result.text, "");
    EXPECT_EQ(outcome.result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(outcome.points, count);
    scn_free(scenario);
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
