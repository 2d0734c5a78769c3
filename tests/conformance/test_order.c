// The order in which requests take effect (IBA 9.5, 10.8.3.3), within a queue pair and under flows of several nodes.
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

// --- within a queue pair ---------------------------------------------------------------------------------------------

enum { ROUNDS = 24 };

static uint32_t bytes_of(unsigned round)
{
    static const uint32_t sizes[] = {60000, 6000, 64, 300000};
    return sizes[round % 4];
}

static void write_then_notify(struct side *side)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t bytes = bytes_of(i), back = 1 << 19;
        fixture_fill(side->memory, bytes, i);
        memset(side->memory + back, 0, bytes);
        fixture_barrier(side);
        fixture_send(side, 1, IBV_WR_RDMA_WRITE, 0, bytes, 0);
        struct ibv_send_wr notify = fixture_wr(side, 2, i % 2 == 0 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, NULL, 0);
        EXPECT_EQ(fixture_post(side, &notify), 0);
        fixture_send(side, 3, IBV_WR_RDMA_READ, back, bytes, 0);
        for (unsigned id = 1; id <= 3; id++) {
            (void)fixture_expect(side, id, IBV_WC_SUCCESS);
        }
        EXPECT_TRUE(fixture_is_filled(side->memory + back, bytes, i));
        fixture_barrier(side);
    }
}

static void notified(struct side *side)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct ibv_recv_wr wr = {.wr_id = i}, *bad;
        EXPECT_EQ(ibv_post_recv(side->qp, &wr, &bad), 0);
        fixture_barrier(side);
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
        EXPECT_TRUE(fixture_is_filled(side->memory, bytes_of(i), i));
        fixture_barrier(side);
    }
}

// IBA 9.5, o9-...: after a receive completion all earlier writes are visible; a read sees the earlier writes.
RULE(Order, AWriteIsThereBeforeTheMessageAndTheReadBehindIt)
{
    fixture_play(device, write_then_notify, notified);
}

static void read_then_write(struct side *side)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t bytes = bytes_of(i), back = 1 << 19;
        fixture_fill(side->peer->memory, bytes, 50 + i);
        fixture_fill(side->memory, bytes, i);
        fixture_send(side, 1, IBV_WR_RDMA_READ, back, bytes, 0);
        struct ibv_sge sge = fixture_sge(side, back, bytes); // the data that the read fetches
        struct ibv_send_wr fenced = fixture_wr(side, 2, IBV_WR_RDMA_WRITE, &sge, back);
        fenced.send_flags |= IBV_SEND_FENCE;
        EXPECT_EQ(fixture_post(side, &fenced), 0);
        (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
        (void)fixture_expect(side, 2, IBV_WC_SUCCESS);
        fixture_sleep(side, 20 * US);
        EXPECT_TRUE(fixture_is_filled(side->memory + back, bytes, 50 + i));
        EXPECT_TRUE(fixture_is_filled(side->peer->memory + back, bytes, 50 + i));
    }
}

// IBA 10.8.3.3: a fenced request begins after earlier reads have ended.
RULE(Order, AFencedWriteSendsWhatTheReadBeforeItBrought)
{
    fixture_play(device, read_then_write, NULL);
}

static void atomics_in_turn(struct side *side)
{
    *fixture_word(side->peer, 0) = 0;
    for (unsigned i = 0; i < 12; i++) {
        *fixture_word(side, 1024 + 8 * i) = UINT64_MAX;
        struct ibv_sge sge = fixture_sge(side, 1024 + 8 * i, 8);
        struct ibv_send_wr wr = fixture_wr(side, i, IBV_WR_ATOMIC_CMP_AND_SWP, &sge, 0);
        wr.wr.atomic.compare_add = i;
        wr.wr.atomic.swap = i + 1;
        EXPECT_EQ(fixture_post(side, &wr), 0);
    }
    for (unsigned i = 0; i < 12; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
        EXPECT_EQ(*fixture_word(side, 1024 + 8 * i), i);
    }
    EXPECT_EQ(*fixture_word(side->peer, 0), 12);
}

// Those beyond the outstanding limit (max_rd_atomic) wait.
RULE(Order, AtomicsOfAQueuePairAreExecutedInTurn)
{
    fixture_play(device, atomics_in_turn, NULL);
}

static void write_word_and_add(struct side *side)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        *fixture_word(side, 0) = 1000 * i;
        *fixture_word(side, 16) = UINT64_MAX;
        fixture_send(side, 1, IBV_WR_RDMA_WRITE, 0, 8, 64);
        struct ibv_sge sge = fixture_sge(side, 16, 8), back = fixture_sge(side, 24, 8);
        struct ibv_send_wr add = fixture_wr(side, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 64);
        struct ibv_send_wr read = fixture_wr(side, 3, IBV_WR_RDMA_READ, &back, 64);
        add.wr.atomic.compare_add = 7;
        EXPECT_EQ(fixture_post(side, &add) | fixture_post(side, &read), 0);
        for (unsigned id = 1; id <= 3; id++) {
            (void)fixture_expect(side, id, IBV_WC_SUCCESS);
        }
        EXPECT_EQ(*fixture_word(side, 16), 1000 * i);
        EXPECT_EQ(*fixture_word(side, 24), 1000 * i + 7);
    }
}

