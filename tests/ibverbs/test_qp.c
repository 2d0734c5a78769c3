// Queue pairs: creation, attributes, query, destruction (IBA 10.2.4, 11.2.4).
#include <errno.h>

#include "pair.h"

static int create_errno(struct pair *pair, struct ibv_qp_init_attr init)
{
    errno = 0;
    struct ibv_qp *qp = ibv_create_qp(pair->side[0].pd, &init);
    if (qp != NULL) {
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
    return qp != NULL ? 0 : errno;
}

TEST(QueuePair, HasAtLeastWhatWasAskedFor)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_qp_init_attr init = pair_qp_attr(&pair.side[0], IBV_QPT_RC);
    init.cap = (struct ibv_qp_cap){.max_send_wr = 3, .max_recv_wr = 5};
    struct ibv_qp *qp = ibv_create_qp(pair.side[0].pd, &init);
    EXPECT_GE(init.cap.max_send_wr, 3);
    EXPECT_GE(init.cap.max_recv_wr, 5);
    EXPECT_GE(init.cap.max_send_sge, 1);
    EXPECT_GE(init.cap.max_recv_sge, 1);
    EXPECT_EQ(qp->state, IBV_QPS_RESET);
    EXPECT_EQ(qp->qp_type, IBV_QPT_RC);
    EXPECT_EQ(qp->send_cq, pair.side[0].cq);
    EXPECT_EQ(qp->recv_cq, pair.side[0].cq);
    EXPECT_EQ(qp->pd, pair.side[0].pd);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    pair_fini(&pair);
}

TEST(QueuePair, HasNoMoreThanTheDeviceAllows)
{
    struct pair pair;
    pair_init(&pair);
    for (unsigned field = 0; field < 5; field++) {
        struct ibv_qp_init_attr init = pair_qp_attr(&pair.side[0], IBV_QPT_RC);
        uint32_t *const fields[] = {&init.cap.max_send_wr, &init.cap.max_recv_wr, &init.cap.max_send_sge,
                                    &init.cap.max_recv_sge, &init.cap.max_inline_data};
        static const uint32_t limits[] = {MEMORY_WR_MAX, MEMORY_WR_MAX, MEMORY_SGE_MAX, MEMORY_SGE_MAX,
                                          MEMORY_INLINE_MAX};
        *fields[field] = limits[field];
        EXPECT_EQ(create_errno(&pair, init), 0);
        *fields[field] = limits[field] + 1;
        EXPECT_EQ(create_errno(&pair, init), EINVAL);
    }
    memory_world_exhaust(pair.world);
    EXPECT_EQ(create_errno(&pair, pair_qp_attr(&pair.side[0], IBV_QPT_RC)), ENOMEM);
    pair_fini(&pair);
}

TEST(QueuePair, IsOfATypeThatTheDeviceHas)
{
    struct pair pair;
    static const enum ibv_qp_type refused[] = {IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, IBV_QPT_DRIVER};
    pair_init(&pair);
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(create_errno(&pair, pair_qp_attr(&pair.side[0], refused[i])), EOPNOTSUPP);
    }
    for (enum ibv_qp_type type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
        EXPECT_EQ(create_errno(&pair, pair_qp_attr(&pair.side[0], type)), 0);
    }
    pair_fini(&pair);
}

TEST(QueuePair, HasQueuesOfItsContext)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_qp_init_attr init = pair_qp_attr(&pair.side[0], IBV_QPT_RC);
    init.send_cq = NULL;
    EXPECT_EQ(create_errno(&pair, init), EINVAL);
    init.send_cq = pair.side[1].cq;
    EXPECT_EQ(create_errno(&pair, init), EINVAL);
    init = pair_qp_attr(&pair.side[0], IBV_QPT_RC);
    init.recv_cq = NULL;
    EXPECT_EQ(create_errno(&pair, init), EINVAL);
    pair_fini(&pair);
}

