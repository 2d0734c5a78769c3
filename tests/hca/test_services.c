// Queues during their lives: counters, draining, reset, lists of requests, the order of reads.
#include <errno.h>
#include <string.h>

#include "fixture.h"

// --- counters ------------------------------------------------------------------------------------------------------

static void write_with_loss(void *arg)
{
    (void)arg;
    ib_link_drop_next(fixture.base.cable, 0, 1);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 3 * 2048, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
}

// LRH 8, BTH 12, ICRC 4; RETH 16 in the first packet; AETH 4.
TEST(Services, CountersOfThePortHoldWhatWasOnTheWire)
{
    fixture_init(HCA_RC);
    fixture_run(write_with_loss, NULL);
    uint64_t resent = hca_fixture_counter(&fixture.base, 0, "packets_resent");
    uint64_t sent = hca_fixture_counter(&fixture.base, 0, "port_xmit_packets");
    EXPECT_EQ(resent, 3);
    EXPECT_EQ(sent, 3 + resent);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "port_xmit_data"), 2 * (3 * (24 + 2048) + 16));
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "port_rcv_packets"), sent - 1);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "port_rcv_data"), 5 * (24 + 2048) + 16);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "port_rcv_data"),
              hca_fixture_counter(&fixture.base, 1, "port_xmit_packets") * 28);
    hca_fixture_fini(&fixture.base);
}

static void add_many_then_one(void *arg)
{
    enum { MANY = 8 };
    (void)arg;
    for (unsigned i = 0; i < MANY; i++) {
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_FETCH_ADD, 0, 8, fixture.far, 0), 0);
    }
    for (unsigned i = 0; i < MANY; i++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
    uint64_t longest_ps = hca_fixture_counter(&fixture.base, 1, "atomic_wait_max_ps");
    EXPECT_GT(longest_ps, 0);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_FETCH_ADD, 0, 8, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "atomic_wait_max_ps"), longest_ps);
}

TEST(Services, TheLongestWaitStaysTheLongestAfterAShorterOne)
{
    fixture_init(HCA_RC);
    fixture_run(add_many_then_one, NULL);
    hca_fixture_fini(&fixture.base);
}

static void many_writes(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < hca_cq_entries(fixture.a.cq) + 2; i++) { // more than the ring has
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 8, fixture.far, 0), 0);
    }
    fixture_expect_event(fixture.near, HCA_EVENT_CQ_ERROR);
    fixture_expect_event(fixture.near, HCA_EVENT_QP_FATAL);
}

TEST(Services, AnOverrunCompletionQueueFailsItsQueuePairs)
{
    fixture_init(HCA_RC);
    hca_fixture_qp_close(&fixture.a);
    fixture.a = hca_fixture_qp_on(fixture.near, hca_fixture_qp_create(HCA_RC), 4);
    hca_fixture_qp_close(&fixture.b);
    fixture.b = hca_fixture_qp(fixture.far, HCA_RC);
    hca_fixture_connect(&fixture.a, &fixture.b);
    fixture_run(many_writes, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "cq_overruns"), 1);
    hca_fixture_fini(&fixture.base);
}

static void many_receives(void *arg)
{
    struct hca_qp_attr attr;
    (void)arg;
    for (unsigned i = 0; i < 16; i++) {
        EXPECT_EQ(hca_fixture_receive(&fixture.b, i, 0, 64), 0);
    }
    fixture_expect_event(fixture.far, HCA_EVENT_CQ_ERROR);
    fixture_expect_event(fixture.far, HCA_EVENT_QP_FATAL);
    EXPECT_EQ(hca_qp_query(fixture.b.qp, &attr), 0);
    EXPECT_EQ(attr.state, HCA_ERROR);
}

static void many_sends(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 16; i++) { // more than the ring of receives has
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_SEND, 0, 8, fixture.far, 0), 0);
    }
}

TEST(Services, AnOverrunQueueOfReceivesFailsItsQueuePairs)
{
    fixture_init(HCA_RC);
    struct hca_qp_create create = hca_fixture_qp_create(HCA_RC);
    hca_cq_t *receives = NULL;
    ASSERT_EQ(hca_cq_create(fixture.far->context, 4, NULL, &receives), 0);
    create.send_cq = fixture.b.cq;
    create.receive_cq = receives;
    ASSERT_EQ(hca_qp_create(fixture.far->pd, &create, &fixture.b.qp), 0);
    hca_fixture_qp_close(&fixture.a);
    fixture.a = hca_fixture_qp(fixture.near, HCA_RC);
    hca_fixture_connect(&fixture.a, &fixture.b);
    fixture_run(many_sends, many_receives);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "cq_overruns"), 1);
    EXPECT_EQ(hca_qp_destroy(fixture.b.qp), 0);
    EXPECT_EQ(hca_cq_destroy(receives), 0);
    hca_fixture_fini(&fixture.base);
}

