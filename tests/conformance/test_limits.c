// Queues, lists and objects at their limits: requests and destructions that are refused, without any effect.
#include <errno.h>
#include <string.h>

#include "fixture.h"

enum { BYTES = 64 };

static void overfill_sends(struct side *side)
{
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    struct ibv_send_wr list[FIXTURE_DEPTH + 2], *bad = NULL;
    for (unsigned i = 0; i < FIXTURE_DEPTH + 2; i++) {
        list[i] = fixture_wr(side, i, IBV_WR_RDMA_WRITE, &sge, i * BYTES);
        list[i].next = i <= FIXTURE_DEPTH ? &list[i + 1] : NULL;
    }
    EXPECT_EQ(ibv_post_send(side->qp, list, &bad), ENOMEM);
    EXPECT_EQ(bad, &list[FIXTURE_DEPTH]);
    for (unsigned i = 0; i < FIXTURE_DEPTH; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
    fixture_expect_none(side, 20 * US);
    EXPECT_EQ(side->peer->memory[FIXTURE_DEPTH * BYTES], 0);
    EXPECT_EQ(ibv_post_send(side->qp, &list[FIXTURE_DEPTH], &bad), 0);
    (void)fixture_expect(side, FIXTURE_DEPTH, IBV_WC_SUCCESS);
    (void)fixture_expect(side, FIXTURE_DEPTH + 1, IBV_WC_SUCCESS);
    fixture_sleep(side, 20 * US);
    for (unsigned i = 0; i < FIXTURE_DEPTH + 2; i++) {
        EXPECT_MEMEQ(side->peer->memory + i * BYTES, side->memory, BYTES);
    }
}

// IBA 10.8.5, 11.4.1.1.
RULE(Limits, AFullSendQueueNamesTheRequestThatDidNotFit)
{
    fixture_play(device, overfill_sends, NULL);
}

static void send_depth(struct side *side)
{
    fixture_barrier(side);
    for (unsigned i = 0; i < FIXTURE_DEPTH; i++) {
        fixture_send(side, i, IBV_WR_SEND, 0, 8, 0);
    }
    for (unsigned i = 0; i < FIXTURE_DEPTH; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
    fixture_barrier(side);
}

static void overfill_receives(struct side *side)
{
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    struct ibv_recv_wr list[FIXTURE_DEPTH + 1], *bad = NULL;
    for (unsigned i = 0; i <= FIXTURE_DEPTH; i++) {
        list[i] = (struct ibv_recv_wr){.wr_id = i, .sg_list = &sge, .num_sge = 1};
        list[i].next = i < FIXTURE_DEPTH ? &list[i + 1] : NULL;
    }
    bool shared = side->srq != NULL;
    EXPECT_EQ(shared ? ibv_post_srq_recv(side->srq, list, &bad) : ibv_post_recv(side->qp, list, &bad), ENOMEM);
    EXPECT_EQ(bad, &list[FIXTURE_DEPTH]);
    fixture_barrier(side);
    for (unsigned i = 0; i < FIXTURE_DEPTH; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
    fixture_expect_none(side, 20 * US);
    fixture_barrier(side);
}

RULE(Limits, AFullReceiveQueueNamesTheRequestThatDidNotFit)
{
    for (unsigned shared = 0; shared < 2; shared++) {
        struct fixture *fixture = fixture_new(device);
        fixture->shared_receives = shared != 0;
        fixture_run(fixture, send_depth, overfill_receives);
        fixture_end(fixture);
    }
}

static void too_many_pieces(struct side *side)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct ibv_sge pieces[64];
    EXPECT_EQ(ibv_query_qp(side->qp, &attr, IBV_QP_CAP, &init), 0);
    EXPECT_GE(init.cap.max_send_sge, 4);
    EXPECT_GE(init.cap.max_recv_sge, 4);
    EXPECT_LT(init.cap.max_recv_sge, 64);
    for (unsigned i = 0; i < 64; i++) {
        pieces[i] = fixture_sge(side, i * 8, 8);
    }
    struct ibv_send_wr second = fixture_wr(side, 2, IBV_WR_RDMA_WRITE, pieces, 4096), *bad = NULL;
    struct ibv_send_wr first = fixture_wr(side, 1, IBV_WR_RDMA_WRITE, pieces, 0);
    first.num_sge = (int)init.cap.max_send_sge;
    first.next = &second;
    second.num_sge = (int)init.cap.max_send_sge + 1;
    EXPECT_EQ(ibv_post_send(side->qp, &first, &bad), ENOMEM);
    EXPECT_EQ(bad, &second);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    fixture_expect_none(side, 20 * US);
    fixture_expect_only(side->peer, 0, side, 0, init.cap.max_send_sge * 8);
    struct ibv_recv_wr receive = {.sg_list = pieces, .num_sge = (int)init.cap.max_recv_sge + 1}, *bad_receive = NULL;
    EXPECT_EQ(ibv_post_recv(side->qp, &receive, &bad_receive), EINVAL);
    EXPECT_EQ(bad_receive, &receive);
}

// IBA 10.7.3; the code is that of libmlx4.
RULE(Limits, MorePiecesThanDeclaredAreRefused)
{
    fixture_play(device, too_many_pieces, NULL);
}

static void too_long_inline(struct side *side)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT_EQ(ibv_query_qp(side->qp, &attr, IBV_QP_CAP, &init), 0);
    EXPECT_GE(init.cap.max_inline_data, 64);
    for (unsigned more = 0; more < 2; more++) {
        struct ibv_sge sge = fixture_sge(side, 0, init.cap.max_inline_data + more);
        struct ibv_send_wr wr = fixture_wr(side, 1, IBV_WR_RDMA_WRITE, &sge, 0);
        wr.send_flags |= IBV_SEND_INLINE;
        EXPECT_EQ(fixture_post(side, &wr), more != 0 ? ENOMEM : 0);
    }
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    fixture_expect_none(side, 20 * US);
}

RULE(Limits, MoreInlineDataThanDeclaredIsRefused)
{
    fixture_play(device, too_long_inline, NULL);
}

// --- states ----------------------------------------------------------------------------------------------------------

static void post_too_early(struct side *side)
{
    struct ibv_sge sge = fixture_sge(side, 0, 8);
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_send_wr wr = fixture_wr(side, 1, IBV_WR_SEND, &sge, 0);
    EXPECT_EQ(fixture_post(side, &wr), EINVAL);
    EXPECT_EQ(ibv_post_recv(side->qp, &receive, &bad), EINVAL);
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_INIT, side->peer, 0), 0);
    EXPECT_EQ(fixture_post(side, &wr), EINVAL);
    EXPECT_EQ(ibv_post_recv(side->qp, &receive, &bad), 0);
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_RTR, side->peer, side->peer->qp->qp_num), 0);
    EXPECT_EQ(fixture_post(side, &wr), EINVAL);
    fixture_expect_none(side, 20 * US);
}

