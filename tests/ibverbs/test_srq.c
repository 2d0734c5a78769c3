// Shared receive queues (IBA 10.2.9).
#include <errno.h>

#include "pair.h"

static struct ibv_srq *srq_create(struct pair_side *side, uint32_t max_wr, uint32_t max_sge)
{
    struct ibv_srq_init_attr init = {.srq_context = side, .attr = {.max_wr = max_wr, .max_sge = max_sge}};
    errno = 0;
    return ibv_create_srq(side->pd, &init);
}

// Side 1 has a shared queue; both sides are connected.
static void connect_shared(struct pair *pair)
{
    pair_init(pair);
    pair->side[1].srq = srq_create(&pair->side[1], PAIR_DEPTH, 2);
    pair_connect(pair, IBV_QPT_RC);
}

static void send_one(struct pair *pair, unsigned bytes)
{
    struct ibv_sge sge = pair_sge(&pair->side[0], 0, bytes);
    struct ibv_send_wr wr = pair_wr(pair, IBV_WR_SEND, &sge);
    EXPECT_EQ(pair_send(pair, &wr), 0);
    (void)pair_expect_wc(&pair->side[0], 1, IBV_WC_SUCCESS);
}

TEST(SharedQueue, HasNoMoreThanTheDeviceAllows)
{
    struct pair pair;
    pair_init(&pair);
    EXPECT_NULL(srq_create(&pair.side[0], MEMORY_WR_MAX + 1, 1));
    EXPECT_EQ(errno, EINVAL);
    EXPECT_NULL(srq_create(&pair.side[0], 0, 1));
    EXPECT_EQ(errno, EINVAL);
    EXPECT_NULL(srq_create(&pair.side[0], 1, MEMORY_SGE_MAX + 1));
    EXPECT_EQ(errno, EINVAL);
    memory_world_exhaust(pair.world);
    EXPECT_NULL(srq_create(&pair.side[0], 1, 1));
    EXPECT_EQ(errno, ENOMEM);
    struct ibv_srq *srq = srq_create(&pair.side[0], MEMORY_WR_MAX, MEMORY_SGE_MAX);
    EXPECT_EQ(srq->srq_context, &pair.side[0]);
    EXPECT_EQ(srq->pd, pair.side[0].pd);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    pair_fini(&pair);
}

TEST(SharedQueue, IsBusyWhileAQueuePairUsesIt)
{
    struct pair pair;
    connect_shared(&pair);
    EXPECT_EQ(ibv_destroy_srq(pair.side[1].srq), EBUSY);
    pair_fini(&pair);
}

TEST(SharedQueue, GivesItsBuffersToItsQueuePairs)
{
    struct pair pair;
    connect_shared(&pair);
    cuda_fixture_fill(pair.side[0].buffer, 64, 2);
    EXPECT_EQ(pair_receive(&pair.side[1], 11, 128, 64), 0);
    send_one(&pair, 64);
    struct ibv_wc wc = pair_expect_wc(&pair.side[1], 11, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.qp_num, pair.side[1].qp->qp_num);
    EXPECT_MEMEQ(pair.side[1].buffer + 128, pair.side[0].buffer, 64);
    pair_fini(&pair);
}

TEST(SharedQueue, TakesThePlaceOfTheQueuePairsOwn)
{
    struct pair pair;
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    connect_shared(&pair);
    EXPECT_EQ(ibv_post_recv(pair.side[1].qp, &wr, &bad), EINVAL);
    EXPECT_EQ(bad, &wr);
    EXPECT_EQ(ibv_query_qp(pair.side[1].qp, &attr, 0, &init), 0);
    EXPECT_EQ(attr.cap.max_recv_wr, 0);
    EXPECT_EQ(init.srq, pair.side[1].srq);
    pair_fini(&pair);
}

TEST(SharedQueue, IsFullAtItsDepth)
{
    struct pair pair;
    connect_shared(&pair);
    for (unsigned i = 0; i < PAIR_DEPTH; i++) {
        EXPECT_EQ(pair_receive(&pair.side[1], i, 0, 8), 0);
    }
    EXPECT_EQ(pair_receive(&pair.side[1], 99, 0, 8), ENOMEM);
    send_one(&pair, 8);
    EXPECT_EQ(pair_receive(&pair.side[1], 99, 0, 8), ENOMEM); // its completion is not polled yet
    (void)pair_expect_wc(&pair.side[1], 0, IBV_WC_SUCCESS);
    EXPECT_EQ(pair_receive(&pair.side[1], 99, 0, 8), 0);
    pair_fini(&pair);
}

