// Sixteen nodes that all send to all others, more than the cables' buffers hold: no packet is blocked for ever, and
// every byte is right. The workload compares each arrived byte with that of the sender.
#include <string.h>

#include "sim/platform/platform.h"
#include "tests/shim/test.h"

#define SCENARIO TCASIM_SOURCE_DIR "/scenarios/fabric/all-to-all-16.yaml"
#define NODES    16u
#define LARGEST  (256u << 10)

struct outcome {
    struct plat_result result;
    struct plat_point last;
    uint64_t cable_stall_ps;  // transmitters of cables without credits for a write
    uint64_t delivered_bytes; // payload that left the boards for their hosts
};

static void point_note(void *ctx, const struct plat_point *point)
{
    ((struct outcome *)ctx)->last = *point;
}

static void counter_note(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct outcome *outcome = ctx;
    bool cable = strstr(component, ".slot") == NULL;
    bool towards_host = strstr(component, ".slot.1") != NULL;
    if (cable && strcmp(desc->name, "stall_posted") == 0) {
        outcome->cable_stall_ps += value;
    }
    if (towards_host && strcmp(desc->name, "payload_bytes_sent") == 0) {
        outcome->delivered_bytes += value;
    }
}

static void saturate(const char *fidelity, struct outcome *outcome)
{
    const char *const sets[] = {fidelity, "runs.0.bytes=[1 KiB, 64 KiB, 256 KiB]"};
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs", .sets = sets, .set_count = 2};
    struct scn_scenario *scenario = NULL;
    struct scn_messages messages = {0};
    ASSERT_EQ(scn_load(SCENARIO, &options, &scenario, &messages), SIM_OK);
    const struct plat_hooks hooks = {.ctx = outcome, .point = point_note, .counter = counter_note};
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome->result), SIM_OK);
    scn_free(scenario);
}

static void expect_survived(const char *fidelity)
{
    struct outcome outcome = {0};
    saturate(fidelity, &outcome);
    EXPECT_STREQ(outcome.result.text, "");
    EXPECT_EQ(outcome.result.outcome, SIM_RUN_DONE);
    EXPECT_FALSE(outcome.result.failed);
    EXPECT_EQ(outcome.last.bytes, (NODES - 1) * LARGEST);
    uint64_t messages_bytes = NODES * (NODES - 1) * (uint64_t)(LARGEST + (64u << 10) + (1u << 10));
    EXPECT_GE(outcome.delivered_bytes, messages_bytes);
    EXPECT_GT(outcome.cable_stall_ps, 0);
}

TEST(Saturation, AllToAllOf16NodesLosesNothingOnTwins)
{
    expect_survived("nodes.*.board.fidelity=twin");
}

TEST(Saturation, AllToAllOf16NodesLosesNothingOnRtl)
{
    expect_survived("nodes.*.board.fidelity=rtl");
}
