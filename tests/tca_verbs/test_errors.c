// Peers that do not answer, and how tca0 detects it; tests/conformance tests the errors of all devices.
#include <errno.h>

#include "fixture.h"

static const struct ibverbs_device_ops *ops = &tca_verbs_ops;

static void only_progress(void *arg, peach2_handle_t *board)
{
    (void)fixture_enter(arg, board);
    fixture_leave(arg, board);
}

static void run(plat_program_fn first, plat_program_fn other, void (*adjust)(struct fixture *fixture))
{
    struct fixture fixture;
    fixture_init(&fixture, 2);
    if (adjust != NULL) {
        adjust(&fixture);
    }
    fixture_run(&fixture, first, other);
    fixture_fini(&fixture);
}

// --- peers that are down --------------------------------------------------------------------------------------------

static void send_to_nobody(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    const struct backend *backend = peach2_backend(board);
    struct ibv_sge sge = fixture_sge(&end->near, 0, 64);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};
    uint64_t start_ps = backend->ops->time_ps(backend->ctx);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    wr.wr_id = 2;
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_RETRY_EXC_ERR);
    fixture_expect(end, 2, IBV_WC_WR_FLUSH_ERR);
    // 4 times 4.096 us * 2^12
    EXPECT_BETWEEN((backend->ops->time_ps(backend->ctx) - start_ps) / 1000000, 67108, 68000);
    fixture->cluster.flag = true;
    fixture->gone = true;
    fixture_leave(fixture, board);
}

static void silent(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    (void)fixture_enter(fixture, board);
    cluster_await(board, &fixture->cluster.flag);
    fixture->gone = true;
    fixture_leave(fixture, board);
}

TEST(TcaVerbsErrors, APeerThatDoesNotAnswerExceedsTheRetriesInBoundedTime)
{
    run(send_to_nobody, silent, NULL);
}

static void send_to_closed(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge = fixture_sge(&end->near, 0, 64);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};
    cluster_await(board, &fixture->cluster.flag);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_RETRY_EXC_ERR);
    fixture->gone = true;
    fixture_leave(fixture, board);
}

static void close_early(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    (void)fixture_enter(fixture, board);
    fixture->gone = true;
    fixture_leave(fixture, board);
    fixture->cluster.flag = true;
}

TEST(TcaVerbsErrors, APeerThatClosedIsGone)
{
    run(send_to_closed, close_early, NULL);
}

static void close_when_notified(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    while (!fixture->gone) {
        EXPECT_EQ(ops->cq_poll(end->cq, 0, NULL), 0);
    }
    fixture_leave(fixture, board);
    fixture->cluster.flag = true;
}

static void begin_anew(struct fixture *fixture, struct end *end, struct fixture_qp *qp)
{
    struct ibv_qp_attr attr = fixture->attr;
    attr.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(ops->qp_modify(qp->qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(ops->qp_modify(qp->qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
    EXPECT_EQ(fixture_qp_connect(fixture, end, qp, 1, 5), 0);
}

static void meet_while_sending(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge = fixture_sge(&end->near, 0, 7000), to = fixture_sge(&fixture->ends[1].near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
    unsigned error;
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    fixture->gone = true;
    cluster_await(board, &fixture->cluster.flag);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(peach2_dma_poll(board, 2, &error), -EAGAIN); // the board is still sending
    begin_anew(fixture, end, &end->qps[1]);
    EXPECT_EQ(peach2_dma_poll(board, 2, &error), 0);
    fixture_leave(fixture, board);
}

// Its source memory is freed at that time.
TEST(TcaVerbsErrors, AGonePeerIsMetAnewWhenTheBoardSendsToItNoMore)
{
    run(meet_while_sending, close_when_notified, NULL);
}

// --- memory that does not exist --------------------------------------------------------------------------------------

static void register_holes(void *arg, peach2_handle_t *board)
{
    static const uint8_t constant[64] = {1};
    struct end *end = fixture_enter(arg, board);
    struct ibverbs_region regions[] = {{.address = NULL, .bytes = 1, .access = 0},
                                       {.address = (void *)UINTPTR_MAX, .bytes = 1, .access = 0},
                                       {.address = (void *)(uintptr_t)constant, .bytes = 64, .access = FIXTURE_ALL}};
    for (unsigned i = 0; i < sizeof regions / sizeof *regions; i++) {
        void *mr;
        uint32_t lkey, rkey;
        regions[i].iova = (uintptr_t)regions[i].address;
        EXPECT_EQ(ops->mr_register(end->pd, &regions[i], &mr, &lkey, &rkey), -EFAULT);
    }
    fixture_leave(arg, board);
}

TEST(TcaVerbsErrors, MemoryThatDoesNotExistOrMayNotBeWrittenIsNoRegion)
{
    run(register_holes, only_progress, NULL);
}
