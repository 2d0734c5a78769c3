// What tells a program that something happened: limits of shared receive queues, completion and other events.
#include <errno.h>

#include "scene.h"

// --- shared receive queues -------------------------------------------------------------------------------------------

static void srq_receive(void *arg)
{
    (void)arg;
    const struct hca_sge sge = {(uint64_t)(uintptr_t)scene.far->memory, 64, hca_mr_lkey(scene.far->mr)};
    for (unsigned i = 0; i < 4; i++) {
        const struct hca_receive_wr wr = {.wr_id = i, .sges = &sge, .sge_count = 1};
        EXPECT_EQ(hca_post_srq_receive(scene.srq, &wr, NULL), 0);
    }
    const struct hca_receive_wr fifth = {.sges = &sge, .sge_count = 1};
    EXPECT_EQ(hca_post_srq_receive(scene.srq, &fifth, NULL), -ENOMEM);
    EXPECT_EQ(hca_srq_arm(scene.srq, 3), 0);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(rig_completion(&scene.b).wr_id, i);
    }
    scene_expect_event(scene.far, HCA_EVENT_SRQ_LIMIT);
    struct hca_event event;
    EXPECT_EQ(hca_event_get(scene.far->context, HCA_NO_WAIT, &event), -EAGAIN);
}

static void three_sends(void *arg)
{
    (void)arg;
    sim_thread_sleep(scene.rig.sim, 10 * US);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(rig_send(&scene.a, HCA_OP_SEND, 0, 64, scene.far, 0), 0);
        EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
    }
}

TEST(Events, ASharedReceiveQueueTellsOnceThatItRunsLow)
{
    scene_init(HCA_RC);
    EXPECT_EQ(hca_srq_create(scene.far->pd, 4, 1, NULL, NULL, NULL, &scene.srq), 0);
    rig_qp_close(&scene.b);
    struct hca_qp_create create = rig_qp_create(HCA_RC);
    create.srq = scene.srq;
    scene.b = rig_qp_with(scene.far, create);
    rig_qp_close(&scene.a);
    scene.a = rig_qp(scene.near, HCA_RC);
    rig_connect(&scene.a, &scene.b);
    EXPECT_EQ(hca_srq_destroy(scene.srq), -EBUSY);
    scene_run(three_sends, srq_receive);
    EXPECT_MEMEQ(scene.far->memory, scene.near->memory, 64);
    rig_qp_close(&scene.b);
    EXPECT_EQ(hca_srq_destroy(scene.srq), 0);
    rig_fini(&scene.rig);
}

// --- events --------------------------------------------------------------------------------------------------------

static void armed_receive(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(rig_receive(&scene.b, i, 0, 64), 0);
    }
    EXPECT_EQ(hca_cq_arm(scene.b.cq, true), 0);
    struct hca_event event;
    EXPECT_EQ(hca_event_get(scene.far->context, 50000, &event), -ETIMEDOUT); // the first is not solicited
    scene_expect_event(scene.far, HCA_EVENT_COMPLETION);
    struct hca_wc wc[4];
    EXPECT_EQ(hca_cq_poll(scene.b.cq, 4, wc), 2);
    EXPECT_EQ(hca_event_get(scene.far->context, HCA_NO_WAIT, &event), -EAGAIN);
}

static void solicited_send(void *arg)
{
    (void)arg;
    sim_thread_sleep(scene.rig.sim, 10 * US);
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_SEND, 0, 8, scene.far, 0), 0);
    sim_thread_sleep(scene.rig.sim, 100 * US);
    struct hca_sge sge;
    struct hca_send_wr wr = rig_wr(&scene.a, HCA_OP_SEND, 0, 8, &sge);
    wr.flags = HCA_WQE_SOLICITED;
    EXPECT_EQ(hca_post_send(scene.a.qp, &wr, NULL), 0);
}

