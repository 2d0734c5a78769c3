// Asynchronous events (IBA 11.6.3) without a completion; test_errors.c tests those of errors.
#include <errno.h>

#include "fixture.h"

static void share(struct fixture *fixture)
{
    fixture->shared_receives = true;
}

static void play_shared(enum device device, program_fn near, program_fn far)
{
    struct fixture *fixture = fixture_new(device);
    share(fixture);
    fixture_run(fixture, near, far);
    fixture_end(fixture);
}

// --- shared receive queues -------------------------------------------------------------------------------------------

static void three_sends(struct side *side)
{
    fixture_barrier(side);
    for (uint32_t i = 0; i < 3; i++) {
        fixture_send(side, i, IBV_WR_SEND, i * 1000, 64, 0);
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
}

static void limit_expect(struct side *side, uint32_t limit)
{
    struct ibv_srq_attr attr;
    EXPECT_EQ(ibv_query_srq(side->srq, &attr), 0);
    EXPECT_EQ(attr.max_wr, FIXTURE_DEPTH);
    EXPECT_EQ(attr.srq_limit, limit);
}

static void shared_receive(struct side *side)
{
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_EQ(fixture_receive(side, i, i * 500, 64), 0);
    }
    struct ibv_srq_attr attr = {.srq_limit = 3};
    EXPECT_EQ(ibv_modify_srq(side->srq, &attr, IBV_SRQ_LIMIT), 0);
    limit_expect(side, 3);
    fixture_expect_no_event(side);
    fixture_barrier(side);
    for (uint32_t i = 0; i < 3; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
        EXPECT_MEMEQ(side->memory + i * 500, side->peer->memory + i * 1000, 64);
    }
    fixture_expect_event(side, IBV_EVENT_SRQ_LIMIT_REACHED, side->srq);
    fixture_expect_no_event(side); // it is disarmed
    limit_expect(side, 0);
}

// IBA 10.2.9.2: once, at the arrival after which fewer than the limit are left.
RULE(Events, ASharedReceiveQueueTellsThatItRunsLow)
{
    play_shared(device, three_sends, shared_receive);
}

static void two_sends(struct side *side)
{
    for (uint32_t i = 0; i < 2; i++) {
        fixture_barrier(side);
        fixture_send(side, i, IBV_WR_SEND, 0, 64, 0);
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
}

static void reach_the_limit(struct side *side)
{
    struct ibv_srq_attr attr = {.srq_limit = 3};
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_EQ(fixture_receive(side, i, i * 500, 64), 0);
    }
    EXPECT_EQ(ibv_modify_srq(side->srq, &attr, IBV_SRQ_LIMIT), 0);
    fixture_barrier(side);
    (void)fixture_expect(side, 0, IBV_WC_SUCCESS);
    fixture_expect_no_event(side); // three are left
    fixture_barrier(side);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    fixture_expect_event(side, IBV_EVENT_SRQ_LIMIT_REACHED, side->srq);
}

// IBA 10.2.9.2: fewer than the limit, not as many.
RULE(Events, ASharedReceiveQueueIsLowBelowItsLimitAndNotAtIt)
{
    play_shared(device, two_sends, reach_the_limit);
}

static void low_already(struct side *side)
{
    EXPECT_EQ(fixture_receive(side, 1, 0, 64), 0);
    struct ibv_srq_attr attr = {.srq_limit = 2};
    EXPECT_EQ(ibv_modify_srq(side->srq, &attr, IBV_SRQ_LIMIT), 0);
    fixture_barrier(side);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    fixture_expect_event(side, IBV_EVENT_SRQ_LIMIT_REACHED, side->srq);
    fixture_expect_no_event(side);
}

static void one_send(struct side *side)
{
    fixture_barrier(side);
    fixture_send(side, 1, IBV_WR_SEND, 0, 64, 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
}

RULE(Events, ALimitThatIsReachedAlreadyTellsAtTheNextArrivalAtTheLatest)
{
    play_shared(device, one_send, low_already);
}

static void fail_shared(struct side *side)
{
    EXPECT_EQ(fixture_receive(side, 1, 0, 64), 0);
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_ERR, side->peer, 0), 0);
    fixture_expect_event(side, IBV_EVENT_QP_LAST_WQE_REACHED, side->qp);
    fixture_expect_none(side, 20 * US); // the receive stays for other queue pairs
    fixture_expect_no_event(side);
}

// IBA 10.2.9.3, 11.6.3.1.
RULE(Events, AQueuePairInErrorHasReachedItsLastSharedReceive)
{
    play_shared(device, NULL, fail_shared);
}

static void fail_shared_and_post(struct side *side)
{
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_ERR, side->peer, 0), 0);
    fixture_expect_event(side, IBV_EVENT_QP_LAST_WQE_REACHED, side->qp);
    fixture_send(side, 1, IBV_WR_SEND, 0, 64, 0);
    (void)fixture_expect(side, 1, IBV_WC_WR_FLUSH_ERR);
    fixture_expect_no_event(side);
}

RULE(Events, WhatIsFlushedLaterReachesNoSecondLastSharedReceive)
{
    play_shared(device, NULL, fail_shared_and_post);
}