RULE(Order, AnAtomicSeesTheWriteBeforeItAndTheReadBehindItSeesTheAtomic)
{
    fixture_play(device, write_word_and_add, NULL);
}

// --- a slow receiver -------------------------------------------------------------------------------------------------

enum { MESSAGES = 200 };

static uint32_t message_bytes(unsigned message)
{
    static const uint32_t sizes[] = {8, 5000, 70, 100, 20000, 0, 40001, 81, 12};
    return sizes[message % 9];
}

static void stream(struct side *side)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        uint32_t at = (i % 16) * 65536;
        if (i >= 16) {
            (void)fixture_expect(side, i - 16, IBV_WC_SUCCESS);
        }
        fixture_fill(side->memory + at, message_bytes(i), i);
        fixture_send(side, i, IBV_WR_SEND, at, message_bytes(i), 0);
    }
    for (unsigned i = MESSAGES - 16; i < MESSAGES; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
}

static void drain_slowly(struct side *side)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        uint32_t at = (i % 16) * 65536;
        EXPECT_EQ(fixture_receive(side, i, at, 65536), 0);
        EXPECT_EQ(fixture_expect(side, i, IBV_WC_SUCCESS).byte_len, message_bytes(i));
        EXPECT_TRUE(fixture_is_filled(side->memory + at, message_bytes(i), i));
        if (i % 7 == 0) {
            fixture_sleep(side, 30 * US);
        }
    }
}

// IBA 9.7.5.2.8: with endless RNR retries no message is lost or out of order.
RULE(Order, AReceiverThatIsAlwaysLateGetsEveryMessageInOrder)
{
    fixture_play(device, stream, drain_slowly);
}

enum { LARGE_AT = 4096, LARGE_BYTES = 900000 };

