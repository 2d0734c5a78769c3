// HCAs of a scenario: programs on its nodes find ibsim0 and reach each other's host and GPU memory with libibverbs.
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "sim/platform/configs.h"
#include "sim/platform/internal.h"
#include "tests/support/site.h"
#include "verbs-shim/ibverbs/device.h"

enum {
    BYTES = 100000, // of each buffer
    MOVED = 70001,
    FROM = 3,
    TO = 4097,
    RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
};

struct side {
    struct pair *pair;
    bool on_gpu;   // its buffer is on the GPU
    uint8_t *heap; // its buffer; NULL: pinned memory or the GPU
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *buffer, *copy; // copy: in host memory, filled by to_copy
    bool ready, done;
};
struct pair {
    plat_machine_t *machine;
    struct side sides[2];
    enum ibv_wr_opcode opcode;
};

static void wait_until(const struct side *side, const bool *flag)
{
    while (!*flag) {
        sim_thread_sleep(plat_machine_sim(side->pair->machine), 1000 * NS);
    }
}

static void side_open(struct side *side)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    ASSERT_NOT_NULL(list[0]);
    EXPECT_STREQ(ibv_get_device_name(list[0]), "ibsim0");
    side->context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    side->pd = ibv_alloc_pd(side->context);
    side->cq = ibv_create_cq(side->context, 8, NULL, NULL, 0);
    EXPECT_EQ(cudaMallocHost((void **)&side->copy, BYTES), cudaSuccess);
    side->buffer = side->copy;
    if (side->on_gpu) {
        EXPECT_EQ(cudaMalloc((void **)&side->buffer, BYTES), cudaSuccess);
    }
    if (side->heap != NULL) {
        side->copy = side->heap;
        side->buffer = side->copy;
    }
    side->mr = ibv_reg_mr(side->pd, side->buffer, BYTES, RIGHTS);
    struct ibv_qp_init_attr init = {
        .send_cq = side->cq, .recv_cq = side->cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    side->qp = ibv_create_qp(side->pd, &init);
    ASSERT_NOT_NULL(side->mr);
    ASSERT_NOT_NULL(side->qp);
}

static void side_connect(struct side *side, const struct side *peer, unsigned peer_index)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .path_mtu = IBV_MTU_2048,
                               .dest_qp_num = peer->qp->qp_num,
                               .qp_access_flags = RIGHTS,
                               .ah_attr = {.dlid = (uint16_t)(peer_index + 1), .port_num = 1},
                               .max_rd_atomic = 4,
                               .max_dest_rd_atomic = 4,
                               .port_num = 1,
                               .timeout = 14,
                               .retry_cnt = 7,
                               .rnr_retry = 7};
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_MAX_QP_RD_ATOMIC),
              0);
}

// Returns the buffer's bytes in host memory.
static const uint8_t *to_copy(struct side *side)
{
    if (side->on_gpu) {
        EXPECT_EQ(cudaMemcpy(side->copy, side->buffer, BYTES, cudaMemcpyDeviceToHost), cudaSuccess);
    }
    return side->copy;
}

