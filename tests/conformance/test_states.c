// Queue pairs through errors, RESET and new connections (IBA 10.3.1).
#include <errno.h>
#include <string.h>

#include "fixture.h"

static void reset(struct side *side, struct ibv_qp *qp)
{
    EXPECT_EQ(fixture_modify(side, qp, IBV_QPS_RESET, side->peer, 0), 0);
    EXPECT_EQ(fixture_state(qp), IBV_QPS_RESET);
}

// Both sides: an error, RESET, and a new connection with other packet numbers.
static void again(struct side *side)
{
    for (unsigned i = 0; i < 4; i++) {
        if (i % 2 == 0) {
            EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_ERR, side->peer, 0), 0);
            fixture_send(side, 1, IBV_WR_SEND, 0, 100, 0);
            (void)fixture_expect(side, 1, IBV_WC_WR_FLUSH_ERR);
        }
        fixture_barrier(side);
        reset(side, side->qp);
        fixture_barrier(side);
        side->attr.sq_psn = side->attr.rq_psn = 1000 * i;
        EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_INIT, side->peer, 0), 0);
        EXPECT_EQ(fixture_receive(side, 2, 4096, 100), 0);
        EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_RTR, side->peer, side->peer->qp->qp_num), 0);
        EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_RTS, side->peer, 0), 0);
        fixture_barrier(side);
        fixture_send(side, 1, IBV_WR_SEND, 0, 100, 0);
        const struct ibv_wc first = fixture_completion(side), second = fixture_completion(side);
        EXPECT_EQ(first.status | second.status, IBV_WC_SUCCESS);
        EXPECT_EQ(first.wr_id + second.wr_id, 3);
        fixture_expect_none(side, 20 * US);
        fixture_barrier(side);
    }
}

RULE(States, AQueuePairWorksAgainAfterErrorAndReset)
{
    fixture_play(device, again, again);
}

// The last messages of a connection: more than fit into what a device has in flight at once.
enum { LAST_ONES = 12, LAST_BYTES = 1088 };

static void say_the_last(struct side *side)
{
    for (unsigned to = 0; to < 3; to++) {
        struct ibv_qp *qp = side->qps[side->peer->index];
        fixture_barrier(side);
        for (unsigned i = 0; i < LAST_ONES; i++) {
            fixture_send(side, i, IBV_WR_SEND, 0, LAST_BYTES, 0);
        }
        EXPECT_EQ(fixture_modify(side, qp, to == 0 ? IBV_QPS_ERR : IBV_QPS_RESET, side->peer, 0), 0);
        fixture_barrier(side);
        reset(side, qp);
        fixture_connect(side, qp, side->peer, side->peer->qp->qp_num);
    }
}

static void hear_the_last(struct side *side)
{
    for (unsigned to = 0; to < 3; to++) {
        for (unsigned i = 0; i < LAST_ONES; i++) {
            EXPECT_EQ(fixture_receive(side, i, LAST_BYTES * i, LAST_BYTES), 0);
        }
        fixture_barrier(side);
        for (unsigned i = 0; i < LAST_ONES; i++) {
            (void)fixture_expect(side, i, IBV_WC_SUCCESS);
        }
        reset(side, side->qp);
        fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
        fixture_barrier(side);
    }
}

RULE(States, WhatWasPostedBeforeAQueuePairIsStoppedLeaves)
{
    fixture_play(device, say_the_last, hear_the_last);
}

// Outstanding requests on both sides, completions that were not polled: RESET drops all of them.
static void reset_in_the_middle(struct side *side)
{
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_EQ(fixture_receive(side, 50, 500000, 8), 0);
        fixture_send(side, 60, i % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 100000, 30000, 200000);
    }
    fixture_sleep(side, side->index * 3 * US);
    reset(side, side->qp);
    fixture_expect_none(side, 200 * US);
    fixture_barrier(side);
    fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
    EXPECT_EQ(fixture_receive(side, 1, 4096, 100), 0);
    fixture_barrier(side);
    fixture_send(side, 2, IBV_WR_SEND, 0, 100, 0);
    const struct ibv_wc first = fixture_completion(side), second = fixture_completion(side);
    EXPECT_EQ(first.status | second.status, IBV_WC_SUCCESS);
    EXPECT_EQ(first.wr_id + second.wr_id, 3);
    fixture_barrier(side);
}

