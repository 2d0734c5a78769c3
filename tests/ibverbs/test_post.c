// Posting: requests that are refused at once, the error code, and the request that is named (IBA 11.4.1.1, 11.4.1.2).
#include <errno.h>

#include "pair.h"
#include "verbs-shim/ibverbs/opcodes.h"

static int post_in(enum ibv_qp_type type, enum ibv_qp_state state, bool receive)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_qp_init_attr init = pair_qp_attr(&pair.side[0], type);
    pair.side[0].qp = ibv_create_qp(pair.side[0].pd, &init);
    pair.side[0].ah = pair_ah(&pair.side[0], &pair.side[1]);
    for (enum ibv_qp_state step = IBV_QPS_INIT; step <= state && step <= IBV_QPS_SQD; step++) {
        EXPECT_EQ(pair_step(pair.side[0].qp, &pair.side[1], step), 0);
    }
    if (state == IBV_QPS_ERR) {
        EXPECT_EQ(pair_step(pair.side[0].qp, &pair.side[1], state), 0);
    }
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_SEND, &sge);
    int error = receive ? pair_receive(&pair.side[0], 1, 0, 8) : pair_send(&pair, &wr);
    pair_fini(&pair);
    return error;
}

// 10.3.1: RESET, INIT and RTR refuse sends; SQD keeps them; ERR flushes them.
TEST(PostSend, DependsOnTheState)
{
    for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
        EXPECT_EQ(post_in(type, IBV_QPS_RESET, false), EINVAL);
        EXPECT_EQ(post_in(type, IBV_QPS_INIT, false), EINVAL);
        EXPECT_EQ(post_in(type, IBV_QPS_RTR, false), EINVAL);
        EXPECT_EQ(post_in(type, IBV_QPS_RTS, false), 0);
        EXPECT_EQ(post_in(type, IBV_QPS_SQD, false), 0);
        EXPECT_EQ(post_in(type, IBV_QPS_ERR, false), 0);
    }
}

// 10.3.1: only RESET refuses receives.
TEST(PostReceive, DependsOnTheState)
{
    for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
        EXPECT_EQ(post_in(type, IBV_QPS_RESET, true), EINVAL);
        EXPECT_EQ(post_in(type, IBV_QPS_INIT, true), 0);
        EXPECT_EQ(post_in(type, IBV_QPS_RTR, true), 0);
        EXPECT_EQ(post_in(type, IBV_QPS_RTS, true), 0);
        EXPECT_EQ(post_in(type, IBV_QPS_ERR, true), 0);
    }
}

// A queue pair that failed in RTR accepts sends and flushes them, even if the program does not know of the failure.
TEST(PostSend, FlushesWhereTheQueuePairFailedUnseen)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct pair_side *receiver = &pair.side[1];
    EXPECT_EQ(pair_step(receiver->qp, &pair.side[0], IBV_QPS_RESET), 0);
    EXPECT_EQ(pair_step(receiver->qp, &pair.side[0], IBV_QPS_INIT), 0);
    EXPECT_EQ(pair_step(receiver->qp, &pair.side[0], IBV_QPS_RTR), 0);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge), *bad;
    wr.wr.rdma.rkey = 1;
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    EXPECT_EQ(receiver->qp->state, IBV_QPS_RTR);
    EXPECT_EQ(ibv_post_send(receiver->qp, &wr, &bad), 0);
    (void)pair_expect_wc(receiver, 1, IBV_WC_WR_FLUSH_ERR);
    pair_fini(&pair);
}

// 10.2.4: the operations of each type; of later ones, what the table of opcodes says.
TEST(PostSend, HasTheOperationsOfItsType)
{
    static const char *const has[] = {[IBV_QPT_RC] = "1111111", [IBV_QPT_UC] = "1111000", [IBV_QPT_UD] = "0011000"};
    static const unsigned on[] = {[IBV_QPT_RC] = HCA_ON_RC, [IBV_QPT_UC] = HCA_ON_UC, [IBV_QPT_UD] = HCA_ON_UD};
    for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
        struct pair pair;
        pair_init(&pair);
        pair_connect(&pair, type);
        for (enum ibv_wr_opcode opcode = 0; opcode <= IBV_WR_ATOMIC_WRITE; opcode++) {
            struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
            struct ibv_send_wr wr = pair_wr(&pair, opcode, &sge);
            bool known = opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
            bool legal = known ? has[type][opcode] == '1' : ibverbs_opcode_has(opcode, on[type]);
            EXPECT_EQ(pair_receive(&pair.side[1], 1, 0, 64), 0);
            EXPECT_EQ(pair_send(&pair, &wr), legal ? 0 : EINVAL);
        }
        pair_fini(&pair);
    }
}

TEST(PostSend, HasNoMoreSegmentsThanDeclared)
{
    struct pair pair;
    struct ibv_sge sges[5];
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, sges);
    for (unsigned i = 0; i < 5; i++) {
        sges[i] = pair_sge(&pair.side[0], 8 * i, 8);
    }
    wr.wr.rdma.remote_addr = (uintptr_t)pair.side[1].buffer;
    wr.num_sge = 4;
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    wr.num_sge = 5;
    EXPECT_EQ(pair_send(&pair, &wr), ENOMEM);
    wr.num_sge = -1;
    EXPECT_EQ(pair_send(&pair, &wr), EINVAL);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    pair_expect_none(&pair.side[0]);
    pair_fini(&pair);
}

