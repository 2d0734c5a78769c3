// The other services and objects: datagrams, shared receive queues, events, switches, states.
#include <errno.h>
#include <string.h>

#include "rig.h"

struct scene {
    struct rig rig;
    struct rig_process *near, *far;
    struct rig_qp a, b;
    hca_srq_t *srq;
};
static struct scene scene;

static void scene_init(enum hca_qp_type type)
{
    memset(&scene, 0, sizeof scene);
    rig_init(&scene.rig, "connectx-qdr");
    scene.near = rig_process(&scene.rig, 0);
    scene.far = rig_process(&scene.rig, 1);
    scene.a = rig_qp(scene.near, type);
    scene.b = rig_qp(scene.far, type);
    rig_connect(&scene.a, &scene.b);
    memset(scene.near->memory, 0x3c, 65536);
}

static void run_both(void (*near)(void *), void (*far)(void *))
{
    if (far != NULL) {
        rig_spawn(&scene.rig, "far", far, NULL);
    }
    rig_spawn(&scene.rig, "near", near, NULL);
    rig_run(&scene.rig);
}

static void expect_event(struct rig_process *process, enum hca_event_type type)
{
    struct hca_event event = {0};
    EXPECT_EQ(hca_event_get(process->context, 1000000, &event), 0);
    EXPECT_EQ(event.type, type);
}

// --- datagrams -----------------------------------------------------------------------------------------------------

static void routed_send(uint32_t qkey, const struct hca_route *route)
{
    hca_ah_t *ah;
    struct hca_sge sge;
    EXPECT_EQ(hca_ah_create(scene.near->pd, 2, 0, route, &ah), 0);
    struct hca_send_wr wr = rig_wr(&scene.a, HCA_OP_SEND_IMM, 0, 100, &sge);
    wr.ah = ah;
    wr.immediate = qkey == 0x1234 ? 77 : 66;
    wr.remote_qpn = hca_qp_number(scene.b.qp);
    wr.remote_qkey = qkey;
    EXPECT_EQ(hca_post_send(scene.a.qp, &wr, NULL), 0);
    EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
    EXPECT_EQ(hca_ah_destroy(ah), 0);
}

static void datagram_send(uint32_t qkey)
{
    routed_send(qkey, NULL);
}

static void datagrams_send(void *arg)
{
    (void)arg;
    sim_thread_sleep(scene.rig.sim, 10 * US);
    datagram_send(0x9999); // a wrong Q_Key is dropped silently
    datagram_send(0x1234);
}

static void datagram_receive(void *arg)
{
    (void)arg;
    EXPECT_EQ(rig_receive(&scene.b, 3, 0, 200), 0);
    const struct hca_wc wc = rig_completion(&scene.b);
    EXPECT_EQ(wc.status, HCA_OK);
    EXPECT_EQ(wc.bytes, 140);
    EXPECT_EQ(wc.immediate, 77);
    EXPECT_EQ(wc.source_lid, 1);
    EXPECT_EQ(wc.source_qpn, hca_qp_number(scene.a.qp));
}

TEST(Services, ADatagramArrivesBehindTheRoomForItsRouteHeader)
{
    scene_init(HCA_UD);
    run_both(datagrams_send, datagram_receive);
    EXPECT_MEMEQ(scene.far->memory + 40, scene.near->memory, 100);
    EXPECT_EQ(rig_counter(&scene.rig, 1, "packets_discarded"), 1);
    rig_fini(&scene.rig);
}

static void unreceived_send(void *arg)
{
    (void)arg;
    datagram_send(0x1234);
}

static const struct hca_route route_to_far = {
    .dgid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x02, 0x01},
    .flow_label = 0x54321,
    .traffic_class = 0x21,
    .hop_limit = 64};

