// Critical paths of whole series: every picosecond of what a program measured, by part.
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/cause.h"
#include "sim/platform/platform.h"
#include "tests/shim/test.h"
#include "verbs.h"

enum { PARTS_MAX = 16 };

// The time of one series, by part.
struct opened {
    unsigned points, unlabelled;
    uint64_t total_ps;
    const char *parts[PARTS_MAX];
    uint64_t parts_ps[PARTS_MAX];
};

static uint64_t *part_of(struct opened *opened, const char *name)
{
    unsigned i = 0;
    while (i < PARTS_MAX - 1 && opened->parts[i] != NULL && strcmp(opened->parts[i], name) != 0) {
        i++;
    }
    opened->parts[i] = name;
    return &opened->parts_ps[i];
}

static void path_take(void *ctx, const struct plat_point *point, const char *node, const struct sim_piece *pieces,
                      size_t count)
{
    struct opened *opened = ctx;
    EXPECT_STREQ(node, "node0");
    ASSERT_GT(count, 0);
    opened->points++;
    opened->total_ps = point->total_ps;
    EXPECT_EQ(pieces[count - 1].end_ps - pieces[0].begin_ps, point->total_ps);
    for (size_t i = 0; i < count; i++) {
        EXPECT_EQ(pieces[i].begin_ps, i == 0 ? pieces[0].begin_ps : pieces[i - 1].end_ps);
        uint64_t took_ps = pieces[i].end_ps - pieces[i].begin_ps;
        if (took_ps > 0 && pieces[i].work != NULL) {
            *part_of(opened, pieces[i].work->part) += took_ps;
        } else {
            opened->unlabelled += took_ps > 0;
        }
    }
}

static struct scn_scenario *scenario_load(const char *set)
{
    const struct scn_load_options options = {
        .configs_dir = TCASIM_SOURCE_DIR "/configs", .sets = &set, .set_count = set != NULL};
    struct scn_messages messages = {0};
    struct scn_scenario *scenario = NULL;
    EXPECT_EQ(scn_load(TCASIM_SOURCE_DIR "/scenarios/smoke/verbs-8b.yaml", &options, &scenario, &messages), SIM_OK);
    scn_messages_free(&messages);
    return scenario;
}

static void series_open(const struct scn_scenario *scenario, uint32_t run, struct opened *opened)
{
    const struct plat_hooks hooks = {.ctx = opened, .path = path_take};
    struct plat_result result;
    *opened = (struct opened){0};
    EXPECT_EQ(plat_run_series(scenario, run, NULL, &hooks, &result), SIM_OK);
    EXPECT_STREQ(result.text, "");
}

TEST(Explain, AccountsForEveryPicosecondOfEveryProgram)
{
    struct scn_scenario *scenario = scenario_load(NULL);
    ASSERT_NOT_NULL(scenario);
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        struct opened opened;
        series_open(scenario, i, &opened);
        EXPECT_EQ(opened.points, 1);
        EXPECT_EQ(opened.unlabelled, 0);
    }
    scn_free(scenario);
}

TEST(Explain, AccountsForEveryPicosecondOfAnRtlBoard)
{
    struct scn_scenario *scenario = scenario_load("nodes.*.board.fidelity=rtl");
    struct opened opened;
    ASSERT_NOT_NULL(scenario);
    series_open(scenario, 1, &opened); // DMA
    EXPECT_EQ(opened.points, 1);
    EXPECT_EQ(opened.unlabelled, 0);
    EXPECT_GT(*part_of(&opened, "board"), 0);
    scn_free(scenario);
}

TEST(Explain, ChangesNothingThatIsMeasured)
{
    struct scn_scenario *scenario = scenario_load(NULL);
    struct opened opened = {0};
    struct plat_result with, without;
    const struct plat_hooks hooks = {.ctx = &opened, .path = path_take};
    ASSERT_NOT_NULL(scenario);
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        EXPECT_EQ(plat_run_series(scenario, i, NULL, &hooks, &with), SIM_OK);
        EXPECT_EQ(plat_run_series(scenario, i, NULL, NULL, &without), SIM_OK);
        EXPECT_EQ(with.simulated_ps, without.simulated_ps);
        EXPECT_EQ(with.events, without.events);
    }
    scn_free(scenario);
}

// With setting `b` instead of `a`, the part takes more_ps more, and nothing else changes.
static void only_part_grows(uint32_t run, const char *a, const char *b, const char *part, uint64_t more_ps)
{
    const char *const sets[] = {a, b};
    struct opened opened[2];
    for (unsigned i = 0; i < 2; i++) {
        struct scn_scenario *scenario = scenario_load(sets[i]);
        ASSERT_NOT_NULL(scenario);
        series_open(scenario, run, &opened[i]);
        scn_free(scenario);
    }
    EXPECT_EQ(opened[1].total_ps, opened[0].total_ps + more_ps);
    for (unsigned i = 0; i < PARTS_MAX && opened[0].parts[i] != NULL; i++) {
        uint64_t more = strcmp(opened[0].parts[i], part) == 0 ? more_ps : 0;
        EXPECT_EQ(*part_of(&opened[1], opened[0].parts[i]), opened[0].parts_ps[i] + more);
    }
}

enum { PIO, DMA, LIBTCA, TCA0_SEND, TCA0_WRITE, TCA0_READ, IBSIM0_SEND, IBSIM0_WRITE, IBSIM0_READ };