static void share_on_two(struct side *side)
{
    EXPECT_EQ(fixture_receive(side, 1, 0, 64) | fixture_receive(side, 2, 64, 64), 0);
    EXPECT_EQ(fixture_modify(side, side->qps[0], IBV_QPS_ERR, side->peer, 0), 0);
    fixture_expect_event(side, IBV_EVENT_QP_LAST_WQE_REACHED, side->qps[0]);
    side->qp = side->qps[1];
    side->peer = side;
    fixture_send(side, 9, IBV_WR_SEND, 4096, 64, 0);
    const struct ibv_wc first = fixture_completion(side), second = fixture_completion(side);
    EXPECT_EQ(first.status | second.status, IBV_WC_SUCCESS);
    EXPECT_EQ(first.wr_id + second.wr_id, 10);
}

RULE(Events, OtherQueuePairsTakeWhatTheFailedOneLeft)
{
    struct fixture *fixture = fixture_new(device);
    share(fixture);
    fixture->all_qps = true;
    fixture_run(fixture, NULL, share_on_two);
    fixture_end(fixture);
}

// --- queue pairs -----------------------------------------------------------------------------------------------------

static void send_to_early(struct side *side)
{
    fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
    fixture_barrier(side);
    fixture_send(side, 1, IBV_WR_SEND, 0, 64, 0);
    fixture_send(side, 2, IBV_WR_SEND, 0, 64, 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    (void)fixture_expect(side, 2, IBV_WC_SUCCESS);
    fixture_barrier(side);
}

static void ready_to_receive(struct side *side)
{
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_INIT, side->peer, 0), 0);
    EXPECT_EQ(fixture_receive(side, 3, 0, 64) | fixture_receive(side, 4, 0, 64), 0);
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_RTR, side->peer, side->peer->qp->qp_num), 0);
    fixture_barrier(side);
    fixture_expect_event(side, IBV_EVENT_COMM_EST, side->qp);
    fixture_expect_no_event(side);
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_RTS, side->peer, 0), 0);
    (void)fixture_expect(side, 3, IBV_WC_SUCCESS);
    (void)fixture_expect(side, 4, IBV_WC_SUCCESS);
    fixture_barrier(side);
}

// IBA 10.3.1.4, 11.6.3.1: the first message in RTR, once.
RULE(Events, AMessageThatArrivesBeforeTheQueuePairSendsEstablishesIt)
{
    struct fixture *fixture = fixture_new(device);
    fixture->unconnected = true;
    fixture_run(fixture, send_to_early, ready_to_receive);
    fixture_end(fixture);
}

enum { LIVES = 2 };

static void reset_after_life(struct side *side)
{
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_RESET, side->peer, 0), 0);
    fixture_barrier(side);
}

static void send_to_early_in_each_life(struct side *side)
{
    for (unsigned life = 0; life < LIVES; life++) {
        send_to_early(side);
        reset_after_life(side);
    }
}

static void ready_to_receive_in_each_life(struct side *side)
{
    for (unsigned life = 0; life < LIVES; life++) {
        TEST_TRACE("life %u", life);
        ready_to_receive(side);
        reset_after_life(side);
    }
}

// IBA 10.3.1.1: RESET restores the state after creation.
RULE(Events, AQueuePairThatWasResetIsEstablishedAgain)
{
    struct fixture *fixture = fixture_new(device);
    fixture->unconnected = true;
    fixture_run(fixture, send_to_early_in_each_life, ready_to_receive_in_each_life);
    fixture_end(fixture);
}

static void drain(struct side *side)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    for (unsigned i = 0; i < 3; i++) {
        fixture_send(side, i, IBV_WR_RDMA_READ, i * 65536, 60000, 0);
    }
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    fixture_expect_event(side, IBV_EVENT_SQ_DRAINED, side->qp);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_SQD);
    fixture_send(side, 7, IBV_WR_RDMA_WRITE, 0, 64, 0); // waits
    fixture_sleep(side, 20 * US);
    EXPECT_EQ(side->peer->memory[0], 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), 0);
    for (unsigned i = 0; i < 3; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
    (void)fixture_expect(side, 7, IBV_WC_SUCCESS);
}

static void go_on_before_it_is_drained(struct side *side)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    fixture_send(side, 9, IBV_WR_RDMA_WRITE, 0, 8, 0);
    (void)fixture_expect(side, 9, IBV_WC_SUCCESS);
    for (unsigned i = 0; i < 3; i++) {
        fixture_send(side, i, IBV_WR_RDMA_READ, i * 65536, 60000, 0);
    }
    fixture_sleep(side, 5 * US); // some of the requests begin
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), EBUSY);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_SQD);
    fixture_expect_event(side, IBV_EVENT_SQ_DRAINED, side->qp);
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), 0);
    for (unsigned i = 0; i < 3; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
}

// IBA 10.3.1.7.
TIMED_RULE(Events, ASendQueueGoesOnWhenItIsDrainedAndNotBefore)
{
    fixture_play(device, go_on_before_it_is_drained, NULL);
}

// IBA 10.3.1.7: requests that have begun end, the others wait.
RULE(Events, ADrainedSendQueueTellsAndHoldsWhatComes)
{
    fixture_play(device, drain, NULL);
}
