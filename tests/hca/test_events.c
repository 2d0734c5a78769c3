// Notifications to a program: limits of shared receive queues, completion and other events.
#include <errno.h>

#include "fixture.h"

// --- shared receive queues -------------------------------------------------------------------------------------------

static void srq_receive(void *arg)
{
    (void)arg;
    const struct hca_sge sge = {(uint64_t)(uintptr_t)fixture.far->memory, 64, hca_mr_lkey(fixture.far->mr)};
    for (unsigned i = 0; i < 4; i++) {
        const struct hca_receive_wr wr = {.wr_id = i, .sges = &sge, .sge_count = 1};
        EXPECT_EQ(hca_post_srq_receive(fixture.srq, &wr, NULL), 0);
    }
    const struct hca_receive_wr fifth = {.sges = &sge, .sge_count = 1};
    EXPECT_EQ(hca_post_srq_receive(fixture.srq, &fifth, NULL), -ENOMEM);
    EXPECT_EQ(hca_srq_arm(fixture.srq, 3), 0);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.b).wr_id, i);
    }
    fixture_expect_event(fixture.far, HCA_EVENT_SRQ_LIMIT);
    struct hca_event event;
    EXPECT_EQ(hca_event_get(fixture.far->context, HCA_NO_WAIT, &event), -EAGAIN);
}

static void three_sends(void *arg)
{
    (void)arg;
    sim_thread_sleep(fixture.base.sim, 10 * US);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_SEND, 0, 64, fixture.far, 0), 0);
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
}

TEST(Events, ASharedReceiveQueueTellsOnceThatItRunsLow)
{
    fixture_init(HCA_RC);
    EXPECT_EQ(hca_srq_create(fixture.far->pd, 4, 1, NULL, NULL, NULL, &fixture.srq), 0);
    hca_fixture_qp_close(&fixture.b);
    struct hca_qp_create create = hca_fixture_qp_create(HCA_RC);
    create.srq = fixture.srq;
    fixture.b = hca_fixture_qp_with(fixture.far, create);
    hca_fixture_qp_close(&fixture.a);
    fixture.a = hca_fixture_qp(fixture.near, HCA_RC);
    hca_fixture_connect(&fixture.a, &fixture.b);
    EXPECT_EQ(hca_srq_destroy(fixture.srq), -EBUSY);
    fixture_run(three_sends, srq_receive);
    EXPECT_MEMEQ(fixture.far->memory, fixture.near->memory, 64);
    hca_fixture_qp_close(&fixture.b);
    EXPECT_EQ(hca_srq_destroy(fixture.srq), 0);
    hca_fixture_fini(&fixture.base);
}

// --- events --------------------------------------------------------------------------------------------------------

static void armed_receive(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(hca_fixture_receive(&fixture.b, i, 0, 64), 0);
    }
    EXPECT_EQ(hca_cq_arm(fixture.b.cq, true), 0);
    struct hca_event event;
    EXPECT_EQ(hca_event_get(fixture.far->context, 50000, &event), -ETIMEDOUT); // the first one is not solicited
    fixture_expect_event(fixture.far, HCA_EVENT_COMPLETION);
    struct hca_wc wc[4];
    EXPECT_EQ(hca_cq_poll(fixture.b.cq, 4, wc), 2);
    EXPECT_EQ(hca_event_get(fixture.far->context, HCA_NO_WAIT, &event), -EAGAIN);
}

static void solicited_send(void *arg)
{
    (void)arg;
    sim_thread_sleep(fixture.base.sim, 10 * US);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_SEND, 0, 8, fixture.far, 0), 0);
    sim_thread_sleep(fixture.base.sim, 100 * US);
    struct hca_sge sge;
    struct hca_send_wr wr = hca_fixture_wr(&fixture.a, HCA_OP_SEND, 0, 8, &sge);
    wr.flags = HCA_WQE_SOLICITED;
    EXPECT_EQ(hca_post_send(fixture.a.qp, &wr, NULL), 0);
}

TEST(Events, ASolicitedCompletionRaisesTheEventAndOthersDoNot)
{
    fixture_init(HCA_RC);
    fixture_run(solicited_send, armed_receive);
    hca_fixture_fini(&fixture.base);
}

// The first process of the node has the first page and the first queue.
static void arm_through(const struct backend *backend, uint64_t page)
{
    backend->ops->write(backend->ctx, BACKEND_BAR_HCA_UAR, page * HCA_UAR_BYTES + HCA_UAR_CQ_ARM,
                        hca_doorbell_arm(1, false, 0), 8);
}

static void arm_by_another(void *arg)
{
    (void)arg;
    struct hca_event event;
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 8, fixture.far, 0), 0);
    EXPECT_EQ(hca_cq_wait(fixture.a.cq, 0), 0);
    for (uint64_t page = 1; page < HCA_UAR_PAGES; page++) {
        arm_through(&fixture.near->backend, page);
    }
    EXPECT_EQ(hca_event_get(fixture.near->context, 50000, &event), -ETIMEDOUT);
    arm_through(&fixture.near->backend, 0);
    fixture_expect_event(fixture.near, HCA_EVENT_COMPLETION);
}

TEST(Events, ACompletionQueueIsArmedOnlyThroughThePageOfItsProcess)
{
    fixture_init(HCA_RC);
    fixture_run(arm_by_another, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "doorbells_refused"), HCA_UAR_PAGES - 1);
    hca_fixture_fini(&fixture.base);
}