// IBA 10.3.1.1.
RULE(States, ResetForgetsRequestsAndCompletions)
{
    fixture_play(device, reset_in_the_middle, reset_in_the_middle);
}

static void full_again(struct side *side)
{
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < FIXTURE_DEPTH; i++) {
            fixture_send(side, i, IBV_WR_RDMA_WRITE, 0, 8, 0);
            EXPECT_EQ(fixture_receive(side, i, 0, 8), 0);
        }
        reset(side, side->qp);
        fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
        fixture_barrier(side);
        fixture_barrier(side);
    }
    fixture_send(side, 1, IBV_WR_RDMA_WRITE, 0, 8, 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
}

static void follow(struct side *side)
{
    for (unsigned round = 0; round < 3; round++) {
        fixture_barrier(side);
        reset(side, side->qp);
        fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
        fixture_barrier(side);
    }
}

RULE(States, ResetEmptiesTheQueues)
{
    fixture_play(device, full_again, follow);
}

// Sends without waiting for acknowledgements, with the same packet numbers as before or others.
static void send_with_old_numbers(struct side *side)
{
    for (unsigned i = 0; i < 4; i++) {
        fixture_send(side, i, IBV_WR_RDMA_WRITE, 0, 8, 0);
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
    fixture_barrier(side);
    reset(side, side->qp);
    fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
    fixture_barrier(side);
    fixture_send(side, 4, IBV_WR_SEND, 0, 8, 0);
    (void)fixture_expect(side, 4, IBV_WC_RNR_RETRY_EXC_ERR);
}

static void reset_and_receive_nothing(struct side *side)
{
    fixture_barrier(side);
    reset(side, side->qp);
    fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
    fixture_barrier(side);
}

// IBA 10.3.1.1.
RULE(States, AcknowledgementsFromBeforeAResetCompleteNothing)
{
    struct fixture *fixture = fixture_new(device);
    fixture->attr.rnr_retry = 0;
    fixture_run(fixture, send_with_old_numbers, reset_and_receive_nothing);
    fixture_end(fixture);
}

static void send_early(struct side *side)
{
    fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
    fixture_barrier(side);
    for (unsigned i = 0; i < 3; i++) {
        fixture_send(side, i, IBV_WR_SEND, i * 100, 100, 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
}

static void ready_late(struct side *side)
{
    fixture_barrier(side);
    fixture_sleep(side, 10000 * US); // two timeouts
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_INIT, side->peer, 0), 0);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(fixture_receive(side, i, i * 100, 100), 0);
    }
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_RTR, side->peer, side->peer->qp->qp_num), 0);
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_RTS, side->peer, 0), 0);
    for (unsigned i = 0; i < 3; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
    fixture_expect_only(side, 0, side->peer, 0, 300);
}

// IBA 10.3.1.2: packets that arrive before RTR are dropped and retransmitted.
TIMED_RULE(States, WhatIsSentBeforeThePeerIsReadyComesAgain)
{
    struct fixture *fixture = fixture_new(device);
    fixture->unconnected = true;
    fixture_run(fixture, send_early, ready_late);
    fixture_end(fixture);
}

