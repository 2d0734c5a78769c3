// How long a region is in use by boards: its own reads it, or a peer's may write it. A region that is in use is
// deregistered only when that has ended.
#include <errno.h>

#include "fixture.h"

static const struct ibverbs_device_ops *ops = &tca_verbs_ops;

enum { BYTES = 65536, MOVES = 3 }; // BYTES: a board moves that many itself. MOVES: its channel for that

struct late {
    struct fixture fixture;
    struct fixture_qp qps[2]; // from node to node; connected later than the others
};

static uint64_t now_ps(peach2_handle_t *board)
{
    const struct backend *backend = peach2_backend(board);
    return backend->ops->time_ps(backend->ctx);
}

// A region of BYTES of the near memory, beside the one of all of it.
static void *part_register(struct end *end, unsigned part, struct ibv_sge *sge_out)
{
    uint8_t *data = end->near.data + part * BYTES;
    const struct ibverbs_region region = {
        .address = data, .bytes = BYTES, .iova = (uint64_t)(uintptr_t)data, .access = FIXTURE_ALL};
    void *mr = NULL;
    uint32_t rkey;
    *sge_out = (struct ibv_sge){.addr = region.iova, .length = BYTES};
    EXPECT_EQ(ops->mr_register(end->pd, &region, &mr, &sge_out->lkey, &rkey), 0);
    return mr;
}

static struct ibv_send_wr request_to(const struct fixture *fixture, enum ibv_wr_opcode opcode)
{
    struct ibv_sge to = fixture_sge(&fixture->ends[1].near, 0, 0);
    return (struct ibv_send_wr){.wr_id = 1, .opcode = opcode, .wr.rdma = {to.addr, to.lkey}};
}

// Afterwards the boards of both nodes know each other.
static void meet(struct fixture *fixture, struct end *end)
{
    struct ibv_sge sge = fixture_sge(&end->near, 0, 8);
    struct ibv_send_wr wr = request_to(fixture, IBV_WR_RDMA_WRITE);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    fixture_barrier(fixture, end);
}

static void run(plat_program_fn first, plat_program_fn other, unsigned timeout)
{
    struct late late = {0};
    fixture_init(&late.fixture, 2);
    late.fixture.attr.timeout = (uint8_t)timeout;
    fixture_run(&late.fixture, first, other);
    fixture_fini(&late.fixture);
}

// --- reads -----------------------------------------------------------------------------------------------------------

static struct end *late_enter(struct late *late, peach2_handle_t *board)
{
    struct end *end = fixture_enter(&late->fixture, board);
    fixture_qp_make(&late->fixture, end, &late->qps[peach2_node(board)]);
    fixture_barrier(&late->fixture, end);
    return end;
}

static void late_leave(struct late *late, struct end *end, peach2_handle_t *board)
{
    fixture_barrier(&late->fixture, end);
    EXPECT_EQ(ops->qp_destroy(late->qps[peach2_node(board)].qp), 0);
    fixture_leave(&late->fixture, board);
}

static void read_too_early(void *arg, peach2_handle_t *board)
{
    struct late *late = arg;
    struct end *end = late_enter(late, board);
    struct ibv_sge sge;
    void *mr = part_register(end, 1, &sge);
    struct ibv_send_wr wr = request_to(&late->fixture, IBV_WR_RDMA_READ);
    EXPECT_EQ(fixture_qp_connect(&late->fixture, end, &late->qps[0], 1, late->qps[1].number), 0);
    EXPECT_EQ(fixture_post(&late->qps[0], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(ops->mr_deregister(mr), 0);
    late_leave(late, end, board);
}

static void connect_late(void *arg, peach2_handle_t *board)
{
    struct late *late = arg;
    struct end *end = late_enter(late, board);
    for (uint64_t until_ps = now_ps(board) + 500000 * NS; now_ps(board) < until_ps;) {
        EXPECT_EQ(ops->cq_poll(end->cq, 0, NULL), 0); // the read comes, and is refused
    }
    EXPECT_EQ(fixture_qp_connect(&late->fixture, end, &late->qps[1], 0, late->qps[0].number), 0);
    late_leave(late, end, board);
}

TEST(TcaVerbsGrants, AReadThatWasRefusedAtFirstLeavesItsRegionFree)
{
    run(read_too_early, connect_late, 12);
}

static void read_from_error(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge;
    void *mr = part_register(end, 1, &sge);
    struct ibv_send_wr wr = request_to(fixture, IBV_WR_RDMA_READ);
    meet(fixture, end);
    fixture_barrier(fixture, end);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(ops->mr_deregister(mr), 0);
    fixture_leave(fixture, board);
}

static void go_to_error(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    fixture_barrier(fixture, end);
    EXPECT_EQ(ops->qp_modify(end->qps[0].qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE), 0);
    fixture_barrier(fixture, end);
    fixture_leave(fixture, board);
}

// The peer's queue pair answers nothing, but its board will not write either.
TEST(TcaVerbsGrants, AReadThatNobodyAnswersLeavesItsRegionFree)
{
    run(read_from_error, go_to_error, 6);
}

static void deregister_beside(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sges[3];
    void *mrs[3];
    for (unsigned part = 0; part < 3; part++) {
        mrs[part] = part_register(end, part, &sges[part]);
    }
    struct ibv_send_wr wr = request_to(fixture, IBV_WR_RDMA_READ);
    meet(fixture, end);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sges[1]), 0);
    uint64_t start_ps = now_ps(board);
    EXPECT_EQ(ops->mr_deregister(mrs[0]), 0);
    EXPECT_EQ(ops->mr_deregister(mrs[2]), 0);
    EXPECT_LT(now_ps(board) - start_ps, 10000 * NS); // nothing is waited for: the peer does not answer yet
    fixture->cluster.flag = true;
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(ops->mr_deregister(mrs[1]), 0);
    fixture_leave(fixture, board);
}