TEST(PostSend, HasNoMoreInlineDataThanDeclared)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    uint8_t data[65];
    cuda_fixture_fill(data, 65, 1);
    struct ibv_sge sge = {.addr = (uintptr_t)data, .length = 64}; // no region: the request contains the data
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, NULL);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags |= IBV_SEND_INLINE;
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    EXPECT_MEMEQ(pair.side[1].buffer + PAIR_BYTES / 2, data, 64);
    sge.length = 65;
    EXPECT_EQ(pair_send(&pair, &wr), ENOMEM);
    pair_fini(&pair);
}

// The result of a read or atomic cannot be stored in the request.
TEST(PostSend, BringsNothingBackInline)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
                                                 IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    for (unsigned i = 0; i < 3; i++) {
        struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
        struct ibv_send_wr wr = pair_wr(&pair, opcodes[i], &sge);
        wr.send_flags |= IBV_SEND_INLINE;
        EXPECT_EQ(pair_send(&pair, &wr), EINVAL);
        wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
        EXPECT_EQ(pair_send(&pair, &wr), EINVAL);
    }
    pair_fini(&pair);
}

TEST(PostSend, GoesAsFarAsTheListIsGood)
{
    struct pair pair;
    struct ibv_send_wr wrs[3], *bad = NULL;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    for (unsigned i = 0; i < 3; i++) {
        wrs[i] = pair_wr(&pair, i == 1 ? IBV_WR_TSO : IBV_WR_RDMA_WRITE, &sge);
        wrs[i].wr_id = i;
        wrs[i].next = i < 2 ? &wrs[i + 1] : NULL;
    }
    EXPECT_EQ(ibv_post_send(pair.side[0].qp, wrs, &bad), EINVAL);
    EXPECT_EQ(bad, &wrs[1]);
    (void)pair_expect_wc(&pair.side[0], 0, IBV_WC_SUCCESS);
    pair_expect_none(&pair.side[0]);
    pair_fini(&pair);
}

TEST(PostSend, IntoAFullQueueIsRefusedUntilCompletionsAreTaken)
{
    struct pair pair;
    struct ibv_send_wr wrs[PAIR_DEPTH + 2], *bad = NULL;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    for (unsigned i = 0; i < PAIR_DEPTH + 2; i++) {
        wrs[i] = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
        wrs[i].send_flags = i == PAIR_DEPTH - 1 ? IBV_SEND_SIGNALED : 0;
        wrs[i].wr_id = i;
        wrs[i].next = i < PAIR_DEPTH + 1 ? &wrs[i + 1] : NULL;
    }
    EXPECT_EQ(ibv_post_send(pair.side[0].qp, wrs, &bad), ENOMEM);
    EXPECT_EQ(bad, &wrs[PAIR_DEPTH]);
    EXPECT_EQ(pair_send(&pair, &wrs[PAIR_DEPTH + 1]), ENOMEM);
    (void)pair_expect_wc(&pair.side[0], PAIR_DEPTH - 1, IBV_WC_SUCCESS); // also releases those before it
    EXPECT_EQ(pair_send(&pair, &wrs[PAIR_DEPTH + 1]), 0);
    pair_fini(&pair);
}

TEST(PostReceive, IntoAFullQueueIsRefused)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_recv_wr wrs[PAIR_DEPTH + 1], *bad = NULL;
    for (unsigned i = 0; i <= PAIR_DEPTH; i++) {
        wrs[i] = (struct ibv_recv_wr){.wr_id = i, .next = i < PAIR_DEPTH ? &wrs[i + 1] : NULL};
    }
    EXPECT_EQ(ibv_post_recv(pair.side[0].qp, wrs, &bad), ENOMEM);
    EXPECT_EQ(bad, &wrs[PAIR_DEPTH]);
    pair_fini(&pair);
}

TEST(PostReceive, HasNoMoreSegmentsThanDeclared)
{
    struct pair pair;
    struct ibv_sge sges[5] = {{0}};
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_recv_wr second = {.sg_list = sges, .num_sge = 5},
                       first = {.sg_list = sges, .num_sge = 4, .next = &second};
    struct ibv_recv_wr *bad = NULL;
    EXPECT_EQ(ibv_post_recv(pair.side[0].qp, &first, &bad), EINVAL);
    EXPECT_EQ(bad, &second);
    second.num_sge = -1;
    EXPECT_EQ(ibv_post_recv(pair.side[0].qp, &second, &bad), EINVAL);
    EXPECT_EQ(pair_step(pair.side[0].qp, &pair.side[1], IBV_QPS_ERR), 0);
    (void)pair_expect_wc(&pair.side[0], 0, IBV_WC_WR_FLUSH_ERR);
    pair_expect_none(&pair.side[0]); // only the first was posted
    pair_fini(&pair);
}

TEST(PostSend, OfADatagramNamesAHandleOfItsDomain)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_UD);
    struct ibv_pd *other = ibv_alloc_pd(pair.side[0].context);
    struct ibv_ah_attr attr = pair_attr(&pair.side[1], IBV_QPS_RTR).ah_attr;
    struct ibv_ah *ah = ibv_create_ah(other, &attr);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_SEND, &sge);
    wr.wr.ud.ah = NULL;
    EXPECT_EQ(pair_send(&pair, &wr), EINVAL);
    wr.wr.ud.ah = ah;
    EXPECT_EQ(pair_send(&pair, &wr), EINVAL);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
    EXPECT_EQ(ibv_dealloc_pd(other), 0);
    pair_fini(&pair);
}