// The write that the loop waits for comes over the cable. If the path stayed in the loop, it would consist of
// iterations alone.
TEST(Explain, LeavesAPollingLoopByTheWriteThatEndedIt)
{
    static const uint32_t runs[] = {TCA0_SEND, TCA0_WRITE, TCA0_READ, IBSIM0_SEND, IBSIM0_READ};
    struct scn_scenario *scenario = scenario_load(NULL);
    ASSERT_NOT_NULL(scenario);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct opened opened;
        series_open(scenario, runs[i], &opened);
        EXPECT_GE(*part_of(&opened, "cable"), 2 * 15000);
        EXPECT_BETWEEN(*part_of(&opened, "polling"), 1, 150000);
    }
    scn_free(scenario);
}

// All added times are multiples of the board's clock period and of the poll's period, and the same packets meet SKP
// ordered sets in both cases.
TEST(Explain, GivesTheTimeOfALongerCableToTheCable)
{
    only_part_grows(PIO, "cables.*.flight=40 ns", "cables.*.flight=80 ns", "cable", 2 * 40000);
    only_part_grows(DMA, "cables.*.flight=40 ns", "cables.*.flight=80 ns", "cable", 2 * 40000);
    only_part_grows(IBSIM0_SEND, "ib_cables.*.flight=75 ns", "ib_cables.*.flight=115 ns", "cable", 2 * 40000);
}

TEST(Explain, GivesTheTimeOfSlowerMemoryToTheMemory)
{
    only_part_grows(PIO, "nodes.*.host.memory_write=120 ns", "nodes.*.host.memory_write=160 ns", "memory", 2 * 40000);
    only_part_grows(DMA, "nodes.*.host.memory_read=150 ns", "nodes.*.host.memory_read=190 ns", "memory", 2 * 40000);
    only_part_grows(IBSIM0_READ, "nodes.*.host.memory_read=150 ns", "nodes.*.host.memory_read=190 ns", "memory", 40000);
}

TEST(Explain, GivesTheTimeOfASlowerDmaControllerToTheBoard)
{
    only_part_grows(DMA, "nodes.*.board.dmac_start_cycles=100", "nodes.*.board.dmac_start_cycles=150", "board",
                    2 * 50 * 4000);
}

TEST(Explain, GivesTheTimeOfASlowerPollToThePolling)
{
    struct opened opened[2];
    const char *const sets[] = {"nodes.*.host.poll=20 ns", "nodes.*.host.poll=200 ns"};
    for (unsigned i = 0; i < 2; i++) {
        struct scn_scenario *scenario = scenario_load(sets[i]);
        ASSERT_NOT_NULL(scenario);
        series_open(scenario, PIO, &opened[i]);
        scn_free(scenario);
    }
    uint64_t more_ps = *part_of(&opened[1], "polling") - *part_of(&opened[0], "polling");
    EXPECT_GE(more_ps, 2 * 180000ull);
    EXPECT_EQ(opened[1].total_ps, opened[0].total_ps + more_ps);
}

// --- programs with their own polling loops --------------------------------------------------------------------------

static uint64_t *word_of(struct verbs_pair *pair)
{
    return (uint64_t *)(((uintptr_t)pair->ends[1][1].data + 63) & ~(uintptr_t)63);
}

static void write_a_word(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    const struct backend *backend = peach2_backend(board);
    struct verbs_end *end = verbs_enter(pair, 0) + 1, *far = &pair->ends[1][1];
    struct ibv_sge sge = {(uintptr_t)end->data, 8, end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)word_of(pair);
    wr.wr.rdma.rkey = far->mr->rkey;
    verbs_pair_meet(pair, 0);
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 5000);
    EXPECT_EQ(ibv_post_send(end->qp, &wr, &bad), 0);
    EXPECT_EQ(verbs_wc(end).status, IBV_WC_SUCCESS);
}

// value[0]: the time on the cable in the path of the polling loop.
static void look_at_a_word(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    const struct backend *backend = peach2_backend(board);
    struct sim_piece *pieces = NULL;
    size_t count = 0;
    sim_causes_record(plat_machine_sim(pair->machine), 0);
    (void)verbs_enter(pair, 1);
    volatile uint64_t *word = word_of(pair);
    uint64_t before = *word;
    verbs_pair_meet(pair, 1);
    uint64_t start_ps = backend->ops->time_ps(backend->ctx);
    for (bool found = false; !found;) {
        backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, 1);
        found = *word != before;
        backend_polled(backend, word, found);
    }
    uint64_t total_ps = backend->ops->time_ps(backend->ctx) - start_ps;
    EXPECT_TRUE(sim_cause_path(plat_machine_sim(pair->machine), total_ps, &pieces, &count));
    for (size_t i = 0; i < count; i++) {
        bool cable = pieces[i].work != NULL && strcmp(pieces[i].work->part, "cable") == 0;
        pair->value[0] += cable ? pieces[i].end_ps - pieces[i].begin_ps : 0;
    }
    free(pieces);
}

TEST(Explain, LeavesALoopOverPageableMemoryByTheWriteThatEndedIt)
{
    struct verbs_pair pair;
    verbs_pair_init_both(&pair, SCN_FIDELITY_TWIN);
    pair.memory[1] = VERBS_PLAIN;
    verbs_pair_run(&pair, write_a_word, look_at_a_word);
    EXPECT_GE(pair.value[0], 15000);
    verbs_pair_fini(&pair);
}