static struct {
    uint64_t delay_ns;
    bool resized;
} resizing;

// Resizes a full queue as if its completions were taken, while a completion more waits for room.
static void fill_and_resize(void *arg)
{
    const struct backend *backend = &fixture.near->backend;
    uint32_t full = hca_cq_entries(fixture.a.cq) + 1; // one is for the resize
    struct backend_buffer ring;
    (void)arg;
    EXPECT_EQ(backend->ops->alloc_pinned(backend->ctx, full * sizeof(struct hca_cqe), &ring), 0);
    for (uint32_t i = 0; i <= full; i++) {
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 8, fixture.far, 0), 0);
    }
    sim_thread_sleep(fixture.base.sim, resizing.delay_ns * NS);
    struct hca_command resize = {.id = HCA_CMD_CQ_RESIZE,
                                 .number = 1, // the first queue of the HCA
                                 .cq_resize = {ring.bus_address, full, full}};
    resizing.resized = backend->ops->hca_command(backend->ctx, &resize) == 0;
}

// The count in the queue's record may be older than that of the command, which comes while the record is read.
TEST(Services, AResizedCompletionQueueKeepsTheNewestCount)
{
    unsigned resized = 0;
    for (resizing.delay_ns = 1500; resizing.delay_ns < 2000; resizing.delay_ns += 10) {
        fixture_init(HCA_RC);
        hca_fixture_qp_close(&fixture.a);
        fixture.a = hca_fixture_qp_on(fixture.near, hca_fixture_qp_create(HCA_RC), 4);
        hca_fixture_qp_close(&fixture.b);
        fixture.b = hca_fixture_qp(fixture.far, HCA_RC);
        hca_fixture_connect(&fixture.a, &fixture.b);
        fixture_run(fill_and_resize, NULL);
        if (resizing.resized) {
            EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "cq_overruns"), 0);
        }
        resized += resizing.resized;
        hca_fixture_fini(&fixture.base);
    }
    EXPECT_GT(resized, 0); // later it has overrun
}

static void drain(void *arg)
{
    (void)arg;
    struct hca_qp_attr attr = {.state = HCA_SQD, .drained_event = true};
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 60000, fixture.far, 0), 0);
    sim_thread_sleep(fixture.base.sim, 2 * US);
    EXPECT_EQ(hca_qp_modify(fixture.a.qp, HCA_QP_STATE | HCA_QP_DRAINED_EVENT, &attr), 0);
    fixture_expect_event(fixture.near, HCA_EVENT_SEND_QUEUE_DRAINED);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 8, fixture.far, 0), 0);
    EXPECT_EQ(hca_cq_wait(fixture.a.cq, 100000), -ETIMEDOUT); // nothing is sent before RTS
    attr.state = HCA_RTS;
    EXPECT_EQ(hca_qp_modify(fixture.a.qp, HCA_QP_STATE, &attr), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
}

TEST(Services, ADrainingQueueFinishesItsMessageAndThenSendsNothing)
{
    fixture_init(HCA_RC);
    fixture_run(drain, NULL);
    hca_fixture_fini(&fixture.base);
}

static void replug(void *arg)
{
    (void)arg;
    ib_link_set_up(fixture.base.cable, false);
    fixture_expect_event(fixture.near, HCA_EVENT_PORT_ERROR);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 50000, fixture.far, 0), 0);
    sim_thread_sleep(fixture.base.sim, 100 * US);
    ib_link_set_up(fixture.base.cable, true);
    fixture_expect_event(fixture.near, HCA_EVENT_PORT_ACTIVE);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
}

TEST(Services, ACableThatComesBackInTimeLosesNothing)
{
    fixture_init(HCA_RC);
    fixture_run(replug, NULL);
    EXPECT_MEMEQ(fixture.far->memory, fixture.near->memory, 50000);
    hca_fixture_fini(&fixture.base);
}

// --- reset -----------------------------------------------------------------------------------------------------------

static void reset_and_again(void *arg)
{
    (void)arg;
    const struct hca_qp_attr reset = {.state = HCA_RESET};
    EXPECT_EQ(hca_fixture_receive(&fixture.a, 1, 0, 64), 0);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 50000, fixture.far, 0), 0);
    EXPECT_EQ(hca_qp_modify(fixture.a.qp, HCA_QP_STATE, &reset), 0);
    EXPECT_EQ(hca_qp_modify(fixture.b.qp, HCA_QP_STATE, &reset), 0);
    sim_thread_sleep(fixture.base.sim, 100 * US);
    struct hca_wc wc;
    EXPECT_EQ(hca_cq_poll(fixture.a.cq, 1, &wc), 0);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 64, fixture.far, 0), -EINVAL);
    hca_fixture_connect(&fixture.a, &fixture.b);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 64, fixture.far, 200000), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
}

