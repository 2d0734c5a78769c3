// Completion queues that are resized while completions are in them, in flight, or waited for.
#include <errno.h>
#include <stdlib.h>

#include "fixture.h"

enum { BYTES = 64 };

static void write_post(struct fixture_side *side, uint64_t wr_id)
{
    struct ibv_sge sge = fixture_sge(side, 0, BYTES);
    struct ibv_send_wr wr = fixture_wr(side, IBV_WR_RDMA_WRITE, &sge, 0);
    wr.wr_id = wr_id;
    EXPECT_EQ(fixture_post(side, &wr), 0);
}

static void completions_expect(struct fixture_side *side, uint64_t first, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        (void)fixture_completion(side, first + i, IBV_WC_SUCCESS);
    }
}

static void arrive(struct fixture_side *side)
{
    sim_thread_sleep(side->fixture->base.sim, 100 * US);
}

// --- contents of the queue -------------------------------------------------------------------------------------------

static void resize_with_contents(struct fixture_side *side)
{
    static const int sizes[] = {20, 5, 1000, 6, 5, 64, 130, 7};
    uint64_t wr_id = 1;
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (unsigned n = 0; n < 5; n++) {
            write_post(side, wr_id + n);
        }
        arrive(side);
        EXPECT_EQ(ibv_resize_cq(side->cq, sizes[i]), 0);
        EXPECT_GE(side->cq->cqe, sizes[i]);
        EXPECT_LE(side->cq->cqe, 2 * sizes[i]);
        completions_expect(side, wr_id, 5);
        wr_id += 5;
        for (int n = 0; n < side->cq->cqe; n++) { // and once around the new ring
            write_post(side, wr_id);
            completions_expect(side, wr_id++, 1);
        }
    }
}

TEST(IbsimResize, KeepsCompletionsAndTheirOrderWhetherItGrowsOrShrinks)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, resize_with_contents, NULL);
    fixture_end(fixture);
}

static void resize_at_once(struct fixture_side *side)
{
    uint64_t wr_id = 1;
    for (unsigned i = 0; i < 40; i++) { // at any time between the doorbell and the last completion
        for (unsigned n = 0; n < 8; n++) {
            write_post(side, wr_id + n);
        }
        sim_thread_sleep(side->fixture->base.sim, i * 150 * NS);
        EXPECT_EQ(ibv_resize_cq(side->cq, i % 2 == 0 ? 100 : 8), 0);
        completions_expect(side, wr_id, 8);
        wr_id += 8;
    }
}

TEST(IbsimResize, LosesNoneOfTheCompletionsThatAreOnTheirWay)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, resize_at_once, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture->base, 0, "completions"), 320);
    fixture_end(fixture);
}

// --- refusals --------------------------------------------------------------------------------------------------------

static void resize_too_small(struct fixture_side *side)
{
    int before = side->cq->cqe;
    for (unsigned n = 0; n < 5; n++) {
        write_post(side, n);
    }
    arrive(side);
    EXPECT_EQ(ibv_resize_cq(side->cq, 4), EINVAL);
    EXPECT_EQ(ibv_resize_cq(side->cq, 0), EINVAL);
    EXPECT_EQ(side->cq->cqe, before);
    completions_expect(side, 0, 5);
    EXPECT_EQ(ibv_resize_cq(side->cq, 4), 0);
}

TEST(IbsimResize, RefusesASizeThatIsTooSmallForWhatIsInIt)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, resize_too_small, NULL);
    fixture_end(fixture);
}

static void resize_too_large(struct fixture_side *side)
{
    struct ibv_device_attr attr;
    EXPECT_EQ(ibv_query_device(side->context, &attr), 0);
    EXPECT_EQ(ibv_resize_cq(side->cq, attr.max_cqe), 0);
    EXPECT_EQ(side->cq->cqe, attr.max_cqe);
    EXPECT_EQ(ibv_resize_cq(side->cq, attr.max_cqe + 1), EINVAL);
    write_post(side, 1);
    completions_expect(side, 1, 1);
}

TEST(IbsimResize, GoesAsFarAsTheDeviceSays)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, resize_too_large, NULL);
    fixture_end(fixture);
}

// --- polls of the whole queue ----------------------------------------------------------------------------------------

// Receives are flushed without a connection.
static struct ibv_qp *flushed_receives(struct fixture_side *side, unsigned count)
{
    struct ibv_qp_init_attr init = {
        .send_cq = side->cq,
        .recv_cq = side->cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = count, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp *qp = ibv_create_qp(side->pd, &init);
    struct ibv_recv_wr *bad;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    for (unsigned i = 0; i < count; i++) {
        struct ibv_recv_wr wr = {.wr_id = i};
        EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
    }
    attr.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    return qp;
}

static void poll_all(struct fixture_side *side)
{
    EXPECT_EQ(ibv_resize_cq(side->cq, 8200), 0); // the queue has almost twice as many
    const unsigned count = (unsigned)side->cq->cqe, half = count / 2;
    uint64_t next[2] = {0, 0};
    struct ibv_wc *wc = calloc(count, sizeof *wc);
    struct ibv_qp *first = flushed_receives(side, half), *second = flushed_receives(side, half);
    sim_thread_sleep(side->fixture->base.sim, 20000 * US);
    ASSERT_EQ(ibv_poll_cq(side->cq, (int)count, wc), 2 * half);
    for (unsigned i = 0; i < 2 * half; i++) { // each queue pair's in their order
        ASSERT_EQ(wc[i].wr_id, next[wc[i].qp_num == second->qp_num]++);
        ASSERT_EQ(wc[i].status, IBV_WC_WR_FLUSH_ERR);
    }
    EXPECT_EQ(ibv_destroy_qp(first) | ibv_destroy_qp(second), 0);
    free(wc);
}

TEST(IbsimResize, OnePollTakesAsManyCompletionsAsTheQueueHoldsThen)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, poll_all, NULL);
    fixture_end(fixture);
}

// --- arming ----------------------------------------------------------------------------------------------------------

static void resize_while_armed(struct fixture_side *side)
{
    struct ibv_cq *cq = NULL;
    void *cq_context = NULL;
    EXPECT_EQ(ibv_req_notify_cq(side->cq, 0), 0);
    EXPECT_EQ(ibv_resize_cq(side->cq, 300), 0);
    uint64_t before = hca_fixture_counter(&side->fixture->base, 0, "events");
    write_post(side, 1);
    EXPECT_EQ(ibv_get_cq_event(side->channel, &cq, &cq_context), 0);
    EXPECT_EQ(hca_fixture_counter(&side->fixture->base, 0, "events"), before + 1);
    completions_expect(side, 1, 1);
    ibv_ack_cq_events(cq, 1);
}

TEST(IbsimResize, RaisesNoEventByItselfAndKeepsTheArming)
{
    struct fixture *fixture = fixture_new(IBV_QPT_RC);
    fixture_run(fixture, resize_while_armed, NULL);
    fixture_end(fixture);
}