TEST(SharedQueue, HasNoMoreSegmentsThanDeclared)
{
    struct pair pair;
    struct ibv_sge sges[3] = {{0}};
    connect_shared(&pair);
    struct ibv_recv_wr wr = {.sg_list = sges, .num_sge = 3}, *bad = NULL;
    EXPECT_EQ(ibv_post_srq_recv(pair.side[1].srq, &wr, &bad), EINVAL);
    EXPECT_EQ(bad, &wr);
    wr.num_sge = 2;
    EXPECT_EQ(ibv_post_srq_recv(pair.side[1].srq, &wr, &bad), 0);
    pair_fini(&pair);
}

// The event comes once, when fewer receives than the limit are left.
TEST(SharedQueue, TellsWhenItsLimitIsReached)
{
    struct pair pair;
    struct ibv_srq_attr attr = {.srq_limit = 2};
    connect_shared(&pair);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(pair_receive(&pair.side[1], i, 0, 8), 0);
    }
    EXPECT_EQ(ibv_modify_srq(pair.side[1].srq, &attr, IBV_SRQ_LIMIT), 0);
    send_one(&pair, 8);
    pair_expect_no_event(&pair.side[1]);
    EXPECT_EQ(ibv_query_srq(pair.side[1].srq, &attr), 0);
    EXPECT_EQ(attr.srq_limit, 2);
    send_one(&pair, 8);
    pair_expect_event(&pair.side[1], IBV_EVENT_SRQ_LIMIT_REACHED);
    EXPECT_EQ(ibv_query_srq(pair.side[1].srq, &attr), 0);
    EXPECT_EQ(attr.srq_limit, 0);
    EXPECT_EQ(attr.max_wr, PAIR_DEPTH);
    EXPECT_EQ(attr.max_sge, 2);
    send_one(&pair, 8);
    pair_expect_no_event(&pair.side[1]);
    pair_fini(&pair);
}

TEST(SharedQueue, HasALimitWithinItsDepthAndKeepsItsSize)
{
    struct pair pair;
    struct ibv_srq_attr attr = {.max_wr = 8, .srq_limit = PAIR_DEPTH + 1}, whole = {.srq_limit = PAIR_DEPTH};
    connect_shared(&pair);
    EXPECT_EQ(ibv_modify_srq(pair.side[1].srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    for (unsigned i = 0; i < PAIR_DEPTH; i++) {
        EXPECT_EQ(pair_receive(&pair.side[1], i, 0, 8), 0); // the limit is not reached
    }
    EXPECT_EQ(ibv_modify_srq(pair.side[1].srq, &whole, IBV_SRQ_LIMIT), 0);
    EXPECT_EQ(ibv_modify_srq(pair.side[1].srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
    EXPECT_EQ(ibv_modify_srq(pair.side[1].srq, &attr, 1 << 7), EINVAL);
    EXPECT_EQ(ibv_modify_srq(pair.side[1].srq, &attr, 0), 0);
    pair_fini(&pair);
}

// 10.2.9: its buffers are not flushed; the queue pair reports when it uses no more of them.
TEST(SharedQueue, OutlivesTheErrorOfItsQueuePair)
{
    struct pair pair;
    connect_shared(&pair);
    EXPECT_EQ(pair_receive(&pair.side[1], 3, 0, 8), 0);
    EXPECT_EQ(pair_step(pair.side[1].qp, &pair.side[0], IBV_QPS_ERR), 0);
    pair_expect_event(&pair.side[1], IBV_EVENT_QP_LAST_WQE_REACHED);
    pair_expect_none(&pair.side[1]);
    pair_fini(&pair);
}

TEST(SharedQueue, HasNoNumber)
{
    struct pair pair;
    uint32_t number;
    connect_shared(&pair);
    EXPECT_EQ(ibv_get_srq_num(pair.side[1].srq, &number), EOPNOTSUPP);
    pair_fini(&pair);
}