TEST(QueuePair, TellsWhatWasSet)
{
    struct pair pair;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibv_query_qp(pair.side[0].qp, &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
    EXPECT_EQ(attr.cur_qp_state, IBV_QPS_RTS);
    EXPECT_EQ(attr.dest_qp_num, pair.side[1].qp->qp_num);
    EXPECT_EQ(attr.path_mtu, IBV_MTU_1024);
    EXPECT_EQ(attr.ah_attr.dlid, 2);
    EXPECT_EQ(attr.timeout, 14);
    EXPECT_EQ(attr.retry_cnt, 7);
    EXPECT_EQ(attr.rnr_retry, 3);
    EXPECT_EQ(attr.max_rd_atomic, 4);
    EXPECT_EQ(attr.max_dest_rd_atomic, 4);
    EXPECT_EQ(attr.min_rnr_timer, 12);
    EXPECT_EQ(attr.port_num, 1);
    EXPECT_EQ(attr.cap.max_send_wr, PAIR_DEPTH);
    EXPECT_EQ(init.qp_type, IBV_QPT_RC);
    EXPECT_EQ(init.send_cq, pair.side[0].cq);
    EXPECT_NULL(init.srq);
    pair_fini(&pair);
}

// 10.3.1: all attributes and requests are dropped.
TEST(QueuePair, ForgetsInReset)
{
    struct pair pair;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(pair_receive(&pair.side[0], 1, 0, 8), 0);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    EXPECT_EQ(pair_step(pair.side[0].qp, &pair.side[1], IBV_QPS_RESET), 0);
    pair_expect_none(&pair.side[0]);
    EXPECT_EQ(ibv_query_qp(pair.side[0].qp, &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_RESET);
    EXPECT_EQ(attr.dest_qp_num, 0);
    EXPECT_EQ(attr.timeout, 0);
    EXPECT_EQ(attr.cap.max_send_wr, PAIR_DEPTH);
    pair_fini(&pair);
}

// The program sees the device's state when it queries.
TEST(QueuePair, TellsThatItFailed)
{
    struct pair pair;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_sge sge = {.addr = 8, .length = 8, .lkey = 1};
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_SEND, &sge);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    EXPECT_EQ(pair.side[0].qp->state, IBV_QPS_RTS);
    EXPECT_EQ(ibv_query_qp(pair.side[0].qp, &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
    EXPECT_EQ(pair.side[0].qp->state, IBV_QPS_ERR);
    pair_fini(&pair);
}

// Connected to itself: the port accepts its own LID.
TEST(QueuePair, MayBeConnectedToItself)
{
    struct pair pair;
    pair_init(&pair);
    struct pair_side *side = &pair.side[0];
    struct ibv_qp_init_attr init = pair_qp_attr(side, IBV_QPT_RC);
    init.sq_sig_all = 1; // 10.7.3: each request completes, whatever its flags
    side->qp = ibv_create_qp(side->pd, &init);
    for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
        EXPECT_EQ(pair_step(side->qp, side, state), 0);
    }
    cuda_fixture_fill(side->buffer, 32, 1);
    struct ibv_sge sge = pair_sge(side, 0, 32);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_SEND, &sge);
    wr.send_flags = 0;
    EXPECT_EQ(pair_receive(side, 2, 512, 32), 0);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(side, 2, IBV_WC_SUCCESS);
    (void)pair_expect_wc(side, 1, IBV_WC_SUCCESS);
    EXPECT_MEMEQ(side->buffer + 512, side->buffer, 32);
    pair_fini(&pair);
}

// 10.7.3.1: signalling of all requests is fixed when the queue pair is made.
TEST(QueuePair, TellsWhetherEachRequestCompletes)
{
    for (int all = 0; all <= 1; all++) {
        TEST_TRACE("sq_sig_all %d", all);
        struct pair pair;
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr init, told = {.sq_sig_all = -1};
        pair_init(&pair);
        struct pair_side *side = &pair.side[0];
        init = pair_qp_attr(side, IBV_QPT_RC);
        init.sq_sig_all = all;
        side->qp = ibv_create_qp(side->pd, &init);
        EXPECT_EQ(ibv_query_qp(side->qp, &attr, IBV_QP_CAP, &told), 0);
        EXPECT_EQ(told.sq_sig_all, all);
        pair_fini(&pair);
    }
}

// The extended calls without extensions are the same as the plain ones.
TEST(QueuePair, IsMadeByTheExtendedCallsToo)
{
    struct pair pair;
    pair_init(&pair);
    struct pair_side *side = &pair.side[0];
    struct ibv_srq_init_attr_ex srq = {
        .attr = {.max_wr = 4, .max_sge = 1}, .comp_mask = IBV_SRQ_INIT_ATTR_PD, .pd = side->pd};
    side->srq = ibv_create_srq_ex(side->context, &srq);
    struct ibv_qp_init_attr_ex init = {.send_cq = side->cq,
                                       .recv_cq = side->cq,
                                       .srq = side->srq,
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = side->pd};
    side->qp = ibv_create_qp_ex(side->context, &init);
    ASSERT_NOT_NULL(side->qp);
    EXPECT_EQ(side->qp->srq, side->srq);
    EXPECT_NULL(ibv_qp_to_qp_ex(side->qp));
    pair_fini(&pair);
}

// --- ranges of attributes (11.2.4.2) --------------------------------------------------------------------------------

static int step_with(struct pair *pair, enum ibv_qp_state state, const struct ibv_qp_attr *attr)
{
    struct ibv_qp_attr given = *attr;
    return ibv_modify_qp(pair->side[0].qp, &given, pair_mask(IBV_QPT_RC, state));
}

static void create_in(struct pair *pair, enum ibv_qp_state state)
{
    pair_init(pair);
    struct ibv_qp_init_attr init = pair_qp_attr(&pair->side[0], IBV_QPT_RC);
    pair->side[0].qp = ibv_create_qp(pair->side[0].pd, &init);
    for (enum ibv_qp_state step = IBV_QPS_INIT; step <= state; step++) {
        EXPECT_EQ(pair_step(pair->side[0].qp, &pair->side[1], step), 0);
    }
}

TEST(Attributes, OfInitHaveAPortAndAKey)
{
    struct pair pair;
    create_in(&pair, IBV_QPS_RESET);
    struct ibv_qp_attr good = pair_attr(&pair.side[1], IBV_QPS_INIT), attr = good;
    attr.port_num = 0;
    EXPECT_EQ(step_with(&pair, IBV_QPS_INIT, &attr), EINVAL);
    attr.port_num = 2;
    EXPECT_EQ(step_with(&pair, IBV_QPS_INIT, &attr), EINVAL);
    attr = good;
    attr.pkey_index = 1;
    EXPECT_EQ(step_with(&pair, IBV_QPS_INIT, &attr), EINVAL);
    EXPECT_EQ(pair.side[0].qp->state, IBV_QPS_RESET);
    EXPECT_EQ(step_with(&pair, IBV_QPS_INIT, &good), 0);
    pair_fini(&pair);
}

TEST(Attributes, OfReadyToReceiveAreInRange)
{
    struct pair pair;
    create_in(&pair, IBV_QPS_INIT);
    struct ibv_qp_attr good = pair_attr(&pair.side[1], IBV_QPS_RTR);
    for (unsigned wrong = 0; wrong < 9; wrong++) {
        struct ibv_qp_attr attr = good;
        attr.path_mtu = wrong == 0 ? (enum ibv_mtu)0 : wrong == 1 ? IBV_MTU_4096 : attr.path_mtu;
        attr.dest_qp_num = wrong == 2 ? 0x1000000 : attr.dest_qp_num;
        attr.max_dest_rd_atomic = wrong == 3 ? MEMORY_RD_ATOMIC + 1 : attr.max_dest_rd_atomic;
        attr.min_rnr_timer = wrong == 4 ? 32 : attr.min_rnr_timer;
        attr.ah_attr.port_num = wrong == 5 ? 2 : attr.ah_attr.port_num;
        attr.ah_attr.sl = wrong == 6 ? 16 : attr.ah_attr.sl;
        attr.ah_attr.static_rate = wrong == 7 ? 99 : attr.ah_attr.static_rate;
        attr.ah_attr.is_global = wrong == 8;
        attr.ah_attr.grh.sgid_index = wrong == 8 ? 1 : 0;
        errno = 0;
        EXPECT_EQ(step_with(&pair, IBV_QPS_RTR, &attr), EINVAL);
        EXPECT_EQ(errno, EINVAL);
    }
    EXPECT_EQ(pair.side[0].qp->state, IBV_QPS_INIT);
    EXPECT_EQ(step_with(&pair, IBV_QPS_RTR, &good), 0);
    pair_fini(&pair);
}

TEST(Attributes, OfReadyToSendAreInRange)
{
    struct pair pair;
    create_in(&pair, IBV_QPS_RTR);
    struct ibv_qp_attr good = pair_attr(&pair.side[1], IBV_QPS_RTS);
    for (unsigned wrong = 0; wrong < 4; wrong++) {
        struct ibv_qp_attr attr = good;
        attr.timeout = wrong == 0 ? 32 : attr.timeout;
        attr.retry_cnt = wrong == 1 ? 8 : attr.retry_cnt;
        attr.rnr_retry = wrong == 2 ? 8 : attr.rnr_retry;
        attr.max_rd_atomic = wrong == 3 ? MEMORY_RD_ATOMIC + 1 : attr.max_rd_atomic;
        EXPECT_EQ(step_with(&pair, IBV_QPS_RTS, &attr), EINVAL);
    }
    EXPECT_EQ(step_with(&pair, IBV_QPS_RTS, &good), 0);
    pair_fini(&pair);
}

// Hardware uses 24 bits; programs choose random numbers.
TEST(Attributes, PacketNumbersHave24Bits)
{
    struct pair pair;
    struct ibv_qp_init_attr init;
    create_in(&pair, IBV_QPS_INIT);
    struct ibv_qp_attr attr = pair_attr(&pair.side[1], IBV_QPS_RTR);
    attr.rq_psn = 0x12345678;
    EXPECT_EQ(step_with(&pair, IBV_QPS_RTR, &attr), 0);
    EXPECT_EQ(ibv_query_qp(pair.side[0].qp, &attr, 0, &init), 0);
    EXPECT_EQ(attr.rq_psn, 0x345678);
    pair_fini(&pair);
}

// Rights that apply only to regions are ignored, as drivers do.
TEST(Attributes, RightsAreThoseThatAQueuePairCanHave)
{
    struct pair pair;
    struct ibv_qp_init_attr init;
    create_in(&pair, IBV_QPS_RESET);
    struct ibv_qp_attr attr = pair_attr(&pair.side[1], IBV_QPS_INIT);
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND | IBV_ACCESS_RELAXED_ORDERING;
    EXPECT_EQ(step_with(&pair, IBV_QPS_INIT, &attr), 0);
    EXPECT_EQ(ibv_query_qp(pair.side[0].qp, &attr, 0, &init), 0);
    EXPECT_EQ(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ);
    pair_fini(&pair);
}
