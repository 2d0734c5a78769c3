// Programs on several sub-clusters: each checks what it receives, and nothing is left over in the machine.
#include <stdlib.h>
#include <string.h>

#include "sim/platform/platform.h"
#include "tests/shim/test.h"

#define HYBRID TCASIM_SOURCE_DIR "/tests/platform/hybrid.yaml"

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

static void run(const char *const *sets, size_t set_count, struct outcome *outcome)
{
    const struct scn_load_options options = {
        .configs_dir = TCASIM_SOURCE_DIR "/configs", .sets = sets, .set_count = set_count};
    const struct plat_hooks hooks = {.ctx = outcome, .point = note_point};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    *outcome = (struct outcome){0};
    enum sim_status status = scn_load(HYBRID, &options, &scenario, &messages);
    EXPECT_STREQ(messages.count > 0 ? messages.lines[0] : "", "");
    scn_messages_free(&messages);
    ASSERT_EQ(status, SIM_OK);
    EXPECT_EQ(plat_run_series(scenario, 0, NULL, &hooks, &outcome->result), SIM_OK);
    EXPECT_STREQ(outcome->result.text, "");
    EXPECT_EQ(outcome->result.outcome, SIM_RUN_DONE);
    EXPECT_FALSE(outcome->result.failed);
    scn_free(scenario);
}

#define RUN(outcome, ...)                                                                                              \
    do {                                                                                                               \
        const char *const sets_[] = {__VA_ARGS__};                                                                     \
        run(sets_, sizeof sets_ / sizeof sets_[0], outcome);                                                           \
    } while (0)

TEST(AllReduce, SumsByEveryAlgorithm)
{
    static const char *const algorithms[] = {"ring", "recursive-doubling", "hierarchical"};
    uint64_t total_ps[3] = {0};
    for (unsigned i = 0; i < 3; i++) {
        char algorithm[64];
        struct outcome outcome;
        TEST_TRACE("%s", algorithms[i]);
        snprintf(algorithm, sizeof algorithm, "runs.0.algorithm=%s", algorithms[i]);
        RUN(&outcome, algorithm);
        EXPECT_EQ(outcome.points, 4);
        EXPECT_EQ(outcome.last.bytes, 8);
        total_ps[i] = outcome.last.total_ps;
    }
    EXPECT_LT(total_ps[1], total_ps[2]); // nothing is passed on
    EXPECT_LT(total_ps[2], total_ps[0]); // 30 steps
}

TEST(AllReduce, NeedsNoBoards)
{
    struct outcome outcome;
    RUN(&outcome, "topology={kind: separate, nodes: 8, preset: rx200-s7, ib_switch: qdr-36}");
    EXPECT_EQ(outcome.points, 4);
}

TEST(AllReduce, NeedsNoInfiniBandInOneSubCluster)
{
    struct outcome outcome;
    RUN(&outcome, "topology.sub_clusters=1", "runs.0.algorithm=ring");
    EXPECT_EQ(outcome.points, 4);
    RUN(&outcome, "topology.sub_clusters=1");
    EXPECT_EQ(outcome.points, 4);
}

TEST(AllReduce, IsPossibleByARingOfAnyNumberOfNodes)
{
    struct outcome outcome;
    RUN(&outcome, "topology.nodes=3", "topology.sub_clusters=5", "runs.0.algorithm=ring", "runs.0.node=node7");
    EXPECT_EQ(outcome.points, 4);
}

TEST(AllReduce, SumsOver1024Nodes)
{
    struct outcome outcome;
    RUN(&outcome, "topology.kind=two_rings", "topology.nodes=16", "topology.sub_clusters=64",
        "topology.ib_fabric={kind: dragonfly, switch: qdr-36}", "runs.0.bytes=8 B", "runs.0.iterations=1",
        "runs.0.warmup=0");
    EXPECT_EQ(outcome.points, 1);
}

TEST(HybridHalo, ExchangesWithNeighboursOfBothKinds)
{
    static const char *const blocks[] = {"1", "2", "4"};
    for (unsigned i = 0; i < 3; i++) {
        char block[64];
        struct outcome outcome;
        TEST_TRACE("blocks of %s columns", blocks[i]);
        snprintf(block, sizeof block, "runs.0.block_columns=%s", blocks[i]);
        RUN(&outcome, "runs.0.workload=hybrid-halo", "runs.0.method=chain-board", "runs.0.columns=4",
            "runs.0.bytes=[64 B, 4 KiB, 64 B]", block);
        EXPECT_EQ(outcome.points, 3);
        EXPECT_EQ(outcome.last.bytes, 4 * 64);
    }
}

TEST(HybridHalo, HasOneNeighbourWhereTwoRanksAreInADirection)
{
    struct outcome outcome;
    RUN(&outcome, "topology.nodes=2", "topology.sub_clusters=2", "runs.0.workload=hybrid-halo",
        "runs.0.method=chain-host", "runs.0.columns=2", "runs.0.bytes=[64 B]");
    EXPECT_EQ(outcome.last.bytes, 2 * 64);
}

TEST(HybridAllToAll, SendsToEveryOtherRank)
{
    struct outcome outcome;
    RUN(&outcome, "runs.0.workload=hybrid-all-to-all", "runs.0.method=chain-board", "runs.0.bytes=[4 B, 3000 B, 64 B]");
    EXPECT_EQ(outcome.points, 3);
    EXPECT_EQ(outcome.last.bytes, 15 * 64);
    RUN(&outcome, "topology.nodes=3", "topology.sub_clusters=3", "runs.0.workload=hybrid-all-to-all",
        "runs.0.method=chain-host", "runs.0.node=node4", "runs.0.bytes=[64 B]");
    EXPECT_EQ(outcome.last.bytes, 8 * 64);
}
