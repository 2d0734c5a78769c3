// Many messages: order, wrap-around, slow receivers, several nodes, and atomics that count.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static const struct ibverbs_device_ops *ops = &tca_verbs_ops;

static void only_progress(void *arg, peach2_handle_t *board)
{
    (void)fixture_enter(arg, board);
    fixture_leave(arg, board);
}

static void run(unsigned nodes, plat_program_fn first, plat_program_fn other)
{
    struct fixture fixture;
    fixture_init(&fixture, nodes);
    fixture_run(&fixture, first, other);
    fixture_fini(&fixture);
}

// --- order ----------------------------------------------------------------------------------------------------------

enum { MESSAGES = 600 };

static uint32_t bytes_of(unsigned message)
{
    static const uint32_t sizes[] = {8, 5000, 70, 100, 20000, 0, 40001, 81, 12};
    return sizes[message % 9];
}

static void stream(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    fixture_barrier(fixture, end);
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct ibv_sge sge = fixture_sge(&end->far, (i % 16) * 65536, bytes_of(i));
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND};
        if (i >= 16) {
            fixture_expect(end, i - 16, IBV_WC_SUCCESS);
        }
        site_fill((uint8_t *)(uintptr_t)sge.addr, sge.length, i);
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    }
    for (unsigned i = MESSAGES - 16; i < MESSAGES; i++) {
        fixture_expect(end, i, IBV_WC_SUCCESS);
    }
    fixture_leave(fixture, board);
}

static void drain(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    const struct backend *backend = peach2_backend(board);
    for (unsigned i = 0; i < 32; i++) {
        struct ibv_sge sge = fixture_sge(i % 2 == 0 ? &end->far : &end->near, (i % 16) * 65536, 65536);
        EXPECT_EQ(fixture_receive(&end->qps[0], i, &sge), 0);
    }
    fixture_barrier(fixture, end);
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct memory *memory = i % 2 == 0 ? &end->far : &end->near;
        struct ibv_sge sge = fixture_sge(memory, (i % 16) * 65536, 65536);
        struct ibv_wc wc = fixture_wc(end);
        EXPECT_EQ(wc.wr_id, i);
        EXPECT_EQ(wc.byte_len, bytes_of(i));
        EXPECT_TRUE(site_is_filled((uint8_t *)(uintptr_t)sge.addr, wc.byte_len, i));
        if (i % 7 == 0) {
            backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 30000); // the program computes
        }
        EXPECT_EQ(fixture_receive(&end->qps[0], i + 32, &sge), 0);
    }
    fixture_leave(fixture, board);
}

TEST(TcaVerbsFlow, ASlowReceiverGetsAMixOfSizesInOrder)
{
    run(2, stream, drain);
}

// --- random operations against a model ------------------------------------------------------------------------------

enum { STEPS = 1500, REGION = 262144 };

// Node 0 operates on both memories of node 1 and keeps a copy of them.
static void random_walk(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board), *other = &fixture->ends[1];
    uint8_t *model[2] = {calloc(1, REGION), calloc(1, REGION)};
    uint32_t random = 12345;
    for (unsigned i = 0; i < STEPS; i++) {
        random = random * 1664525 + 1013904223;
        unsigned far = random >> 31, own = random >> 30 & 1, op = random >> 28 & 3;
        uint32_t limit = (random & 15) == 0 ? 100000 : (random & 3) == 0 ? 10000 : 200;
        uint32_t bytes = (random >> 8) % limit, at = (random >> 3) % (REGION - bytes), from = (random >> 5) % 65536;
        struct memory *theirs = far != 0 ? &other->far : &other->near, *mine = own != 0 ? &end->far : &end->near;
        struct ibv_sge sge = fixture_sge(mine, from, bytes), to = fixture_sge(theirs, at, 0);
        struct ibv_send_wr wr = {.wr_id = i, .opcode = op != 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ};
        wr.wr.rdma.remote_addr = to.addr;
        wr.wr.rdma.rkey = to.lkey;
        if (op != 0) {
            site_fill(mine->data + from, bytes, i);
            memcpy(model[far] + at, mine->data + from, bytes);
        }
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
        fixture_expect(end, i, IBV_WC_SUCCESS);
        if (op == 0) {
            EXPECT_MEMEQ(mine->data + from, model[far] + at, bytes);
        }
    }
    EXPECT_MEMEQ(model[0], other->near.data, REGION);
    EXPECT_MEMEQ(model[1], other->far.data, REGION);
    free(model[0]);
    free(model[1]);
    fixture_leave(fixture, board);
}

TEST(TcaVerbsFlow, RandomWritesAndReadsLeaveExactlyWhatTheModelSays)
{
    run(2, random_walk, only_progress);
}

// --- all to all -----------------------------------------------------------------------------------------------------

