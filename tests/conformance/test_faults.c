// Reliable connections on a fabric that damages and loses packets, and with slow or missing peers.
#include <string.h>

#include "fixture.h"
#include "machine.h"

enum { BYTES = 30000, BACK = 1 << 19, WORD = 900000 };

static uint64_t timeout_ps(const struct side *side)
{
    return (4096 * NS) << side->fixture->attr.timeout;
}

// --- damaged and lost packets ----------------------------------------------------------------------------------------

// Several of each operation; memory and completions must be as without faults.
static void work(struct side *side)
{
    for (unsigned i = 0; i < 25; i++) {
        uint32_t at = (i % 8) * BYTES;
        fixture_fill(side->memory + at, BYTES, i);
        fixture_send(side, 1, IBV_WR_RDMA_WRITE, at, BYTES, at);
        fixture_send(side, 2, IBV_WR_RDMA_READ, BACK + at, BYTES, at);
        fixture_send(side, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, WORD, 8, WORD);
        fixture_send(side, 4, IBV_WR_SEND, at, BYTES, 0);
        for (unsigned id = 1; id <= 4; id++) {
            (void)fixture_expect(side, id, IBV_WC_SUCCESS);
        }
        EXPECT_TRUE(fixture_is_filled(side->memory + BACK + at, BYTES, i));
        EXPECT_TRUE(fixture_is_filled(side->peer->memory + at, BYTES, i));
    }
    fixture_expect_none(side, 20 * US);
    side->value[0] = fixture_now_ps(side);
}

static void receive_work(struct side *side)
{
    for (unsigned i = 0; i < 25; i++) {
        EXPECT_EQ(fixture_receive(side, i, BACK, BYTES), 0);
        EXPECT_EQ(fixture_expect(side, i, IBV_WC_SUCCESS).byte_len, BYTES);
        EXPECT_TRUE(fixture_is_filled(side->memory + BACK, BYTES, i));
    }
    fixture_expect_none(side, 20 * US);
    fixture_expect_no_event(side);
}

static uint64_t work_under(enum device device, uint64_t harass_ps, uint64_t seed)
{
    struct fixture *fixture = fixture_new(device);
    fixture->harass_ps = harass_ps;
    fixture->loss_every = harass_ps == 0 ? 0 : 37 + 10 * (unsigned)seed;
    fixture->seed = seed;
    fixture_run(fixture, work, receive_work);
    if (harass_ps != 0) {
        EXPECT_GT(machine_replays(fixture->machine), 20);
    } else {
        EXPECT_LE(machine_replays(fixture->machine), 20);
    }
    uint64_t end_ps = fixture->sides[0].value[0];
    fixture_end(fixture);
    return end_ps;
}

// PCI Express 3.5.2 on slots and boards' cables, IBA 9.7.5.1, 9.9.2.4 on InfiniBand.
TIMED_RULE(Faults, PacketsThatAreDamagedOrLostLeaveNoTraceButTime)
{
    uint64_t calm_ps = work_under(device, 0, 0);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        EXPECT_GT(work_under(device, 3 * US, seed), calm_ps);
    }
}

// A lost packet of one operation: of the request (from the near node), or of the answer.
struct loss {
    enum ibv_wr_opcode opcode;
    bool answer, lost;
    unsigned after_ns;
};
static struct loss loss_now;

