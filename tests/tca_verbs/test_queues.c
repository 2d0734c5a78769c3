// What is in the queues of tca0: completions, requests, and reads to answer.
#include <errno.h>

#include "fixture.h"

static const struct ibverbs_device_ops *ops = &tca_verbs_ops;

struct two {
    struct fixture fixture;
    struct fixture_qp second[2]; // from node to node, beside the fixture's
};

static void run(plat_program_fn first, plat_program_fn other, void (*adjust)(struct fixture *fixture))
{
    struct two two = {0};
    fixture_init(&two.fixture, 2);
    if (adjust != NULL) {
        adjust(&two.fixture);
    }
    fixture_run(&two.fixture, first, other);
    fixture_fini(&two.fixture);
}

static void only_progress(void *arg, peach2_handle_t *board)
{
    (void)fixture_enter(arg, board);
    fixture_leave(arg, board);
}

// --- completions -----------------------------------------------------------------------------------------------------

static struct end *two_enter(struct two *two, peach2_handle_t *board)
{
    uint32_t node = peach2_node(board);
    struct end *end = fixture_enter(&two->fixture, board);
    fixture_qp_make(&two->fixture, end, &two->second[node]);
    fixture_barrier(&two->fixture, end);
    EXPECT_EQ(fixture_qp_connect(&two->fixture, end, &two->second[node], 1 - node, two->second[1 - node].number), 0);
    fixture_barrier(&two->fixture, end);
    return end;
}

static void send_on_both(void *arg, peach2_handle_t *board)
{
    struct two *two = arg;
    struct end *end = two_enter(two, board);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};
    EXPECT_EQ(fixture_post(&two->second[0], &wr, NULL), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    wr.send_flags = IBV_SEND_SOLICITED;
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, NULL), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(ops->qp_destroy(two->second[0].qp), 0);
    fixture_barrier(&two->fixture, end);
    fixture_leave(&two->fixture, board);
}

static void destroy_the_first(void *arg, peach2_handle_t *board)
{
    struct two *two = arg;
    struct end *end = two_enter(two, board);
    struct ibverbs_event event;
    EXPECT_EQ(fixture_receive(&two->second[1], 7, NULL), 0);
    EXPECT_EQ(fixture_receive(&end->qps[0], 8, NULL), 0);
    fixture_barrier(&two->fixture, end); // both have come
    EXPECT_EQ(ops->qp_destroy(two->second[1].qp), 0);
    EXPECT_EQ(ops->cq_arm(end->cq, true), 0);
    EXPECT_EQ(ops->event_get(end->context, IBVERBS_NO_WAIT, &event), 0);
    fixture_expect(end, 8, IBV_WC_SUCCESS);
    fixture_leave(&two->fixture, board);
}

TEST(TcaVerbsQueues, ASolicitedCompletionRemainsOneWhenThoseBeforeItGo)
{
    run(send_on_both, destroy_the_first, NULL);
}

// --- requests --------------------------------------------------------------------------------------------------------

static uint64_t time_ps(const struct backend *backend)
{
    return backend->ops->time_ps(backend->ctx);
}

static uint64_t inline_post_ps(struct end *end, const struct backend *backend, uint32_t bytes)
{
    struct ibv_sge sge = fixture_sge(&end->far, 0, bytes);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
    uint64_t start_ps = time_ps(backend);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    return time_ps(backend) - start_ps;
}

// In SQD a request is only put into the queue.
static void post_inline(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    const struct backend *backend = peach2_backend(board);
    EXPECT_EQ(ops->qp_modify(end->qps[1].qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_SQD}, IBV_QP_STATE), 0);
    uint64_t first_ps = inline_post_ps(end, backend, 1), more_ps = inline_post_ps(end, backend, 1 + 100);
    uint64_t start_ps = time_ps(backend);
    backend->ops->cost(backend->ctx, BACKEND_COST_COPY, 100);
    uint64_t copy_ps = time_ps(backend) - start_ps - (time_ps(backend) - time_ps(backend));
    EXPECT_GT(more_ps, first_ps);
    EXPECT_BETWEEN(more_ps - first_ps, copy_ps / 2, copy_ps + NS);
    EXPECT_EQ(ops->qp_modify(end->qps[1].qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE), 0);
    fixture_leave(fixture, board);
}

TEST(TcaVerbsQueues, InlineDataTakeTheTimeOfTheirCopy)
{
    run(post_inline, only_progress, NULL);
}

static void without_a_limit(struct fixture *fixture)
{
    fixture->attr.timeout = 0;
    fixture->attr.retry_cnt = 0;
}

static void write_and_wait(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge = fixture_sge(&end->near, 0, 8), to = fixture_sge(&fixture->ends[1].near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    fixture_leave(fixture, board);
}

static void answer_after_a_long_time(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    const struct backend *backend = peach2_backend(board);
    (void)fixture_enter(fixture, board);
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 10000000); // 10 ms: 2000 of the shortest timeouts
    fixture_leave(fixture, board);
}

// IBA 9.7.6.1.3: a timeout of 0 disables the timer.
TEST(TcaVerbsQueues, ARequestWithATimeoutOfZeroWaitsForEver)
{
    run(write_and_wait, answer_after_a_long_time, without_a_limit);
}

// With a time of 16.8 ms: a read that is answered after 15 ms, and one behind it after 25 ms.
static void a_time_for_each_answer(struct fixture *fixture)
{
    fixture->attr.timeout = 12;
    fixture->attr.retry_cnt = 0;
    fixture->attr.max_rd_atomic = fixture->attr.max_dest_rd_atomic = 2;
}

