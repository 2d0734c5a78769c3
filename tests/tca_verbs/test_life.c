// Objects and their states: readiness, sharing, recovery after errors, and events.
#include <errno.h>
#include <string.h>

#include "fixture.h"

static const struct ibverbs_device_ops *ops = &tca_verbs_ops;

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

static void only_progress(void *arg, peach2_handle_t *board)
{
    (void)fixture_enter(arg, board);
    fixture_leave(arg, board);
}

static void no_cable(struct fixture *fixture)
{
    fixture->cluster.site.scenario->cable_count = 0;
}

static void sends_nowhere(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge = fixture_sge(&end->near, 0, 32);
    struct ibv_send_wr wr = {.wr_id = 4, .opcode = IBV_WR_SEND};
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 4, IBV_WC_RETRY_EXC_ERR);
    fixture_leave(fixture, board);
}

TEST(TcaVerbsLife, WithoutACableRetriesAreExceeded)
{
    run(sends_nowhere, only_progress, no_cable);
}

static void reopened(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    uint32_t node = peach2_node(board);
    for (unsigned i = 0; i < 3; i++) {
        struct end *end = fixture_enter(fixture, board);
        struct ibv_sge sge = fixture_sge(&end->near, 0, 5000);
        struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};
        EXPECT_EQ(fixture_receive(&end->qps[1 - node], 2, &sge), 0);
        fixture_barrier(fixture, end);
        EXPECT_EQ(fixture_post(&end->qps[1 - node], &wr, &sge), 0);
        struct ibv_wc first = fixture_wc(end), second = fixture_wc(end);
        EXPECT_EQ(first.status | second.status, IBV_WC_SUCCESS);
        fixture_leave(fixture, board);
        *end = (struct end){0};
        fixture->value[node]++;
        const struct backend *backend = peach2_backend(board);
        while (fixture->value[1 - node] < fixture->value[node]) {
            backend->ops->cost(backend->ctx, BACKEND_COST_CALL, 10);
        }
    }
}

TEST(TcaVerbsLife, AProcessMayCloseAndMeetItsPeersAgain)
{
    run(reopened, reopened, NULL);
}

// --- DMA channels --------------------------------------------------------------------------------------------------------

static bool is_free(int channel)
{
    tcaDesc *empty = tcaDescNew();
    int error = tcaDescSet(empty, channel);
    EXPECT_EQ(tcaDescFree(empty), tcaSuccess);
    return error == tcaErrorNotSet;
}

static int pair_of(const struct end *end, void **qp_out)
{
    struct ibverbs_qp_create create = {
        .type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .send_cq = end->cq,
        .recv_cq = end->cq};
    uint32_t number;
    return ops->qp_create(end->pd, &create, qp_out, &number);
}

static void takes_channels(void *arg, peach2_handle_t *board)
{
    struct cluster *cluster = arg;
    struct end end = {.device = {.board = board}};
    unsigned entries = 16;
    void *qp;
    cluster_memory(cluster, board, 2);
    EXPECT_EQ(ops->open(&end.device, backend_current(), &end.context), 0);
    EXPECT_EQ(ops->pd_create(end.context, &end.pd), 0);
    EXPECT_EQ(ops->cq_create(end.context, &entries, 0, NULL, &end.cq), 0);
    EXPECT_TRUE(is_free(2));
    EXPECT_TRUE(is_free(3));
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(tcaDescSetMemcpy(desc, &cluster->handles[1], 0, &cluster->handles[0], 0, CLUSTER_BYTES, 0, 0, 0),
              tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 3), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(3), tcaSuccess);
    EXPECT_EQ(pair_of(&end, &qp), -EBUSY);
    EXPECT_TRUE(is_free(2)); // nothing is kept
    EXPECT_EQ(tcaWaitDMAC(3), tcaSuccess);
    EXPECT_EQ(pair_of(&end, &qp), 0);
    EXPECT_FALSE(is_free(2));
    EXPECT_FALSE(is_free(3));
    EXPECT_EQ(ops->qp_destroy(qp), 0);
    EXPECT_EQ(ops->cq_destroy(end.cq), 0);
    EXPECT_EQ(ops->pd_destroy(end.pd), 0);
    EXPECT_EQ(ops->close(end.context), 0);
    EXPECT_TRUE(is_free(2));
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    cluster->flag = true;
}

// An MPI opens each device to look at it, in programs that have the board's channels for themselves.
TEST(TcaVerbsLife, TheFirstQueuePairTakesTwoChannels)
{
    run(takes_channels, cluster_target, NULL);
}

// value[0]: the second life has ended.
static void live_again(struct fixture *fixture, struct end *end, peach2_handle_t *board)
{
    unsigned entries = 16;
    *end = (struct end){.device = {.board = board}};
    EXPECT_EQ(ops->open(&end->device, backend_current(), &end->context), 0);
    EXPECT_EQ(ops->pd_create(end->context, &end->pd), 0);
    EXPECT_EQ(ops->cq_create(end->context, &entries, 0, end, &end->cq), 0);
    fixture_qp_make(fixture, end, &end->qps[1]);
    EXPECT_EQ(fixture_qp_connect(fixture, end, &end->qps[1], 1, fixture->ends[1].qps[0].number), 0);
}