static void routed_datagrams_send(void *arg)
{
    struct hca_route elsewhere = route_to_far;
    (void)arg;
    elsewhere.dgid[15] ^= 0x80; // no GID of the port it comes to: dropped silently (IBA 9.6.1.2)
    sim_thread_sleep(scene.rig.sim, 10 * US);
    routed_send(0x1234, &elsewhere);
    routed_send(0x1234, &route_to_far);
}

static void routed_datagram_receive(void *arg)
{
    (void)arg;
    EXPECT_EQ(rig_receive(&scene.b, 3, 0, 140), 0);
    const struct hca_wc wc = rig_completion(&scene.b);
    EXPECT_EQ(wc.bytes, 140);
    EXPECT_TRUE(wc.has_route);
}

// IBA 8.3: version and traffic class and flow label, bytes from BTH to ICRC, IBA's next header, hops, from, to.
TEST(Services, ARouteHeaderArrivesBeforeItsDatagram)
{
    static const uint8_t header[24] = {
        0x62, 0x15, 0x43, 0x21, 0, 12 + 8 + 4 + 100 + 4, 0x1b, 64, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9,
        0x03, 0,    0,    1,    1};
    scene_init(HCA_UD);
    run_both(routed_datagrams_send, routed_datagram_receive);
    EXPECT_MEMEQ(scene.far->memory, header, 24);
    EXPECT_MEMEQ(scene.far->memory + 24, route_to_far.dgid, 16);
    EXPECT_MEMEQ(scene.far->memory + 40, scene.near->memory, 100);
    EXPECT_EQ(rig_counter(&scene.rig, 1, "packets_discarded"), 1);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "port_xmit_data"), 2 * (8 + 40 + 12 + 8 + 4 + 100 + 4));
    rig_fini(&scene.rig);
}

TEST(Services, ADatagramWithoutAReceiveIsDropped)
{
    scene_init(HCA_UD);
    run_both(unreceived_send, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 1, "packets_discarded"), 1);
    EXPECT_EQ(rig_counter(&scene.rig, 1, "out_of_buffer"), 1);
    rig_fini(&scene.rig);
}

static void uc_send(void *arg)
{
    (void)arg;
    ib_link_drop_next(scene.rig.cable, 0, 1);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 5000, scene.far, 100 + i * 10000), 0);
        EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
    }
}

TEST(Services, AnUnreliableMessageWithALossIsDroppedAndTheNextArrives)
{
    scene_init(HCA_UC);
    run_both(uc_send, NULL);
    EXPECT_EQ(scene.far->memory[100], 0);
    EXPECT_MEMEQ(scene.far->memory + 10100, scene.near->memory, 5000);
    rig_fini(&scene.rig);
}

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
    expect_event(scene.far, HCA_EVENT_SRQ_LIMIT);
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

TEST(Services, ASharedReceiveQueueTellsOnceThatItRunsLow)
{
    scene_init(HCA_RC);
    EXPECT_EQ(hca_srq_create(scene.far->pd, 4, 1, NULL, &scene.srq), 0);
    rig_qp_close(&scene.b);
    struct hca_qp_create create = rig_qp_create(HCA_RC);
    create.srq = scene.srq;
    scene.b = rig_qp_with(scene.far, create);
    rig_qp_close(&scene.a);
    scene.a = rig_qp(scene.near, HCA_RC);
    rig_connect(&scene.a, &scene.b);
    EXPECT_EQ(hca_srq_destroy(scene.srq), -EBUSY);
    run_both(three_sends, srq_receive);
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
    expect_event(scene.far, HCA_EVENT_COMPLETION);
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

TEST(Services, ASolicitedCompletionRaisesTheEventAndOthersDoNot)
{
    scene_init(HCA_RC);
    run_both(solicited_send, armed_receive);
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

TEST(Services, ACompletionOfADestroyedQueuePairIsNotSeen)
{
    scene_init(HCA_RC);
    run_both(destroy_under_way, NULL);
    rig_fini(&scene.rig);
}

// Each arming of a queue that has a completion raises an event.
static void events_raise(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        EXPECT_EQ(hca_cq_arm(scene.a.cq, false), 0);
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

static void completion_leave(void)
{
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 8, scene.far, 0), 0);
    EXPECT_EQ(hca_cq_wait(scene.a.cq, 0), 0);
}

enum { EVENT_PLACES = 1023 };

static void overflow_events(void *arg)
{
    (void)arg;
    struct hca_event event;
    completion_leave();
    events_raise(EVENT_PLACES + 5);
    events_raise(3);
    events_expect(EVENT_PLACES, HCA_EVENT_COMPLETION);
    events_expect(1, HCA_EVENT_DEVICE_FATAL);
    events_raise(1);
    EXPECT_EQ(hca_event_get(scene.near->context, HCA_NO_WAIT, &event), -EAGAIN);
    EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
}

TEST(Services, AnOverflownEventQueueEndsWithDeviceFatalAndCountsWhatIsLost)
{
    scene_init(HCA_RC);
    run_both(overflow_events, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "eq_overflows"), 1);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "events_lost"), 5 + 3 + 1);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "events"), EVENT_PLACES + 1);
    rig_fini(&scene.rig);
}

