// Connections that only ibsim0 has, and requests as its driver mixes them; tests/conformance tests the operations of
// all devices.
#include <endian.h>

#include "fixture.h"

enum { FROM = 101, TO = 302, BYTES = 5000 };

// The region of side 1 is zero except [at, at + bytes), which holds side 0's bytes at `from`.
static void expect_only(const struct fixture *fixture, uint32_t at, uint32_t from, uint32_t bytes)
{
    static const uint8_t zeros[REGION_BYTES];
    EXPECT_MEMEQ(fixture->sides[1].memory, zeros, at);
    EXPECT_MEMEQ(fixture->sides[1].memory + at, fixture->sides[0].memory + from, bytes);
    EXPECT_MEMEQ(fixture->sides[1].memory + at + bytes, zeros, REGION_BYTES - at - bytes);
}

static void operate(struct fixture_side *side, enum ibv_wr_opcode opcode, enum ibv_wc_opcode completed)
{
    struct ibv_sge sge = fixture_sge(side, FROM, BYTES);
    struct ibv_send_wr wr = fixture_wr(side, opcode, &sge, TO);
    wr.imm_data = htobe32(0xabcd);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    EXPECT_EQ(fixture_completion(side, 1, IBV_WC_SUCCESS).opcode, completed);
}

static void write(struct fixture_side *side)
{
    operate(side, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE);
    sim_thread_sleep(side->fixture->base.sim, 20 * US); // without acknowledgements a write is complete when it has left
}

TEST(IbsimConnected, AWriteArrivesWithoutTheOtherProgram)
{
    const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
    for (unsigned i = 0; i < 2; i++) {
        struct fixture *fixture = fixture_new(types[i]);
        fixture_run(fixture, write, NULL);
        expect_only(fixture, TO, FROM, BYTES);
        fixture_end(fixture);
    }
}

static void write_small(struct fixture_side *side)
{
    struct ibv_sge sge = fixture_sge(side, FROM, 100);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_RDMA_WRITE, &sge, TO);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_completion(side, 1, IBV_WC_SUCCESS);
}

// IBA 8.3: LRH, GRH, BTH, RETH, payload, ICRC; and the acknowledge: LRH, GRH, BTH, AETH, ICRC.
TEST(IbsimConnected, PacketsOfAGlobalPathHaveARouteHeader)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture->global = true;
    fixture_run(fixture, write_small, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture->base, 0, "port_xmit_data"), 8 + 40 + 12 + 16 + 100 + 4);
    EXPECT_EQ(hca_fixture_counter(&fixture->base, 1, "port_xmit_data"), 8 + 40 + 12 + 4 + 4);
    fixture_end(fixture);
}

static void write_inline_list(struct fixture_side *side)
{
    struct ibv_sge pieces[2] = {fixture_sge(side, FROM, 10), fixture_sge(side, FROM + 10, 20)};
    struct ibv_sge rest = fixture_sge(side, FROM + 30, 970);
    struct ibv_send_wr second = fixture_wr(side, IBV_WR_RDMA_WRITE, &rest, TO + 30);
    struct ibv_send_wr first = fixture_wr(side, IBV_WR_RDMA_WRITE, pieces, TO);
    first.num_sge = 2;
    first.send_flags = IBV_SEND_INLINE; // not signalled
    first.next = &second;
    second.wr_id = 2;
    EXPECT_EQ(fixture_post(side, &first), 0);
    (void)fixture_completion(side, 2, IBV_WC_SUCCESS);
}

TEST(IbsimConnected, AListOfInlineAndFetchedSegmentsArrivesInOrder)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, write_inline_list, NULL);
    expect_only(fixture, TO, FROM, 1000);
    fixture_end(fixture);
}
