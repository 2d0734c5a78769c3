// Ranges at the edges of regions: nothing, one byte, all of the region, its last byte, one byte beyond at either end, and
// more than the region holds, for each kind of request and at both ends of it. Each is tried twice, so that a connection
// that failed once does the same when it is connected again. Of a range that leaves its region no byte is read, written
// remotely, or placed outside of it (IBA 9.7.4.1.5, 10.6.3.2, 11.6.2).
#include <string.h>

#include "fixture.h"

enum {
    REGION_AT = 16384 + 40, // the region whose edges are tried, inside of each side's memory
    REGION_BYTES = 8192 + 104,
    OTHER_AT = 65536, // the range at the other end, far from any edge
    AREA_BYTES = 2 * OTHER_AT,
    EPISODES = 2,
    ADDED = 3,
};

struct range {
    int64_t at; // relative to the region
    uint32_t bytes;
};

static const struct range ranges[] = {
    {0, 0},                      // nothing
    {REGION_BYTES, 0},           // nothing, behind it
    {0, 1},                      // the first byte
    {REGION_BYTES - 1, 1},       // the last byte
    {0, REGION_BYTES},           // all of it
    {1, REGION_BYTES - 1},       // up to its end
    {REGION_BYTES - 4097, 4097}, // the same, more than a packet
    {REGION_BYTES, 1},           // the byte behind it
    {REGION_BYTES - 1, 2},       // one byte too many at the end
    {REGION_BYTES - 4096, 4097}, // the same, in a later packet
    {-1, 1},                     // the byte before it
    {-1, 4097},                  // one byte too many at the beginning
    {0, REGION_BYTES + 1},       // one byte larger
    {-1, REGION_BYTES + 2},      // larger at both ends
    {0, 3 * REGION_BYTES},       // much larger
    {2 * REGION_BYTES, 64},      // not near it
    {REGION_BYTES - 8, 8},       // the last word
    {REGION_BYTES - 4, 8},       // a word across the end
};
// Of words.
static const struct range words[] = {{0, 8}, {REGION_BYTES - 8, 8}, {REGION_BYTES, 8}, {-8, 8}, {8, 8}};

struct operation {
    enum ibv_wr_opcode opcode;
    enum end { AT_REQUESTER, AT_TARGET, AT_RECEIVER } end; // whose range is in the region
    enum ibv_wc_status status;                             // of a request whose range leaves it
    const struct range *ranges;
    unsigned count;
};

static const struct operation *operation;