static void pass_time(peach2_handle_t *board, uint64_t until_us)
{
    const struct backend *backend = peach2_backend(board);
    uint64_t now_ps = backend->ops->time_ps(backend->ctx), until_ps = until_us * 1000000;
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, until_ps > now_ps ? (until_ps - now_ps) / 1000 : 0);
}

// Lets the library make progress until then.
static void poll_until(peach2_handle_t *board, struct end *end, uint64_t until_us)
{
    const struct backend *backend = peach2_backend(board);
    while (backend->ops->time_ps(backend->ctx) < until_us * 1000000) {
        EXPECT_EQ(ops->cq_poll(end->cq, 0, NULL), 0);
    }
}

static void read_two_at_their_times(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge = fixture_sge(&end->near, 0, 8), to = fixture_sge(&fixture->ends[1].near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_READ, .wr.rdma = {to.addr, to.lkey}};
    fixture_barrier(fixture, end);
    poll_until(board, end, 100); // the libraries connect
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    poll_until(board, end, 200);
    pass_time(board, 15100); // the first answer is there, and not seen yet
    wr.wr_id = 2;
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    fixture_expect(end, 2, IBV_WC_SUCCESS);
    fixture_leave(fixture, board);
}

static void answer_at_two_times(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    fixture_barrier(fixture, end);
    poll_until(board, end, 90);
    pass_time(board, 15000);
    poll_until(board, end, 15050);
    pass_time(board, 25000);
    fixture_leave(fixture, board);
}

// An answer is a sign of life: the time of the requests behind it begins anew (IBA 9.7.6.1.3).
TEST(TcaVerbsQueues, AnAnswerBeginsANewTimeForTheRequestsBehindIt)
{
    run(read_two_at_their_times, answer_at_two_times, a_time_for_each_answer);
}

// --- reads to answer -------------------------------------------------------------------------------------------------

static void two_reads_where_one_is_answered(struct fixture *fixture)
{
    fixture->attr.max_rd_atomic = 2;
    fixture->attr.max_dest_rd_atomic = 1;
}

static void read_twice(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge sge = fixture_sge(&end->near, 0, 8), to = fixture_sge(&fixture->ends[1].near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_READ, .wr.rdma = {to.addr, to.lkey}};
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    fixture_barrier(fixture, end);
    for (wr.wr_id = 2; wr.wr_id <= 3; wr.wr_id++) {
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
    }
    fixture_expect(end, 2, IBV_WC_SUCCESS);
    fixture_expect(end, 3, IBV_WC_REM_INV_REQ_ERR);
    fixture_leave(fixture, board);
}

static void find_both(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    const struct backend *backend = peach2_backend(board);
    fixture_barrier(fixture, end);
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 100000); // both reads come
    fixture_leave(fixture, board);
}

// IBA 9.7.4.1.4: a read more than was agreed is an invalid request.
TEST(TcaVerbsQueues, NoMoreReadsAreTakenThanWasAgreed)
{
    run(read_twice, find_both, two_reads_where_one_is_answered);
}

enum { MOVED = 65536, MARK = 0xa5 }; // MOVED: a board moves that many itself
#define MOVES 3u                     // its channel for that

static void two_reads(struct fixture *fixture)
{
    fixture->attr.max_rd_atomic = fixture->attr.max_dest_rd_atomic = 2;
}

static void read_past_a_refusal(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    struct ibv_sge first = fixture_sge(&end->near, 0, MOVED), second = fixture_sge(&end->near, MOVED, 8);
    struct ibv_sge to = fixture_sge(&fixture->ends[1].near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_READ, .wr.rdma = {to.addr, to.lkey}};
    memset(end->near.data + MOVED, MARK, 8);
    EXPECT_EQ(fixture_post(&end->qps[1], &wr, &first), 0); // the boards know each other
    fixture_expect(end, 1, IBV_WC_SUCCESS);
    fixture_barrier(fixture, end);
    wr.wr.rdma.rkey = (uint32_t)fixture->value[0];
    for (wr.wr_id = 2; wr.wr_id <= 3; wr.wr_id++) {
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, wr.wr_id == 2 ? &first : &second), 0);
        wr.wr.rdma.rkey = to.lkey;
    }
    fixture_expect(end, 2, IBV_WC_REM_ACCESS_ERR);
    fixture_expect(end, 3, IBV_WC_WR_FLUSH_ERR);
    fixture_barrier(fixture, end);
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_EQ(end->near.data[MOVED + i], MARK);
    }
    fixture_leave(fixture, board);
}

// Ends the region while its board reads it for the first read; the second one is of another region.
static void refuse_the_first(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    const struct ibverbs_region region = {.address = end->near.data,
                                          .bytes = MOVED,
                                          .iova = (uint64_t)(uintptr_t)end->near.data,
                                          .access = FIXTURE_ALL};
    void *mr = NULL;
    uint32_t lkey, rkey = 0;
    unsigned error;
    EXPECT_EQ(ops->mr_register(end->pd, &region, &mr, &lkey, &rkey), 0);
    fixture->value[0] = rkey;
    fixture_barrier(fixture, end);
    uint64_t until_ps = time_ps(peach2_backend(board)) + 1000000 * NS;
    while (peach2_dma_poll(board, MOVES, &error) != -EAGAIN && time_ps(peach2_backend(board)) < until_ps) {
        EXPECT_EQ(ops->cq_poll(end->cq, 0, NULL), 0);
    }
    EXPECT_EQ(ops->mr_deregister(mr), 0);
    fixture_barrier(fixture, end);
    fixture_leave(fixture, board);
}

// A queue pair in the error state executes nothing (IBA 10.3.1.5): the refusal is its last answer.
TEST(TcaVerbsQueues, ReadsBehindARefusedOneAreNotAnswered)
{
    run(read_past_a_refusal, refuse_the_first, two_reads);
}
