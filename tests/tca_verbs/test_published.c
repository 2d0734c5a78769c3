// Times of the operations on the machine of sato2015: predicted, never fitted. The published values are S05 to S19; the
// bounds here are those of the mechanism, wide enough for every parameter in its range.
#include <string.h>

#include "fixture.h"

static const struct ibverbs_device_ops *ops = &tca_verbs_ops;

enum { ROUNDS = 100 };

struct measurement {
    enum ibv_wr_opcode opcode;
    bool gpu;
    uint32_t bytes;
    unsigned rounds;
};

static struct measurement what;

static struct memory *memory_of(struct end *end)
{
    return what.gpu ? &end->device_memory : &end->near;
}

static void one_send(struct fixture *fixture, struct end *end, uint32_t peer)
{
    struct ibv_sge sge = fixture_sge(memory_of(end), 0, what.bytes),
                   to = fixture_sge(memory_of(&fixture->ends[peer]), 0, 0);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = what.opcode, .wr.rdma = {to.addr, to.lkey}};
    const struct ibv_send_wr *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    EXPECT_EQ(ops->post_send(end->qps[peer].qp, &wr, 1, &bad), 0);
}

static void await_receive(struct end *end, const struct fixture_qp *qp, const struct ibv_sge *sge)
{
    struct ibv_wc wc = fixture_wc(end);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(fixture_receive(qp, 9, sge), 0);
}

// Unsignalled, like a ping-pong: the program waits for the peer's message.
static void pingpong(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    uint32_t node = peach2_node(board);
    const struct backend *backend = peach2_backend(board);
    if (what.gpu) {
        fixture_gpu(end);
    }
    struct ibv_sge sge = fixture_sge(memory_of(end), 0, what.bytes);
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(fixture_receive(&end->qps[1 - node], 9, &sge), 0);
    }
    fixture_barrier(fixture, end);
    uint64_t start_ps = 0;
    for (unsigned i = 0; i < what.rounds + 10; i++) {
        if (i == 10) {
            start_ps = backend->ops->time_ps(backend->ctx);
        }
        if (node == 0) {
            one_send(fixture, end, 1);
        }
        await_receive(end, &end->qps[1 - node], &sge);
        if (node == 1) {
            one_send(fixture, end, 0);
        }
    }
    fixture->value[node] = (backend->ops->time_ps(backend->ctx) - start_ps) / (2 * what.rounds);
    fixture_leave(fixture, board);
}

static void posts_and_polls(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board), *other = &fixture->ends[1];
    const struct backend *backend = peach2_backend(board);
    if (what.gpu) {
        fixture_gpu(end);
    }
    fixture_barrier(fixture, end);
    struct ibv_sge sge = fixture_sge(memory_of(end), 0, what.bytes), to = fixture_sge(memory_of(other), 0, 0);
    struct ibv_send_wr wr = {.opcode = what.opcode, .wr.rdma = {to.addr, to.lkey}};
    uint64_t start_ps = 0;
    if (what.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || what.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = to.addr;
        wr.wr.atomic.rkey = to.lkey;
    }
    for (unsigned i = 0; i < what.rounds + 10; i++) {
        if (i == 10) {
            start_ps = backend->ops->time_ps(backend->ctx);
        }
        EXPECT_EQ(fixture_post(&end->qps[1], &wr, &sge), 0);
        EXPECT_EQ(fixture_wc(end).status, IBV_WC_SUCCESS);
    }
    fixture->value[0] = (backend->ops->time_ps(backend->ctx) - start_ps) / what.rounds;
    fixture_leave(fixture, board);
}

static void serves(void *arg, peach2_handle_t *board)
{
    struct fixture *fixture = arg;
    struct end *end = fixture_enter(fixture, board);
    if (what.gpu) {
        fixture_gpu(end);
    }
    fixture_barrier(fixture, end);
    fixture_leave(fixture, board);
}

static uint64_t measure_ps(enum ibv_wr_opcode opcode, bool gpu, uint32_t bytes, unsigned rounds)
{
    struct fixture fixture;
    bool two_sided = opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    what = (struct measurement){opcode, gpu, bytes, rounds};
    fixture_init_published(&fixture);
    fixture_run(&fixture, two_sided ? pingpong : posts_and_polls, two_sided ? pingpong : serves);
    fixture_fini(&fixture);
    return fixture.value[0];
}

TEST(TcaVerbsPublished, EightBytesTakeMicrosecondsAndAQuestionTakesTwoWays)
{
    uint64_t send_ps = measure_ps(IBV_WR_SEND, false, 8, ROUNDS);
    uint64_t write_ps = measure_ps(IBV_WR_RDMA_WRITE_WITH_IMM, false, 8, ROUNDS);
    EXPECT_BETWEEN(send_ps, 2000 * NS, 5000 * NS);
    EXPECT_BETWEEN(write_ps, 2000 * NS, 5000 * NS);
    const enum ibv_wr_opcode questions[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_BETWEEN(measure_ps(questions[i], false, 8, ROUNDS), send_ps * 3 / 2, send_ps * 5 / 2);
    }
    EXPECT_BETWEEN(measure_ps(IBV_WR_SEND, true, 8, ROUNDS), send_ps, 2 * send_ps);
    EXPECT_BETWEEN(measure_ps(IBV_WR_RDMA_READ, true, 8, ROUNDS), send_ps, 4 * send_ps);
}

TEST(TcaVerbsPublished, AMegabyteMovesAtTheSpeedOfTheBoard)
{
    const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_BETWEEN(measure_ps(opcodes[i], false, 1 << 20, 4), 280000 * NS, 350000 * NS);
        EXPECT_BETWEEN(measure_ps(opcodes[i], true, 1 << 20, 4), 350000 * NS, 450000 * NS);
    }
}
