// Each operation, between kinds of memory, of sizes around every limit.
#include <endian.h>
#include <string.h>

#include "fixture.h"

static const uint32_t sizes[] = {0,    1,    3,    8,     79,    80,    81,    4031,   4032,   4033,
                                 8191, 8192, 8195, 32767, 32768, 32773, 65536, 262144, 300001, 700000};
#define SIZES (sizeof sizes / sizeof sizes[0])

struct pairing {
    bool far_source, far_target;
    unsigned source_offset, target_offset;
};

static const struct pairing pairings[] = {
    {false, false, 0, 0}, {false, false, 5, 21}, {false, false, 1, 0},
    {true, false, 0, 0},  {false, true, 0, 0},   {true, true, 3, 7},
};
#define PAIRINGS (sizeof pairings / sizeof pairings[0])

static struct memory *memory_of(struct end *end, bool far)
{
    return far ? &end->far : &end->near;
}

// The memory around the target is unchanged.
static void check(const uint8_t *data, uint32_t bytes, uint32_t seed)
{
    EXPECT_TRUE(site_is_filled(data, bytes, seed));
    EXPECT_EQ(data[bytes], 0xee);
    EXPECT_EQ(data[-1], 0xee);
}

static void blank(uint8_t *data, uint32_t bytes)
{
    memset(data - 1, 0xee, bytes + 2);
}

static void send_sizes(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    for (unsigned i = 0; i < SIZES * PAIRINGS; i++) {
        const struct pairing *p = &pairings[i % PAIRINGS];
        uint32_t bytes = sizes[i / PAIRINGS];
        struct ibv_sge sge = fixture_sge(memory_of(end, p->far_source), 64 + p->source_offset, bytes);
        site_fill((uint8_t *)(uintptr_t)sge.addr, bytes, i);
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htobe32(i)};
        fixture_barrier(fixture, end);
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
        fixture_expect(end, i, IBV_WC_SUCCESS);
        fixture_barrier(fixture, end);
    }
    fixture_leave(fixture, board);
}

static void receive_sizes(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    for (unsigned i = 0; i < SIZES * PAIRINGS; i++) {
        const struct pairing *p = &pairings[i % PAIRINGS];
        uint32_t bytes = sizes[i / PAIRINGS];
        struct ibv_sge sge = fixture_sge(memory_of(end, p->far_target), 64 + p->target_offset, bytes);
        uint8_t *data = (uint8_t *)(uintptr_t)sge.addr;
        blank(data, bytes);
        EXPECT_EQ(fixture_receive(&end->qps[0], i, &sge), 0);
        fixture_barrier(fixture, end);
        struct ibv_wc wc = fixture_wc(end);
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_RECV);
        EXPECT_EQ(wc.byte_len, bytes);
        EXPECT_EQ(be32toh(wc.imm_data), i);
        check(data, bytes, i);
        fixture_barrier(fixture, end);
    }
    fixture_leave(fixture, board);
}

TEST(TcaVerbs, SendsEveryByteWhateverSizeAndMemory)
{
    struct fixture fixture;
    fixture_init(&fixture, 2);
    fixture_run(&fixture, send_sizes, receive_sizes);
    fixture_fini(&fixture);
}

static void write_sizes(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board), *other = &fixture->ends[1];
    for (unsigned i = 0; i < SIZES * PAIRINGS; i++) {
        const struct pairing *p = &pairings[i % PAIRINGS];
        uint32_t bytes = sizes[i / PAIRINGS];
        struct ibv_sge from = fixture_sge(memory_of(end, p->far_source), 64 + p->source_offset, bytes);
        struct ibv_sge to = fixture_sge(memory_of(other, p->far_target), 64 + p->target_offset, bytes);
        struct ibv_sge back = fixture_sge(memory_of(end, p->far_source), FIXTURE_BYTES / 4 * 3 - 3, 0);
        uint8_t *target = (uint8_t *)(uintptr_t)to.addr;
        site_fill((uint8_t *)(uintptr_t)from.addr, bytes, i);
        blank(target, bytes);
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, &from), 0);
        fixture_expect(end, i, IBV_WC_SUCCESS);
        check(target, bytes, i);
        if (bytes <= FIXTURE_BYTES / 4) { // and back, at other low address bits
            back.length = bytes;
            blank((uint8_t *)(uintptr_t)back.addr, bytes);
            wr.opcode = IBV_WR_RDMA_READ;
            EXPECT_EQ(fixture_post(&end->qps[1], &wr, &back), 0);
            fixture_expect(end, i, IBV_WC_SUCCESS);
            check((uint8_t *)(uintptr_t)back.addr, bytes, i);
        }
    }
    fixture_leave(fixture, board);
}

static void only_progress(void *arg, peach2_handle_t *board)
{
    (void)fixture_enter(arg, board);
    fixture_leave(arg, board);
}

TEST(TcaVerbs, WritesAndReadsEveryByteWhateverSizeAndMemory)
{
    struct fixture fixture;
    fixture_init(&fixture, 2);
    fixture_run(&fixture, write_sizes, only_progress);
    fixture_fini(&fixture);
}
