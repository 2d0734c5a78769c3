// What each operation moves: every byte, and no other.
#include <endian.h>
#include <string.h>

#include "stage.h"

static const uint32_t sizes[] = {0, 1, 7, 8, 64, 65, 80, 81, 1023, 1024, 1025, 4032, 4033, 8192, 8195, 32768, 40001, 300001};
static const struct offsets {
    uint32_t source, target;
} offsets[] = {{0, 0}, {5, 21}, {1, 0}, {4094, 3}};
enum { SIZES = sizeof sizes / sizeof *sizes, OFFSETS = sizeof offsets / sizeof *offsets, BASE = 8192, HALF = 1 << 19 };

// Each size at each pair of offsets; round counts both.
static uint32_t bytes_of(unsigned round)
{
    return sizes[round / OFFSETS];
}

// --- send ------------------------------------------------------------------------------------------------------------

static void send_all(struct side *side)
{
    for (unsigned i = 0; i < SIZES * OFFSETS; i++) {
        struct ibv_sge sge = stage_sge(side, BASE + offsets[i % OFFSETS].source, bytes_of(i));
        struct ibv_send_wr wr = stage_wr(side, i, i % 2 == 0 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, &sge, 0);
        wr.imm_data = htobe32(i);
        stage_meet(side);
        EXPECT_EQ(stage_post(side, &wr), 0);
        EXPECT_EQ(stage_expect(side, i, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
        stage_meet(side);
    }
}

static void receive_all(struct side *side)
{
    for (unsigned i = 0; i < SIZES * OFFSETS; i++) {
        uint32_t at = BASE + offsets[i % OFFSETS].target, bytes = bytes_of(i);
        memset(side->memory, 0, STAGE_BYTES);
        EXPECT_EQ(stage_receive(side, i, at, bytes + 100), 0);
        stage_meet(side);
        const struct ibv_wc wc = stage_expect(side, i, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_RECV);
        EXPECT_EQ(wc.byte_len, bytes);
        EXPECT_EQ(wc.qp_num, side->qp->qp_num);
        EXPECT_EQ(wc.wc_flags, i % 2 == 0 ? IBV_WC_WITH_IMM : 0);
        EXPECT_TRUE(i % 2 != 0 || be32toh(wc.imm_data) == i);
        stage_expect_only(side, at, side->peer, BASE + offsets[i % OFFSETS].source, bytes);
        stage_meet(side);
    }
}

// IBA 9.5, 9.7.2: sends consume receives, and the length is the message's.
RULE(Transfer, SendsBringEveryByteOfEverySize)
{
    stage_play(device, send_all, receive_all);
}
