// The data of each operation: every byte, and no other.
#include <endian.h>
#include <string.h>

#include "fixture.h"

static const uint32_t sizes[] = {0,    1,    7,    8,    64,   65,   80,    81,    1023,
                                 1024, 1025, 4032, 4033, 8192, 8195, 32768, 40001, 300001};
static const struct offsets {
    uint32_t source, target;
} offsets[] = {{0, 0}, {5, 21}, {1, 0}, {4094, 3}};
enum { SIZES = sizeof sizes / sizeof *sizes, OFFSETS = sizeof offsets / sizeof *offsets, BASE = 8192, HALF = 1 << 19 };

// Each size with each pair of offsets; round counts both.
static uint32_t bytes_of(unsigned round)
{
    return sizes[round / OFFSETS];
}

// --- send ------------------------------------------------------------------------------------------------------------

static void send_all(struct side *side)
{
    for (unsigned i = 0; i < SIZES * OFFSETS; i++) {
        struct ibv_sge sge = fixture_sge(side, BASE + offsets[i % OFFSETS].source, bytes_of(i));
        struct ibv_send_wr wr = fixture_wr(side, i, i % 2 == 0 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, &sge, 0);
        wr.imm_data = htobe32(i);
        fixture_barrier(side);
        EXPECT_EQ(fixture_post(side, &wr), 0);
        EXPECT_EQ(fixture_expect(side, i, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
        fixture_barrier(side);
    }
}

static void receive_all(struct side *side)
{
    for (unsigned i = 0; i < SIZES * OFFSETS; i++) {
        uint32_t at = BASE + offsets[i % OFFSETS].target, bytes = bytes_of(i);
        memset(side->memory, 0, FIXTURE_BYTES);
        EXPECT_EQ(fixture_receive(side, i, at, bytes + 100), 0);
        fixture_barrier(side);
        const struct ibv_wc wc = fixture_expect(side, i, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_RECV);
        EXPECT_EQ(wc.byte_len, bytes);
        EXPECT_EQ(wc.qp_num, side->qp->qp_num);
        EXPECT_EQ(wc.wc_flags, i % 2 == 0 ? IBV_WC_WITH_IMM : 0);
        if (i % 2 == 0) {
            EXPECT_EQ(be32toh(wc.imm_data), i);
        }
        fixture_expect_only(side, at, side->peer, BASE + offsets[i % OFFSETS].source, bytes);
        fixture_barrier(side);
    }
}

static void play_both_memories(enum device device, program_fn near, program_fn far)
{
    for (unsigned pageable = 0; pageable < 2; pageable++) {
        struct fixture *fixture = fixture_new(device);
        fixture->pageable = pageable != 0;
        fixture_run(fixture, near, far);
        fixture_end(fixture);
    }
}

// IBA 9.5, 9.7.2: sends consume receives, and the length is the message's.
RULE(Transfer, SendsBringEveryByteOfEverySize)
{
    play_both_memories(device, send_all, receive_all);
}

// --- write and read --------------------------------------------------------------------------------------------------

// Writes side 0's data from one offset to side 1, and reads it back to another offset.
static void write_and_read_all(struct side *side)
{
    for (unsigned i = 0; i < SIZES * OFFSETS; i++) {
        const struct offsets *o = &offsets[i % OFFSETS];
        uint32_t bytes = bytes_of(i), from = BASE + o->source, to = BASE + o->target, back = HALF + o->target + 1;
        memset(side->peer->memory, 0, FIXTURE_BYTES);
        memset(side->memory + HALF, 0, HALF);
        fixture_send(side, i, IBV_WR_RDMA_WRITE, from, bytes, to);
        EXPECT_EQ(fixture_expect(side, i, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
        fixture_send(side, i, IBV_WR_RDMA_READ, back, bytes, to);
        const struct ibv_wc wc = fixture_expect(side, i, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_RDMA_READ);
        EXPECT_EQ(wc.byte_len, bytes);
        fixture_expect_only(side->peer, to, side, from, bytes); // the read has seen the write by then
        EXPECT_MEMEQ(side->memory + back, side->memory + from, bytes);
        EXPECT_EQ(side->memory[back - 1] | side->memory[back + bytes], 0);
    }
}

// IBA 9.4.3, 9.4.4: they need no call of the other side.
RULE(Transfer, WritesAndReadsMoveEveryByteOfEverySize)
{
    play_both_memories(device, write_and_read_all, NULL);
}

static void write_with_immediate(struct side *side)
{
    struct ibv_sge sge = fixture_sge(side, 3, 5000);
    struct ibv_send_wr wr = fixture_wr(side, 1, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, BASE);
    wr.imm_data = htobe32(0xabcd);
    fixture_barrier(side);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    EXPECT_EQ(fixture_expect(side, 1, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
}

static void receive_write(struct side *side)
{
    EXPECT_EQ(fixture_receive(side, 9, 0, 64), 0); // its memory is not used
    fixture_barrier(side);
    const struct ibv_wc wc = fixture_expect(side, 9, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(wc.byte_len, 5000);
    EXPECT_EQ(wc.wc_flags, IBV_WC_WITH_IMM);
    EXPECT_EQ(be32toh(wc.imm_data), 0xabcd);
    fixture_expect_only(side, BASE, side->peer, 3, 5000);
}

// IBA 9.4.3, 10.7.2.2: the immediate uses a receive, and its completion comes after the data.
RULE(Transfer, AWriteWithImmediateTakesAReceiveButNotItsMemory)
{
    fixture_play(device, write_with_immediate, receive_write);
}

// --- lists -----------------------------------------------------------------------------------------------------------

static void send_pieces(struct side *side)
{
    struct ibv_sge pieces[4] = {fixture_sge(side, 1, 10), fixture_sge(side, 2000, 0), fixture_sge(side, 100, 4000),
                                fixture_sge(side, 50, 7)};
    struct ibv_send_wr wr = fixture_wr(side, 1, IBV_WR_SEND, pieces, 0);
    wr.num_sge = 4;
    fixture_barrier(side);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
}

static void receive_pieces(struct side *side)
{
    struct ibv_sge pieces[4] = {fixture_sge(side, 5, 5), fixture_sge(side, 2000, 3012), fixture_sge(side, 20, 0),
                                fixture_sge(side, 10000, 1003)};
    struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = pieces, .num_sge = 4}, *bad;
    EXPECT_EQ(ibv_post_recv(side->qp, &wr, &bad), 0);
    fixture_barrier(side);
    EXPECT_EQ(fixture_expect(side, 2, IBV_WC_SUCCESS).byte_len, 4017);
    const uint8_t *from = side->peer->memory;
    EXPECT_MEMEQ(side->memory + 5, from + 1, 5);
    EXPECT_MEMEQ(side->memory + 2000, from + 6, 5);
    EXPECT_MEMEQ(side->memory + 2005, from + 100, 3007);
    EXPECT_MEMEQ(side->memory + 10000, from + 3107, 993);
    EXPECT_MEMEQ(side->memory + 10993, from + 50, 7);
    EXPECT_EQ(side->memory[11000], 0); // unused rest of the buffer
}

// IBA 10.7.3.
RULE(Transfer, ListsAreOneRunOfBytesOnBothSides)
{
    fixture_play(device, send_pieces, receive_pieces);
}

static void scatter_read(struct side *side)
{
    fixture_fill(side->peer->memory, 10000, 77);
    memset(side->memory, 0, FIXTURE_BYTES);
    struct ibv_sge pieces[3] = {fixture_sge(side, 9, 4001), fixture_sge(side, 40000, 1),
                                fixture_sge(side, 20000, 5000)};
    struct ibv_send_wr wr = fixture_wr(side, 1, IBV_WR_RDMA_READ, pieces, 11);
    wr.num_sge = 3;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    EXPECT_EQ(fixture_expect(side, 1, IBV_WC_SUCCESS).byte_len, 9002);
    EXPECT_MEMEQ(side->memory + 9, side->peer->memory + 11, 4001);
    EXPECT_EQ(side->memory[40000], side->peer->memory[4012]);
    EXPECT_MEMEQ(side->memory + 20000, side->peer->memory + 4013, 5000);
    EXPECT_EQ(side->memory[8] | side->memory[4010] | side->memory[25000] | side->memory[40001], 0);
}

RULE(Transfer, AReadFillsAListInOrder)
{
    fixture_play(device, scatter_read, NULL);
}

// --- inline ----------------------------------------------------------------------------------------------------------

static void send_inline(struct side *side)
{
    fixture_barrier(side);
    for (unsigned i = 0; i < 8; i++) {
        uint8_t buffer[64]; // not in a region
        struct ibv_sge pieces[2] = {{(uintptr_t)buffer, 40, 0}, {(uintptr_t)buffer + 40, 24, 0}};
        struct ibv_send_wr wr = fixture_wr(side, i, IBV_WR_SEND, pieces, 0);
        wr.num_sge = 2;
        wr.send_flags |= IBV_SEND_INLINE;
        fixture_fill(buffer, sizeof buffer, i);
        EXPECT_EQ(fixture_post(side, &wr), 0);
        memset(buffer, 0xff, sizeof buffer);
    }
    for (unsigned i = 0; i < 8; i++) {
        (void)fixture_expect(side, i, IBV_WC_SUCCESS);
    }
}

static void receive_inline(struct side *side)
{
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_EQ(fixture_receive(side, i, i * 64, 64), 0);
    }
    fixture_barrier(side);
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_EQ(fixture_expect(side, i, IBV_WC_SUCCESS).byte_len, 64);
        EXPECT_TRUE(fixture_is_filled(side->memory + i * 64, 64, i));
    }
}

// IBA 10.7.2.1 and ibv_post_send(3): the data is copied when the call returns; no key is needed.
RULE(Transfer, InlineBuffersMayBeUsedAgainAtOnce)
{
    fixture_play(device, send_inline, receive_inline);
}

// --- atomics ---------------------------------------------------------------------------------------------------------

static void atomic(struct side *side, enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t before, uint64_t after)
{
    struct ibv_sge sge = fixture_sge(side, 64, 8);
    struct ibv_send_wr wr = fixture_wr(side, 1, opcode, &sge, 128);
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = 99;
    EXPECT_EQ(fixture_post(side, &wr), 0);
    const struct ibv_wc wc = fixture_expect(side, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
    EXPECT_EQ(wc.byte_len, 8);
    EXPECT_EQ(*fixture_word(side, 64), before);
    EXPECT_EQ(*fixture_word(side->peer, 128), after);
}

static void atomics(struct side *side)
{
    *fixture_word(side->peer, 128) = 40;
    atomic(side, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 40, 42);
    atomic(side, IBV_WR_ATOMIC_CMP_AND_SWP, 41, 42, 42);
    atomic(side, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 42, 99);
    atomic(side, IBV_WR_ATOMIC_FETCH_AND_ADD, UINT64_MAX, 99, 98); // modulo 2^64
    EXPECT_EQ(*fixture_word(side->peer, 120) | *fixture_word(side->peer, 136), 0);
}

// IBA 9.4.5.
RULE(Transfer, AtomicsChangeTheWordAndReturnWhatItWas)
{
    fixture_play(device, atomics, NULL);
}

// --- loopback --------------------------------------------------------------------------------------------------------

static void talk_to_itself(struct side *side)
{
    side->qp = side->qps[side->index];
    side->peer = side;
    EXPECT_EQ(fixture_receive(side, 1, HALF, 9000), 0);
    fixture_send(side, 2, IBV_WR_SEND, 0, 9000, 0);
    const struct ibv_wc first = fixture_completion(side), second = fixture_completion(side);
    EXPECT_EQ(first.status | second.status, IBV_WC_SUCCESS);
    EXPECT_EQ(first.wr_id + second.wr_id, 3);
    EXPECT_MEMEQ(side->memory + HALF, side->memory, 9000);
    fixture_send(side, 3, IBV_WR_RDMA_WRITE, 5, 40000, HALF + 16);
    (void)fixture_expect(side, 3, IBV_WC_SUCCESS);
    fixture_sleep(side, 20 * US);
    EXPECT_MEMEQ(side->memory + HALF + 16, side->memory + 5, 40000);
    atomic(side, IBV_WR_ATOMIC_FETCH_AND_ADD, 5, *fixture_word(side, 128), *fixture_word(side, 128) + 5);
}

// IBA 9.6.1.4.2, 10.2.2.3: loopback is a connection like any other.
RULE(Transfer, AQueuePairMayBeConnectedWithItself)
{
    struct fixture *fixture = fixture_new(device);
    fixture->all_qps = true;
    fixture_run(fixture, talk_to_itself, talk_to_itself);
    fixture_end(fixture);
}

// --- a long message --------------------------------------------------------------------------------------------------

static void write_everything(struct side *side)
{
    fixture_send(side, 1, IBV_WR_RDMA_WRITE, 0, FIXTURE_BYTES, 0);
    (void)fixture_expect(side, 1, IBV_WC_SUCCESS);
    fixture_sleep(side, 20 * US); // an acknowledged write is not visible yet (IBA 9.7.5.1)
    fixture_expect_only(side->peer, 0, side, 0, FIXTURE_BYTES);
}

RULE(Transfer, AMessageMayFillTheWholeRegion)
{
    fixture_play(device, write_everything, NULL);
}