// IBA 10.3.1.
RULE(Limits, AQueuePairThatIsNotReadyTakesNoRequests)
{
    struct fixture *fixture = fixture_new(device);
    fixture->unconnected = true;
    fixture_run(fixture, post_too_early, NULL);
    fixture_end(fixture);
}

// --- objects in use --------------------------------------------------------------------------------------------------

static void destroy_used(struct side *side)
{
    EXPECT_EQ(ibv_destroy_cq(side->cq), EBUSY);
    EXPECT_EQ(ibv_destroy_comp_channel(side->channel), EBUSY);
    EXPECT_EQ(ibv_dealloc_pd(side->pd), EBUSY);
    EXPECT_EQ(side->srq != NULL ? ibv_destroy_srq(side->srq) : EBUSY, EBUSY);
    fixture_barrier(side);
    if (side->index == 0) { // everything still works
        fixture_send(side, 1, IBV_WR_RDMA_WRITE, 0, 64, 0);
        (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    }
    fixture_barrier(side);
}

// IBA 11.2: an object that others need is not destroyed.
RULE(Limits, AnObjectInUseIsNotDestroyed)
{
    struct fixture *fixture = fixture_new(device);
    fixture->shared_receives = true;
    fixture_run(fixture, destroy_used, destroy_used);
    fixture_end(fixture);
}

static void leave_open(struct side *side)
{
    struct ibv_send_wr *bad;
    struct ibv_sge sge = fixture_sge(side, 0, 100000);
    struct ibv_send_wr wr = fixture_wr(side, 1, IBV_WR_RDMA_WRITE, &sge, 0);
    EXPECT_EQ(ibv_post_send(side->qp, &wr, &bad), 0);
    EXPECT_EQ(fixture_receive(side, 1, 0, 64), 0);
}

// A process that ends at any point, with outstanding requests, leaves nothing (machine_destroy checks).
RULE(Limits, AProgramMayEndInTheMiddle)
{
    struct fixture *fixture = fixture_new(device);
    fixture->abandon = fixture->gone = true;
    fixture_run(fixture, leave_open, leave_open);
    fixture_end(fixture);
}
