// Reliable connections through libibverbs: every byte of every operation.
#include <endian.h>
#include <string.h>

#include "scene.h"

enum { FROM = 101, TO = 302, BYTES = 5000 };

// The region of side 1 holds zeros but for [at, at + bytes), which holds what side 0 has at `from`.
static void expect_only(const struct scene *scene, uint32_t at, uint32_t from, uint32_t bytes)
{
    static const uint8_t zeros[REGION_BYTES];
    EXPECT_MEMEQ(scene->sides[1].memory, zeros, at);
    EXPECT_MEMEQ(scene->sides[1].memory + at, scene->sides[0].memory + from, bytes);
    EXPECT_MEMEQ(scene->sides[1].memory + at + bytes, zeros, REGION_BYTES - at - bytes);
}

static void operate(struct scene_side *side, enum ibv_wr_opcode opcode, enum ibv_wc_opcode completed)
{
    struct ibv_sge sge = scene_sge(side, FROM, BYTES);
    struct ibv_send_wr wr = scene_wr(side, opcode, &sge, TO);
    wr.imm_data = htobe32(0xabcd);
    EXPECT_EQ(scene_post(side, &wr), 0);
    EXPECT_EQ(scene_completion(side, 1, IBV_WC_SUCCESS).opcode, completed);
}

static void receive_expect(struct scene_side *side, enum ibv_wc_opcode opcode, uint32_t flags)
{
    EXPECT_EQ(scene_receive(side, 9, TO, 2 * BYTES), 0);
    const struct ibv_wc wc = scene_completion(side, 9, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, opcode);
    EXPECT_EQ(wc.byte_len, BYTES);
    EXPECT_EQ(wc.wc_flags, flags);
    EXPECT_EQ(flags != 0 ? be32toh(wc.imm_data) : 0, flags != 0 ? 0xabcd : 0);
}

// --- send and write --------------------------------------------------------------------------------------------------

static void send(struct scene_side *side)
{
    operate(side, IBV_WR_SEND, IBV_WC_SEND);
}

static void receive(struct scene_side *side)
{
    receive_expect(side, IBV_WC_RECV, 0);
}

TEST(IbsimConnected, ASendArrivesInTheReceiversBuffer)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, send, receive);
    expect_only(scene, TO, FROM, BYTES);
    scene_end(scene);
}

static void send_immediate(struct scene_side *side)
{
    operate(side, IBV_WR_SEND_WITH_IMM, IBV_WC_SEND);
}

static void receive_immediate(struct scene_side *side)
{
    receive_expect(side, IBV_WC_RECV, IBV_WC_WITH_IMM);
}

TEST(IbsimConnected, ASendBringsItsImmediate)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, send_immediate, receive_immediate);
    expect_only(scene, TO, FROM, BYTES);
    scene_end(scene);
}

static void write(struct scene_side *side)
{
    operate(side, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE);
    sim_thread_sleep(side->scene->rig.sim, 20 * US); // without acknowledge a write is done when it has left
}

TEST(IbsimConnected, AWriteArrivesWithoutTheOtherProgram)
{
    const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
    for (unsigned i = 0; i < 2; i++) {
        struct scene *scene = scene_new(types[i]);
        scene_run(scene, write, NULL);
        expect_only(scene, TO, FROM, BYTES);
        scene_end(scene);
    }
}

static void write_immediate(struct scene_side *side)
{
    operate(side, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE);
}

static void receive_write(struct scene_side *side)
{
    receive_expect(side, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM);
}

TEST(IbsimConnected, AWriteWithImmediateTakesAReceive)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, write_immediate, receive_write);
    expect_only(scene, TO, FROM, BYTES);
    scene_end(scene);
}

static void write_inline_list(struct scene_side *side)
{
    struct ibv_sge pieces[2] = {scene_sge(side, FROM, 10), scene_sge(side, FROM + 10, 20)};
    struct ibv_sge rest = scene_sge(side, FROM + 30, 970);
    struct ibv_send_wr second = scene_wr(side, IBV_WR_RDMA_WRITE, &rest, TO + 30);
    struct ibv_send_wr first = scene_wr(side, IBV_WR_RDMA_WRITE, pieces, TO);
    first.num_sge = 2;
    first.send_flags = IBV_SEND_INLINE; // not signaled
    first.next = &second;
    second.wr_id = 2;
    EXPECT_EQ(scene_post(side, &first), 0);
    (void)scene_completion(side, 2, IBV_WC_SUCCESS);
}

TEST(IbsimConnected, AListOfInlineAndFetchedSegmentsArrivesInOrder)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, write_inline_list, NULL);
    expect_only(scene, TO, FROM, 1000);
    scene_end(scene);
}

// --- read and atomics ------------------------------------------------------------------------------------------------

static void read(struct scene_side *side)
{
    memset(side->memory, 0, REGION_BYTES);
    for (uint32_t i = 0; i < REGION_BYTES; i++) {
        side->peer->memory[i] = (uint8_t)(i * 5 + 3);
    }
    struct ibv_sge sge = scene_sge(side, FROM, BYTES);
    struct ibv_send_wr wr = scene_wr(side, IBV_WR_RDMA_READ, &sge, TO);
    EXPECT_EQ(scene_post(side, &wr), 0);
    const struct ibv_wc wc = scene_completion(side, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RDMA_READ);
    EXPECT_EQ(wc.byte_len, BYTES);
}

TEST(IbsimConnected, AReadBringsTheOtherSidesBytes)
{
    static const uint8_t zeros[REGION_BYTES];
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, read, NULL);
    const uint8_t *memory = scene->sides[0].memory;
    EXPECT_MEMEQ(memory, zeros, FROM);
    EXPECT_MEMEQ(memory + FROM, scene->sides[1].memory + TO, BYTES);
    EXPECT_MEMEQ(memory + FROM + BYTES, zeros, REGION_BYTES - FROM - BYTES);
    scene_end(scene);
}

static uint64_t *word_at(const struct scene_side *side, uint32_t offset)
{
    return (uint64_t *)(void *)(side->memory + offset);
}

static void atomic(struct scene_side *side, enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t before)
{
    struct ibv_sge sge = scene_sge(side, 64, 8);
    struct ibv_send_wr wr = scene_wr(side, opcode, &sge, 128);
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = 99;
    EXPECT_EQ(scene_post(side, &wr), 0);
    const struct ibv_wc wc = scene_completion(side, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
    EXPECT_EQ(wc.byte_len, 8);
    EXPECT_EQ(*word_at(side, 64), before);
}

static void atomics(struct scene_side *side)
{
    uint64_t *word = word_at(side->peer, 128);
    *word = 40;
    atomic(side, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 40);
    EXPECT_EQ(*word, 42);
    atomic(side, IBV_WR_ATOMIC_CMP_AND_SWP, 41, 42);
    EXPECT_EQ(*word, 42);
    atomic(side, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 42);
    EXPECT_EQ(*word, 99);
    EXPECT_EQ(*word_at(side->peer, 120) | *word_at(side->peer, 136), 0);
}

TEST(IbsimConnected, AtomicsChangeTheWordAndReturnWhatItWas)
{
    struct scene *scene = scene_new(IBV_QPT_RC);
    scene_run(scene, atomics, NULL);
    scene_end(scene);
}
