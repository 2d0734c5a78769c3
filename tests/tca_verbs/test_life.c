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
    party->gone = party->abandoned = true;
    party_leave(party, board);
    EXPECT_BETWEEN(backend->ops->time_ps(backend->ctx) - then_ps, 0, 20 * NS); // tells the time
}

TEST(TcaVerbsLife, AnAbandonedContextGoesWithoutTakingTime)
{
    run(walks_away, walks_away, NULL);
}