static void drain_events(void *arg)
{
    (void)arg;
    completion_leave();
    events_raise(EVENT_PLACES);
    for (unsigned i = 0; i < 5; i++) { // looks full again and again, and is not
        events_expect(500, HCA_EVENT_COMPLETION);
        events_raise(500);
    }
    events_expect(EVENT_PLACES, HCA_EVENT_COMPLETION);
    EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
}

TEST(Services, AnEventQueueThatIsReadInTimeLosesNothing)
{
    scene_init(HCA_RC);
    run_both(drain_events, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "eq_overflows"), 0);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "events"), EVENT_PLACES + 5 * 500);
    rig_fini(&scene.rig);
}

// --- counters ------------------------------------------------------------------------------------------------------

static void write_with_loss(void *arg)
{
    (void)arg;
    ib_link_drop_next(scene.rig.cable, 0, 1);
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 3 * 2048, scene.far, 0), 0);
    EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
}

// LRH 8, BTH 12, ICRC 4; RETH 16 in the first; AETH 4.
TEST(Services, CountersOfThePortHoldWhatWasOnTheWire)
{
    scene_init(HCA_RC);
    run_both(write_with_loss, NULL);
    uint64_t resent = rig_counter(&scene.rig, 0, "packets_resent");
    uint64_t sent = rig_counter(&scene.rig, 0, "port_xmit_packets");
    EXPECT_EQ(resent, 3);
    EXPECT_EQ(sent, 3 + resent);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "port_xmit_data"), 2 * (3 * (24 + 2048) + 16));
    EXPECT_EQ(rig_counter(&scene.rig, 1, "port_rcv_packets"), sent - 1);
    EXPECT_EQ(rig_counter(&scene.rig, 1, "port_rcv_data"), 5 * (24 + 2048) + 16);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "port_rcv_data"), rig_counter(&scene.rig, 1, "port_xmit_packets") * 28);
    rig_fini(&scene.rig);
}

static void many_writes(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < hca_cq_entries(scene.a.cq) + 2; i++) { // one more than the ring has
        EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 8, scene.far, 0), 0);
    }
    expect_event(scene.near, HCA_EVENT_CQ_ERROR);
    expect_event(scene.near, HCA_EVENT_QP_FATAL);
}

TEST(Services, AnOverrunCompletionQueueFailsItsQueuePairs)
{
    scene_init(HCA_RC);
    rig_qp_close(&scene.a);
    scene.a = rig_qp_on(scene.near, rig_qp_create(HCA_RC), 4);
    rig_qp_close(&scene.b);
    scene.b = rig_qp(scene.far, HCA_RC);
    rig_connect(&scene.a, &scene.b);
    run_both(many_writes, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "cq_overruns"), 1);
    rig_fini(&scene.rig);
}