static void lives_twice(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    uint64_t word = 0x1234;
    struct ibv_sge sge = {.addr = (uint64_t)(uintptr_t)&word, .length = sizeof word};
    struct ibv_sge to = fixture_sge(&fixture->ends[1].near, 0, 0);
    struct ibv_send_wr wr = {
        .wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE, .wr.rdma = {to.addr, to.lkey}};
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    fixture_barrier(fixture, end);
    fixture->gone = true;
    fixture_leave(fixture, board);
    live_again(fixture, end, board);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    for (unsigned i = 0; i < 100; i++) {
        EXPECT_EQ(ops->cq_poll(end->cq, 0, NULL), 0);
    }
    fixture->cluster.flag = true;
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(ops->qp_destroy(end->qps[1].qp), 0);
    EXPECT_EQ(ops->cq_destroy(end->cq), 0);
    EXPECT_EQ(ops->pd_destroy(end->pd), 0);
    EXPECT_EQ(ops->close(end->context), 0);
    fixture->value[0] = 1;
}

static void hears_late(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    fixture_barrier(fixture, end);
    cluster_await(board, &fixture->cluster.flag);
    EXPECT_EQ(ops->cq_poll(end->cq, 0, NULL), 0); // the first life has said that it closes
    struct fixture_qp *qp = &end->qps[0];
    struct ibv_qp_attr attr = fixture->attr;
    for (enum ibv_qp_state state = IBV_QPS_RESET; state <= IBV_QPS_INIT; state++) {
        attr.qp_state = state;
        EXPECT_EQ(ops->qp_modify(qp->qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
    }
    EXPECT_EQ(fixture_qp_connect(fixture, end, qp, 0, fixture->ends[0].qps[1].number), 0);
    while (fixture->value[0] == 0) {
        EXPECT_EQ(ops->cq_poll(end->cq, 0, NULL), 0);
    }
    fixture_leave(fixture, board);
}

// What the peer said to the first life is not for the second one.
TEST(TcaVerbsLife, ASecondLifeIsConnectedWhenThePeerHasHeardOfIt)
{
    run(lives_twice, hears_late, NULL);
}

// --- the device ------------------------------------------------------------------------------------------------------

static void opens_twice(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    void *again = NULL;
    EXPECT_EQ(ops->open(&end->device, backend_current(), &again), 0);
    EXPECT_EQ(ops->close(again), 0);
    struct ibv_sge sge = fixture_sge(&end->near, 0, 8), to = fixture_sge(&fixture->ends[1].near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    fixture_leave(fixture, board);
}

TEST(TcaVerbsLife, TheFirstOpeningOutlivesTheCloseOfTheSecond)
{
    run(opens_twice, only_progress, NULL);
}

static void asks_the_port(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_port_attr attr;
    EXPECT_EQ(ops->query_port(&end->device, 1, &attr), 0);
    EXPECT_EQ(attr.active_width, 2); // IBA 14.2.5.6, LinkWidthActive: 4x
    EXPECT_EQ(attr.active_speed, 8); // LinkSpeedExtActive: 10 Gb/s (FDR10)
    fixture_leave(fixture, board);
}

// A cable has 8 lanes of PCIe Gen2, of 5 Gb/s each.
TEST(TcaVerbsLife, ThePortHasTheRateOfACable)
{
    run(asks_the_port, only_progress, NULL);
}

static void with_a_thread(struct fixture *fixture)
{
    fixture->ends[0].device.progress_thread = true;
}

static void sends_and_sleeps(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    const struct backend *backend = peach2_backend(board);
    struct ibv_wc wc;
    struct ibv_sge sge = fixture_sge(&end->near, 0, 64), to = fixture_sge(&fixture->ends[1].near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    fixture_barrier(fixture, end);
    cluster_await(board, &fixture->cluster.flag);
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 1000000); // the thread has seen that the peer closed
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 1000000);
    EXPECT_EQ(ops->cq_waiting(end->cq, &wc), 1); // this call does not look for anything
    EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
    fixture_expect(end, 1, IBV_WC_RETRY_EXC_ERR);
    fixture->gone = true;
    fixture_leave(fixture, board);
}

static void closes_early(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    fixture_barrier(fixture, fixture_enter(fixture, board));
    fixture->gone = true;
    fixture_leave(fixture, board);
    fixture->cluster.flag = true;
}

// A program that sleeps until its request is complete makes no progress itself.
TEST(TcaVerbsLife, TheThreadEndsARequestToAPeerThatIsGoneWhileTheProgramSleeps)
{
    run(sends_and_sleeps, closes_early, with_a_thread);
}

// --- processes that end ----------------------------------------------------------------------------------------------

static void walks_away(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge = fixture_sge(&end->near, 0, 100000);
    struct ibv_sge to = fixture_sge(&fixture->ends[1 - peach2_node(board)].near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
    EXPECT_EQ(fixture_post(&end->qps[1 - peach2_node(board)], &wr, &sge), 0);
    const struct backend *backend = peach2_backend(board);
    ops->abandon(end->context);
    uint64_t then_ps = backend->ops->time_ps(backend->ctx);
    fixture->gone = fixture->abandoned = true;
    fixture_leave(fixture, board);
    EXPECT_BETWEEN(backend->ops->time_ps(backend->ctx) - then_ps, 0, 20 * NS); // reads only the clock
}

TEST(TcaVerbsLife, AnAbandonedContextGoesWithoutTakingTime)
{
    run(walks_away, walks_away, NULL);
}
