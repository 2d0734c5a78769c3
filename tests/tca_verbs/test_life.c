// Objects and their states: who is ready when, what is shared, what comes again after an error, and what is told.
#include <errno.h>
#include <string.h>

#include "party.h"

static const struct ibverbs_device_ops *ops = &tca_verbs_ops;

static void run(plat_program_fn first, plat_program_fn other, void (*adjust)(struct party *party))
{
    struct party party;
    party_init(&party, 2);
    if (adjust != NULL) {
        adjust(&party);
    }
    party_run(&party, first, other);
    party_fini(&party);
}

static void only_progress(void *arg, peach2_handle_t *board)
{
    (void)party_enter(arg, board);
    party_leave(arg, board);
}

// --- readiness ------------------------------------------------------------------------------------------------------

static void sends_too_early(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    struct party_qp extra = {0};
    party_qp_make(party, end, &extra);
    party->value[0] = extra.number;
    party_meet(party, end);
    EXPECT_EQ(party_qp_connect(party, end, &extra, 1, (uint32_t)party->value[1]), 0);
    struct ibv_sge sge = party_sge(&end->near, 0, 32);
    for (unsigned i = 0; i < 3; i++) {
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND};
        EXPECT_EQ(party_post(&extra, &wr, &sge), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        party_expect(end, i, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(ops->qp_destroy(extra.qp), 0);
    party_leave(party, board);
}

static void ready_late(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    struct party_qp extra = {0};
    struct ibv_sge sge = party_sge(&end->near, 0, 64);
    party_qp_make(party, end, &extra);
    party->value[1] = extra.number;
    party_meet(party, end);
    EXPECT_EQ(ops->cq_wait(end->cq, 20000000), -ETIMEDOUT); // longer than one timeout of the sender
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(party_receive(&extra, i, &sge), 0);
    }
    EXPECT_EQ(party_qp_connect(party, end, &extra, 0, (uint32_t)party->value[0]), 0);
    for (unsigned i = 0; i < 3; i++) {
        party_expect(end, i, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(ops->qp_destroy(extra.qp), 0);
    party_leave(party, board);
}

TEST(TcaVerbsLife, WhatIsSentBeforeThePeerIsReadyComesAgain)
{
    run(sends_too_early, ready_late, NULL);
}

static void no_cable(struct party *party)
{
    party->cluster.site.scene->cable_count = 0;
}

static void sends_nowhere(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    struct ibv_sge sge = party_sge(&end->near, 0, 32);
    struct ibv_send_wr wr = {.wr_id = 4, .opcode = IBV_WR_SEND};
    EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
    party_expect(end, 4, IBV_WC_RETRY_EXC_ERR);
    party_leave(party, board);
}

TEST(TcaVerbsLife, WithoutACableRetriesAreExceeded)
{
    run(sends_nowhere, only_progress, no_cable);
}

// --- regions --------------------------------------------------------------------------------------------------------

static void writes_to_freed(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board), *other = &party->ends[1];
    struct ibv_sge sge = party_sge(&end->near, 0, 65536), to = party_sge(&other->near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 4, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
    memset(end->near.data, 0x55, 65536);
    party_meet(party, end);
    EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
    party_expect(end, 4, IBV_WC_REM_ACCESS_ERR);
    EXPECT_TRUE(site_is_value(other->near.data, 65536, 0));
    party_leave(party, board);
}

static void frees(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    EXPECT_EQ(ops->mr_deregister(end->near.mr), 0);
    end->near.mr = NULL;
    party_meet(party, end);
    struct ibverbs_event event = {0};
    EXPECT_EQ(ops->event_get(end->context, IBVERBS_FOR_EVER, &event), 0);
    EXPECT_EQ(event.type, IBV_EVENT_QP_ACCESS_ERR);
    EXPECT_TRUE(event.user == &end->qps[0]);
    party_leave(party, board);
}

TEST(TcaVerbsLife, AFreedRegionIsARemoteAccessErrorAndAnEvent)
{
    run(writes_to_freed, frees, NULL);
}

// --- shared receives and events -------------------------------------------------------------------------------------

static void shared(struct party *party)
{
    party->use_srq = true;
}

static void sends_to_shared(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    struct ibv_sge sge = party_sge(&end->near, 0, 100);
    party_meet(party, end);
    for (unsigned i = 0; i < 4; i++) {
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND, .send_flags = i == 3 ? IBV_SEND_SOLICITED : 0};
        EXPECT_EQ(party_post(&end->qps[1], &wr, &sge), 0);
        party_expect(end, i, IBV_WC_SUCCESS);
    }
    party_leave(party, board);
}

static void receives_shared(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    struct ibv_sge sge = party_sge(&end->near, 0, 100);
    const struct ibv_recv_wr wr = {.wr_id = 6, .sg_list = &sge, .num_sge = 1}, *bad;
    struct ibverbs_event event = {0};
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(ops->post_srq_recv(end->srq, &wr, 1, &bad), 0);
    }
    EXPECT_EQ(ops->srq_arm(end->srq, 2), 0);
    EXPECT_EQ(ops->cq_arm(end->cq, true), 0);
    party_meet(party, end);
    EXPECT_EQ(ops->event_get(end->context, 1000000, &event), 0);
    EXPECT_EQ(event.type, IBV_EVENT_SRQ_LIMIT_REACHED); // with the third
    EXPECT_EQ(ops->event_get(end->context, 1000000, &event), 0);
    EXPECT_TRUE(event.completion && event.user == end); // with the solicited one, the fourth
    EXPECT_EQ(ops->event_get(end->context, IBVERBS_NO_WAIT, &event), -EAGAIN);
    for (unsigned i = 0; i < 4; i++) {
        party_expect(end, 6, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(ops->srq_destroy(end->srq), -EBUSY);
    party_leave(party, board);
}

TEST(TcaVerbsLife, SharedReceivesTellTheirLimitAndSolicitedMessagesTheirCq)
{
    run(sends_to_shared, receives_shared, shared);
}

// --- again ----------------------------------------------------------------------------------------------------------

static void again(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    uint32_t node = peach2_node(board);
    struct party_qp *qp = &end->qps[1 - node];
    struct ibv_sge sge = party_sge(&end->near, 0, 100);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};
    struct ibv_qp_attr attr = party->attr;
    for (unsigned i = 0; i < 3; i++) {
        attr.qp_state = IBV_QPS_ERR;
        EXPECT_EQ(ops->qp_modify(qp->qp, &attr, IBV_QP_STATE), 0);
        EXPECT_EQ(party_post(qp, &wr, &sge), 0);
        party_expect(end, 1, IBV_WC_WR_FLUSH_ERR);
        attr.qp_state = IBV_QPS_RESET;
        EXPECT_EQ(ops->qp_modify(qp->qp, &attr, IBV_QP_STATE), 0);
        attr.qp_state = IBV_QPS_INIT;
        EXPECT_EQ(ops->qp_modify(qp->qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
        EXPECT_EQ(party_receive(qp, 2, &sge), 0);
        party_meet(party, end);
        EXPECT_EQ(party_qp_connect(party, end, qp, 1 - node, party->ends[1 - node].qps[node].number), 0);
        party_meet(party, end);
        EXPECT_EQ(party_post(qp, &wr, &sge), 0);
        struct ibv_wc first = party_wc(end), second = party_wc(end);
        EXPECT_EQ(first.status | second.status, IBV_WC_SUCCESS);
        EXPECT_EQ(first.wr_id + second.wr_id, 3);
        party_meet(party, end);
    }
    party_leave(party, board);
}

TEST(TcaVerbsLife, AQueuePairWorksAgainAfterErrorAndReset)
{
    run(again, again, NULL);
}

static void reopened(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    uint32_t node = peach2_node(board);
    for (unsigned i = 0; i < 3; i++) {
        struct end *end = party_enter(party, board);
        struct ibv_sge sge = party_sge(&end->near, 0, 5000);
        struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND};
        EXPECT_EQ(party_receive(&end->qps[1 - node], 2, &sge), 0);
        party_meet(party, end);
        EXPECT_EQ(party_post(&end->qps[1 - node], &wr, &sge), 0);
        struct ibv_wc first = party_wc(end), second = party_wc(end);
        EXPECT_EQ(first.status | second.status, IBV_WC_SUCCESS);
        party_leave(party, board);
        *end = (struct end){0};
        party->value[node]++;
        const struct backend *backend = peach2_backend(board);
        while (party->value[1 - node] < party->value[node]) {
            backend->ops->cost(backend->ctx, BACKEND_COST_CALL, 10);
        }
    }
}

TEST(TcaVerbsLife, AProcessMayCloseAndMeetItsPeersAgain)
{
    run(reopened, reopened, NULL);
}

static void walks_away(void *arg, peach2_handle_t *board)
{
    struct party *party = arg;
    struct end *end = party_enter(party, board);
    struct ibv_sge sge = party_sge(&end->near, 0, 100000);
    struct ibv_sge to = party_sge(&party->ends[1 - peach2_node(board)].near, 0, 0);
    struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {to.addr, to.lkey}};
    EXPECT_EQ(party_post(&end->qps[1 - peach2_node(board)], &wr, &sge), 0);
    const struct backend *backend = peach2_backend(board);
    ops->abandon(end->context);
    uint64_t then_ps = backend->ops->time_ps(backend->ctx);
    party->gone = true;
    party_leave(party, board);
    EXPECT_BETWEEN(backend->ops->time_ps(backend->ctx) - then_ps, 0, 20 * NS); // tells the time
}

TEST(TcaVerbsLife, AnAbandonedContextGoesWithoutTakingTime)
{
    run(walks_away, walks_away, NULL);
}