static bool is_atomic(void)
{
    return operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || operation->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static bool takes_receive(void)
{
    return operation->opcode == IBV_WR_SEND || operation->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_inside(const struct range *range)
{
    return range->bytes == 0 || (range->at >= 0 && range->at + range->bytes <= REGION_BYTES);
}

static uint32_t begin_of(const struct range *range, enum end end)
{
    return operation->end == end ? (uint32_t)(REGION_AT + range->at) : OTHER_AT;
}

static uint32_t seed_of(const struct side *side, unsigned round)
{
    return 2 * round + side->index;
}

static void request(struct side *side, const struct range *range)
{
    struct ibv_sge sge = fixture_sge(side, begin_of(range, AT_REQUESTER), range->bytes);
    struct ibv_send_wr wr = fixture_wr(side, 1, operation->opcode, &sge, begin_of(range, AT_TARGET));
    sge.lkey = operation->end == AT_REQUESTER ? (uint32_t)side->value[0] : sge.lkey;
    uint32_t rkey = operation->end == AT_TARGET ? (uint32_t)side->peer->value[1] : side->peer->rkey;
    if (is_atomic()) {
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = ADDED;
    } else if (operation->opcode != IBV_WR_SEND) {
        wr.wr.rdma.rkey = rkey;
    }
    EXPECT_EQ(fixture_post(side, &wr), 0);
    (void)fixture_expect(side, 1, is_inside(range) ? IBV_WC_SUCCESS : operation->status);
}

static void receive(struct side *side, const struct range *range)
{
    struct ibv_sge sge = fixture_sge(side, begin_of(range, AT_RECEIVER), range->bytes);
    struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;
    sge.lkey = operation->end == AT_RECEIVER ? (uint32_t)side->value[0] : sge.lkey;
    EXPECT_EQ(ibv_post_recv(side->qp, &wr, &bad), 0);
}

// The target's side of a request: its completion, or the event that its queue pair failed.
static void suffer(struct side *side, const struct range *range)
{
    if (is_inside(range)) {
        if (takes_receive()) {
            (void)fixture_expect(side, 2, IBV_WC_SUCCESS);
        }
    } else if (operation->end == AT_TARGET) {
        fixture_expect_event(side, IBV_EVENT_QP_ACCESS_ERR, side->qp);
        EXPECT_EQ(fixture_state(side->qp), IBV_QPS_ERR);
        if (takes_receive()) {
            (void)fixture_expect(side, 2, IBV_WC_WR_FLUSH_ERR);
        }
    } else if (operation->end == AT_RECEIVER) {
        (void)fixture_expect(side, 2, IBV_WC_LOC_PROT_ERR);
    }
}

static bool reads(void)
{
    return operation->opcode == IBV_WR_RDMA_READ || is_atomic();
}

static void add_to_word(uint8_t *word, uint64_t more)
{
    uint64_t value;
    memcpy(&value, word, sizeof value);
    value += more;
    memcpy(word, &value, sizeof value);
}

// What the side's memory must be: its own bytes, but for what the request brought.
static void expect_memory(const struct side *side, const struct range *range, unsigned round)
{
    static uint8_t expected[AREA_BYTES], brought[AREA_BYTES];
    enum end mine = reads() ? AT_REQUESTER : operation->opcode == IBV_WR_SEND ? AT_RECEIVER : AT_TARGET;
    enum end theirs = reads() ? AT_TARGET : AT_REQUESTER;
    bool takes = reads() == (side->index == 0), inside = is_inside(range);
    uint32_t at = begin_of(range, mine), bytes = inside ? range->bytes : 0;
    fixture_fill(expected, AREA_BYTES, seed_of(side, round));
    fixture_fill(brought, AREA_BYTES, seed_of(side->peer, round));
    if (takes && !inside && operation->end == mine && mine != AT_TARGET && range->at >= 0) {
        // Packets are placed one by one: those before the one that has no place may be there.
        while (bytes < range->bytes && range->at + bytes < REGION_BYTES &&
               side->memory[at + bytes] == brought[begin_of(range, theirs) + bytes]) {
            bytes++;
        }
    }
    if (takes) {
        memcpy(expected + at, brought + begin_of(range, theirs), bytes);
    }
    if (is_atomic() && side->index == 1) {
        uint8_t *word = expected + begin_of(range, AT_TARGET);
        // A result that has no place may be found out before or behind the operation.
        bool may_be = operation->end == AT_REQUESTER && memcmp(side->memory + OTHER_AT, word, sizeof(uint64_t)) != 0;
        add_to_word(word, inside || may_be ? ADDED : 0);
    }
    EXPECT_MEMEQ(side->memory, expected, AREA_BYTES);
}

static void connect_again(struct side *side)
{
    EXPECT_EQ(fixture_modify(side, side->qp, IBV_QPS_RESET, side->peer, 0), 0);
    fixture_barrier(side);
    fixture_connect(side, side->qp, side->peer, side->peer->qp->qp_num);
    fixture_barrier(side);
}

static void walk(struct side *side)
{
    struct ibv_mr *mr = ibv_reg_mr(side->pd, side->memory + REGION_AT, REGION_BYTES, FIXTURE_ALL);
    ASSERT_NOT_NULL(mr);
    side->value[0] = mr->lkey;
    side->value[1] = mr->rkey;
    for (unsigned round = 0; round < EPISODES * operation->count; round++) {
        const struct range *range = &operation->ranges[round / EPISODES];
        TEST_TRACE("side %u, %u B at %lld of %u, episode %u", side->index, range->bytes, (long long)range->at,
                   REGION_BYTES, round % EPISODES);
        fixture_fill(side->memory, AREA_BYTES, seed_of(side, round));
        if (side->index == 1 && takes_receive()) {
            receive(side, range);
        }
        fixture_barrier(side);
        if (side->index == 0) {
            request(side, range);
        } else {
            suffer(side, range);
        }
        fixture_barrier(side);
        expect_memory(side, range, round);
        fixture_barrier(side);
        if (!is_inside(range)) {
            connect_again(side);
        }
    }
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

static void boundaries_walk(enum device device, const struct operation *tried)
{
    operation = tried;
    struct fixture *fixture = fixture_new(device);
    fixture_run(fixture, walk, walk);
    fixture_end(fixture);
}

#define BOUNDARIES(claim_, opcode_, end_, status_, ranges_)                                                            \
    RULE(Boundaries, claim_)                                                                                           \
    {                                                                                                                  \
        static const struct operation tried = {opcode_, end_, status_, ranges_, sizeof(ranges_) / sizeof *(ranges_)};  \
        boundaries_walk(device, &tried);                                                                               \
    }

BOUNDARIES(OfTheTargetOfAWrite, IBV_WR_RDMA_WRITE, AT_TARGET, IBV_WC_REM_ACCESS_ERR, ranges)
BOUNDARIES(OfTheSourceOfAWrite, IBV_WR_RDMA_WRITE, AT_REQUESTER, IBV_WC_LOC_PROT_ERR, ranges)
BOUNDARIES(OfTheTargetOfAWriteWithImmediate, IBV_WR_RDMA_WRITE_WITH_IMM, AT_TARGET, IBV_WC_REM_ACCESS_ERR, ranges)
BOUNDARIES(OfTheSourceOfARead, IBV_WR_RDMA_READ, AT_TARGET, IBV_WC_REM_ACCESS_ERR, ranges)
BOUNDARIES(OfTheDestinationOfARead, IBV_WR_RDMA_READ, AT_REQUESTER, IBV_WC_LOC_PROT_ERR, ranges)
BOUNDARIES(OfTheSourceOfASend, IBV_WR_SEND, AT_REQUESTER, IBV_WC_LOC_PROT_ERR, ranges)
BOUNDARIES(OfAReceive, IBV_WR_SEND, AT_RECEIVER, IBV_WC_REM_OP_ERR, ranges)
BOUNDARIES(OfTheWordOfAnAtomic, IBV_WR_ATOMIC_FETCH_AND_ADD, AT_TARGET, IBV_WC_REM_ACCESS_ERR, words)
BOUNDARIES(OfTheResultOfAnAtomic, IBV_WR_ATOMIC_FETCH_AND_ADD, AT_REQUESTER, IBV_WC_LOC_PROT_ERR, words)
