// Waits without a notification: they end with a code, and may be repeated.
#include "tests/support/cluster.h"

#define TIMEOUT_NS 300000ull

struct late {
    struct cluster cluster;
    int flags; // of the copy that is too late
    bool send;
    uint64_t waited_ps;
    int codes[2];
};

static void receiver(void *arg, peach2_handle_t *board)
{
    struct late *late = arg;
    struct cluster *c = &late->cluster;
    const struct backend *backend = peach2_backend(board);
    cluster_memory(c, board, 2);
    EXPECT_EQ(tcaSetTimeout(TIMEOUT_NS), tcaSuccess);
    uint64_t start_ps = backend->ops->time_ps(backend->ctx);
    late->codes[0] = tcaWaitDMARecvDesc(&c->handles[0], 0, 1);
    late->waited_ps = backend->ops->time_ps(backend->ctx) - start_ps;
    EXPECT_CONTAINS(tcaLastMessage(), "tag 1 did not come to slot 0 from node 0 within 300 us: check the sender");
    c->flag = true;
    EXPECT_EQ(tcaSetTimeout(tcaTimeoutDefault), tcaSuccess);
    late->codes[1] = late->send ? tcaWaitDMARecvDesc(&c->handles[0], 0, 1) : tcaErrorTimeout;
}

static void sender(void *arg, peach2_handle_t *board)
{
    struct late *late = arg;
    struct cluster *c = &late->cluster;
    cluster_memory(c, board, 2);
    cluster_await(board, &c->flag);
    EXPECT_EQ(cluster_copy(&c->handles[1], 0, &c->handles[0], 0, 64, late->flags | tcaDMANotify), tcaSuccess);
}

static void expect_late(int flags)
{
    struct late late = {.flags = flags, .send = true};
    cluster_init(&late.cluster, 2);
    cluster_run(&late.cluster, sender, receiver);
    EXPECT_EQ(late.codes[0], tcaErrorTimeout);
    EXPECT_EQ(late.codes[1], tcaSuccess);
    EXPECT_GE(late.waited_ps, TIMEOUT_NS * 1000);
    EXPECT_LT(late.waited_ps, 2 * TIMEOUT_NS * 1000);
    cluster_fini(&late.cluster);
}

TEST(TcaTimeout, EndsAWaitForANotificationThatMayStillCome)
{
    expect_late(0);
    expect_late(tcaDMAUseNotifyInternal);
}

// The receiver's last notification was in its board's memory, so it polls there continuously.
static void polls_the_board(void *arg, peach2_handle_t *board)
{
    struct late *late = arg;
    struct cluster *c = &late->cluster;
    cluster_memory(c, board, 2);
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[0], 0, 1), tcaSuccess);
    const struct backend *backend = peach2_backend(board);
    EXPECT_EQ(tcaSetTimeout(TIMEOUT_NS), tcaSuccess);
    uint64_t start_ps = backend->ops->time_ps(backend->ctx);
    late->codes[0] = tcaWaitDMARecvDesc(&c->handles[0], 0, 1);
    late->waited_ps = backend->ops->time_ps(backend->ctx) - start_ps;
}

static void sends_at_once(void *arg, peach2_handle_t *board)
{
    struct late *late = arg;
    struct cluster *c = &late->cluster;
    cluster_memory(c, board, 2);
    EXPECT_EQ(cluster_copy(&c->handles[1], 0, &c->handles[0], 0, 64, tcaDMANotify | tcaDMAUseNotifyInternal),
              tcaSuccess);
}

TEST(TcaTimeout, EndsAWaitThatPollsTheBoard)
{
    struct late late = {0};
    cluster_init(&late.cluster, 2);
    cluster_run(&late.cluster, sends_at_once, polls_the_board);
    EXPECT_EQ(late.codes[0], tcaErrorTimeout);
    EXPECT_GE(late.waited_ps, TIMEOUT_NS * 1000);
    EXPECT_LT(late.waited_ps, TIMEOUT_NS * 1000 + 128 * 2000 * NS); // reads of less than 2 us
    cluster_fini(&late.cluster);
}