static void wrong_psn(struct side *side)
{
    fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT_EQ(ibv_query_qp(side->qp, &attr, IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init), 0);
    EXPECT_EQ(attr.sq_psn, 0xfffffe);
    EXPECT_EQ(attr.rq_psn, 0xfffffe);
    EXPECT_EQ(attr.dest_qp_num, side->peer->qp->qp_num);
    fixture_barrier(side);
    fixture_send(side, 1, IBV_WR_RDMA_WRITE, 0, 8, 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    fixture_sleep(side, 20 * US);
    EXPECT_EQ(ibv_query_qp(side->qp, &attr, IBV_QP_SQ_PSN, &init), 0);
    EXPECT_EQ(attr.sq_psn, 0xffffff);
}

static void connect_only(struct side *side)
{
    fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
    fixture_barrier(side);
}

TIMED_RULE(States, PacketNumbersBeginWhereTheyWereSet)
{
    struct fixture *fixture = fixture_new(device);
    fixture->unconnected = true;
    fixture_run(fixture, wrong_psn, connect_only);
    fixture_end(fixture);
}

static void change_while_drained(struct side *side)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    fixture_expect_event(side, IBV_EVENT_SQ_DRAINED, side->qp);
    attr.rnr_retry = 0;
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE | IBV_QP_RNR_RETRY), 0);
    fixture_sleep(side, 20 * US);
    fixture_expect_no_event(side); // the earlier drain raised its event
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE), 0);
    fixture_send(side, 1, IBV_WR_SEND, 0, 8, 0);
    (void)fixture_expect(side, 1, IBV_WC_RNR_RETRY_EXC_ERR);
}

// IBA table 91, SQD to SQD.
RULE(States, ADrainedQueuePairTakesOtherLimitsOfRetries)
{
    struct fixture *fixture = fixture_new(device);
    fixture->attr.rnr_retry = 7; // forever
    fixture_run(fixture, change_while_drained, NULL);
    fixture_end(fixture);
}

// --- destruction of objects with outstanding work --------------------------------------------------------------------

static void destroy_in_the_middle(struct side *side)
{
    for (unsigned delay_ns = 0; delay_ns < 6000; delay_ns += 150) {
        struct ibv_qp *qp = fixture_qp(side);
        side->value[0] = qp->qp_num;
        fixture_barrier(side);
        fixture_connect(side, qp, side->peer, (uint32_t)side->peer->value[0]);
        fixture_barrier(side);
        struct ibv_sge sge = fixture_sge(side, 0, 64);
        for (unsigned i = 0; i < 8; i++) {
            struct ibv_send_wr wr = fixture_wr(side, i, IBV_WR_RDMA_WRITE, &sge, 0), *bad;
            EXPECT_EQ(ibv_post_send(qp, &wr, &bad), 0);
        }
        fixture_sleep(side, side->index == 0 ? delay_ns * NS : 20 * US);
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
        fixture_expect_none(side, 20 * US);
        fixture_barrier(side);
    }
}

// IBA 11.2.4.4: outstanding requests have no effect after the destruction.
RULE(States, ADestroyedQueuePairCompletesNothing)
{
    fixture_play(device, destroy_in_the_middle, destroy_in_the_middle);
}

static void write_until_refused(struct side *side)
{
    for (unsigned i = 0; i < 20; i++) {
        fixture_barrier(side);
        for (unsigned j = 0; j < 8; j++) {
            fixture_send(side, j, IBV_WR_RDMA_WRITE, 0, i % 2 == 0 ? 512 : 60000, 0);
        }
        for (unsigned j = 0; j < 8; j++) {
            (void)fixture_completion(side);
        }
        fixture_barrier(side);
        EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_RESET, side->peer, 0), 0);
        fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
        fixture_barrier(side);
    }
}

static void deregister_and_use(struct side *side)
{
    static uint8_t expected[FIXTURE_BYTES];
    memset(expected, 0x77, sizeof expected);
    for (unsigned i = 0; i < 20; i++) {
        fixture_barrier(side);
        fixture_sleep(side, 500 * NS * (i + 1));
        EXPECT_EQ(ibv_dereg_mr(side->mr), 0);
        memset(side->memory, 0x77, FIXTURE_BYTES); // the program may use it again
        fixture_register(side);
        fixture_barrier(side);
        EXPECT_MEMEQ(side->memory, expected, FIXTURE_BYTES);
        EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_RESET, side->peer, 0), 0);
        fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
        fixture_barrier(side);
    }
}

// IBA 11.2.7.4: no byte is written after deregistration.
RULE(States, NothingIsWrittenIntoARegionThatIsGone)
{
    fixture_play(device, write_until_refused, deregister_and_use);
}
