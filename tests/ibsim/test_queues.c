// Shared receive queues, completion channels, limits of queues.
#include <errno.h>

#include "scene.h"

enum { BYTES = 64 };

static void send_at(struct scene_side *side, uint64_t wr_id, uint32_t offset, unsigned flags)
{
    struct ibv_sge sge = scene_sge(side, offset, BYTES);
    struct ibv_send_wr wr = scene_wr(side, IBV_WR_SEND, &sge, 0);
    wr.wr_id = wr_id;
    wr.send_flags |= flags;
    EXPECT_EQ(scene_post(side, &wr), 0);
}

// --- shared receive queues -------------------------------------------------------------------------------------------

static void three_sends(struct scene_side *side)
{
    scene_meet(side);
    for (uint32_t i = 0; i < 3; i++) {
        send_at(side, i, i * 1000, 0);
        (void)scene_completion(side, i, IBV_WC_SUCCESS);
    }
}

static void limit_expect(struct scene_side *side, uint32_t limit)
{
    struct ibv_srq_attr attr;
    EXPECT_EQ(ibv_query_srq(side->srq, &attr), 0);
    EXPECT_EQ(attr.max_wr, SCENE_DEPTH);
    EXPECT_EQ(attr.max_sge, 2);
    EXPECT_EQ(attr.srq_limit, limit);
}

static void shared_receive(struct scene_side *side)
{
    for (uint32_t i = 0; i < 4; i++) {
        EXPECT_EQ(scene_receive(side, i, i * 500, BYTES), 0);
    }
    struct ibv_srq_attr attr = {.srq_limit = 3};
    EXPECT_EQ(ibv_modify_srq(side->srq, &attr, IBV_SRQ_LIMIT), 0);
    limit_expect(side, 3);
    scene_meet(side);
    for (uint32_t i = 0; i < 3; i++) {
        (void)scene_completion(side, i, IBV_WC_SUCCESS);
        EXPECT_MEMEQ(side->memory + i * 500, side->peer->memory + i * 1000, BYTES);
        EXPECT_EQ(side->memory[i * 500 + BYTES], 0);
    }
    struct ibv_async_event event;
    EXPECT_EQ(ibv_get_async_event(side->context, &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    EXPECT_TRUE(event.element.srq == side->srq);
    ibv_ack_async_event(&event);
    limit_expect(side, 0);
}

TEST(IbsimQueues, ASharedReceiveQueueServesAndTellsThatItRunsLow)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene->shared_receives = true;
    scene_run(scene, three_sends, shared_receive);
    scene_end(scene);
}

static void shared_overfill(struct scene_side *side)
{
    for (uint32_t i = 0; i < SCENE_DEPTH; i++) {
        EXPECT_EQ(scene_receive(side, i, 0, BYTES), 0);
    }
    EXPECT_EQ(scene_receive(side, 99, 0, BYTES), ENOMEM);
    EXPECT_EQ(ibv_destroy_srq(side->srq), EBUSY);
}

TEST(IbsimQueues, AFullSharedReceiveQueueRefuses)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene->shared_receives = true;
    scene_run(scene, NULL, shared_overfill);
    scene_end(scene);
}

// --- completion channels ---------------------------------------------------------------------------------------------

static void solicit(struct scene_side *side)
{
    scene_meet(side);
    send_at(side, 0, 0, 0);
    (void)scene_completion(side, 0, IBV_WC_SUCCESS);
    sim_thread_sleep(side->scene->rig.sim, 50 * US);
    send_at(side, 1, 0, IBV_SEND_SOLICITED);
    (void)scene_completion(side, 1, IBV_WC_SUCCESS);
}

static void wait_for_event(struct scene_side *side)
{
    struct ibv_cq *cq = NULL;
    void *cq_context = NULL;
    struct ibv_wc wc[4];
    EXPECT_EQ(scene_receive(side, 0, 0, BYTES) | scene_receive(side, 1, 0, BYTES), 0);
    EXPECT_EQ(ibv_req_notify_cq(side->cq, 1), 0);
    scene_meet(side);
    uint64_t start_ps = sim_now_ps(side->scene->rig.sim);
    EXPECT_EQ(ibv_get_cq_event(side->channel, &cq, &cq_context), 0);
    EXPECT_TRUE(cq == side->cq && cq_context == side);
    EXPECT_TRUE(sim_now_ps(side->scene->rig.sim) - start_ps > 50 * US);
    EXPECT_EQ(ibv_poll_cq(cq, 4, wc), 2);
    ibv_ack_cq_events(cq, 1);
}

TEST(IbsimQueues, AChannelWakesItsProgramAtTheSolicitedCompletion)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, solicit, wait_for_event);
    scene_end(scene);
}

// --- limits ----------------------------------------------------------------------------------------------------------

static void overfill(struct scene_side *side)
{
    struct ibv_sge sge = scene_sge(side, 0, BYTES);
    struct ibv_send_wr list[SCENE_DEPTH + 1], *bad = NULL;
    for (unsigned i = 0; i <= SCENE_DEPTH; i++) {
        list[i] = scene_wr(side, IBV_WR_RDMA_WRITE, &sge, i * BYTES);
        list[i].wr_id = i;
        list[i].next = i < SCENE_DEPTH ? &list[i + 1] : NULL;
    }
    EXPECT_EQ(ibv_post_send(side->qp, list, &bad), ENOMEM);
    EXPECT_TRUE(bad == &list[SCENE_DEPTH]);
    for (unsigned i = 0; i < SCENE_DEPTH; i++) {
        (void)scene_completion(side, i, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(scene_post(side, &list[SCENE_DEPTH]), 0);
    (void)scene_completion(side, SCENE_DEPTH, IBV_WC_SUCCESS);
}

TEST(IbsimQueues, AFullSendQueueNamesTheRequestThatDidNotFit)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, overfill, NULL);
    for (uint32_t i = 0; i <= SCENE_DEPTH; i++) {
        EXPECT_MEMEQ(scene->sides[1].memory + i * BYTES, scene->sides[0].memory, BYTES);
    }
    scene_end(scene);
}

static void leave_open(struct scene_side *side)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    EXPECT_TRUE(ibv_create_cq(context, 8, NULL, NULL, 0) != NULL);
    EXPECT_TRUE(ibv_alloc_pd(context) != NULL);
    EXPECT_EQ(ibv_close_device(context), 0);
    (void)side;
}

TEST(IbsimQueues, ClosingADeviceEndsWhatWasLeftOnIt)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, leave_open, NULL);
    scene_end(scene);
}
