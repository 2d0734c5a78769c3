// The received data are the data sent, for every operation.
#include <string.h>

#include "tests/support/hca_fixture.h"

struct pair {
    struct hca_fixture fixture;
    struct hca_fixture_process *near, *far;
    struct hca_fixture_qp a, b;
    uint32_t bytes;
    enum hca_opcode opcode;
};

static void pair_init(struct pair *pair, enum hca_qp_type type)
{
    hca_fixture_init(&pair->fixture, "connectx-qdr");
    pair->near = hca_fixture_process(&pair->fixture, 0);
    pair->far = hca_fixture_process(&pair->fixture, 1);
    pair->a = hca_fixture_qp(pair->near, type);
    pair->b = hca_fixture_qp(pair->far, type);
    hca_fixture_connect(&pair->a, &pair->b);
    for (uint32_t i = 0; i < REGION_BYTES; i++) {
        pair->near->memory[i] = (uint8_t)(i * 7 + (i >> 8));
    }
}

static void transfer(void *arg)
{
    struct pair *pair = arg;
    EXPECT_EQ(hca_fixture_send(&pair->a, pair->opcode, 101, pair->bytes, pair->far, 302), 0);
    const struct hca_wc wc = hca_fixture_completion(&pair->a);
    EXPECT_EQ(wc.status, HCA_OK);
    EXPECT_EQ(wc.wr_id, 101);
}

static void receive(void *arg)
{
    struct pair *pair = arg;
    EXPECT_EQ(hca_fixture_receive(&pair->b, 9, 302, 400000), 0);
    const struct hca_wc wc = hca_fixture_completion(&pair->b);
    EXPECT_EQ(wc.status, HCA_OK);
    EXPECT_EQ(wc.wr_id, 9);
    EXPECT_EQ(wc.bytes, pair->bytes);
    EXPECT_EQ(wc.has_immediate, pair->opcode == HCA_OP_SEND_IMM || pair->opcode == HCA_OP_WRITE_IMM);
}

static void expect_transfer(enum hca_qp_type type, enum hca_opcode opcode, uint32_t bytes, bool receives)
{
    static struct pair pair;
    pair_init(&pair, type);
    pair.bytes = bytes;
    pair.opcode = opcode;
    hca_fixture_spawn(&pair.fixture, "near", transfer, &pair);
    if (receives) {
        hca_fixture_spawn(&pair.fixture, "far", receive, &pair);
    }
    hca_fixture_run(&pair.fixture);
    EXPECT_MEMEQ(pair.far->memory + 302, pair.near->memory + 101, bytes);
    EXPECT_EQ(pair.far->memory[302 + bytes], 0);
    EXPECT_EQ(pair.far->memory[301], 0);
    hca_fixture_fini(&pair.fixture);
}

static const uint32_t SIZES[] = {0, 1, 8, 63, 2047, 2048, 2049, 4096, 10000, 65536, 300001};

TEST(Transfer, WritesArriveWholeAtEverySize)
{
    for (unsigned i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        expect_transfer(HCA_RC, HCA_OP_WRITE, SIZES[i], false);
        expect_transfer(HCA_UC, HCA_OP_WRITE, SIZES[i], false);
    }
}

TEST(Transfer, SendsArriveWholeAtEverySize)
{
    for (unsigned i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        expect_transfer(HCA_RC, HCA_OP_SEND, SIZES[i], true);
    }
    expect_transfer(HCA_RC, HCA_OP_SEND_IMM, 5000, true);
    expect_transfer(HCA_RC, HCA_OP_WRITE_IMM, 5000, true);
}

enum { SEGMENT_BYTES = 3000, SECOND_AT = 50000 };

static void write_two_segments(void *arg)
{
    struct pair *pair = arg;
    struct hca_sge sges[2];
    struct hca_send_wr wr = hca_fixture_wr(&pair->a, HCA_OP_WRITE, 0, SEGMENT_BYTES, &sges[0]);
    (void)hca_fixture_wr(&pair->a, HCA_OP_WRITE, SECOND_AT, SEGMENT_BYTES, &sges[1]);
    wr.sge_count = 2;
    wr.remote_address = (uint64_t)(uintptr_t)pair->far->memory;
    wr.rkey = hca_mr_rkey(pair->far->mr);
    EXPECT_EQ(hca_post_send(pair->a.qp, &wr, NULL), 0);
    EXPECT_EQ(hca_fixture_completion(&pair->a).status, HCA_OK);
}

// The second packet begins with byte 2048 of the first segment and ends in the second one.
TEST(Transfer, APacketReachesFromTheMiddleOfASegmentIntoTheNext)
{
    static struct pair pair;
    pair_init(&pair, HCA_RC);
    hca_fixture_spawn(&pair.fixture, "near", write_two_segments, &pair);
    hca_fixture_run(&pair.fixture);
    EXPECT_MEMEQ(pair.far->memory, pair.near->memory, SEGMENT_BYTES);
    EXPECT_MEMEQ(pair.far->memory + SEGMENT_BYTES, pair.near->memory + SECOND_AT, SEGMENT_BYTES);
    hca_fixture_fini(&pair.fixture);
}

static void write_twice(void *arg)
{
    struct pair *pair = arg;
    EXPECT_EQ(hca_fixture_send(&pair->a, HCA_OP_WRITE, 101, 5000, pair->far, 302), 0);
    EXPECT_EQ(hca_fixture_send(&pair->a, HCA_OP_WRITE_IMM, 101, pair->bytes, pair->far, 302), 0);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(hca_fixture_completion(&pair->a).status, HCA_OK);
    }
}

TEST(Transfer, AReceiveTellsTheBytesOfTheWriteWithItsImmediate)
{
    static struct pair pair;
    pair_init(&pair, HCA_RC);
    pair.bytes = 3000;
    pair.opcode = HCA_OP_WRITE_IMM;
    hca_fixture_spawn(&pair.fixture, "near", write_twice, &pair);
    hca_fixture_spawn(&pair.fixture, "far", receive, &pair);
    hca_fixture_run(&pair.fixture);
    hca_fixture_fini(&pair.fixture);
}
