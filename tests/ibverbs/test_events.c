// Asynchronous events (IBA 11.6.3).
#include <errno.h>
#include <fcntl.h>

#include "pair.h"

TEST(AsyncEvent, NamesThePort)
{
    struct pair pair;
    struct ibv_async_event event;
    pair_init(&pair);
    memory_world_cable(pair.world, 1, false);
    memory_world_cable(pair.world, 1, true);
    EXPECT_EQ(ibv_get_async_event(pair.side[0].context, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
    EXPECT_EQ(event.element.port_num, 1);
    ibv_ack_async_event(&event);
    EXPECT_EQ(ibv_get_async_event(pair.side[0].context, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ACTIVE);
    pair_expect_no_event(&pair.side[1]);
    pair_fini(&pair);
}

// 10.3.1: a message that arrives in RTR shows that the peer is ready.
TEST(AsyncEvent, TellsThatCommunicationIsEstablished)
{
    struct pair pair;
    struct ibv_async_event event;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    for (enum ibv_qp_state state = IBV_QPS_RESET; state <= IBV_QPS_RTR; state++) {
        EXPECT_EQ(pair_step(pair.side[1].qp, &pair.side[0], state), 0);
    }
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    EXPECT_EQ(ibv_get_async_event(pair.side[1].context, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_COMM_EST);
    EXPECT_EQ(event.element.qp, pair.side[1].qp);
    ibv_ack_async_event(&event);
    pair_expect_no_event(&pair.side[1]);
    pair_fini(&pair);
}

TEST(AsyncEvent, TellsThatTheSendQueueIsDrainedWhenAsked)
{
    struct pair pair;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_STATE), 0);
    pair_expect_no_event(&pair.side[0]);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_STATE), 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    pair_expect_event(&pair.side[0], IBV_EVENT_SQ_DRAINED);
    pair_fini(&pair);
}

// 10.3.1: requests posted in SQD are sent in RTS.
TEST(AsyncEvent, DrainedQueueGoesOnLater)
{
    struct pair pair;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_STATE), 0);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    pair_expect_none(&pair.side[0]);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(pair.side[0].qp, &attr, IBV_QP_STATE), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    pair_fini(&pair);
}

static void pull_the_cable(void *arg)
{
    memory_world_cable(arg, 1, false);
}

TEST(AsyncEvent, IsWaitedFor)
{
    struct pair pair;
    struct ibv_async_event event;
    pair_init(&pair);
    memory_world_set_wait(pair.world, pull_the_cable, pair.world);
    EXPECT_EQ(ibv_get_async_event(pair.side[0].context, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
    memory_world_set_wait(pair.world, NULL, NULL);
    EXPECT_EQ(ibv_get_async_event(pair.side[0].context, &event), -1);
    EXPECT_EQ(errno, EINTR);
    pair_fini(&pair);
}

// An event of a queue pair: the peer writes with a wrong key.
static void raise_access_error(struct pair *pair)
{
    struct ibv_sge sge = pair_sge(&pair->side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(pair, IBV_WR_RDMA_WRITE, &sge);
    wr.wr.rdma.rkey = 1;
    EXPECT_EQ(pair_send(pair, &wr), 0);
    (void)pair_expect_wc(&pair->side[0], 1, IBV_WC_REM_ACCESS_ERR);
}

static struct ibv_async_event taken;

static void ack_it(void *arg)
{
    ibv_ack_async_event(&taken);
    memory_world_cable(arg, 2, false); // an event ends each wait
}

TEST(AsyncEvent, IsAcknowledgedBeforeItsObjectGoes)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    raise_access_error(&pair);
    EXPECT_EQ(ibv_get_async_event(pair.side[1].context, &taken), 0);
    EXPECT_EQ(ibv_destroy_qp(pair.side[1].qp), EINTR); // no acknowledgement and no other event comes
    memory_world_set_wait(pair.world, ack_it, pair.world);
    EXPECT_EQ(ibv_destroy_qp(pair.side[1].qp), 0);
    pair.side[1].qp = NULL;
    pair_fini(&pair);
}

// ibv_get_async_event(3): the objects of all kinds wait for the acknowledgement of their events.
TEST(AsyncEvent, OfACompletionQueueIsAcknowledgedBeforeTheQueueGoes)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    EXPECT_EQ(ibv_resize_cq(pair.side[0].cq, 1), 0);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    EXPECT_EQ(pair_send(&pair, &wr), 0); // the queue is overrun
    EXPECT_EQ(ibv_get_async_event(pair.side[0].context, &taken), 0);
    EXPECT_STREQ(ibv_event_type_str(taken.event_type), ibv_event_type_str(IBV_EVENT_CQ_ERR));
    EXPECT_EQ(ibv_destroy_qp(pair.side[0].qp), 0); // with its own event
    pair.side[0].qp = NULL;
    ASSERT_EQ(ibv_destroy_cq(pair.side[0].cq), EINTR); // no acknowledgement and no other event comes
    ibv_ack_async_event(&taken);
    EXPECT_EQ(ibv_destroy_cq(pair.side[0].cq), 0);
    pair.side[0].cq = ibv_create_cq(pair.side[0].context, 1, NULL, NULL, 0);
    pair_fini(&pair);
}

TEST(AsyncEvent, ThatNobodyTookGoesWithItsObject)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    raise_access_error(&pair);
    memory_world_cable(pair.world, 2, false);
    (void)fcntl(pair.side[1].channel->fd, F_SETFL, O_NONBLOCK);
    struct ibv_cq *cq;
    void *cq_context;
    EXPECT_EQ(ibv_get_cq_event(pair.side[1].channel, &cq, &cq_context), -1); // reads the events from the device
    EXPECT_EQ(ibv_destroy_qp(pair.side[1].qp), 0);
    pair.side[1].qp = NULL;
    pair_expect_event(&pair.side[1], IBV_EVENT_PORT_ERR);
    pair_expect_no_event(&pair.side[1]);
    pair_fini(&pair);
}

TEST(AsyncEvent, ComesAfterOneThatWentWithItsObject)
{
    struct pair pair;
    struct ibv_cq *cq;
    void *cq_context;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    raise_access_error(&pair);
    (void)fcntl(pair.side[1].channel->fd, F_SETFL, O_NONBLOCK);
    EXPECT_EQ(ibv_get_cq_event(pair.side[1].channel, &cq, &cq_context), -1); // reads the event from the device
    EXPECT_EQ(ibv_destroy_qp(pair.side[1].qp), 0);
    pair.side[1].qp = NULL;
    memory_world_cable(pair.world, 2, false);
    pair_expect_event(&pair.side[1], IBV_EVENT_PORT_ERR);
    pair_expect_no_event(&pair.side[1]);
    pair_fini(&pair);
}
