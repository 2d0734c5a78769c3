// Queues, lists and objects at their limits: what is refused when it is posted or destroyed, and that it changes
// nothing.
#include <errno.h>
#include <string.h>

#include "stage.h"

enum { BYTES = 64 };

static void overfill_sends(struct side *side)
{
    struct ibv_sge sge = stage_sge(side, 0, BYTES);
    struct ibv_send_wr list[STAGE_DEPTH + 2], *bad = NULL;
    for (unsigned i = 0; i < STAGE_DEPTH + 2; i++) {
        list[i] = stage_wr(side, i, IBV_WR_RDMA_WRITE, &sge, i * BYTES);
        list[i].next = i <= STAGE_DEPTH ? &list[i + 1] : NULL;
    }
    EXPECT_EQ(ibv_post_send(side->qp, list, &bad), ENOMEM);
    EXPECT_TRUE(bad == &list[STAGE_DEPTH]);
    for (unsigned i = 0; i < STAGE_DEPTH; i++) {
        (void)stage_expect(side, i, IBV_WC_SUCCESS);
    }
    stage_expect_none(side, 20 * US);
    EXPECT_EQ(side->peer->memory[STAGE_DEPTH * BYTES], 0);
    EXPECT_EQ(ibv_post_send(side->qp, &list[STAGE_DEPTH], &bad), 0);
    (void)stage_expect(side, STAGE_DEPTH, IBV_WC_SUCCESS);
    (void)stage_expect(side, STAGE_DEPTH + 1, IBV_WC_SUCCESS);
    stage_sleep(side, 20 * US);
    for (unsigned i = 0; i < STAGE_DEPTH + 2; i++) {
        EXPECT_MEMEQ(side->peer->memory + i * BYTES, side->memory, BYTES);
    }
}

// IBA 10.8.5, 11.4.1.1.
RULE(Limits, AFullSendQueueNamesTheRequestThatDidNotFit)
{
    stage_play(device, overfill_sends, NULL);
}

static void send_depth(struct side *side)
{
    stage_meet(side);
    for (unsigned i = 0; i < STAGE_DEPTH; i++) {
        stage_send(side, i, IBV_WR_SEND, 0, 8, 0);
    }
    for (unsigned i = 0; i < STAGE_DEPTH; i++) {
        (void)stage_expect(side, i, IBV_WC_SUCCESS);
    }
    stage_meet(side);
}

static void overfill_receives(struct side *side)
{
    struct ibv_sge sge = stage_sge(side, 0, BYTES);
    struct ibv_recv_wr list[STAGE_DEPTH + 1], *bad = NULL;
    for (unsigned i = 0; i <= STAGE_DEPTH; i++) {
        list[i] = (struct ibv_recv_wr){.wr_id = i, .sg_list = &sge, .num_sge = 1};
        list[i].next = i < STAGE_DEPTH ? &list[i + 1] : NULL;
    }
    bool shared = side->srq != NULL;
    EXPECT_EQ(shared ? ibv_post_srq_recv(side->srq, list, &bad) : ibv_post_recv(side->qp, list, &bad), ENOMEM);
    EXPECT_TRUE(bad == &list[STAGE_DEPTH]);
    stage_meet(side);
    for (unsigned i = 0; i < STAGE_DEPTH; i++) {
        (void)stage_expect(side, i, IBV_WC_SUCCESS);
    }
    stage_expect_none(side, 20 * US);
    stage_meet(side);
}

RULE(Limits, AFullReceiveQueueNamesTheRequestThatDidNotFit)
{
    for (unsigned shared = 0; shared < 2; shared++) {
        struct stage *stage = stage_new(device);
        stage->shared_receives = shared != 0;
        stage_run(stage, send_depth, overfill_receives);
        stage_end(stage);
    }
}

static void too_many_pieces(struct side *side)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct ibv_sge pieces[64];
    EXPECT_EQ(ibv_query_qp(side->qp, &attr, IBV_QP_CAP, &init), 0);
    EXPECT_TRUE(init.cap.max_send_sge >= 4 && init.cap.max_recv_sge >= 4 && init.cap.max_recv_sge < 64);
    for (unsigned i = 0; i < 64; i++) {
        pieces[i] = stage_sge(side, i * 8, 8);
    }
    struct ibv_send_wr second = stage_wr(side, 2, IBV_WR_RDMA_WRITE, pieces, 4096), *bad = NULL;
    struct ibv_send_wr first = stage_wr(side, 1, IBV_WR_RDMA_WRITE, pieces, 0);
    first.num_sge = (int)init.cap.max_send_sge;
    first.next = &second;
    second.num_sge = (int)init.cap.max_send_sge + 1;
    EXPECT_EQ(ibv_post_send(side->qp, &first, &bad), ENOMEM);
    EXPECT_TRUE(bad == &second);
    (void)stage_expect(side, 1, IBV_WC_SUCCESS);
    stage_expect_none(side, 20 * US);
    stage_expect_only(side->peer, 0, side, 0, init.cap.max_send_sge * 8);
    struct ibv_recv_wr receive = {.sg_list = pieces, .num_sge = (int)init.cap.max_recv_sge + 1}, *bad_receive = NULL;
    EXPECT_EQ(ibv_post_recv(side->qp, &receive, &bad_receive), EINVAL);
    EXPECT_TRUE(bad_receive == &receive);
}

