// Completions: each once and in order, unsignalled requests, channels and arming, and overflow of queues.
#include <errno.h>
#include <string.h>

#include "fixture.h"

enum { BYTES = 64 };

static void receive_many(struct side *side, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        EXPECT_EQ(fixture_receive(side, 100 + i, i * BYTES, BYTES), 0);
    }
}

// --- order -----------------------------------------------------------------------------------------------------------

static void mix(struct side *side)
{
    const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ,           IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                          IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,       IBV_WR_ATOMIC_CMP_AND_SWP};
    fixture_barrier(side);
    for (unsigned i = 0; i < 120; i++) {
        enum ibv_wr_opcode opcode = opcodes[(i * 7 + i / 6) % 6];
        bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
        uint32_t bytes = atomic ? 8 : opcode == IBV_WR_SEND ? BYTES : i % 5 == 0 ? 30000 : 100;
        if (i >= FIXTURE_DEPTH) {
            (void)fixture_expect(side, i - FIXTURE_DEPTH, IBV_WC_SUCCESS);
        }
        fixture_send(side, i, opcode, 0, bytes, 65536);
    }
    for (unsigned i = 120 - FIXTURE_DEPTH; i < 120; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
    fixture_expect_none(side, 50 * US);
    fixture_barrier(side);
}

static void count_messages(struct side *side)
{
    receive_many(side, FIXTURE_DEPTH);
    fixture_barrier(side);
    for (unsigned i = 0; i < 40; i++) { // a third of them are sends and immediates
        (void)fixture_expect(side, 100 + i, IBV_WC_SUCCESS);
        EXPECT_EQ(fixture_receive(side, 100 + FIXTURE_DEPTH + i, 0, BYTES), 0);
    }
    fixture_expect_none(side, 50 * US);
    fixture_barrier(side);
}

// IBA 9.5, 10.8.3: in the order of a queue's requests.
RULE(Completions, ComeOnceAndInOrderOfTheRequests)
{
    fixture_play(device, mix, count_messages);
}

// --- polls that take no completion ----------------------------------------------------------------------------------

static void poll_for_nothing(struct side *side)
{
    fixture_send(side, 1, IBV_WR_RDMA_WRITE, 0, 8, 0);
    (void)fixture_await(side, 1000 * US); // its completion stays
    fixture_barrier(side);
    for (unsigned i = 0; i < 10000 && *fixture_word(side, 4096) != 1; i++) {
        EXPECT_EQ(ibv_poll_cq(side->cq, i % 2 == 0 ? 0 : -1, NULL), 0);
    }
    EXPECT_EQ(*fixture_word(side, 4096), 1);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    fixture_barrier(side);
}

static void write_one(struct side *side)
{
    fixture_barrier(side);
    *fixture_word(side, 64) = 1;
    fixture_send(side, 1, IBV_WR_RDMA_WRITE, 64, 8, 4096);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    fixture_barrier(side);
}

TIMED_RULE(Completions, AreNotTakenByAPollForNoneThatTakesTimeAllTheSame)
{
    fixture_play(device, poll_for_nothing, write_one);
}

// --- unsignaled ------------------------------------------------------------------------------------------------------

static void rarely_signaled(struct side *side)
{
    struct ibv_sge sge = fixture_sge(side, 0, 100);
    for (unsigned i = 0; i < 20 * FIXTURE_DEPTH; i++) {
        struct ibv_send_wr wr = fixture_wr(side, i, IBV_WR_RDMA_WRITE, &sge, i * 100);
        bool last = i % FIXTURE_DEPTH == FIXTURE_DEPTH - 1;
        wr.send_flags = last ? IBV_SEND_SIGNALED : 0;
        EXPECT_EQ(fixture_post(side, &wr), 0);
        if (last) {
            (void)fixture_expect(side, i, IBV_WC_SUCCESS);
        }
    }
    fixture_expect_none(side, 20 * US);
    for (unsigned i = 0; i < 20 * FIXTURE_DEPTH; i++) {
        EXPECT_MEMEQ(side->peer->memory + i * 100, side->memory, 100);
    }
}