static void work_with_loss(struct side *side)
{
    uint32_t bytes = loss_now.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 5000;
    struct machine *machine = side->fixture->machine;
    fixture_barrier(side);
    machine_damage_cable(machine, loss_now.answer ? 1 : 0, loss_now.lost);
    for (unsigned i = 0; i < 4; i++) {
        struct ibv_sge sge = fixture_sge(side, 8 * i, bytes);
        struct ibv_send_wr wr = fixture_wr(side, i, loss_now.opcode, &sge, WORD);
        if (loss_now.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            wr.wr.atomic.compare_add = 1;
        }
        EXPECT_EQ(fixture_post(side, &wr), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
}

static void receive_with_loss(struct side *side)
{
    bool sends = loss_now.opcode == IBV_WR_SEND;
    for (unsigned i = 0; i < 4 && sends; i++) {
        EXPECT_EQ(fixture_receive(side, i, i * 5000, 5000), 0);
    }
    fixture_barrier(side);
    for (unsigned i = 0; i < 4 && sends; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
        EXPECT_MEMEQ(side->memory + i * 5000, side->peer->memory + 8 * i, 5000);
    }
    fixture_expect_none(side, 20 * US);
}

TIMED_RULE(Faults, ALostRequestOrAnswerOfEachOperationIsRepairedOnce)
{
    const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                          IBV_WR_ATOMIC_FETCH_AND_ADD};
    for (unsigned i = 0; i < 16; i++) {
        loss_now = (struct loss){.opcode = opcodes[i / 4], .answer = (i & 1) != 0, .lost = (i & 2) != 0};
        struct fixture *fixture = fixture_new(device);
        fixture_run(fixture, work_with_loss, receive_with_loss);
        if (loss_now.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            EXPECT_EQ(*fixture_word(&fixture->sides[1], WORD), 4);
        }
        fixture_end(fixture);
    }
}

// --- receivers that are not ready ------------------------------------------------------------------------------------

static void send_without_receive(struct side *side)
{
    uint64_t start_ps = fixture_now_ps(side);
    fixture_send(side, 1, IBV_WR_SEND, 0, 64, 0);
    fixture_send(side, 2, IBV_WR_RDMA_WRITE, 0, 64, 0);
    (void)fixture_expect(side, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    side->value[0] = fixture_now_ps(side) - start_ps;
    (void)fixture_expect(side, 2, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_ERR);
    fixture_barrier(side);
}

static void have_no_receive(struct side *side)
{
    fixture_barrier(side);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_RTS); // 9.9.3: this side is not affected
    fixture_expect_no_event(side);
    fixture_expect_only(side, 0, side->peer, 0, 0);
}

// IBA 9.7.5.2.8, table 45: code 11 is a pause of 480 us; after rnr_retry pauses the request fails.
TIMED_RULE(Faults, AReceiverWithoutBuffersUsesUpTheRetriesInTheirTime)
{
    for (unsigned retries = 0; retries <= 6; retries += 2) {
        struct fixture *fixture = fixture_new(device);
        fixture->attr.rnr_retry = (uint8_t)retries;
        fixture->attr.min_rnr_timer = 11;
        fixture_run(fixture, send_without_receive, have_no_receive);
        EXPECT_BETWEEN(fixture->sides[0].value[0] / US, retries * 480, retries * 500 + 50);
        fixture_end(fixture);
    }
}

enum { PAUSE_US = 480, LATE_SENDS = 2 };

static void send_to_late(struct side *side)
{
    for (unsigned i = 0; i < LATE_SENDS; i++) {
        TEST_TRACE("send %u", i);
        fixture_barrier(side);
        uint64_t start_ps = fixture_now_ps(side);
        fixture_send(side, i, IBV_WR_SEND, 0, 64, 0);
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
        EXPECT_GE((fixture_now_ps(side) - start_ps) / US, 2 * PAUSE_US); // both retries were needed
    }
    fixture_barrier(side);
}

static void be_late(struct side *side)
{
    for (unsigned i = 0; i < LATE_SENDS; i++) {
        fixture_barrier(side);
        fixture_sleep(side, PAUSE_US * 3 / 2 * US); // between the first retry and the second
        EXPECT_EQ(fixture_receive(side, i, 0, 64), 0);
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
    fixture_barrier(side);
}

// IBA 9.7.5.2.8: the retries are those of a request.
TIMED_RULE(Faults, EachRequestHasAllRetriesOfAReceiverWithoutBuffers)
{
    struct fixture *fixture = fixture_new(device);
    fixture->attr.rnr_retry = 2;
    fixture->attr.min_rnr_timer = 11; // PAUSE_US
    fixture_run(fixture, send_to_late, be_late);
    fixture_end(fixture);
}

RULE(Faults, WithoutRnrRetriesAReceiverWithoutBuffersIsAnError)
{
    struct fixture *fixture = fixture_new(device);
    fixture->attr.rnr_retry = 0;
    fixture_run(fixture, send_without_receive, have_no_receive);
    fixture_end(fixture);
}

// --- peers that are down ---------------------------------------------------------------------------------------------

static void send_to_nobody(struct side *side)
{
    fixture_barrier(side);
    uint64_t start_ps = fixture_now_ps(side);
    fixture_send(side, 1, IBV_WR_RDMA_WRITE, 0, 64, 0);
    fixture_send(side, 2, IBV_WR_SEND, 0, 64, 0);
    (void)fixture_expect(side, 1, IBV_WC_RETRY_EXC_ERR);
    (void)fixture_expect(side, 2, IBV_WC_WR_FLUSH_ERR);
    uint64_t retries = side->fixture->attr.retry_cnt + 1u;
    // IBA 9.7.6.1.3: a timeout is at least the interval and at most four of them.
    EXPECT_LT(fixture_now_ps(side) - start_ps, 4 * retries * timeout_ps(side) + 100 * US);
    if (side->fixture->device != IN_MEMORY) {
        EXPECT_GT(fixture_now_ps(side) - start_ps, retries * timeout_ps(side));
    }
    fixture_barrier(side);
}

static void leave(struct side *side)
{
    EXPECT_EQ(ibv_destroy_qp(side->qp), 0);
    side->qps[0] = NULL;
    fixture_barrier(side);
    fixture_barrier(side);
    fixture_expect_only(side, 0, side->peer, 0, 0);
}

RULE(Faults, APeerThatIsGoneExceedsTheRetriesInTheirTime)
{
    for (unsigned retries = 0; retries < 4; retries += 3) {
        struct fixture *fixture = fixture_new(device);
        fixture->attr.retry_cnt = (uint8_t)retries;
        fixture_run(fixture, send_to_nobody, leave);
        fixture_end(fixture);
    }
}

// --- the cable -------------------------------------------------------------------------------------------------------

static void write_until_pulled(struct side *side)
{
    const uint32_t bytes = 400000;
    for (unsigned i = 0; i < 4; i++) {
        fixture_send(side, i, i % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0, bytes, i == 0 ? 4096 : BACK);
    }
    fixture_sleep(side, side->fixture->seed * US);
    machine_pull(side->fixture->machine);
    unsigned next = 0;
    bool failed = false;
    for (; next < 4; next++) {
        const struct ibv_wc wc = fixture_completion(side);
        EXPECT_EQ(wc.wr_id, next);
        EXPECT_EQ(wc.status, failed                        ? IBV_WC_WR_FLUSH_ERR
                             : wc.status == IBV_WC_SUCCESS ? IBV_WC_SUCCESS
                                                           : IBV_WC_RETRY_EXC_ERR);
        failed |= wc.status != IBV_WC_SUCCESS;
    }
    EXPECT_TRUE(failed);
    EXPECT_EQ(fixture_state(side->qp), IBV_QPS_ERR);
    side->fixture->gone = true;
}

static void sit_still(struct side *side)
{
    while (!side->fixture->gone) {
        fixture_sleep(side, 100 * US);
    }
    EXPECT_EQ(side->memory[4095] | side->memory[4096 + 400000], 0);
}

// IBA 9.9.2.4.2: the transport retry counter runs out; only the target is written.
TIMED_RULE(Faults, ACablePulledInMidMessageEndsTheRequestsInOrder)
{
    for (unsigned us = 5; us <= 165; us += 40) {
        struct fixture *fixture = fixture_new(device);
        fixture->seed = us;
        fixture->attr.retry_cnt = 1;
        fixture_run(fixture, write_until_pulled, sit_still);
        fixture_end(fixture);
    }
}
