// Connections of ibsim0 that no other device has, and requests as its driver mixes them; what every device moves stands
// in tests/conformance.
#include <endian.h>

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
