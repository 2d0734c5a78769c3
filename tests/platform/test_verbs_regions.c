// Regions of tca0 that are deregistered while boards move data: nothing is written to them afterwards.
#include <cuda_runtime.h>
#include <errno.h>
#include <string.h>

#include "verbs.h"
#include "verbs-shim/ibverbs/device.h"

#define BYTES 60001u
#define AT    16u
#define MS    (1000ull * 1000 * NS)

static void transfer_post(struct verbs_pair *pair, struct verbs_end *end, enum ibv_wr_opcode opcode)
{
    const struct verbs_end *far = &pair->ends[1][0];
    struct ibv_sge sge = {(uintptr_t)end->data + AT, BYTES, end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)far->data + AT;
    wr.wr.rdma.rkey = far->mr->rkey;
    EXPECT_EQ(ibv_post_send(end->qp, &wr, &bad), 0);
}

// Deregisters the memory, and uses it for other data at once.
static void reuse(struct verbs_end *end)
{
    EXPECT_EQ(ibv_dereg_mr(end->mr), 0);
    memset(end->data, 0xee, VERBS_BYTES);
}

// value[0]: time of deregistration, in ns. value[1]: the requester deregisters. value[2]: the opcode. value[3]: the
// number of successful completions.
static void requests(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    verbs_pair_meet(pair, 0);
    transfer_post(pair, end, (enum ibv_wr_opcode)pair->value[2]);
    if (pair->value[1] != 0) {
        (void)ibverbs_cq_wait(end->idle, pair->value[0]);
        reuse(end);
    }
    pair->value[3] = verbs_wc(end).status == IBV_WC_SUCCESS;
    verbs_pair_meet(pair, 0);
    verbs_pair_meet(pair, 0);
}

static void owns(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    verbs_pair_meet(pair, 1);
    if (pair->value[1] == 0) {
        (void)ibverbs_cq_wait(end->idle, pair->value[0]);
        reuse(end);
    }
    verbs_pair_meet(pair, 1);
    verbs_pair_meet(pair, 1);
}

// Returns the number of requests that completed before.
static unsigned expect_unwritten(enum ibv_wr_opcode opcode, bool requester, bool thread)
{
    unsigned through = 0;
    for (unsigned ns = 1; ns < 60000; ns += 793) {
        struct verbs_pair pair;
        verbs_pair_init(&pair, SCN_FIDELITY_TWIN);
        pair.value[0] = ns;
        pair.value[1] = requester;
        pair.value[2] = opcode;
        pair.scenario->nodes[0].board.progress_thread = pair.scenario->nodes[1].board.progress_thread = thread;
        verbs_pair_run(&pair, requests, owns);
        through += pair.value[3] != 0;
        // Pinned memory of the process is freed with the machine, not with the process.
        EXPECT_TRUE(site_is_value(pair.ends[!requester][0].data, VERBS_BYTES, 0xee));
        verbs_pair_fini(&pair);
    }
    return through;
}

TEST(TcaRegions, AreNotWrittenByAPeerOnceTheyAreGone)
{
    EXPECT_BETWEEN(expect_unwritten(IBV_WR_RDMA_WRITE, false, false), 10, 60);
    EXPECT_BETWEEN(expect_unwritten(IBV_WR_RDMA_WRITE, false, true), 10, 60);
}

TEST(TcaRegions, AreNotWrittenByAnAnsweredReadOnceTheyAreGone)
{
    EXPECT_BETWEEN(expect_unwritten(IBV_WR_RDMA_READ, true, false), 10, 60);
    EXPECT_BETWEEN(expect_unwritten(IBV_WR_RDMA_READ, true, true), 10, 60);
}

// --- a board that is busy with other regions ------------------------------------------------------------------------

// value[0]: the number of the eight writes that had completed when a region that none of them uses was deregistered.
static void deregisters_beside(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct ibv_wc wcs[8];
    void *device = NULL;
    EXPECT_EQ(cudaMalloc(&device, 65536), cudaSuccess);
    struct ibv_mr *mr = ibv_reg_mr(end->pd, device, 65536, VERBS_RIGHTS);
    verbs_pair_meet(pair, 0);
    (void)ibverbs_cq_wait(end->idle, 20000); // the libraries connect
    for (unsigned i = 0; i < 8; i++) {
        transfer_post(pair, end, IBV_WR_RDMA_WRITE);
    }
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    pair->value[0] = (uint64_t)ibv_poll_cq(end->cq, 8, wcs);
    for (uint64_t i = pair->value[0]; i < 8; i++) {
        EXPECT_EQ(verbs_wc(end).status, IBV_WC_SUCCESS);
    }
    verbs_pair_meet(pair, 0);
}

static void serves(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    (void)verbs_enter(pair, peach2_node(board));
    verbs_pair_meet(pair, 1);
    verbs_pair_meet(pair, 1);
}

TEST(TcaRegions, OfAGpuDoNotWaitForWhatTheBoardSendsFromOthers)
{
    struct verbs_pair pair;
    verbs_pair_init(&pair, SCN_FIDELITY_TWIN);
    pair.memory[0] = VERBS_PLAIN;
    verbs_pair_run(&pair, deregisters_beside, serves);
    EXPECT_BETWEEN(pair.value[0], 0, 3); // at most two writes were in flight
    verbs_pair_fini(&pair);
}

// --- a peer that does not answer ------------------------------------------------------------------------------------

static void falls_silent(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    verbs_pair_meet(pair, 0);
    (void)ibverbs_cq_wait(end->idle, 20000); // the libraries connect
    transfer_post(pair, end, IBV_WR_RDMA_WRITE);
    sim_thread_sleep(plat_machine_sim(pair->machine), 1500 * MS);
    EXPECT_EQ(verbs_wc(end).status, IBV_WC_SUCCESS);
    verbs_pair_meet(pair, 0);
}

static void is_refused(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    verbs_pair_meet(pair, 1);
    (void)ibverbs_cq_wait(end->idle, 40000); // meanwhile the peer requests a target address
    EXPECT_EQ(ibv_dereg_mr(end->mr), EBUSY);
    verbs_pair_meet(pair, 1);
    EXPECT_MEMEQ(end->data + AT, pair->ends[0][0].data + AT, BYTES);
    EXPECT_EQ(ibv_dereg_mr(end->mr), 0);
}

TEST(TcaRegions, StayWhileAPeerThatIsSilentMayWriteThem)
{
    struct verbs_pair pair;
    verbs_pair_init(&pair, SCN_FIDELITY_TWIN);
    pair.scenario->time_limit_ps = 10000 * MS;
    verbs_pair_run(&pair, falls_silent, is_refused);
    verbs_pair_fini(&pair);
}