TEST(Services, AQueuePairStartsAnewAfterAReset)
{
    fixture_init(HCA_RC);
    fixture_run(reset_and_again, NULL);
    EXPECT_MEMEQ(fixture.far->memory + 200000, fixture.near->memory, 64);
    hca_fixture_fini(&fixture.base);
}

static uint64_t write_ps(void)
{
    uint64_t begun_ps = sim_now_ps(fixture.base.sim);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 8, fixture.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    return sim_now_ps(fixture.base.sim) - begun_ps;
}

static void keep(struct hca_qp_attr *attr)
{
    (void)attr;
}

static void write_before_and_after(void *arg)
{
    const struct hca_config *config = &fixture.base.config;
    const uint64_t work_ps = config->send_request_ps - config->send_packet_ps; // of a queue pair for a request
    (void)arg;
    uint64_t first_ps = write_ps();
    fixture_reconnect(keep);
    uint64_t second_ps = write_ps();
    EXPECT_BETWEEN(second_ps, first_ps - work_ps / 2, first_ps + work_ps / 2);
}

TEST(Services, AWriteTakesAsLongAfterAResetAsBefore)
{
    fixture_init(HCA_RC);
    fixture_run(write_before_and_after, NULL);
    hca_fixture_fini(&fixture.base);
}

// --- lists, fences --------------------------------------------------------------------------------------------------

static void list_post(void *arg)
{
    (void)arg;
    struct hca_sge sges[3];
    struct hca_send_wr wrs[3];
    for (unsigned i = 0; i < 3; i++) {
        wrs[i] = hca_fixture_wr(&fixture.a, HCA_OP_WRITE, i * 100, 100, &sges[i]);
        wrs[i].remote_address = (uint64_t)(uintptr_t)fixture.far->memory + i * 100;
        wrs[i].rkey = hca_mr_rkey(fixture.far->mr);
        wrs[i].next = i < 2 ? &wrs[i + 1] : NULL;
    }
    EXPECT_EQ(hca_post_send(fixture.a.qp, wrs, NULL), 0);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.a).wr_id, i * 100);
    }
}

TEST(Services, AListRingsTheDoorbellOnceAndIsFetchedOnce)
{
    fixture_init(HCA_RC);
    fixture_run(list_post, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "doorbells"), 1);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "blueflames"), 0);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "request_fetches"), 1);
    EXPECT_MEMEQ(fixture.far->memory, fixture.near->memory, 300);
    hca_fixture_fini(&fixture.base);
}

static struct hca_fixture_qp adders[2];

static void add_fifty(void *arg)
{
    const struct hca_fixture_qp *qp = arg;
    for (unsigned i = 0; i < 50; i++) {
        EXPECT_EQ(hca_fixture_send(qp, HCA_OP_FETCH_ADD, 0, 8, fixture.far, 0), 0);
    }
    for (unsigned i = 0; i < 50; i++) {
        EXPECT_EQ(hca_fixture_completion(qp).status, HCA_OK);
    }
}

TEST(Services, AtomicsFromBothNodesToOneWordAllCount)
{
    fixture_init(HCA_RC);
    const struct hca_fixture_qp d = hca_fixture_qp(fixture.far, HCA_RC);
    adders[0] = fixture.a;
    adders[1] = hca_fixture_qp(hca_fixture_process(&fixture.base, 1), HCA_RC); // by loopback
    hca_fixture_connect(&adders[1], &d);
    for (unsigned i = 0; i < 2; i++) {
        hca_fixture_spawn(&fixture.base, i == 0 ? "adder0" : "adder1", add_fifty, &adders[i]);
    }
    hca_fixture_run(&fixture.base);
    uint64_t sum;
    memcpy(&sum, fixture.far->memory, sizeof sum);
    EXPECT_EQ(sum, 100);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 1, "atomics"), 100);
    hca_fixture_fini(&fixture.base);
}

// --- order and limits of reads ---------------------------------------------------------------------------------------

static void add_then_read(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 7; i++) {
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_FETCH_ADD, 8, 8, fixture.far, 0), 0);
    }
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_READ, 16, 8, fixture.far, 0), 0);
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
}

TEST(Services, AReadSeesTheAtomicsBeforeIt)
{
    fixture_init(HCA_RC);
    fixture_run(add_then_read, NULL);
    uint64_t read;
    memcpy(&read, fixture.near->memory + 16, sizeof read);
    EXPECT_EQ(read, 7);
    hca_fixture_fini(&fixture.base);
}

static void forty_reads(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 40; i++) {
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_READ, 0, 3000, fixture.far, 0), 0);
    }
    for (unsigned i = 0; i < 40; i++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
}