static void drain(void *arg)
{
    (void)arg;
    struct hca_qp_attr attr = {.state = HCA_SQD, .drained_event = true};
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 60000, scene.far, 0), 0);
    sim_thread_sleep(scene.rig.sim, 2 * US);
    EXPECT_EQ(hca_qp_modify(scene.a.qp, HCA_QP_STATE | HCA_QP_DRAINED_EVENT, &attr), 0);
    expect_event(scene.near, HCA_EVENT_SEND_QUEUE_DRAINED);
    EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 8, scene.far, 0), 0);
    EXPECT_EQ(hca_cq_wait(scene.a.cq, 100000), -ETIMEDOUT); // nothing is sent until it goes on
    attr.state = HCA_RTS;
    EXPECT_EQ(hca_qp_modify(scene.a.qp, HCA_QP_STATE, &attr), 0);
    EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
}

TEST(Services, ADrainingQueueFinishesItsMessageAndThenSendsNothing)
{
    scene_init(HCA_RC);
    run_both(drain, NULL);
    rig_fini(&scene.rig);
}

static void replug(void *arg)
{
    (void)arg;
    ib_link_set_up(scene.rig.cable, false);
    expect_event(scene.near, HCA_EVENT_PORT_ERROR);
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 50000, scene.far, 0), 0);
    sim_thread_sleep(scene.rig.sim, 100 * US);
    ib_link_set_up(scene.rig.cable, true);
    expect_event(scene.near, HCA_EVENT_PORT_ACTIVE);
    EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
}

TEST(Services, ACableThatComesBackInTimeLosesNothing)
{
    scene_init(HCA_RC);
    run_both(replug, NULL);
    EXPECT_MEMEQ(scene.far->memory, scene.near->memory, 50000);
    rig_fini(&scene.rig);
}

// --- reset, doorbells
// -------------------------------------------------------------------------------------------------

static void reset_and_again(void *arg)
{
    (void)arg;
    const struct hca_qp_attr reset = {.state = HCA_RESET};
    EXPECT_EQ(rig_receive(&scene.a, 1, 0, 64), 0);
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 50000, scene.far, 0), 0);
    EXPECT_EQ(hca_qp_modify(scene.a.qp, HCA_QP_STATE, &reset), 0);
    EXPECT_EQ(hca_qp_modify(scene.b.qp, HCA_QP_STATE, &reset), 0);
    sim_thread_sleep(scene.rig.sim, 100 * US);
    struct hca_wc wc;
    EXPECT_EQ(hca_cq_poll(scene.a.cq, 1, &wc), 0);
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 64, scene.far, 0), -EINVAL);
    rig_connect(&scene.a, &scene.b);
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 64, scene.far, 200000), 0);
    EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
}

TEST(Services, AQueuePairStartsAnewAfterAReset)
{
    scene_init(HCA_RC);
    run_both(reset_and_again, NULL);
    EXPECT_MEMEQ(scene.far->memory + 200000, scene.near->memory, 64);
    rig_fini(&scene.rig);
}

static void ring_for_others(void *arg)
{
    (void)arg;
    struct rig_process *other = scene.rig.processes[2];
    const struct backend *backend = &other->backend;
    // The second process of the node has the second page.
    backend->ops->write(backend->ctx, BACKEND_BAR_HCA_UAR, HCA_UAR_BYTES,
                        hca_doorbell_send(hca_qp_number(scene.a.qp), 1), 8);
    backend->ops->write(backend->ctx, BACKEND_BAR_HCA_UAR, HCA_UAR_BYTES + 0x100, 1, 8);
    sim_thread_sleep(scene.rig.sim, 10 * US);
}

TEST(Services, ADoorbellFromAnotherProcessIsRefused)
{
    scene_init(HCA_RC);
    (void)rig_process(&scene.rig, 0);
    run_both(ring_for_others, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "doorbells_refused"), 2);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "packets_sent"), 0);
    rig_fini(&scene.rig);
}