// IBA 10.7.3; the code is that of libmlx4.
RULE(Limits, MorePiecesThanDeclaredAreRefused)
{
    stage_play(device, too_many_pieces, NULL);
}

static void too_long_inline(struct side *side)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    EXPECT_EQ(ibv_query_qp(side->qp, &attr, IBV_QP_CAP, &init), 0);
    EXPECT_TRUE(init.cap.max_inline_data >= 64);
    for (unsigned more = 0; more < 2; more++) {
        struct ibv_sge sge = stage_sge(side, 0, init.cap.max_inline_data + more);
        struct ibv_send_wr wr = stage_wr(side, 1, IBV_WR_RDMA_WRITE, &sge, 0);
        wr.send_flags |= IBV_SEND_INLINE;
        EXPECT_EQ(stage_post(side, &wr), more != 0 ? ENOMEM : 0);
    }
    (void)stage_expect(side, 1, IBV_WC_SUCCESS);
    stage_expect_none(side, 20 * US);
}

RULE(Limits, MoreInlineDataThanDeclaredIsRefused)
{
    stage_play(device, too_long_inline, NULL);
}

// --- states ----------------------------------------------------------------------------------------------------------

static void post_too_early(struct side *side)
{
    struct ibv_sge sge = stage_sge(side, 0, 8);
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_send_wr wr = stage_wr(side, 1, IBV_WR_SEND, &sge, 0);
    EXPECT_EQ(stage_post(side, &wr), EINVAL);
    EXPECT_EQ(ibv_post_recv(side->qp, &receive, &bad), EINVAL);
    EXPECT_EQ(stage_modify(side, side->qp, IBV_QPS_INIT, side->peer, 0), 0);
    EXPECT_EQ(stage_post(side, &wr), EINVAL);
    EXPECT_EQ(ibv_post_recv(side->qp, &receive, &bad), 0);
    EXPECT_EQ(stage_modify(side, side->qp, IBV_QPS_RTR, side->peer, side->peer->qp->qp_num), 0);
    EXPECT_EQ(stage_post(side, &wr), EINVAL);
    stage_expect_none(side, 20 * US);
}

// IBA 10.3.1.
RULE(Limits, AQueuePairThatIsNotReadyTakesNoRequests)
{
    struct stage *stage = stage_new(device);
    stage->unconnected = true;
    stage_run(stage, post_too_early, NULL);
    stage_end(stage);
}

// --- objects in use --------------------------------------------------------------------------------------------------

static void destroy_used(struct side *side)
{
    EXPECT_EQ(ibv_destroy_cq(side->cq), EBUSY);
    EXPECT_EQ(ibv_destroy_comp_channel(side->channel), EBUSY);
    EXPECT_EQ(ibv_dealloc_pd(side->pd), EBUSY);
    EXPECT_EQ(side->srq != NULL ? ibv_destroy_srq(side->srq) : EBUSY, EBUSY);
    stage_meet(side);
    if (side->index == 0) { // and all of it works
        stage_send(side, 1, IBV_WR_RDMA_WRITE, 0, 64, 0);
        (void)stage_expect(side, 1, IBV_WC_SUCCESS);
    }
    stage_meet(side);
}

// IBA 11.2: an object that others need stays.
RULE(Limits, AnObjectInUseIsNotDestroyed)
{
    struct stage *stage = stage_new(device);
    stage->shared_receives = true;
    stage_run(stage, destroy_used, destroy_used);
    stage_end(stage);
}

static void leave_open(struct side *side)
{
    struct ibv_send_wr *bad;
    struct ibv_sge sge = stage_sge(side, 0, 100000);
    struct ibv_send_wr wr = stage_wr(side, 1, IBV_WR_RDMA_WRITE, &sge, 0);
    EXPECT_EQ(ibv_post_send(side->qp, &wr, &bad), 0);
    EXPECT_EQ(stage_receive(side, 1, 0, 64), 0);
}

// A process that ends in the middle, with requests under way, leaves nothing (machine_destroy looks).
RULE(Limits, AProgramMayEndInTheMiddle)
{
    struct stage *stage = stage_new(device);
    stage->abandon = stage->gone = true;
    stage_run(stage, leave_open, leave_open);
    stage_end(stage);
}