static void everybody(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    uint32_t node = peach2_node(board);
    for (unsigned i = 0; i < 20; i++) {
        for (uint32_t peer = 0; peer < fixture->nodes; peer++) {
            struct ibv_sge in = fixture_sge(&end->far, peer * 65536, 65536);
            EXPECT_EQ(fixture_receive(&end->qps[peer], 100 + peer, &in), 0);
        }
        fixture_barrier(fixture, end);
        for (uint32_t peer = 0; peer < fixture->nodes; peer++) {
            struct ibv_sge out = fixture_sge(&end->near, peer * 65536, 3000 * i + peer);
            struct ibv_send_wr wr = {.wr_id = peer, .opcode = IBV_WR_SEND};
            site_fill((uint8_t *)(uintptr_t)out.addr, out.length, i + 16 * node + peer);
            EXPECT_EQ(fixture_post(&end->qps[peer], &wr, &out), 0);
        }
        for (unsigned j = 0; j < 2 * fixture->nodes; j++) {
            EXPECT_EQ(fixture_wc(end).status, IBV_WC_SUCCESS);
        }
        for (uint32_t peer = 0; peer < fixture->nodes; peer++) {
            EXPECT_TRUE(site_is_filled(end->far.data + peer * 65536, 3000 * i + node, i + 16 * peer + node));
        }
        fixture_barrier(fixture, end);
    }
    fixture_leave(fixture, board);
}

TEST(TcaVerbsFlow, EveryNodeReachesEveryNodeAndItself)
{
    run(4, everybody, everybody);
}

// --- full rings -----------------------------------------------------------------------------------------------------

static void sends_a_burst(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    fixture_barrier(fixture, end);
    for (unsigned i = 0; i < 64; i++) {
        if (i == 1) {
            fixture_expect(end, 0, IBV_WC_SUCCESS);
        }
        struct ibv_sge sge = fixture_sge(&end->far, 64 * i, 64);
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND};
        site_fill((uint8_t *)(uintptr_t)sge.addr, 64, i);
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    }
    for (unsigned i = 1; i < 64; i++) {
        fixture_expect(end, i, IBV_WC_SUCCESS);
    }
    fixture_leave(fixture, board);
}

static void is_away(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    const struct backend *backend = peach2_backend(board);
    for (unsigned i = 0; i < 64; i++) {
        struct ibv_sge sge = fixture_sge(&end->far, 64 * i, 64);
        EXPECT_EQ(fixture_receive(&end->qps[0], i, &sge), 0);
    }
    fixture_barrier(fixture, end);
    for (unsigned i = 0; i < 64; i++) {
        fixture_expect(end, i, IBV_WC_SUCCESS);
        if (i == 0) {                                                    // they are connected
            backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 500000); // four rings full
        }
        EXPECT_TRUE(site_is_filled(end->far.data + 64 * i, 64, i));
    }
    fixture_leave(fixture, board);
}

TEST(TcaVerbsFlow, ARingIsNeverWrittenBeforeItWasTaken)
{
    run(2, sends_a_burst, is_away);
}

// --- refusals -------------------------------------------------------------------------------------------------------

// More than are answered at once: as many as fit in both rings arrive while the other program computes.
enum { CROWD = 80, CROWD_LARGE = 64 };

struct crowd {
    struct fixture fixture;
    struct fixture_qp qps[2][CROWD];
};

static struct end *crowd_enter(struct crowd *crowd, peach2_handle_t *board)
{
    struct end *end = fixture_enter(&crowd->fixture, board);
    for (unsigned i = 0; i < CROWD; i++) {
        fixture_qp_make(&crowd->fixture, end, &crowd->qps[peach2_node(board)][i]);
    }
    fixture_barrier(&crowd->fixture, end);
    return end;
}

static void crowd_leave(struct crowd *crowd, struct end *end, peach2_handle_t *board)
{
    fixture_barrier(&crowd->fixture, end);
    for (unsigned i = 0; i < CROWD; i++) {
        EXPECT_EQ(ops->qp_destroy(crowd->qps[peach2_node(board)][i].qp), 0);
    }
    fixture_leave(&crowd->fixture, board);
}

static void write_too_early(void *arg, peach2_handle_t *board)
{
    struct crowd *crowd = arg;
    struct end *end = crowd_enter(crowd, board);
    struct ibv_sge to = fixture_sge(&crowd->fixture.ends[1].near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
    struct ibv_sge sge = fixture_sge(&end->near, 0, 8);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    fixture_barrier(&crowd->fixture, end);
    for (unsigned i = 0; i < CROWD; i++) {
        struct fixture_qp *qp = &crowd->qps[0][i];
        sge.length = i < CROWD_LARGE ? 3000 : 8;
        EXPECT_EQ(fixture_qp_connect(&crowd->fixture, end, qp, 1, crowd->qps[1][i].number), 0);
        EXPECT_EQ(fixture_post(qp, &wr, &sge), 0);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        fixture_expect(end, 1, IBV_WC_SUCCESS);
    }
    crowd_leave(crowd, end, board);
}

static void be_ready_late(void *arg, peach2_handle_t *board)
{
    struct crowd *crowd = arg;
    struct end *end = crowd_enter(crowd, board);
    const struct backend *backend = peach2_backend(board);
    fixture_barrier(&crowd->fixture, end);
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 1000000);
    EXPECT_EQ(ops->cq_poll(end->cq, 0, NULL), 0); // all arrive and are refused
    for (unsigned i = 0; i < CROWD; i++) {
        EXPECT_EQ(fixture_qp_connect(&crowd->fixture, end, &crowd->qps[1][i], 0, crowd->qps[0][i].number), 0);
    }
    crowd_leave(crowd, end, board);
}

TEST(TcaVerbsFlow, EveryRequestThatComesTooEarlyIsToldSoHoweverManyWait)
{
    struct crowd crowd = {0};
    fixture_init(&crowd.fixture, 2);
    fixture_run(&crowd.fixture, write_too_early, be_ready_late);
    fixture_fini(&crowd.fixture);
}