static void answer_late(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    fixture_barrier(fixture, end);
    cluster_await(board, &fixture->cluster.flag);
    fixture_leave(fixture, board);
}

TEST(TcaVerbsGrants, TheNeighboursOfARegionInUseAreFree)
{
    run(deregister_beside, answer_late, 12);
}

// --- writes ---------------------------------------------------------------------------------------------------------

static void write_askew(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge = fixture_sge(&end->near, 1, BYTES - 1);
    struct ibv_send_wr wr = request_to(fixture, IBV_WR_RDMA_WRITE);
    meet(fixture, end);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    fixture_barrier(fixture, end);
    fixture_barrier(fixture, end);
    fixture_leave(fixture, board);
}

static void deregister_what_was_written(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge;
    void *mr = part_register(end, 0, &sge);
    fixture_barrier(fixture, end);
    fixture_barrier(fixture, end);
    EXPECT_EQ(ops->mr_deregister(mr), 0);
    fixture_barrier(fixture, end);
    fixture_leave(fixture, board);
}

// The board of the writer cannot move bytes to another alignment: packets bring them, and the grant is returned.
TEST(TcaVerbsGrants, AWriteOfAnotherAlignmentLeavesItsTargetFree)
{
    run(write_askew, deregister_what_was_written, 12);
}

// --- the own board ---------------------------------------------------------------------------------------------------

// Returns when the board is reading the memory.
static void write_begin(struct fixture *fixture, struct end *end, peach2_handle_t *board, const struct ibv_sge *sge)
{
    unsigned error;
    struct ibv_send_wr wr = request_to(fixture, IBV_WR_RDMA_WRITE);
    meet(fixture, end);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, sge), 0);
    uint64_t until_ps = now_ps(board) + 1000000 * NS;
    while (peach2_dma_poll(board, MOVES, &error) != -EAGAIN && now_ps(board) < until_ps) {
        EXPECT_EQ(ops->cq_poll(end->cq, 0, NULL), 0);
    }
    EXPECT_EQ(peach2_dma_poll(board, MOVES, &error), -EAGAIN);
}

static void deregister_while_moving(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge;
    unsigned error;
    void *mr = part_register(end, 1, &sge);
    write_begin(fixture, end, board, &sge);
    EXPECT_EQ(ops->mr_deregister(mr), 0);
    EXPECT_EQ(peach2_dma_poll(board, MOVES, &error), 0);
    (void)fixture_wc(end); // whatever came of it
    fixture_leave(fixture, board);
}

static void reset_while_moving(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge = fixture_sge(&end->near, BYTES, BYTES);
    unsigned error;
    write_begin(fixture, end, board, &sge);
    EXPECT_EQ(ops->qp_modify(end->qps[1].qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), 0);
    EXPECT_EQ(peach2_dma_poll(board, MOVES, &error), 0);
    fixture_leave(fixture, board);
}

static void be_there(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    fixture_barrier(fixture, fixture_enter(fixture, board));
    fixture_leave(fixture, board);
}

TEST(TcaVerbsGrants, ARegionThatTheBoardReadsIsWaitedFor)
{
    run(deregister_while_moving, be_there, 12);
}

// IBA 10.3.1.1: a queue pair in RESET uses no memory of its requests.
TEST(TcaVerbsGrants, AResetWaitsForTheBoard)
{
    run(reset_while_moving, be_there, 12);
}