TEST(Services, NoMoreReadsAreOutstandingThanTheResponderHolds)
{
    fixture_init(HCA_RC);
    hca_fixture_qp_close(&fixture.a);
    hca_fixture_qp_close(&fixture.b);
    fixture.a = hca_fixture_qp(fixture.near, HCA_RC);
    fixture.b = hca_fixture_qp(fixture.far, HCA_RC);
    struct hca_qp_attr to_b = hca_fixture_attr(&fixture.b), to_a = hca_fixture_attr(&fixture.a);
    to_b.max_rd_atomic = to_a.max_dest_rd_atomic = 2;
    hca_fixture_connect_with(&fixture.a, &to_b);
    hca_fixture_connect_with(&fixture.b, &to_a);
    fixture_run(forty_reads, NULL);
    hca_fixture_fini(&fixture.base);
}

static void read_then_write_it(void *arg)
{
    const bool *fenced = arg;
    memset(fixture.far->memory, 0x77, 64);
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_READ, 0, 64, fixture.far, 0), 0);
    struct hca_sge sge;
    struct hca_send_wr wr = hca_fixture_wr(&fixture.a, HCA_OP_WRITE, 0, 64, &sge);
    wr.remote_address = (uint64_t)(uintptr_t)fixture.far->memory + 4096;
    wr.rkey = hca_mr_rkey(fixture.far->mr);
    wr.flags = *fenced ? HCA_WQE_FENCE : 0;
    EXPECT_EQ(hca_post_send(fixture.a.qp, &wr, NULL), 0);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
}

static void expect_fence(bool fenced, uint8_t expected)
{
    fixture_init(HCA_RC);
    hca_fixture_spawn(&fixture.base, "near", read_then_write_it, &fenced);
    hca_fixture_run(&fixture.base);
    EXPECT_EQ(fixture.far->memory[4096], expected);
    hca_fixture_fini(&fixture.base);
}

TEST(Services, AFenceWaitsForTheReadBeforeItAndNothingElseDoes)
{
    expect_fence(true, 0x77);
    expect_fence(false, 0x3c);
}

// --- unsignalled requests -------------------------------------------------------------------------------------------

static void seldom_signaled(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 300; i++) {
        struct hca_sge sge;
        struct hca_send_wr wr = hca_fixture_wr(&fixture.a, HCA_OP_WRITE, 0, 8, &sge);
        wr.wr_id = i;
        wr.remote_address = (uint64_t)(uintptr_t)fixture.far->memory;
        wr.rkey = hca_mr_rkey(fixture.far->mr);
        wr.flags = i % 100 == 99 ? HCA_WQE_SIGNALED : 0;
        EXPECT_EQ(hca_post_send(fixture.a.qp, &wr, NULL), 0);
        if (i % 100 == 99) {
            EXPECT_EQ(hca_fixture_completion(&fixture.a).wr_id, i);
        }
    }
}

TEST(Services, ASignaledCompletionFreesTheRequestsBeforeIt)
{
    fixture_init(HCA_RC);
    hca_fixture_qp_close(&fixture.a);
    struct hca_qp_create create = hca_fixture_qp_create(HCA_RC);
    create.all_signaled = false;
    fixture.a = hca_fixture_qp_with(fixture.near, create);
    hca_fixture_qp_close(&fixture.b);
    fixture.b = hca_fixture_qp(fixture.far, HCA_RC);
    hca_fixture_connect(&fixture.a, &fixture.b);
    fixture_run(seldom_signaled, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "completions"), 3);
    hca_fixture_fini(&fixture.base);
}

// Atomics of another queue pair keep the responder busy meanwhile, so that writes wait for their turn.
static void write_then_read(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= 20; i++) {
        memcpy(fixture.near->memory, &i, sizeof i);
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, 0, 8, fixture.far, 4096), 0);
        EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_READ, 64, 8, fixture.far, 4096), 0);
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
        EXPECT_MEMEQ(fixture.near->memory + 64, &i, sizeof i);
    }
}

TEST(Services, AReadSeesTheWriteBeforeItThoughAtomicsOfOthersDelayIt)
{
    fixture_init(HCA_RC);
    const struct hca_fixture_qp d = hca_fixture_qp(fixture.far, HCA_RC);
    adders[1] = hca_fixture_qp(hca_fixture_process(&fixture.base, 1), HCA_RC);
    hca_fixture_connect(&adders[1], &d);
    hca_fixture_spawn(&fixture.base, "adder", add_fifty, &adders[1]);
    hca_fixture_spawn(&fixture.base, "near", write_then_read, NULL);
    hca_fixture_run(&fixture.base);
    hca_fixture_fini(&fixture.base);
}