static void small_then_large(struct side *side)
{
    fixture_fill(side->memory, 8, 3);
    fixture_fill(side->memory + LARGE_AT, LARGE_BYTES, 4);
    fixture_send(side, 1, IBV_WR_SEND, 0, 8, 0);
    fixture_send(side, 2, IBV_WR_SEND, LARGE_AT, LARGE_BYTES, 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    (void)fixture_expect(side, 2, IBV_WC_SUCCESS);
}

static void late_for_both(struct side *side)
{
    fixture_sleep(side, 300 * US);
    EXPECT_EQ(fixture_receive(side, 1, 0, 8), 0);
    EXPECT_EQ(fixture_receive(side, 2, LARGE_AT, LARGE_BYTES), 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    (void)fixture_expect(side, 2, IBV_WC_SUCCESS);
    EXPECT_TRUE(fixture_is_filled(side->memory, 8, 3));
    EXPECT_TRUE(fixture_is_filled(side->memory + LARGE_AT, LARGE_BYTES, 4));
}

// The requester is in the middle of the second message when it goes back to the first.
RULE(Order, ALargeMessageBehindOneThatFindsNoReceiveArrives)
{
    fixture_play(device, small_then_large, late_for_both);
}

// --- several nodes ---------------------------------------------------------------------------------------------------

enum { ADDS = 60, NODES = 4 };

// Every node, also the owner, adds to a word of node 0, three atomics at a time, and keeps the fetched values.
static void count(struct side *side)
{
    uint64_t *fetched = fixture_word(side, 4096);
    side->qp = side->qps[0];
    side->peer = &side->fixture->sides[0];
    if (side->index == 0) {
        *fixture_word(side, 0) = 0;
    }
    fixture_barrier(side);
    for (unsigned i = 0; i < ADDS; i++) {
        struct ibv_sge sge = fixture_sge(side, 4096 + 8 * i, 8);
        struct ibv_send_wr wr = fixture_wr(side, i, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 0);
        wr.wr.atomic.compare_add = 1;
        EXPECT_EQ(fixture_post(side, &wr), 0);
        if (i >= 3) {
            (void)fixture_expect(side, i - 3, IBV_WC_SUCCESS);
        }
    }
    for (unsigned i = ADDS - 3; i < ADDS; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
    for (unsigned i = 1; i < ADDS; i++) {
        EXPECT_GT(fetched[i], fetched[i - 1]);
    }
}

// IBA 9.4.5: atomic among all requests to the word on that adapter.
RULE(Order, AtomicsOfSeveralNodesFetchEachValueOnce)
{
    bool seen[ADDS * NODES] = {false};
    struct fixture *fixture = fixture_new(device);
    fixture->nodes = NODES;
    fixture->all_qps = true;
    fixture_run(fixture, count, count);
    EXPECT_EQ(*fixture_word(&fixture->sides[0], 0), ADDS * NODES);
    for (unsigned i = 0; i < ADDS * NODES; i++) {
        uint64_t value = fixture_word(&fixture->sides[i / ADDS], 4096)[i % ADDS];
        ASSERT_LT(value, ADDS * NODES);
        ASSERT_FALSE(seen[value]);
        seen[value] = true;
    }
    fixture_end(fixture);
}

// Every node acquires a lock in node 0 by compare and swap, changes a counter by write, and releases the lock.
static void lock_and_add(struct side *side)
{
    side->qp = side->qps[0];
    side->peer = &side->fixture->sides[0];
    if (side->index == 0) {
        memset(side->memory, 0, 64);
    }
    fixture_barrier(side);
    for (unsigned i = 0; i < 8; i++) {
        struct ibv_sge old = fixture_sge(side, 4096, 8);
        struct ibv_send_wr swap = fixture_wr(side, 1, IBV_WR_ATOMIC_CMP_AND_SWP, &old, 0);
        swap.wr.atomic.compare_add = 0;
        swap.wr.atomic.swap = side->index + 1;
        do {
            EXPECT_EQ(fixture_post(side, &swap), 0);
            (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
        } while (*fixture_word(side, 4096) != 0);
        fixture_send(side, 2, IBV_WR_RDMA_READ, 4104, 8, 8);
        (void)fixture_expect(side, 2, IBV_WC_SUCCESS);
        *fixture_word(side, 4104) += 1;
        fixture_send(side, 3, IBV_WR_RDMA_WRITE, 4104, 8, 8);
        *fixture_word(side, 4112) = 0;
        fixture_send(side, 4, IBV_WR_RDMA_WRITE, 4112, 8, 0);
        (void)fixture_expect(side, 3, IBV_WC_SUCCESS);
        (void)fixture_expect(side, 4, IBV_WC_SUCCESS);
    }
}

RULE(Order, ALockOfAtomicsGuardsWhatIsReadAndWritten)
{
    struct fixture *fixture = fixture_new(device);
    fixture->nodes = NODES;
    fixture->all_qps = true;
    fixture_run(fixture, lock_and_add, lock_and_add);
    EXPECT_EQ(*fixture_word(&fixture->sides[0], 8), 8 * NODES);
    fixture_end(fixture);
}

// Every node sends to every node and itself; each receiver sees each sender's messages in order.
enum { EACH = 30, SLOT_BYTES = 8192 };

static uint32_t sent_bytes(unsigned i, unsigned from, unsigned to)
{
    return (i * 937 + from * 411 + to * 79) % SLOT_BYTES;
}

static void everybody(struct side *side)
{
    unsigned nodes = side->fixture->nodes, sent[NODES] = {0}, done[NODES] = {0}, came[NODES] = {0};
    for (unsigned peer = 0; peer < nodes; peer++) {
        for (unsigned i = 0; i < 4; i++) {
            side->qp = side->qps[peer];
            EXPECT_EQ(fixture_receive(side, 100 * peer + i, (4 * peer + i) * SLOT_BYTES, SLOT_BYTES), 0);
        }
    }
    fixture_barrier(side);
    for (unsigned left = 2 * nodes * EACH; left > 0;) {
        for (unsigned peer = 0; peer < nodes; peer++) {
            if (sent[peer] < EACH && sent[peer] < done[peer] + 4) {
                uint32_t bytes = sent_bytes(sent[peer], side->index, peer), at = 1 << 19;
                side->qp = side->qps[peer];
                at += (4 * peer + sent[peer] % 4) * SLOT_BYTES;
                fixture_fill(side->memory + at, bytes, sent[peer] + 40 * side->index + peer);
                fixture_send(side, 1000 + peer, IBV_WR_SEND, at, bytes, 0);
                sent[peer]++;
            }
        }
        const struct ibv_wc wc = fixture_completion(side);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        left--;
        if (wc.wr_id >= 1000) {
            done[wc.wr_id - 1000]++;
        } else {
            unsigned peer = (unsigned)wc.wr_id / 100, slot = (unsigned)wc.wr_id % 100, i = came[peer]++;
            uint32_t at = (4 * peer + slot) * SLOT_BYTES, bytes = sent_bytes(i, peer, side->index);
            EXPECT_EQ(slot, i % 4);
            EXPECT_EQ(wc.byte_len, bytes);
            EXPECT_EQ(wc.qp_num, side->qps[peer]->qp_num);
            EXPECT_TRUE(fixture_is_filled(side->memory + at, bytes, i + 40 * peer + side->index));
            side->qp = side->qps[peer];
            EXPECT_EQ(fixture_receive(side, wc.wr_id, at, SLOT_BYTES), 0);
        }
    }
}

RULE(Order, MessagesBetweenAllNodesComeInOrderOfEachSender)
{
    struct fixture *fixture = fixture_new(device);
    fixture->nodes = NODES;
    fixture->all_qps = true;
    fixture_run(fixture, everybody, everybody);
    fixture_end(fixture);
}
