// Datagrams from the memory of a GPU: their sends end before the board has sent them.
#include <cuda_runtime.h>
#include <string.h>

#include "verbs-shim/ibverbs/device.h"
#include "verbs.h"

enum {
    BEFORE_BYTES = 32000, // of a message that the board sends for 30 us and more
    BYTES = 4000,
    AT = 100000, // in the memory of both ends
    GRH = 40,
    QKEY = 0x1111
};

struct datagrams {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
};

static struct datagrams datagrams_open(struct verbs_end *end)
{
    struct datagrams made = {.cq = ibv_create_cq(end->context, 4, NULL, NULL, 0)};
    struct ibv_qp_init_attr create = {
        .send_cq = made.cq, .recv_cq = made.cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_UD, .sq_sig_all = 1};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    made.qp = ibv_create_qp(end->pd, &create);
    EXPECT_EQ(ibv_modify_qp(made.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    EXPECT_EQ(ibv_modify_qp(made.qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(made.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    return made;
}

static void datagrams_close(struct datagrams *made)
{
    EXPECT_EQ(ibv_destroy_qp(made->qp), 0);
    EXPECT_EQ(ibv_destroy_cq(made->cq), 0);
}

static void receive(struct verbs_end *end, struct ibv_qp *qp, unsigned at, uint32_t bytes)
{
    struct ibv_sge sge = {(uintptr_t)end->data + at, bytes, end->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
}

static void message_send(struct verbs_end *end)
{
    struct ibv_sge sge = {(uintptr_t)end->data, BEFORE_BYTES, end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    EXPECT_EQ(ibv_post_send(end->qp, &wr, &bad), 0);
}

// value[0]: the number of the peer's queue pair.
static void sends_and_fills(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct datagrams own = datagrams_open(end);
    struct ibv_ah_attr path = {.dlid = 2, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(end->pd, &path);
    struct ibv_sge sge = {(uintptr_t)end->data + AT, BYTES, end->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    struct ibv_wc wc;
    verbs_pair_meet(pair, 0);
    message_send(end);
    EXPECT_EQ(verbs_wc(end).status, IBV_WC_SUCCESS); // the libraries have connected
    verbs_pair_meet(pair, 0);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = (uint32_t)pair->value[0];
    wr.wr.ud.remote_qkey = QKEY;
    message_send(end); // the board is busy
    EXPECT_EQ(ibv_post_send(own.qp, &wr, &bad), 0);
    EXPECT_EQ(ibverbs_cq_wait(own.cq, 1000000000), 0);
    EXPECT_EQ(cudaMemset(end->data + AT, 0, BYTES), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(ibv_poll_cq(own.cq, 1, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(verbs_wc(end).status, IBV_WC_SUCCESS);
    verbs_pair_meet(pair, 0);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
    datagrams_close(&own);
}

static void receives(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    struct datagrams own = datagrams_open(end);
    pair->value[0] = own.qp->qp_num;
    receive(end, end->qp, 0, BEFORE_BYTES);
    receive(end, end->qp, 0, BEFORE_BYTES);
    receive(end, own.qp, AT - GRH, BYTES + GRH);
    verbs_pair_meet(pair, 1);
    EXPECT_EQ(verbs_wc(end).status, IBV_WC_SUCCESS);
    verbs_pair_meet(pair, 1);
    EXPECT_EQ(ibverbs_cq_wait(own.cq, 1000000000), 0);
    EXPECT_EQ(verbs_wc(end).status, IBV_WC_SUCCESS);
    verbs_look(end);
    EXPECT_MEMEQ(end->image + AT, pair->ends[0][0].image + AT, BYTES); // image: what was there at first
    verbs_pair_meet(pair, 1);
    datagrams_close(&own);
}

// 11.4.1.1: once a send is complete, its buffer may be used again.
TEST(TcaDatagrams, FromAGpuKeepTheirDataWhenTheMemoryIsFilledAfterTheirCompletion)
{
    struct verbs_pair pair;
    verbs_pair_init(&pair, SCN_FIDELITY_TWIN);
    pair.memory[0] = VERBS_GPU;
    pair.memory[1] = VERBS_PLAIN;
    verbs_pair_run(&pair, sends_and_fills, receives);
    verbs_pair_fini(&pair);
}