// IBA 10.8.6.1: a completion shows that earlier requests are done as well, so their entries are free.
RULE(Completions, ASignaledRequestFreesThoseBeforeIt)
{
    fixture_play(device, rarely_signaled, NULL);
}

static void always_signaled(struct side *side)
{
    struct ibv_sge sge = fixture_sge(side, 0, 8);
    for (unsigned i = 0; i < 4; i++) {
        struct ibv_send_wr wr = fixture_wr(side, i, IBV_WR_RDMA_WRITE, &sge, 0);
        wr.send_flags = 0;
        EXPECT_EQ(fixture_post(side, &wr), 0);
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
}

// IBA 10.2.4.1, 10.7.3.1.
RULE(Completions, AQueuePairMayBeAllSignaled)
{
    struct fixture *fixture = fixture_new(device);
    fixture->all_signaled = true;
    fixture_run(fixture, always_signaled, NULL);
    fixture_end(fixture);
}

// --- channels --------------------------------------------------------------------------------------------------------

// Waits for the event of the CQ.
static void cq_event(struct side *side)
{
    struct ibv_cq *cq = NULL;
    void *context = NULL;
    int error;
    do {
        error = ibv_get_cq_event(side->channel, &cq, &context);
    } while (error != 0 && errno == EINTR);
    EXPECT_EQ(error, 0);
    EXPECT_EQ(cq, side->cq);
    EXPECT_EQ(context, side);
    ibv_ack_cq_events(side->cq, 1);
}

static void send_two(struct side *side)
{
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    fixture_barrier(side);
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_send_wr wr = fixture_wr(side, i, IBV_WR_SEND, &sge, 0);
        wr.send_flags |= i == 1 ? IBV_SEND_SOLICITED : 0;
        EXPECT_EQ(fixture_post(side, &wr), 0);
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
        fixture_sleep(side, 50 * US);
    }
}

static void await_solicited(struct side *side)
{
    struct ibv_wc wc[4];
    receive_many(side, 2);
    EXPECT_EQ(ibv_req_notify_cq(side->cq, 1), 0);
    fixture_barrier(side);
    uint64_t start_ps = fixture_now_ps(side);
    cq_event(side);
    EXPECT_GT(fixture_now_ps(side) - start_ps, 40 * US);
    EXPECT_EQ(ibv_poll_cq(side->cq, 4, wc), 2);
}

// IBA 11.4.2.2, 9.2.3: a CQ armed for solicited completions raises no event for others.
RULE(Completions, AChannelWakesItsProgramAtTheSolicitedOne)
{
    fixture_play(device, send_two, await_solicited);
}

static void arm_late(struct side *side)
{
    struct ibv_wc wc[4];
    receive_many(side, 2);
    fixture_barrier(side);
    fixture_sleep(side, 30 * US); // the first one arrives
    EXPECT_EQ(ibv_req_notify_cq(side->cq, 1), 0);
    uint64_t start_ps = fixture_now_ps(side);
    cq_event(side);
    EXPECT_GT(fixture_now_ps(side) - start_ps, 10 * US);
    EXPECT_EQ(ibv_poll_cq(side->cq, 4, wc), 2);
}

// IBA 11.4.2.2: a waiting completion of the other kind raises no event.
RULE(Completions, ArmedForSolicitedOnesAChannelDoesNotTellOfOthersThatWait)
{
    fixture_play(device, send_two, arm_late);
}

static void arm_last(struct side *side)
{
    struct ibv_wc wc[4];
    receive_many(side, 2);
    fixture_barrier(side);
    fixture_sleep(side, 150 * US); // both arrive
    EXPECT_EQ(ibv_req_notify_cq(side->cq, 0), 0);
    cq_event(side);
    EXPECT_EQ(ibv_poll_cq(side->cq, 4, wc), 2);
}

// Not required by IBA 11.4.2.2, but HCAs do it: a program that polls all completions and then arms misses none.
RULE(Completions, AChannelTellsOfWhatCameBeforeItWasArmed)
{
    fixture_play(device, send_two, arm_last);
}

