// Every field of a completion (ibv_poll_cq(3)), also those that mean nothing in it: they are 0.
#include <endian.h>
#include <string.h>

#include "fixture.h"

enum { BYTES = 100, IMMEDIATE = 0x12345678, ROOM = 4096 };

// The next completion, into memory that held something else.
static struct ibv_wc taken(struct side *side)
{
    struct ibv_wc wc;
    memset(&wc, 0xa5, sizeof wc);
    EXPECT_TRUE(fixture_await(side, 1000 * US));
    EXPECT_EQ(ibv_poll_cq(side->cq, 1, &wc), 1);
    return wc;
}

// A device may say more than it must: how long a message was that its sender wrote itself, and who is at the other end
// of a connection, as a ConnectX-3 does.
static uint64_t if_told(uint64_t value, uint64_t expected)
{
    return value == 0 ? expected : value;
}

static void expect_fields(struct side *side, const struct ibv_wc *expected)
{
    const struct ibv_wc wc = taken(side);
    bool writes = expected->opcode == IBV_WC_SEND || expected->opcode == IBV_WC_RDMA_WRITE;
    bool receives = (expected->opcode & IBV_WC_RECV) != 0;
    EXPECT_EQ(wc.wr_id, expected->wr_id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, expected->opcode);
    EXPECT_EQ(wc.vendor_err, 0);
    EXPECT_EQ(wc.qp_num, side->qp->qp_num);
    EXPECT_EQ(writes ? if_told(wc.byte_len, expected->byte_len) : wc.byte_len, expected->byte_len);
    EXPECT_EQ(wc.imm_data, expected->imm_data);
    EXPECT_EQ(wc.wc_flags, expected->wc_flags);
    EXPECT_EQ(receives ? if_told(wc.src_qp, side->peer->qp->qp_num) : wc.src_qp, receives ? side->peer->qp->qp_num : 0);
    EXPECT_EQ(receives ? if_told(wc.slid, side->peer->lid) : wc.slid, receives ? side->peer->lid : 0);
    EXPECT_EQ(wc.pkey_index, 0);
    EXPECT_EQ(wc.sl, 0);
    EXPECT_EQ(wc.dlid_path_bits, 0);
}

// --- connected ------------------------------------------------------------------------------------------------------

static void request(struct side *side, uint64_t id, enum ibv_wr_opcode opcode, enum ibv_wc_opcode completes,
                    uint32_t bytes)
{
    struct ibv_sge sge = fixture_sge(side, 0, bytes);
    struct ibv_send_wr wr = fixture_wr(side, id, opcode, &sge, 65536);
    wr.imm_data = htobe32(IMMEDIATE);
    fixture_barrier(side);
    EXPECT_EQ(fixture_post(side, &wr), 0);
    expect_fields(side, &(struct ibv_wc){.wr_id = id, .opcode = completes, .byte_len = bytes});
}

static void request_each(struct side *side)
{
    request(side, 1, IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, BYTES);
    request(side, 2, IBV_WR_SEND, IBV_WC_SEND, BYTES);
    request(side, 3, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, BYTES);
    request(side, 4, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, BYTES);
    request(side, 5, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, BYTES);
    request(side, 6, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 8);
    request(side, 7, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, 8);
    fixture_barrier(side);
}

static void take_each(struct side *side)
{
    const struct ibv_wc taken_by[7] = {{.wr_id = 101,
                                        .opcode = IBV_WC_RECV,
                                        .byte_len = BYTES,
                                        .imm_data = htobe32(IMMEDIATE),
                                        .wc_flags = IBV_WC_WITH_IMM},
                                       {.wr_id = 102, .opcode = IBV_WC_RECV, .byte_len = BYTES},
                                       {.wr_id = 103,
                                        .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
                                        .byte_len = BYTES,
                                        .imm_data = htobe32(IMMEDIATE),
                                        .wc_flags = IBV_WC_WITH_IMM}};
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(fixture_receive(side, taken_by[i].wr_id, i * ROOM, ROOM), 0);
    }
    for (unsigned i = 0; i < 7; i++) {
        fixture_barrier(side);
        if (taken_by[i].wr_id != 0) {
            expect_fields(side, &taken_by[i]);
        }
    }
    fixture_barrier(side);
    fixture_expect_none(side, 10 * US);
}

RULE(CompletionFields, AreThoseOfEachOperation)
{
    fixture_play(device, request_each, take_each);
}
