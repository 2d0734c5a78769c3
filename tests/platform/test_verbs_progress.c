// Progress of tca0: by the program's calls, or also by a thread of the library.
#include <string.h>

#include "verbs.h"
#include "verbs-shim/ibverbs/device.h"

#define MS (1000ull * 1000 * NS)

// value[0]: the time of the operation, in ps. value[1]: its opcode. value[2]: its bytes, unless it is an atomic.
static void asks(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board)), *far = &pair->ends[1][0];
    struct ibv_sge sge = {(uintptr_t)end->data, 8, end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = (enum ibv_wr_opcode)pair->value[1]}, *bad;
    if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)far->data + 64;
        wr.wr.atomic.rkey = far->mr->rkey;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)far->data + 64;
        wr.wr.rdma.rkey = far->mr->rkey;
        sge.length = (uint32_t)pair->value[2];
    }
    verbs_pair_meet(pair, 0);
    uint64_t start_ps = sim_now_ps(plat_machine_sim(pair->machine));
    EXPECT_EQ(ibv_post_send(end->qp, &wr, &bad), 0);
    EXPECT_EQ(verbs_wc(end).status, IBV_WC_SUCCESS);
    pair->value[0] = sim_now_ps(plat_machine_sim(pair->machine)) - start_ps;
    verbs_pair_meet(pair, 0);
    verbs_look(end);
}

static void computes(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    verbs_pair_meet(pair, 1);
    sim_thread_sleep(plat_machine_sim(pair->machine), MS);
    verbs_pair_meet(pair, 1);
    verbs_look(end);
}

static uint64_t time_of(enum ibv_wr_opcode opcode, uint32_t bytes, bool thread, enum scn_fidelity fidelity)
{
    struct verbs_pair pair;
    verbs_pair_init(&pair, fidelity);
    pair.value[1] = opcode;
    pair.value[2] = bytes;
    pair.scenario->nodes[1].board.progress_thread = pair.silent[1] = thread;
    verbs_pair_run(&pair, asks, computes);
    bool write = opcode == IBV_WR_RDMA_WRITE;
    EXPECT_MEMEQ(pair.ends[write][0].image + (write ? 64 : 0), pair.ends[!write][0].image + (write ? 0 : 64), bytes);
    verbs_pair_fini(&pair);
    return pair.value[0];
}

TEST(TcaProgress, OfATargetThatComputesWaitsForItsNextCall)
{
    EXPECT_BETWEEN(time_of(IBV_WR_RDMA_READ, 8, false, SCN_FIDELITY_TWIN), MS, MS + 10000 * NS);
    EXPECT_BETWEEN(time_of(IBV_WR_RDMA_WRITE, 8, false, SCN_FIDELITY_TWIN), MS, MS + 10000 * NS);
    EXPECT_BETWEEN(time_of(IBV_WR_RDMA_WRITE, 100000, false, SCN_FIDELITY_TWIN), MS, MS + 100000 * NS);
    EXPECT_BETWEEN(time_of(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, false, SCN_FIDELITY_TWIN), MS, MS + 10000 * NS);
}

// The thread also connects to its peer, although the program calls the library only for set-up.
TEST(TcaProgress, OfATargetWithAThreadIsPrompt)
{
    const enum scn_fidelity fidelities[] = {SCN_FIDELITY_TWIN, SCN_FIDELITY_RTL};
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_BETWEEN(time_of(IBV_WR_RDMA_READ, 8, true, fidelities[i]), 2000 * NS, 8000 * NS);
        EXPECT_BETWEEN(time_of(IBV_WR_RDMA_WRITE, 8, true, fidelities[i]), 1000 * NS, 8000 * NS);
        EXPECT_BETWEEN(time_of(IBV_WR_RDMA_WRITE, 100000, true, fidelities[i]), 10000 * NS, 60000 * NS);
        EXPECT_BETWEEN(time_of(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, true, fidelities[i]), 2000 * NS, 8000 * NS);
    }
}

static void waits_for_nothing(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    (void)ibverbs_cq_wait(end->cq, 0);
    FAIL("node %u got a completion", peach2_node(board));
}

TEST(TcaProgress, ByThreadsDoesNotHideThatProgramsAreStuck)
{
    struct verbs_pair pair;
    verbs_pair_init(&pair, SCN_FIDELITY_TWIN);
    pair.scenario->nodes[0].board.progress_thread = pair.scenario->nodes[1].board.progress_thread = true;
    EXPECT_EQ(verbs_pair_try(&pair, waits_for_nothing, waits_for_nothing), SIM_RUN_STUCK);
    verbs_pair_fini(&pair);
}

static void reopens(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    for (unsigned i = 0; i < 20; i++) {
        struct ibv_context *context = verbs_open("tca0");
        struct ibv_context *second = verbs_open("tca0"); // shares the thread
        ASSERT_NOT_NULL(context);
        ASSERT_NOT_NULL(second);
        EXPECT_EQ(ibv_close_device(i % 2 == 0 ? context : second), 0);
        sim_thread_sleep(plat_machine_sim(pair->machine), i * 100 * NS);
        EXPECT_EQ(ibv_close_device(i % 2 == 0 ? second : context), 0);
    }
    pair->value[peach2_node(board)] = 1;
}

TEST(TcaProgress, ByThreadsEndsAndBeginsWithTheContext)
{
    struct verbs_pair pair;
    verbs_pair_init(&pair, SCN_FIDELITY_TWIN);
    pair.scenario->nodes[0].board.progress_thread = true;
    verbs_pair_run(&pair, reopens, reopens);
    EXPECT_EQ(pair.value[0] + pair.value[1], 2);
    verbs_pair_fini(&pair);
}

static void resizes(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    EXPECT_EQ(ibv_resize_cq(end->cq, 200), 0);
    struct ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(end->cq, 1, &wc), 0);
    pair->value[peach2_node(board)] = 1;
}

TEST(TcaProgress, ResizesACqBesideAThread)
{
    struct verbs_pair pair;
    verbs_pair_init(&pair, SCN_FIDELITY_TWIN);
    pair.scenario->nodes[0].board.progress_thread = true;
    verbs_pair_run(&pair, resizes, resizes);
    EXPECT_EQ(pair.value[0] + pair.value[1], 2);
    verbs_pair_fini(&pair);
}