static void arm_untaken(struct side *side)
{
    struct ibv_wc wc[4];
    receive_many(side, 2);
    EXPECT_EQ(ibv_req_notify_cq(side->cq, 0), 0);
    fixture_barrier(side);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t start_ps = fixture_now_ps(side);
        cq_event(side);
        if (i != 0) { // after the second message
            EXPECT_GT(fixture_now_ps(side) - start_ps, 20 * US);
        }
        EXPECT_EQ(ibv_req_notify_cq(side->cq, 0), 0);
    }
    EXPECT_EQ(ibv_poll_cq(side->cq, 4, wc), 2);
}

// As ib_send_lat -e does: it polls an event's completion only after it has armed the queue again.
RULE(Completions, AChannelTellsOnceOfWhatIsNotTakenYet)
{
    fixture_play(device, send_two, arm_untaken);
}

static void await_any(struct side *side)
{
    struct ibv_wc wc;
    receive_many(side, 2);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(ibv_req_notify_cq(side->cq, 0), 0);
        EXPECT_EQ(ibv_req_notify_cq(side->cq, 1), 0); // does not weaken the first request
        if (i == 0) {
            fixture_barrier(side);
        }
        cq_event(side);
        EXPECT_EQ(ibv_poll_cq(side->cq, 1, &wc), 1);
        EXPECT_EQ(wc.wr_id, 100 + i);
    }
}

RULE(Completions, AChannelThatIsArmedForAllWakesAtEachAndOnce)
{
    fixture_play(device, send_two, await_any);
}

static void await_error(struct side *side)
{
    struct ibv_wc wc;
    receive_many(side, 1);
    EXPECT_EQ(ibv_req_notify_cq(side->cq, 1), 0);
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_ERR, side->peer, 0), 0);
    cq_event(side);
    EXPECT_EQ(ibv_poll_cq(side->cq, 1, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
}

// IBA 11.4.2.2: "solicited" includes completions in error.
RULE(Completions, AnErrorIsAlwaysSolicited)
{
    fixture_play(device, NULL, await_error);
}

// --- overflow --------------------------------------------------------------------------------------------------------

static void overflow(struct side *side)
{
    for (unsigned i = 0; i < FIXTURE_DEPTH; i++) {
        fixture_send(side, i, IBV_WR_RDMA_WRITE, 0, 8, 0);
    }
    fixture_expect_event(side, IBV_EVENT_CQ_ERR, side->cq);
    fixture_expect_event(side, IBV_EVENT_QP_FATAL, side->qp);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_ERR);
}

// IBA 10.8.2, 11.6.3.1: a CQ that overflows is in error, and so is each queue pair that needs it.
RULE(Completions, AQueueThatOverflowsFailsItsQueuePair)
{
    struct fixture *fixture = fixture_new(device);
    fixture->cq_entries = 4;
    fixture_run(fixture, overflow, NULL);
    fixture_end(fixture);
}

static void fill_and_empty(struct side *side)
{
    struct ibv_wc wc[8];
    unsigned entries = (unsigned)side->cq->cqe < FIXTURE_DEPTH ? (unsigned)side->cq->cqe : FIXTURE_DEPTH;
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < entries; i++) {
            fixture_send(side, i, IBV_WR_RDMA_WRITE, 0, 8, 0);
        }
        fixture_sleep(side, 50 * US);
        for (unsigned i = 0; i < entries; i++) {
            EXPECT_EQ(ibv_poll_cq(side->cq, 1, &wc[0]), 1);
            EXPECT_EQ(wc[0].wr_id, i);
        }
    }
    fixture_expect_no_event(side);
}

RULE(Completions, AQueueMayBeFullAgainAndAgain)
{
    struct fixture *fixture = fixture_new(device);
    fixture->cq_entries = 4;
    fixture_run(fixture, fill_and_empty, NULL);
    fixture_end(fixture);
}