static void fill(struct side *side, bool pattern)
{
    memset(side->copy, 0, BYTES);
    if (pattern) {
        site_fill(side->copy, BYTES, 5);
    }
    if (side->on_gpu) {
        EXPECT_EQ(cudaMemcpy(side->buffer, side->copy, BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    }
}

// A write moves bytes from near at FROM to far at TO, a read in the opposite direction.
static void transfer(struct side *near, const struct side *far)
{
    struct ibv_sge sge = {(uintptr_t)near->buffer + FROM, MOVED, near->mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = near->pair->opcode, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct ibv_wc wc = {0};
    wr.wr.rdma.remote_addr = (uintptr_t)far->buffer + TO;
    wr.wr.rdma.rkey = far->mr->rkey;
    EXPECT_EQ(ibv_post_send(near->qp, &wr, &bad), 0);
    EXPECT_EQ(ibverbs_cq_wait(near->cq, 100000000), 0);
    EXPECT_EQ(ibv_poll_cq(near->cq, 1, &wc), 1);
    EXPECT_STREQ(ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_SUCCESS));
}

// Leaves all objects open: they end with the process.
static void program(void *arg, peach2_handle_t *board)
{
    struct side *side = arg;
    struct pair *pair = side->pair;
    unsigned index = side == &pair->sides[1];
    struct side *peer = &pair->sides[1 - index];
    EXPECT_NULL(board);
    side_open(side);
    fill(side, (pair->opcode == IBV_WR_RDMA_WRITE) == (index == 0));
    side->ready = true;
    wait_until(side, &peer->ready);
    side_connect(side, peer, 1 - index);
    side->done = true;
    wait_until(side, &peer->done);
    if (index == 0) {
        transfer(side, peer);
        side->done = false;
    } else {
        while (peer->done) {
            sim_thread_sleep(plat_machine_sim(pair->machine), 1000 * NS);
        }
    }
    (void)to_copy(side);
}

static void expect_moved(const uint8_t *to, unsigned to_at, const uint8_t *from, unsigned from_at)
{
    EXPECT_TRUE(site_is_filled(from, BYTES, 5));
    EXPECT_MEMEQ(to + to_at, from + from_at, MOVED);
    EXPECT_TRUE(site_is_value(to, to_at, 0));
    EXPECT_TRUE(site_is_value(to + to_at + MOVED, BYTES - to_at - MOVED, 0));
}

static struct scn_scenario *pair_build(struct pair *pair, uint64_t time_limit_ps)
{
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs"};
    struct scn_scenario *scenario = NULL;
    struct scn_messages messages = {0};
    char error[256] = "";
    EXPECT_EQ(scn_load(TCASIM_SOURCE_DIR "/tests/support/hca-pair.yaml", &options, &scenario, &messages), SIM_OK);
    scenario->time_limit_ps = time_limit_ps;
    EXPECT_EQ(plat_machine_create(scenario, NULL, error, sizeof error, &pair->machine), SIM_OK);
    EXPECT_STREQ(error, "");
    for (uint32_t i = 0; i < 2; i++) {
        pair->sides[i].pair = pair;
        plat_machine_set_program(pair->machine, i, program, &pair->sides[i]);
    }
    return scenario;
}

static void expect_transfer(enum ibv_wr_opcode opcode, bool near_gpu, bool far_gpu)
{
    struct pair pair = {.opcode = opcode, .sides = {{.on_gpu = near_gpu}, {.on_gpu = far_gpu}}};
    struct scn_scenario *scenario = pair_build(&pair, 1000 * 1000 * 1000 * NS);
    EXPECT_EQ(plat_machine_run(pair.machine), SIM_RUN_DONE);
    EXPECT_NULL(plat_machine_failure(pair.machine));
    EXPECT_EQ(plat_machine_live_packets(pair.machine), 0);
    if (opcode == IBV_WR_RDMA_WRITE) {
        expect_moved(pair.sides[1].copy, TO, pair.sides[0].copy, FROM);
    } else {
        expect_moved(pair.sides[0].copy, FROM, pair.sides[1].copy, TO);
    }
    plat_machine_destroy(pair.machine);
    scn_free(scenario);
}

static uint64_t transfer_ps(bool from_heap)
{
    struct pair pair = {.opcode = IBV_WR_RDMA_WRITE};
    for (unsigned i = 0; i < 2 && from_heap; i++) {
        pair.sides[i].heap = aligned_alloc(4096, 25 * 4096); // aligned as a pinned buffer
    }
    struct scn_scenario *scenario = pair_build(&pair, 1000 * 1000 * 1000 * NS);
    EXPECT_EQ(plat_machine_run(pair.machine), SIM_RUN_DONE);
    expect_moved(pair.sides[1].copy, TO, pair.sides[0].copy, FROM);
    uint64_t took_ps = sim_now_ps(plat_machine_sim(pair.machine));
    plat_machine_destroy(pair.machine);
    scn_free(scenario);
    free(pair.sides[0].heap);
    free(pair.sides[1].heap);
    return took_ps;
}

TEST(Hca, MovesOrdinaryMemoryAsFastAsPinnedBuffers)
{
    EXPECT_EQ(transfer_ps(true), transfer_ps(false));
}

TEST(Hca, WritesArriveWholeFromAndToHostsAndGpus)
{
    for (unsigned where = 0; where < 4; where++) {
        expect_transfer(IBV_WR_RDMA_WRITE, (where & 1) != 0, (where & 2) != 0);
    }
}

TEST(Hca, ReadsArriveWholeFromAndToHostsAndGpus)
{
    for (unsigned where = 0; where < 4; where++) {
        expect_transfer(IBV_WR_RDMA_READ, (where & 1) != 0, (where & 2) != 0);
    }
}

TEST(Hca, EndsWithItsTimeWhereverItIs)
{
    for (unsigned us = 10; us <= 330; us += 5) { // in the set-up, in copies, in the transfer
        struct pair pair = {.opcode = IBV_WR_RDMA_WRITE, .sides = {{.on_gpu = true}, {.on_gpu = false}}};
        struct scn_scenario *scenario = pair_build(&pair, us * 1000 * NS);
        EXPECT_EQ(plat_machine_run(pair.machine), SIM_RUN_TIME_LIMIT);
        plat_machine_destroy(pair.machine);
        scn_free(scenario);
    }
}

TEST(Hca, APacketThatNobodyGaveBackIsCounted)
{
    struct pair pair = {.opcode = IBV_WR_RDMA_WRITE};
    struct scn_scenario *scenario = pair_build(&pair, 1000 * 1000 * 1000 * NS);
    EXPECT_EQ(plat_machine_run(pair.machine), SIM_RUN_DONE);
    (void)ib_packet_take(pair.machine->packets);
    EXPECT_EQ(plat_machine_live_packets(pair.machine), 1);
    plat_machine_destroy(pair.machine);
    scn_free(scenario);
}

// --- configuration ---------------------------------------------------------------------------------------------------

TEST(Hca, SendsNoLargerPayloadsThanItAndItsHostTake)
{
    struct scn_hca hca = {.given = true, .mps_bytes = 256, .mrrs_bytes = 512, .port_bytes_per_us = 4000};
    struct scn_host host = {.mps_bytes = 128, .mrrs_bytes = 512};
    EXPECT_EQ(plat_hca_config(&hca, &host).mps_bytes, 128);
    hca.mps_bytes = 128;
    host.mps_bytes = 256;
    EXPECT_EQ(plat_hca_config(&hca, &host).mps_bytes, 128);
}

// --- limits ----------------------------------------------------------------------------------------------------------

static void many_objects(void *arg, peach2_handle_t *board)
{
    enum { OBJECTS = 1500 }; // more than the first size of any table
    static struct ibv_qp *qps[OBJECTS];
    static struct ibv_cq *cqs[OBJECTS];
    static struct ibv_mr *mrs[OBJECTS];
    static uint8_t memory[OBJECTS];
    struct side *side = arg;
    (void)board;
    side_open(side);
    for (unsigned i = 0; i < OBJECTS; i++) {
        cqs[i] = ibv_create_cq(side->context, 1, NULL, NULL, 0);
        struct ibv_qp_init_attr init = {
            .send_cq = cqs[i], .recv_cq = cqs[i], .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
        qps[i] = ibv_create_qp(side->pd, &init);
        mrs[i] = ibv_reg_mr(side->pd, &memory[i], 1, RIGHTS);
        ASSERT_NOT_NULL(qps[i]);
        ASSERT_NOT_NULL(mrs[i]);
        if (i != 0) {
            EXPECT_EQ(qps[i]->qp_num, qps[i - 1]->qp_num + 1);
            EXPECT_NE(mrs[i]->lkey, mrs[i - 1]->lkey);
        }
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        EXPECT_EQ(ibv_destroy_qp(qps[i]) | ibv_destroy_cq(cqs[i]) | ibv_dereg_mr(mrs[i]), 0);
    }
}

TEST(Hca, HasRoomForTheObjectsOfRealPrograms)
{
    struct pair pair = {0};
    struct scn_scenario *scenario = pair_build(&pair, SIM_NEVER_PS);
    plat_machine_set_program(pair.machine, 0, many_objects, &pair.sides[0]);
    plat_machine_set_program(pair.machine, 1, NULL, NULL);
    EXPECT_EQ(plat_machine_run(pair.machine), SIM_RUN_DONE);
    plat_machine_destroy(pair.machine);
    scn_free(scenario);
}

static void limits_look(void *arg, peach2_handle_t *board)
{
    struct side *side = arg;
    struct ibv_device_attr attr;
    (void)board;
    side_open(side);
    EXPECT_EQ(ibv_query_device(side->context, &attr), 0);
    EXPECT_EQ(attr.max_qp, 65464);
    EXPECT_EQ(attr.max_cq, 65408);
    EXPECT_EQ(attr.max_mr, 131056);
    EXPECT_EQ(attr.max_pd, 32764);
    EXPECT_EQ(attr.max_srq, 65472);
    EXPECT_EQ(attr.max_qp_wr, 16384);
    EXPECT_EQ(attr.max_cqe, 4194303);
    struct ibv_cq *cq = ibv_create_cq(side->context, attr.max_cqe, NULL, NULL, 0);
    ASSERT_NOT_NULL(cq);
    EXPECT_EQ(cq->cqe, attr.max_cqe);
}

TEST(Hca, SaysTheLimitsOfAConnectX)
{
    struct pair pair = {0};
    struct scn_scenario *scenario = pair_build(&pair, SIM_NEVER_PS);
    plat_machine_set_program(pair.machine, 0, limits_look, &pair.sides[0]);
    plat_machine_set_program(pair.machine, 1, NULL, NULL);
    EXPECT_EQ(plat_machine_run(pair.machine), SIM_RUN_DONE);
    plat_machine_destroy(pair.machine);
    scn_free(scenario);
}
