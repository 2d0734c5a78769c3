// What tca0 tells of empty polls: a poll of which it says that it finds nothing takes as long as it says, and changes nothing.
#include "fixture.h"
#include "sim/platform/configs.h"

static const struct ibverbs_device_ops *ops = &tca_verbs_ops;

// Over the polls of both ends.
static struct {
    struct host_core_config core;
    unsigned polls, idle, wrong_times, wrong_changes;
} seen;

static uint64_t now_ps(peach2_handle_t *board)
{
    const struct backend *backend = peach2_backend(board);
    return backend->ops->deadline_ps(backend->ctx);
}

// A board may write while the poll pays for its call: then it may find that.
static int poll_checked(struct end *end, peach2_handle_t *board, struct ibv_wc *wc)
{
    struct ibverbs_idle_poll told, after;
    uint64_t began_ps = now_ps(board);
    enum ibverbs_idle idle = ops->cq_idle(end->cq, &told);
    uint64_t state = idle == IBVERBS_IDLE ? *told.state : 0;
    int count = ops->cq_poll(end->cq, 1, wc);
    uint64_t took_ps = now_ps(board) - began_ps;
    seen.polls++;
    if (idle != IBVERBS_IDLE || now_ps(board) >= told.until_ps) {
        return count;
    }
    seen.idle++;
    uint64_t cost_ps =
        told.calls * seen.core.call_ps + told.locks * seen.core.lock_ps + told.loads * seen.core.load_ps;
    bool quiet = count == 0 && ops->cq_idle(end->cq, &after) == IBVERBS_IDLE;
    seen.wrong_times += quiet && *told.state == state && took_ps != cost_ps;
    seen.wrong_changes += quiet && *told.state != state && after.loads == told.loads && took_ps == cost_ps;
    return count;
}

static void wc_await(struct end *end, peach2_handle_t *board)
{
    struct ibv_wc wc;
    int found = 0;
    while (found == 0) {
        found = poll_checked(end, board, &wc);
    }
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

static const struct {
    enum ibv_wr_opcode opcode;
    bool gpu;
    uint32_t bytes;
} requests[] = {{IBV_WR_SEND, false, 8},           {IBV_WR_SEND, false, 3000},       {IBV_WR_RDMA_WRITE, false, 64},
                {IBV_WR_RDMA_WRITE, false, 200000}, {IBV_WR_RDMA_READ, false, 100},  {IBV_WR_RDMA_READ, false, 300000},
                {IBV_WR_ATOMIC_FETCH_AND_ADD, false, 8}, {IBV_WR_RDMA_WRITE, true, 100000}};
enum { REQUESTS = sizeof requests / sizeof requests[0] };

// A request that waits in a stopped queue leaves with the next pass after the queue goes on.
static void stop_and_go(struct end *end, peach2_handle_t *board)
{
    struct ibv_sge sge = fixture_sge(&end->near, 0, 8);
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_wc wc;
    wr.wr.rdma.remote_addr = sge.addr; // of this node: refused
    EXPECT_EQ(ops->qp_modify(end->qps[1].qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_SQD}, IBV_QP_STATE), 0);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    for (unsigned i = 0; i < 100; i++) {
        EXPECT_EQ(poll_checked(end, board, &wc), 0);
    }
    EXPECT_EQ(ops->qp_modify(end->qps[1].qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE), 0);
    struct ibverbs_idle_poll told;
    EXPECT_EQ(ops->cq_idle(end->cq, &told), IBVERBS_FINDS);
    while (poll_checked(end, board, &wc) == 0) {
    }
    EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
}

static void requester(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board), *peer = &fixture->ends[1];
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct ibv_sge sge = fixture_sge(&end->near, 0, requests[i].bytes);
        struct ibv_send_wr wr = {.wr_id = i, .opcode = requests[i].opcode, .send_flags = IBV_SEND_SIGNALED};
        bool atomic = wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
        const struct memory *far = requests[i].gpu ? &peer->far : &peer->near;
        wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)far->data;
        wr.wr.rdma.rkey = far->key;
        if (atomic) {
            wr.wr.atomic.remote_addr = (uint64_t)(uintptr_t)far->data;
            wr.wr.atomic.rkey = far->key;
        }
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
        wc_await(end, board);
    }
    stop_and_go(end, board);
    fixture->cluster.flag = true;
    fixture_leave(fixture, board);
}

// The second receive comes late: the requester pauses.
static void responder(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge = fixture_sge(&end->near, 0, 4096);
    struct ibv_wc wc;
    EXPECT_EQ(fixture_receive(&end->qps[0], 1, &sge), 0);
    wc_await(end, board);
    for (uint64_t late_ps = now_ps(board) + 100000000; now_ps(board) < late_ps;) {
        EXPECT_EQ(poll_checked(end, board, &wc), 0);
    }
    EXPECT_EQ(fixture_receive(&end->qps[0], 2, &sge), 0);
    wc_await(end, board);
    while (!fixture->cluster.flag) {
        EXPECT_EQ(poll_checked(end, board, &wc), 0);
    }
    fixture_leave(fixture, board);
}

static void play(plat_program_fn first, plat_program_fn other)
{
    struct fixture fixture;
    fixture_init(&fixture, 2);
    seen.polls = seen.idle = seen.wrong_times = seen.wrong_changes = 0;
    seen.core = plat_core_config(&fixture.cluster.site.scenario->nodes[0].host);
    fixture_run(&fixture, first, other);
    fixture_fini(&fixture);
    EXPECT_EQ(seen.wrong_times, 0);
    EXPECT_EQ(seen.wrong_changes, 0);
}

TEST(TcaVerbsIdle, IsAsAPollThatIsCarriedOut)
{
    play(requester, responder);
    EXPECT_GE(seen.idle, seen.polls * 9 / 10);
}

// --- deadlines ------------------------------------------------------------------------------------------------------------

static void send_to_nobody(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge = fixture_sge(&end->near, 0, 64);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};
    struct ibv_wc wc = {0};
    struct ibverbs_idle_poll told = {0};
    uint64_t until_ps = 0;
    fixture_barrier(fixture, end); // both know that they are connected
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    while (poll_checked(end, board, &wc) == 0) {
        until_ps = ops->cq_idle(end->cq, &told) == IBVERBS_IDLE ? told.until_ps : until_ps;
    }
    EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_BETWEEN(now_ps(board), until_ps, until_ps + 1000000);
    fixture->cluster.flag = true;
    fixture->gone = true;
    fixture_leave(fixture, board);
}

static void silent(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    fixture_barrier(fixture, fixture_enter(fixture, board));
    cluster_await(board, &fixture->cluster.flag);
    fixture->gone = true;
    fixture_leave(fixture, board);
}

TEST(TcaVerbsIdle, EndsWhenARequestTimesOut)
{
    play(send_to_nobody, silent);
    EXPECT_GE(seen.idle, seen.polls * 99 / 100);
}
