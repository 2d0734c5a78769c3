// Many messages: order, wrap-around, slow receivers, several nodes, and atomics that count.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "party.h"

static void only_progress(void *arg, peach2_handle_t *board)
{
    (void)party_enter(arg, board);
    party_leave(arg, board);
}

static void run(unsigned nodes, plat_program_fn first, plat_program_fn other)
{
    struct party party;
    party_init(&party, nodes);
    party_run(&party, first, other);
    party_fini(&party);
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
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    party_meet(party, end);
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct ibv_sge sge = party_sge(&end->far, (i % 16) * 65536, bytes_of(i));
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND};
        if (i >= 16) {
            party_expect(end, i - 16, IBV_WC_SUCCESS);
        }
        site_fill((uint8_t *)(uintptr_t)sge.addr, sge.length, i);
        EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
    }
    for (unsigned i = MESSAGES - 16; i < MESSAGES; i++) {
        party_expect(end, i, IBV_WC_SUCCESS);
    }
    party_leave(party, board);
}

static void drain(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    const struct backend *backend = peach2_backend(board);
    for (unsigned i = 0; i < 32; i++) {
        struct ibv_sge sge = party_sge(i % 2 == 0 ? &end->far : &end->near, (i % 16) * 65536, 65536);
        EXPECT_EQ(party_receive(&end->qps[0], i, &sge), 0);
    }
    party_meet(party, end);
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct memory *memory = i % 2 == 0 ? &end->far : &end->near;
        struct ibv_sge sge = party_sge(memory, (i % 16) * 65536, 65536);
        struct ibv_wc wc = party_wc(end);
        EXPECT_EQ(wc.wr_id, i);
        EXPECT_EQ(wc.byte_len, bytes_of(i));
        EXPECT_TRUE(site_is_filled((uint8_t *)(uintptr_t)sge.addr, wc.byte_len, i));
        if (i % 7 == 0) {
            backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 30000); // elsewhere
        }
        EXPECT_EQ(party_receive(&end->qps[0], i + 32, &sge), 0);
    }
    party_leave(party, board);
}

TEST(TcaVerbsFlow, ASlowReceiverGetsAMixOfSizesInOrder)
{
    run(2, stream, drain);
}

// --- random operations against a model ------------------------------------------------------------------------------

enum { STEPS = 1500, REGION = 262144 };

// Node 0 works on both memories of node 1 and keeps a picture of them.
static void random_walk(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board), *other = &party->ends[1];
    uint8_t *model[2] = {calloc(1, REGION), calloc(1, REGION)};
    uint32_t random = 12345;
    for (unsigned i = 0; i < STEPS; i++) {
        random = random * 1664525 + 1013904223;
        unsigned far = random >> 31, own = random >> 30 & 1, op = random >> 28 & 3;
        uint32_t limit = (random & 15) == 0 ? 100000 : (random & 3) == 0 ? 10000 : 200;
        uint32_t bytes = (random >> 8) % limit, at = (random >> 3) % (REGION - bytes), from = (random >> 5) % 65536;
        struct memory *theirs = far != 0 ? &other->far : &other->near, *mine = own != 0 ? &end->far : &end->near;
        struct ibv_sge sge = party_sge(mine, from, bytes), to = party_sge(theirs, at, 0);
        struct ibv_send_wr wr = {.wr_id = i, .opcode = op != 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ};
        wr.wr.rdma.remote_addr = to.addr;
        wr.wr.rdma.rkey = to.lkey;
        if (op != 0) {
            site_fill(mine->data + from, bytes, i);
            memcpy(model[far] + at, mine->data + from, bytes);
        }
        EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
        party_expect(end, i, IBV_WC_SUCCESS);
        EXPECT_TRUE(op != 0 || memcmp(mine->data + from, model[far] + at, bytes) == 0);
    }
    EXPECT_TRUE(memcmp(model[0], other->near.data, REGION) == 0);
    EXPECT_TRUE(memcmp(model[1], other->far.data, REGION) == 0);
    free(model[0]);
    free(model[1]);
    party_leave(party, board);
}

TEST(TcaVerbsFlow, RandomWritesAndReadsLeaveExactlyWhatTheModelSays)
{
    run(2, random_walk, only_progress);
}

// --- all to all -----------------------------------------------------------------------------------------------------

static void everybody(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    uint32_t node = peach2_node(board);
    for (unsigned i = 0; i < 20; i++) {
        for (uint32_t peer = 0; peer < party->nodes; peer++) {
            struct ibv_sge in = party_sge(&end->far, peer * 65536, 65536);
            EXPECT_EQ(party_receive(&end->qps[peer], 100 + peer, &in), 0);
        }
        party_meet(party, end);
        for (uint32_t peer = 0; peer < party->nodes; peer++) {
            struct ibv_sge out = party_sge(&end->near, peer * 65536, 3000 * i + peer);
            struct ibv_send_wr wr = {.wr_id = peer, .opcode = IBV_WR_SEND};
            site_fill((uint8_t *)(uintptr_t)out.addr, out.length, i + 16 * node + peer);
            EXPECT_EQ(party_post(&end->qps[peer], &wr, &out), 0);
        }
        for (unsigned j = 0; j < 2 * party->nodes; j++) {
            EXPECT_EQ(party_wc(end).status, IBV_WC_SUCCESS);
        }
        for (uint32_t peer = 0; peer < party->nodes; peer++) {
            EXPECT_TRUE(site_is_filled(end->far.data + peer * 65536, 3000 * i + node, i + 16 * peer + node));
        }
        party_meet(party, end);
    }
    party_leave(party, board);
}

TEST(TcaVerbsFlow, EveryNodeReachesEveryNodeAndItself)
{
    run(4, everybody, everybody);
}

// --- full rings -----------------------------------------------------------------------------------------------------

static void floods(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    party_meet(party, end);
    for (unsigned i = 0; i < 64; i++) {
        if (i == 1) {
            party_expect(end, 0, IBV_WC_SUCCESS);
        }
        struct ibv_sge sge = party_sge(&end->far, 64 * i, 64);
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND};
        site_fill((uint8_t *)(uintptr_t)sge.addr, 64, i);
        EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
    }
    for (unsigned i = 1; i < 64; i++) {
        party_expect(end, i, IBV_WC_SUCCESS);
    }
    party_leave(party, board);
}

static void is_away(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    const struct backend *backend = peach2_backend(board);
    for (unsigned i = 0; i < 64; i++) {
        struct ibv_sge sge = party_sge(&end->far, 64 * i, 64);
        EXPECT_EQ(party_receive(&end->qps[0], i, &sge), 0);
    }
    party_meet(party, end);
    for (unsigned i = 0; i < 64; i++) {
        party_expect(end, i, IBV_WC_SUCCESS);
        if (i == 0) {                                                    // they are connected
            backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 500000); // four rings full
        }
        EXPECT_TRUE(site_is_filled(end->far.data + 64 * i, 64, i));
    }
    party_leave(party, board);
}

TEST(TcaVerbsFlow, ARingIsNeverWrittenBeforeItWasTaken)
{
    run(2, floods, is_away);
}
