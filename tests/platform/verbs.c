#include "verbs.h"

#include <cuda_runtime.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/ibverbs/device.h"

#define TIME_LIMIT_PS (200 * 1000 * 1000 * NS)

static void init(struct verbs_pair *pair)
{
    *pair = (struct verbs_pair){
        .devices = {"tca0", "ibsim0"},
        .device_count = 1,
        .attr = {.path_mtu = IBV_MTU_2048,
                 .qp_access_flags = VERBS_RIGHTS,
                 .max_rd_atomic = 4,
                 .max_dest_rd_atomic = 4,
                 .port_num = 1,
                 .min_rnr_timer = 1,
                 .timeout = 14,
                 .retry_cnt = 7,
                 .rnr_retry = 7},
        .create = {.cap = {16, 16, 4, 4, 16}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1},
    };
}

void verbs_pair_init(struct verbs_pair *pair, enum scn_fidelity fidelity)
{
    init(pair);
    pair->generated = true;
    pair->scenario = platform_fixture_line(2);
    pair->scenario->time_limit_ps = TIME_LIMIT_PS;
    for (unsigned i = 0; i < 2; i++) {
        platform_fixture_gpus(pair->scenario, i, 1);
        pair->scenario->nodes[i].board.fidelity = fidelity;
    }
}

void verbs_pair_init_both(struct verbs_pair *pair, enum scn_fidelity fidelity)
{
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs"};
    struct scn_messages messages = {0};
    init(pair);
    pair->device_count = 2;
    ASSERT_EQ(scn_load(TCASIM_SOURCE_DIR "/tests/platform/verbs-pair.yaml", &options, &pair->scenario, &messages),
              SIM_OK);
    pair->scenario->time_limit_ps = TIME_LIMIT_PS;
    for (unsigned i = 0; i < 2; i++) {
        pair->scenario->nodes[i].board.fidelity = fidelity;
    }
}

enum sim_run_outcome verbs_pair_try(struct verbs_pair *pair, plat_program_fn first, plat_program_fn second)
{
    char text[1024] = "";
    EXPECT_EQ(plat_machine_create(pair->scenario, NULL, text, sizeof text, &pair->machine), SIM_OK);
    EXPECT_STREQ(text, "");
    plat_machine_set_program(pair->machine, 0, first, pair);
    plat_machine_set_program(pair->machine, 1, second, pair);
    return plat_machine_run(pair->machine);
}

void verbs_pair_run(struct verbs_pair *pair, plat_program_fn first, plat_program_fn second)
{
    enum sim_run_outcome outcome = verbs_pair_try(pair, first, second);
    if (outcome != SIM_RUN_DONE) {
        char text[1024];
        (void)sim_describe_waiters(plat_machine_sim(pair->machine), text, sizeof text);
        FAIL("the run ended with %d: %s", (int)outcome, text);
    }
    EXPECT_NULL(plat_machine_failure(pair->machine));
    EXPECT_EQ(plat_machine_live_packets(pair->machine), 0);
}

void verbs_pair_fini(struct verbs_pair *pair)
{
    plat_machine_destroy(pair->machine);
    for (unsigned i = 0; i < 2 * VERBS_DEVICES; i++) {
        struct verbs_end *end = &pair->ends[i / VERBS_DEVICES][i % VERBS_DEVICES];
        free(end->memory == VERBS_PLAIN ? end->data : NULL);
    }
    if (pair->generated) {
        platform_fixture_free(pair->scenario);
    } else {
        scn_free(pair->scenario);
    }
}

// --- for programs ---------------------------------------------------------------------------------------------------

struct ibv_context *verbs_open(const char *name)
{
    struct ibv_context *context = NULL;
    struct ibv_device **list = ibv_get_device_list(NULL);
    for (unsigned i = 0; list[i] != NULL && context == NULL; i++) {
        context = strcmp(ibv_get_device_name(list[i]), name) == 0 ? ibv_open_device(list[i]) : NULL;
    }
    ibv_free_device_list(list);
    return context;
}