static void destroy_after(uint64_t ps)
{
    struct hca_fixture_qp qp = {.process = fixture.near}, peer = hca_fixture_qp(fixture.far, HCA_RC);
    EXPECT_EQ(hca_cq_create(fixture.near->context, 4, NULL, &qp.cq), 0);
    struct hca_qp_create create = hca_fixture_qp_create(HCA_RC);
    create.send_cq = create.receive_cq = qp.cq;
    EXPECT_EQ(hca_qp_create(fixture.near->pd, &create, &qp.qp), 0);
    hca_fixture_connect(&qp, &peer);
    EXPECT_EQ(hca_fixture_send(&qp, HCA_OP_WRITE, 0, 8, fixture.far, 0), 0);
    sim_thread_sleep(fixture.base.sim, ps);
    EXPECT_EQ(hca_qp_destroy(qp.qp), 0);
    sim_thread_sleep(fixture.base.sim, 100 * US);
    struct hca_wc wc;
    EXPECT_EQ(hca_cq_poll(qp.cq, 1, &wc), 0);
    EXPECT_EQ(hca_cq_destroy(qp.cq), 0);
    hca_fixture_qp_close(&peer);
}

static void destroy_under_way(void *arg)
{
    (void)arg;
    for (unsigned step = 0; step < 120; step++) { // in one of the steps its completion is on the bus
        destroy_after(step * 25 * NS);
    }
}

TEST(Events, ACompletionOfADestroyedQueuePairIsNotSeen)
{
    fixture_init(HCA_RC);
    fixture_run(destroy_under_way, NULL);
    hca_fixture_fini(&fixture.base);
}

// Each arming of a queue raises one event if a completion arrived since the last event.
static void events_raise(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 8, fixture.far, 0), 0);
        EXPECT_EQ(hca_cq_wait(fixture.a.cq, 0), 0);
        EXPECT_EQ(hca_cq_arm(fixture.a.cq, false), 0);
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
    sim_thread_sleep(fixture.base.sim, 10 * US);
}

static void events_expect(unsigned count, enum hca_event_type type)
{
    struct hca_event event = {0};
    for (unsigned i = 0; i < count; i++) {
        EXPECT_EQ(hca_event_get(fixture.near->context, HCA_NO_WAIT, &event), 0);
        EXPECT_EQ(event.type, type);
    }
}

enum { EVENT_ENTRIES = 1023 };

static void overflow_events(void *arg)
{
    (void)arg;
    struct hca_event event;
    events_raise(EVENT_ENTRIES + 5);
    events_raise(3);
    events_expect(EVENT_ENTRIES, HCA_EVENT_COMPLETION);
    events_expect(1, HCA_EVENT_DEVICE_FATAL);
    events_raise(1);
    EXPECT_EQ(hca_event_get(fixture.near->context, HCA_NO_WAIT, &event), -EAGAIN);
}

TEST(Events, AnOverflownEventQueueEndsWithDeviceFatalAndCountsWhatIsLost)
{
    fixture_init(HCA_RC);
    fixture_run(overflow_events, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "eq_overflows"), 1);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "events_lost"), 5 + 3 + 1);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "events"), EVENT_ENTRIES + 1);
    hca_fixture_fini(&fixture.base);
}

static void drain_events(void *arg)
{
    (void)arg;
    events_raise(EVENT_ENTRIES);
    for (unsigned i = 0; i < 5; i++) { // seems full again and again, but is not
        events_expect(500, HCA_EVENT_COMPLETION);
        events_raise(500);
    }
    events_expect(EVENT_ENTRIES, HCA_EVENT_COMPLETION);
}

TEST(Events, AnEventQueueThatIsReadInTimeLosesNothing)
{
    fixture_init(HCA_RC);
    fixture_run(drain_events, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "eq_overflows"), 0);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "events"), EVENT_ENTRIES + 5 * 500);
    hca_fixture_fini(&fixture.base);
}

// --- time ------------------------------------------------------------------------------------------------------------

static uint64_t told_ps;

static void write_and_wait(void *arg)
{
    const bool *sleeps = arg;
    EXPECT_EQ(hca_cq_arm(fixture.a.cq, false), 0);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 8, fixture.far, 0), 0);
    if (*sleeps) {
        fixture_expect_event(fixture.near, HCA_EVENT_COMPLETION);
    }
    while (!*sleeps && !hca_event_waits(fixture.near->context)) {
        sim_thread_sleep(fixture.base.sim, NS);
    }
    told_ps = sim_now_ps(fixture.base.sim);
}

static uint64_t told_at_ps(bool sleeps)
{
    fixture_init(HCA_RC);
    hca_fixture_spawn(&fixture.base, "near", write_and_wait, &sleeps);
    hca_fixture_run(&fixture.base);
    hca_fixture_fini(&fixture.base);
    return told_ps;
}

// A look at the memory of the events sees the entry as soon as it is there.
TEST(Events, AProgramThatSleepsUntilAnEventPaysTheInterrupt)
{
    uint64_t there_ps = told_at_ps(false), woken_ps = told_at_ps(true);
    EXPECT_BETWEEN(woken_ps - there_ps, fixture.base.host.interrupt_ps - NS, fixture.base.host.interrupt_ps + 100 * NS);
}
