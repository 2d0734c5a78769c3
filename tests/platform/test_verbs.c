// Devices of verbs in a scenario: tca0 of nodes with a board, on twins and on RTL, alone and together with ibsim0.
// Every byte of the memory of both ends is compared with a model in memory.
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

static const struct operation {
    enum ibv_wr_opcode opcode;
    unsigned near_at, far_at, bytes;
} operations[] = {
    {IBV_WR_SEND, 3, 100000, 33},           {IBV_WR_SEND, 64, 110000, 1000},
    {IBV_WR_SEND, 32, 120000, 40001},       {IBV_WR_RDMA_WRITE, 7, 1, 70},
    {IBV_WR_RDMA_WRITE, 1000, 2003, 9001},  {IBV_WR_RDMA_WRITE, 21, 20005, 30003},
    {IBV_WR_RDMA_READ, 100001, 100000, 20}, {IBV_WR_RDMA_READ, 110000, 110032, 20001},
    {IBV_WR_RDMA_READ, 140001, 50, 5000},   {IBV_WR_ATOMIC_FETCH_AND_ADD, 190000, 170000, 8},
    {IBV_WR_SEND_WITH_IMM, 5, 180000, 0},   {IBV_WR_ATOMIC_CMP_AND_SWP, 190008, 170000, 8},
};
#define OPERATIONS (sizeof operations / sizeof operations[0])
#define ADDED      0x1234567890u
#define SWAPPED    0xfedcba9876543210u

static bool receives(const struct operation *operation)
{
    return operation->opcode == IBV_WR_SEND || operation->opcode == IBV_WR_SEND_WITH_IMM;
}

// --- the model ------------------------------------------------------------------------------------------------------

struct model {
    uint8_t near[VERBS_BYTES], far[VERBS_BYTES];
    uint64_t compare; // of the atomic: the value in memory
};

static void model_apply(struct model *model, const struct operation *operation)
{
    uint8_t *near = model->near + operation->near_at, *far = model->far + operation->far_at;
    uint64_t found, stored = SWAPPED;
    switch (operation->opcode) {
    case IBV_WR_RDMA_READ:
        memcpy(near, far, operation->bytes);
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        memcpy(&found, far, 8);
        stored = operation->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? stored : found + ADDED;
        memcpy(far, &stored, 8);
        memcpy(near, &found, 8);
        break;
    default:
        memcpy(far, near, operation->bytes);
        break;
    }
}

static struct model *model_make(unsigned done)
{
    struct model *model = malloc(sizeof *model);
    site_fill(model->near, VERBS_BYTES, 0);
    site_fill(model->far, VERBS_BYTES, 1);
    for (unsigned i = 0; i < done; i++) {
        model_apply(model, &operations[i]);
    }
    return model;
}

// --- the programs ---------------------------------------------------------------------------------------------------

static void operation_post(struct verbs_pair *pair, unsigned device, unsigned index)
{
    struct verbs_end *end = &pair->ends[0][device], *far = &pair->ends[1][device];
    const struct operation *operation = &operations[index];
    struct ibv_sge sge = {(uintptr_t)end->data + operation->near_at, operation->bytes, end->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = index, .sg_list = &sge, .num_sge = 1, .opcode = operation->opcode}, *bad;
    if (operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || operation->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        struct model *model = model_make(index);
        wr.wr.atomic.remote_addr = (uintptr_t)far->data + operation->far_at;
        wr.wr.atomic.rkey = far->mr->rkey;
        wr.wr.atomic.compare_add = ADDED;
        if (operation->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
            memcpy(&wr.wr.atomic.compare_add, model->far + operation->far_at, 8);
            wr.wr.atomic.swap = SWAPPED;
        }
        free(model);
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)far->data + operation->far_at;
        wr.wr.rdma.rkey = far->mr->rkey;
    }
    EXPECT_EQ(ibv_post_send(end->qp, &wr, &bad), 0);
}