static void memory_make(struct verbs_end *end, unsigned node)
{
    EXPECT_EQ(cudaMallocHost((void **)&end->image, VERBS_BYTES), cudaSuccess);
    site_fill(end->image, VERBS_BYTES, node);
    if (end->memory == VERBS_GPU) {
        EXPECT_EQ(cudaMalloc((void **)&end->data, VERBS_BYTES), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(end->data, end->image, VERBS_BYTES, cudaMemcpyHostToDevice), cudaSuccess);
    } else if (end->memory == VERBS_PINNED) {
        EXPECT_EQ(cudaMallocHost((void **)&end->data, VERBS_BYTES), cudaSuccess);
        memcpy(end->data, end->image, VERBS_BYTES);
    } else {
        end->data = malloc(VERBS_BYTES);
        memcpy(end->data, end->image, VERBS_BYTES);
    }
}

void verbs_look(struct verbs_end *end)
{
    if (end->memory == VERBS_GPU) {
        EXPECT_EQ(cudaMemcpy(end->image, end->data, VERBS_BYTES, cudaMemcpyDeviceToHost), cudaSuccess);
    } else {
        memcpy(end->image, end->data, VERBS_BYTES);
    }
}

static void end_open(struct verbs_pair *pair, struct verbs_end *end, const char *device, unsigned node)
{
    end->memory = pair->memory[node];
    end->context = verbs_open(device);
    ASSERT_NOT_NULL(end->context);
    end->pd = ibv_alloc_pd(end->context);
    end->cq = ibv_create_cq(end->context, 64, NULL, NULL, 0);
    end->idle = ibv_create_cq(end->context, 1, NULL, NULL, 0);
    memory_make(end, node);
    end->mr = ibv_reg_mr(end->pd, end->data, VERBS_BYTES, VERBS_RIGHTS);
    struct ibv_qp_init_attr create = pair->create;
    create.send_cq = create.recv_cq = end->cq;
    end->qp = ibv_create_qp(end->pd, &create);
    ASSERT_NOT_NULL(end->mr);
    ASSERT_NOT_NULL(end->qp);
}

static void end_connect(struct verbs_pair *pair, struct verbs_end *end, const struct verbs_end *peer, unsigned node)
{
    struct ibv_qp_attr attr = pair->attr;
    attr.dest_qp_num = peer->qp->qp_num;
    attr.ah_attr = (struct ibv_ah_attr){.dlid = (uint16_t)(2 - node), .port_num = 1};
    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(ibv_modify_qp(end->qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(end->qp, &attr,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_MAX_QP_RD_ATOMIC),
              0);
}

struct verbs_end *verbs_enter(struct verbs_pair *pair, unsigned node)
{
    for (unsigned i = 0; i < pair->device_count; i++) {
        end_open(pair, &pair->ends[node][i], pair->devices[i], node);
    }
    verbs_pair_meet(pair, node);
    for (unsigned i = 0; i < pair->device_count; i++) {
        end_connect(pair, &pair->ends[node][i], &pair->ends[1 - node][i], node);
    }
    verbs_pair_meet(pair, node);
    return pair->ends[node];
}

void verbs_pair_meet(struct verbs_pair *pair, unsigned node)
{
    unsigned turn = pair->turn;
    pair->waiting++;
    if (pair->waiting == 2) {
        pair->waiting = 0;
        pair->turn++;
    }
    while (pair->turn == turn) {
        if (pair->silent[node]) {
            sim_thread_sleep(plat_machine_sim(pair->machine), 200 * NS);
        }
        for (unsigned i = 0; i < pair->device_count && !pair->silent[node]; i++) {
            EXPECT_EQ(ibverbs_cq_wait(pair->ends[node][i].idle, 200), ETIMEDOUT);
        }
    }
}

struct ibv_wc verbs_wc(struct verbs_end *end)
{
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    EXPECT_EQ(ibverbs_cq_wait(end->cq, 1000000000), 0);
    EXPECT_EQ(ibv_poll_cq(end->cq, 1, &wc), 1);
    return wc;
}