static void resize(struct side *side)
{
    static const int sizes[] = {8, 300, 20, 64};
    unsigned posted = 0, taken = 0;
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned j = 0; j < 5; j++) {
            fixture_send(side, posted++, IBV_WR_RDMA_WRITE, 0, 8, 0);
        }
        fixture_sleep(side, i % 2 * 20 * US); // while they arrive, and after they have arrived
        EXPECT_EQ(ibv_resize_cq(side->cq, sizes[i]), 0);
        EXPECT_GE(side->cq->cqe, sizes[i]);
        for (; taken + 2 < posted; taken++) {
            (void)fixture_expect(side, taken, IBV_WC_SUCCESS);
        }
    }
    for (; taken < posted; taken++) {
        (void)fixture_expect(side, taken, IBV_WC_SUCCESS);
    }
    fixture_expect_none(side, 20 * US);
}

// IBA 11.2.8.3: its completions stay, and those that arrive meanwhile are not lost.
RULE(Completions, AQueueMayBeResizedWithCompletionsInIt)
{
    struct fixture *fixture = fixture_new(device);
    fixture->cq_entries = 8;
    fixture_run(fixture, resize, NULL);
    fixture_end(fixture);
}

static void destroy_with_completions(struct side *side)
{
    struct ibv_wc wc;
    struct ibv_qp *other = fixture_qp(side);
    EXPECT_EQ(fixture_modify(side, other, IBV_QPS_INIT, side->peer, 0), 0);
    EXPECT_EQ(fixture_modify(side, other, IBV_QPS_ERR, side->peer, 0), 0);
    struct ibv_sge sge = fixture_sge(side, 0, 8);
    struct ibv_recv_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1}, *bad;
    EXPECT_EQ(ibv_post_recv(other, &wr, &bad), 0);
    fixture_send(side, 1, IBV_WR_RDMA_WRITE, 0, 8, 0);
    fixture_sleep(side, 50 * US);
    EXPECT_EQ(ibv_destroy_qp(other), 0);
    EXPECT_EQ(ibv_poll_cq(side->cq, 1, &wc), 1);
    EXPECT_EQ(wc.wr_id, 1);
    EXPECT_EQ(ibv_poll_cq(side->cq, 1, &wc), 0);
}

// IBA 11.2.4.4; libibverbs' drivers remove them.
RULE(Completions, OfAQueuePairThatIsDestroyedAreGone)
{
    fixture_play(device, destroy_with_completions, NULL);
}

// --- two queues ------------------------------------------------------------------------------------------------------

static void send_to_apart(struct side *side)
{
    fixture_barrier(side);
    fixture_connect(side, side->qp, side->peer, (uint32_t)side->peer->value[0]);
    fixture_barrier(side);
    fixture_send(side, 1, IBV_WR_SEND, 0, 64, 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
}

static void expect_one(struct ibv_cq *cq, uint64_t id, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc[2] = {{0}};
    ASSERT_EQ(ibv_poll_cq(cq, 2, wc), 1);
    EXPECT_EQ(wc[0].wr_id, id);
    EXPECT_EQ(wc[0].opcode, opcode);
}

static void complete_apart(struct side *side)
{
    struct ibv_cq *receives = ibv_create_cq(side->context, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = side->cq, .recv_cq = receives, .cap = side->fixture->cap, .qp_type = IBV_QPT_RC};
    struct ibv_qp *apart = ibv_create_qp(side->pd, &init), *usual = side->qp;
    ASSERT_NOT_NULL(apart);
    side->value[0] = apart->qp_num;
    fixture_barrier(side);
    side->qp = apart;
    fixture_connect(side, apart, side->peer, side->peer->qp->qp_num);
    EXPECT_EQ(fixture_receive(side, 2, 4096, 64), 0);
    fixture_barrier(side);
    fixture_send(side, 3, IBV_WR_RDMA_WRITE, 0, 8, 8192);
    fixture_sleep(side, 50 * US);
    expect_one(side->cq, 3, IBV_WC_RDMA_WRITE);
    expect_one(receives, 2, IBV_WC_RECV);
    side->qp = usual;
    EXPECT_EQ(ibv_destroy_qp(apart) | ibv_destroy_cq(receives), 0);
}

// IBA 10.8.2: the two work queues may have different completion queues.
RULE(Completions, OfSendsAndOfReceivesComeInTheirOwnQueues)
{
    struct fixture *fixture = fixture_new(device);
    fixture->unconnected = true;
    fixture_run(fixture, send_to_apart, complete_apart);
    fixture_end(fixture);
}