// The first notification came in the board's memory, where the second one comes late.
static void polls_the_board_without_a_limit(void *arg, peach2_handle_t *board)
{
    struct late *late = arg;
    struct cluster *c = &late->cluster;
    cluster_memory(c, board, 2);
    EXPECT_EQ(tcaSetTimeout(0), tcaSuccess);
    late->codes[0] = tcaWaitDMARecvDesc(&c->handles[0], 0, 1);
    c->flag = true;
    late->codes[1] = tcaWaitDMARecvDesc(&c->handles[0], 0, 1);
}

static void sends_at_once_and_late(void *arg, peach2_handle_t *board)
{
    struct late *late = arg;
    struct cluster *c = &late->cluster;
    const struct backend *backend = peach2_backend(board);
    const int flags = tcaDMANotify | tcaDMAUseNotifyInternal;
    cluster_memory(c, board, 2);
    EXPECT_EQ(cluster_copy(&c->handles[1], 0, &c->handles[0], 0, 64, flags), tcaSuccess);
    cluster_await(board, &c->flag);
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 2 * TIMEOUT_NS);
    EXPECT_EQ(cluster_copy(&c->handles[1], 0, &c->handles[0], 0, 64, flags), tcaSuccess);
}

TEST(TcaTimeout, OfZeroLetsAWaitThatPollsTheBoardGoOn)
{
    struct late late = {.codes = {tcaErrorTimeout, tcaErrorTimeout}};
    cluster_init(&late.cluster, 2);
    cluster_run(&late.cluster, sends_at_once_and_late, polls_the_board_without_a_limit);
    EXPECT_EQ(late.codes[0], tcaSuccess);
    EXPECT_EQ(late.codes[1], tcaSuccess);
    cluster_fini(&late.cluster);
}

static void still_runs(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(tcaDescSetMemcpy(desc, &c->handles[1], 0, &c->handles[0], 0, CLUSTER_BYTES, 0, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 1), tcaSuccess);
    EXPECT_EQ(tcaSetTimeout(2000), tcaSuccess); // 64 KB take 18 us
    EXPECT_EQ(tcaStartDMADesc(1), tcaSuccess);
    EXPECT_EQ(tcaWaitDMAC(1), tcaErrorTimeout);
    EXPECT_CONTAINS(tcaLastMessage(), "channel 1 still runs");
    EXPECT_EQ(tcaDescFree(desc), tcaErrorBusy);
    EXPECT_EQ(tcaSetTimeout(0), tcaSuccess);
    EXPECT_EQ(tcaWaitDMAC(1), tcaSuccess);
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    c->flag = true;
}

TEST(TcaTimeout, EndsAWaitForADmaThatGoesOn)
{
    struct cluster cluster;
    cluster_init(&cluster, 2);
    cluster_run(&cluster, still_runs, cluster_target);
    cluster_fini(&cluster);
}

// The sender cannot detect it: its board has sent everything.
TEST(TcaTimeout, IsWhatTheReceiverBehindAPulledCableSees)
{
    struct late late = {0};
    site_init(&late.cluster.site, 2);
    late.cluster.site.scenario->faults[0] =
        (struct scn_fault){.ends = {.given = true}, .at_ps = 0, .after_tlps = SCN_NOT_GIVEN, .for_ps = SCN_NOT_GIVEN};
    late.cluster.site.scenario->fault_count = 1;
    site_build(&late.cluster.site);
    late.cluster.flag = true;
    cluster_run(&late.cluster, sender, receiver);
    EXPECT_EQ(late.codes[0], tcaErrorTimeout);
    EXPECT_TRUE(plat_machine_fault(late.cluster.site.machine, 0).happened);
    cluster_fini(&late.cluster);
}
