// Queues over their lives: counters, draining, reset, doorbells, lists of requests, the order of reads.
#include <errno.h>
#include <string.h>

#include "scene.h"

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
    scene_run(write_with_loss, NULL);
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
    scene_expect_event(scene.near, HCA_EVENT_CQ_ERROR);
    scene_expect_event(scene.near, HCA_EVENT_QP_FATAL);
}

TEST(Services, AnOverrunCompletionQueueFailsItsQueuePairs)
{
    scene_init(HCA_RC);
    rig_qp_close(&scene.a);
    scene.a = rig_qp_on(scene.near, rig_qp_create(HCA_RC), 4);
    rig_qp_close(&scene.b);
    scene.b = rig_qp(scene.far, HCA_RC);
    rig_connect(&scene.a, &scene.b);
    scene_run(many_writes, NULL);
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
    scene_expect_event(scene.near, HCA_EVENT_SEND_QUEUE_DRAINED);
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
    scene_run(drain, NULL);
    rig_fini(&scene.rig);
}

static void replug(void *arg)
{
    (void)arg;
    ib_link_set_up(scene.rig.cable, false);
    scene_expect_event(scene.near, HCA_EVENT_PORT_ERROR);
    EXPECT_EQ(rig_send(&scene.a, HCA_OP_WRITE, 0, 50000, scene.far, 0), 0);
    sim_thread_sleep(scene.rig.sim, 100 * US);
    ib_link_set_up(scene.rig.cable, true);
    scene_expect_event(scene.near, HCA_EVENT_PORT_ACTIVE);
    EXPECT_EQ(rig_completion(&scene.a).status, HCA_OK);
}

TEST(Services, ACableThatComesBackInTimeLosesNothing)
{
    scene_init(HCA_RC);
    scene_run(replug, NULL);
    EXPECT_MEMEQ(scene.far->memory, scene.near->memory, 50000);
    rig_fini(&scene.rig);
}

// --- reset, doorbells -----------------------------------------------------------------------------------------------

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
    scene_run(reset_and_again, NULL);
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
    scene_run(ring_for_others, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "doorbells_refused"), 2);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "packets_sent"), 0);
    rig_fini(&scene.rig);
}

// --- BlueFlame ------------------------------------------------------------------------------------------------------

enum { FLAME_DATA = 96, FLAME_UNITS = 8 };

struct flame_request {
    struct hca_wqe_control control;
    struct hca_wqe_remote remote;
    uint8_t data[FLAME_DATA];
};

static struct rig_qp flame_qp;
static struct flame_request flames[2];

static void request_fill(struct flame_request *request, const struct rig_qp *qp, uint32_t offset)
{
    request->control = (struct hca_wqe_control){.qpn = hca_qp_number(qp->qp),
                                                .opcode = HCA_OP_WRITE,
                                                .flags = HCA_WQE_INLINE,
                                                .inline_bytes = FLAME_DATA,
                                                .units = FLAME_UNITS};
    request->remote = (struct hca_wqe_remote){.address = (uint64_t)(uintptr_t)scene.far->memory + offset,
                                              .rkey = hca_mr_rkey(scene.far->mr)};
    for (unsigned i = 0; i < FLAME_DATA; i++) {
        request->data[i] = (uint8_t)(offset + 3 * i);
    }
}

static void interleaved_write(void *arg)
{
    const struct backend *backend = &scene.near->backend;
    (void)arg;
    request_fill(&flames[0], &scene.a, 0);
    request_fill(&flames[1], &flame_qp, 1000);
    for (unsigned line = 0; line < 2; line++) {
        for (unsigned i = 0; i < 2; i++) {
            uint64_t offset = HCA_UAR_BLUEFLAME + (2 + i) * HCA_BLUEFLAME_BYTES + line * 64;
            backend->ops->write_combined(backend->ctx, BACKEND_BAR_HCA_UAR, offset, (uint8_t *)&flames[i] + line * 64,
                                         64);
            backend->ops->fence(backend->ctx);
        }
    }
    sim_thread_sleep(scene.rig.sim, 20 * US);
}

// As from two threads of a process, each with a buffer of its own.
TEST(Services, RequestsThatComeLineByLineIntoTwoBuffersStayApart)
{
    scene_init(HCA_RC);
    flame_qp = rig_qp(scene.near, HCA_RC);
    struct rig_qp peer = rig_qp(scene.far, HCA_RC);
    rig_connect(&flame_qp, &peer);
    scene_run(interleaved_write, NULL);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "blueflames"), 2);
    EXPECT_EQ(rig_counter(&scene.rig, 0, "blueflames_dropped"), 0);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_MEMEQ(scene.far->memory + i * 1000, flames[i].data, FLAME_DATA);
    }
    rig_fini(&scene.rig);
}

// --- lists, fences --------------------------------------------------------------------------------------------------

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
    scene_run(list_post, NULL);
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
    scene_run(add_then_read, NULL);
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
    scene_run(forty_reads, NULL);
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

// --- completions that nobody asked for ------------------------------------------------------------------------------

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
    scene_run(seldom_signaled, NULL);
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