TEST(Events, ASolicitedCompletionRaisesTheEventAndOthersDoNot)
{
    scene_init(HCA_RC);
    scene_run(solicited_send, armed_receive);
    rig_fini(&scene.rig);
}

static void destroy_after(uint64_t ps)
{
    struct rig_qp qp = {.process = scene.near}, peer = rig_qp(scene.far, HCA_RC);
    EXPECT_EQ(hca_cq_create(scene.near->context, 4, NULL, &qp.cq), 0);
    struct hca_qp_create create = rig_qp_create(HCA_RC);
    create.send_cq = create.receive_cq = qp.cq;
    EXPECT_EQ(hca_qp_create(scene.near->pd, &create, &qp.qp), 0);
    rig_connect(&qp, &peer);
    EXPECT_EQ(rig_send(&qp, HCA_OP_WRITE, 0, 8, scene.far, 0), 0);
    sim_thread_sleep(scene.rig.sim, ps);
    EXPECT_EQ(hca_qp_destroy(qp.qp), 0);
    sim_thread_sleep(scene.rig.sim, 100 * US);
    struct hca_wc wc;
    EXPECT_EQ(hca_cq_poll(qp.cq, 1, &wc), 0);
    EXPECT_EQ(hca_cq_destroy(qp.cq), 0);
    rig_qp_close(&peer);
}

static void destroy_under_way(void *arg)
{
    (void)arg;
    for (unsigned step = 0; step < 120; step++) { // somewhere its completion is on the bus
        destroy_after(step * 25 * NS);
    }
}

TEST(Events, ACompletionOfADestroyedQueuePairIsNotSeen)
{
    scene_init(HCA_RC);
    scene_run(destroy_under_way, NULL);
    rig_fini(&scene.rig);
}

// Each arming of a queue where a completion came since the last event raises one.
static void events_raise(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 8, scene.far, 0), 0);
        EXPECT_EQ(hca_cq_wait(scene.a.cq, 0), 0);
        EXPECT_EQ(hca_cq_arm(scene.a.cq, false), 0);
        EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
    }
    sim_thread_sleep(scene.rig.sim, 10 * US);
}

static void events_expect(unsigned count, enum hca_event_type type)
{
    struct hca_event event = {0};
    for (unsigned i = 0; i < count; i++) {
        EXPECT_EQ(hca_event_get(scene.near->context, HCA_NO_WAIT, &event), 0);
        EXPECT_EQ(event.type, type);
    }
}

enum { EVENT_PLACES = 1023 };

static void overflow_events(void *arg)
{
    (void)arg;
    struct hca_event event;
    events_raise(EVENT_PLACES + 5);
    events_raise(3);
    events_expect(EVENT_PLACES, HCA_EVENT_COMPLETION);
    events_expect(1, HCA_EVENT_DEVICE_FATAL);
    events_raise(1);
    EXPECT_EQ(hca_event_get(scene.near->context, HCA_NO_WAIT, &event), -EAGAIN);
}

TEST(Events, AnOverflownEventQueueEndsWithDeviceFatalAndCountsWhatIsLost)
{
    scene_init(HCA_RC);
    scene_run(overflow_events, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "eq_overflows"), 1);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "events_lost"), 5 + 3 + 1);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "events"), EVENT_PLACES + 1);
    rig_fini(&scene.rig);
}

static void drain_events(void *arg)
{
    (void)arg;
    events_raise(EVENT_PLACES);
    for (unsigned i = 0; i < 5; i++) { // looks full again and again, and is not
        events_expect(500, HCA_EVENT_COMPLETION);
        events_raise(500);
    }
    events_expect(EVENT_PLACES, HCA_EVENT_COMPLETION);
}

TEST(Events, AnEventQueueThatIsReadInTimeLosesNothing)
{
    scene_init(HCA_RC);
    scene_run(drain_events, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "eq_overflows"), 0);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "events"), EVENT_PLACES + 5 * 500);
    rig_fini(&scene.rig);
}