// --- lists, fences
// -----------------------------------------------------------------------------------------------------

static void list_post(void *arg)
{
    (void)arg;
    struct hca_sge sges[3];
    struct hca_send_wr wrs[3];
    for (unsigned i = 0; i < 3; i++) {
        wrs[i] = rig_wr(&scene.a, HCA_OP_WRITE, i * 100, 100, &sges[i]);
        wrs[i].remote_address = (uint64_t)(uintptr_t)scene.far->memory + i * 100;
        wrs[i].rkey = hca_mr_rkey(scene.far->mr);
        wrs[i].next = i < 2 ? &wrs[i + 1] : NULL;
    }
    EXPECT_EQ(hca_post_send(scene.a.qp, wrs, NULL), 0);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(rig_completion(&scene.a).wr_id, i * 100);
    }
}

TEST(Services, AListRingsTheDoorbellOnceAndIsFetchedOnce)
{
    scene_init(HCA_RC);
    run_both(list_post, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "doorbells"), 1);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "blueflames"), 0);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "request_fetches"), 1);
    EXPECT_MEMEQ(scene.far->memory, scene.near->memory, 300);
    rig_fini(&scene.rig);
}

static struct rig_qp adders[2];

static void add_fifty(void *arg)
{
    const struct rig_qp *qp = arg;
    for (unsigned i = 0; i < 50; i++) {
        EXPECT_EQ(rig_send(qp, HCA_OP_FETCH_ADD, 0, 8, scene.far, 0), 0);
    }
    for (unsigned i = 0; i < 50; i++) {
        EXPECT_EQ(rig_completion(qp).status, HCA_OK);
    }
}

TEST(Services, AtomicsFromBothNodesToOneWordAllCount)
{
    scene_init(HCA_RC);
    const struct rig_qp d = rig_qp(scene.far, HCA_RC);
    adders[0] = scene.a;
    adders[1] = rig_qp(rig_process(&scene.rig, 1), HCA_RC); // by loopback
    rig_connect(&adders[1], &d);
    for (unsigned i = 0; i < 2; i++) {
        rig_spawn(&scene.rig, i == 0 ? "adder0" : "adder1", add_fifty, &adders[i]);
    }
    rig_run(&scene.rig);
    uint64_t sum;
    memcpy(&sum, scene.far->memory, sizeof sum);
    EXPECT_EQ(sum, 100);
    EXPECT_EQ(rig_counter(&scene.rig, 1, "atomics"), 100);
    rig_fini(&scene.rig);
}

// --- order and limits of reads ---------------------------------------------------------------------------------------

static void add_then_read(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 7; i++) {
        EXPECT_EQ(rig_send(&scene.a, HCA_OP_FETCH_ADD, 8, 8, scene.far, 0), 0);
    }
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_READ, 16, 8, scene.far, 0), 0);
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
    }
}

TEST(Services, AReadSeesTheAtomicsBeforeIt)
{
    scene_init(HCA_RC);
    run_both(add_then_read, NULL);
    uint64_t read;
    memcpy(&read, scene.near->memory + 16, sizeof read);
    EXPECT_EQ(read, 7);
    rig_fini(&scene.rig);
}

static void forty_reads(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 40; i++) {
        EXPECT_EQ(rig_send(&scene.a, HCA_OP_READ, 0, 3000, scene.far, 0), 0);
    }
    for (unsigned i = 0; i < 40; i++) {
        EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
    }
}

TEST(Services, NoMoreReadsAreOutstandingThanTheResponderHolds)
{
    scene_init(HCA_RC);
    rig_qp_close(&scene.a);
    rig_qp_close(&scene.b);
    scene.a = rig_qp(scene.near, HCA_RC);
    scene.b = rig_qp(scene.far, HCA_RC);
    struct hca_qp_attr to_b = rig_attr(&scene.b), to_a = rig_attr(&scene.a);
    to_b.max_rd_atomic = to_a.max_dest_rd_atomic = 2;
    rig_connect_with(&scene.a, &to_b);
    rig_connect_with(&scene.b, &to_a);
    run_both(forty_reads, NULL);
    rig_fini(&scene.rig);
}