static void first(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *ends = verbs_enter(pair, peach2_node(board));
    verbs_pair_meet(pair, 0);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        for (unsigned device = 0; device < pair->device_count; device++) {
            operation_post(pair, device, i);
        }
        for (unsigned device = 0; device < pair->device_count; device++) {
            struct ibv_wc wc = verbs_wc(&ends[device]);
            EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
            EXPECT_EQ(wc.wr_id, i);
        }
    }
    verbs_pair_meet(pair, 0);
    for (unsigned device = 0; device < pair->device_count; device++) {
        verbs_look(&ends[device]);
    }
}

static void receives_post(struct verbs_end *end)
{
    for (unsigned i = 0; i < OPERATIONS; i++) {
        struct ibv_sge sge = {(uintptr_t)end->data + operations[i].far_at, operations[i].bytes, end->mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
        EXPECT_EQ(receives(&operations[i]) ? ibv_post_recv(end->qp, &wr, &bad) : 0, 0);
    }
}

static void second(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *ends = verbs_enter(pair, peach2_node(board));
    for (unsigned device = 0; device < pair->device_count; device++) {
        receives_post(&ends[device]);
    }
    verbs_pair_meet(pair, 1);
    verbs_pair_meet(pair, 1);
    for (unsigned device = 0; device < pair->device_count; device++) {
        for (unsigned i = 0; i < OPERATIONS; i++) {
            struct ibv_wc wc = {.wr_id = i, .byte_len = operations[i].bytes};
            wc = receives(&operations[i]) ? verbs_wc(&ends[device]) : wc;
            EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
            EXPECT_EQ(wc.wr_id, i);
            EXPECT_EQ(wc.byte_len, operations[i].bytes);
        }
        verbs_look(&ends[device]);
    }
}

enum { VERBS_CHAINS = SCN_VERBS_CHAIN_PIPELINED + 1, VERBS_FORMS = VERBS_CHAINS * (SCN_VERBS_HOST + 1) };

static void expect_model(struct verbs_pair *pair)
{
    verbs_pair_run(pair, first, second);
    struct model *model = model_make(OPERATIONS);
    for (unsigned device = 0; device < pair->device_count; device++) {
        EXPECT_MEMEQ(pair->ends[0][device].image, model->near, VERBS_BYTES);
        EXPECT_MEMEQ(pair->ends[1][device].image, model->far, VERBS_BYTES);
    }
    free(model);
    verbs_pair_fini(pair);
}

static void expect_model_in_every_memory(enum scn_fidelity fidelity, bool threads)
{
    for (unsigned i = 0; i < VERBS_MEMORIES * VERBS_MEMORIES; i++) {
        struct verbs_pair pair;
        verbs_pair_init(&pair, fidelity);
        pair.memory[0] = (enum verbs_memory)(i % VERBS_MEMORIES);
        pair.memory[1] = (enum verbs_memory)(i / VERBS_MEMORIES);
        pair.scenario->nodes[0].board.progress_thread = pair.scenario->nodes[1].board.progress_thread = threads;
        expect_model(&pair);
    }
}

// All ways in which the library works with the board.
static void form_set(struct verbs_pair *pair, unsigned form)
{
    for (unsigned node = 0; node < 2; node++) {
        pair->scenario->nodes[node].board.verbs_chain = (enum scn_verbs_chain)(form % VERBS_CHAINS);
        pair->scenario->nodes[node].board.verbs_completion = (enum scn_verbs_completion)(form / VERBS_CHAINS);
    }
}

TEST(TcaDevice, MovesWhatTheModelSaysHoweverItsLibraryWorksWithTheBoard)
{
    for (unsigned i = 0; i < VERBS_FORMS * VERBS_MEMORIES * 2; i++) {
        struct verbs_pair pair;
        verbs_pair_init(&pair, i % 5 == 0 ? SCN_FIDELITY_RTL : SCN_FIDELITY_TWIN);
        form_set(&pair, i % VERBS_FORMS);
        pair.memory[0] = pair.memory[1] = (enum verbs_memory)(i / VERBS_FORMS % VERBS_MEMORIES);
        bool threads = i / VERBS_FORMS / VERBS_MEMORIES != 0;
        pair.scenario->nodes[0].board.progress_thread = pair.scenario->nodes[1].board.progress_thread = threads;
        TEST_TRACE("form %u, memory %u, threads %d", i % VERBS_FORMS, pair.memory[0], threads);
        expect_model(&pair);
    }
}

TEST(TcaDevice, MovesWhatTheModelSaysOnTwins)
{
    expect_model_in_every_memory(SCN_FIDELITY_TWIN, false);
}

TEST(TcaDevice, MovesWhatTheModelSaysOnRtl)
{
    expect_model_in_every_memory(SCN_FIDELITY_RTL, false);
}

TEST(TcaDevice, MovesWhatTheModelSaysWithThreadsOfProgress)
{
    expect_model_in_every_memory(SCN_FIDELITY_TWIN, true);
    expect_model_in_every_memory(SCN_FIDELITY_RTL, true);
}

TEST(TcaDevice, EndsWithItsTimeWhereverItIs)
{
    for (unsigned us = 5; us <= 405; us += 5) { // in the set-up, in meetings, in copies, in operations
        struct verbs_pair pair;
        verbs_pair_init(&pair, SCN_FIDELITY_TWIN);
        pair.memory[us % 2] = VERBS_GPU;
        pair.scenario->time_limit_ps = us * 1000 * NS;
        pair.scenario->nodes[0].board.progress_thread = us % 3 == 0;
        form_set(&pair, us / 5 % VERBS_FORMS);
        EXPECT_EQ(verbs_pair_try(&pair, first, second), SIM_RUN_TIME_LIMIT);
        verbs_pair_fini(&pair);
    }
}

TEST(TcaDevice, WorksBesideTheHcaInOneProcess)
{
    for (unsigned gpu = 0; gpu < 2; gpu++) {
        struct verbs_pair pair;
        verbs_pair_init_both(&pair, SCN_FIDELITY_TWIN);
        pair.memory[0] = gpu != 0 ? VERBS_GPU : VERBS_PINNED;
        pair.memory[1] = VERBS_PINNED;
        expect_model(&pair);
    }
}

// --- existing devices -----------------------------------------------------------------------------------------------

static void lists(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    int count = 0;
    (void)board;
    struct ibv_device **list = ibv_get_device_list(&count);
    pair->value[0] = (uint64_t)count;
    for (int i = 0; i < count; i++) {
        pair->value[1] |= strcmp(ibv_get_device_name(list[i]), "tca0") == 0 ? 1 : 0;
        pair->value[1] |= strcmp(ibv_get_device_name(list[i]), "ibsim0") == 0 ? 2 : 0;
    }
    ibv_free_device_list(list);
}

// of: bit 0 a board, bit 1 an HCA.
static void expect_devices(unsigned of)
{
    struct verbs_pair pair;
    verbs_pair_init_both(&pair, SCN_FIDELITY_TWIN);
    for (unsigned node = 0; node < 2; node++) {
        pair.scenario->nodes[node].board.given = (of & 1) != 0;
        pair.scenario->nodes[node].hca.given = (of & 2) != 0;
    }
    pair.scenario->cable_count = of & 1;
    pair.scenario->ib_cable_count = of >> 1;
    verbs_pair_run(&pair, lists, NULL);
    EXPECT_EQ(pair.value[0], (of & 1) + (of >> 1));
    EXPECT_EQ(pair.value[1], of);
    verbs_pair_fini(&pair);
}

TEST(VerbsDevices, AreWhatTheNodeHas)
{
    for (unsigned of = 0; of < 4; of++) {
        expect_devices(of);
    }
}