static void read_then_write_it(void *arg)
{
    const bool *fenced = arg;
    memset(scene.far->memory, 0x77, 64);
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_READ, 0, 64, scene.far, 0), 0);
    struct hca_sge sge;
    struct hca_send_wr wr = rig_wr(&scene.a, HCA_OP_WRITE, 0, 64, &sge);
    wr.remote_address = (uint64_t)(uintptr_t)scene.far->memory + 4096;
    wr.rkey = hca_mr_rkey(scene.far->mr);
    wr.flags = *fenced ? HCA_WQE_FENCE : 0;
    EXPECT_EQ(hca_post_send(scene.a.qp, &wr, NULL), 0);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
    }
}

static void expect_fence(bool fenced, uint8_t expected)
{
    scene_init(HCA_RC);
    rig_spawn(&scene.rig, "near", read_then_write_it, &fenced);
    rig_run(&scene.rig);
    EXPECT_EQ(scene.far->memory[4096], expected);
    rig_fini(&scene.rig);
}

TEST(Services, AFenceWaitsForTheReadBeforeItAndNothingElseDoes)
{
    expect_fence(true, 0x77);
    expect_fence(false, 0x3c);
}

// --- completions that nobody asked for
// ---------------------------------------------------------------------------------

static void seldom_signaled(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 300; i++) {
        struct hca_sge sge;
        struct hca_send_wr wr = rig_wr(&scene.a, HCA_OP_WRITE, 0, 8, &sge);
        wr.wr_id = i;
        wr.remote_address = (uint64_t)(uintptr_t)scene.far->memory;
        wr.rkey = hca_mr_rkey(scene.far->mr);
        wr.flags = i % 100 == 99 ? HCA_WQE_SIGNALED : 0;
        EXPECT_EQ(hca_post_send(scene.a.qp, &wr, NULL), 0);
        if (i % 100 == 99) {
            EXPECT_EQ(rig_completion(&scene.a).wr_id, i);
        }
    }
}

TEST(Services, ASignaledCompletionFreesTheRequestsBeforeIt)
{
    scene_init(HCA_RC);
    rig_qp_close(&scene.a);
    struct hca_qp_create create = rig_qp_create(HCA_RC);
    create.all_signaled = false;
    scene.a = rig_qp_with(scene.near, create);
    rig_qp_close(&scene.b);
    scene.b = rig_qp(scene.far, HCA_RC);
    rig_connect(&scene.a, &scene.b);
    run_both(seldom_signaled, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "completions"), 3);
    rig_fini(&scene.rig);
}

// While atomics of another queue pair keep the responder busy, so that writes wait for their turn.
static void write_then_read(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= 20; i++) {
        memcpy(scene.near->memory, &i, sizeof i);
        EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 8, scene.far, 4096), 0);
        EXPECT_EQ(rig_send(&scene.a, HCA_OP_READ, 64, 8, scene.far, 4096), 0);
        EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
        EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
        EXPECT_MEMEQ(scene.near->memory + 64, &i, sizeof i);
    }
}

TEST(Services, AReadSeesTheWriteBeforeItThoughAtomicsOfOthersDelayIt)
{
    scene_init(HCA_RC);
    const struct rig_qp d = rig_qp(scene.far, HCA_RC);
    adders[1] = rig_qp(rig_process(&scene.rig, 1), HCA_RC);
    rig_connect(&adders[1], &d);
    rig_spawn(&scene.rig, "adder", add_fifty, &adders[1]);
    rig_spawn(&scene.rig, "near", write_then_read, NULL);
    rig_run(&scene.rig);
    rig_fini(&scene.rig);
}
