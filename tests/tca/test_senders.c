// A wait takes the notification of the node of its handle, in its slot.
#include "tests/support/cluster.h"

enum { RECEIVER, NODES = 4 };

struct senders {
    struct cluster cluster;
    int flags;
    unsigned sent; // programs whose copy has been issued
};

static void everybody_sends(void *arg, peach2_handle_t *board)
{
    struct senders *s = arg;
    struct cluster *c = &s->cluster;
    uint32_t rank = peach2_node(board);
    cluster_memory(c, board, NODES);
    site_fill(c->memory[rank], 64, rank);
    EXPECT_EQ(cluster_copy(&c->handles[RECEIVER], rank * 64u, &c->handles[rank], 0, 64, s->flags | tcaDMANotify),
              tcaSuccess);
    s->sent++;
}

static void waits_for_each(void *arg, peach2_handle_t *board)
{
    struct senders *s = arg;
    struct cluster *c = &s->cluster;
    cluster_memory(c, board, NODES);
    while (s->sent < NODES - 1) { // all notifications have arrived before the first wait
        const struct backend *backend = peach2_backend(board);
        backend->ops->cost(backend->ctx, BACKEND_COST_CALL, 10);
    }
    for (uint32_t rank = NODES - 1; rank > 0; rank--) {
        EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[rank], 0, 1), tcaSuccess);
        EXPECT_TRUE(site_is_filled(c->memory[RECEIVER] + rank * 64u, 64, rank));
    }
    EXPECT_EQ(tcaSetTimeout(200000), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[1], 0, 1), tcaErrorTimeout); // already taken
}

TEST(TcaSenders, HaveSlotsOfTheirOwnAtAReceiver)
{
    const int flags[] = {0, tcaDMAUseNotifyInternal};
    for (unsigned i = 0; i < 2; i++) {
        struct senders s = {.flags = flags[i]};
        cluster_init(&s.cluster, NODES);
        cluster_run(&s.cluster, waits_for_each, everybody_sends);
        cluster_fini(&s.cluster);
    }
}

// --- handles -------------------------------------------------------------------------------------------------------

static void sends_once(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    EXPECT_EQ(cluster_copy(&c->handles[0], 0, &c->handles[1], 0, 64, tcaDMANotify), tcaSuccess);
    cluster_await(board, &c->flag);
}

static void waits_by_another_handle(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    const struct backend *backend = peach2_backend(board);
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 50000);
    EXPECT_EQ(tcaSetTimeout(200000), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[0], 0, 1), tcaErrorTimeout); // of the own node
    EXPECT_CONTAINS(tcaLastMessage(), "from node 0 within 200 us: check the sender and the cables in between; the "
                                      "same tag has come there from node 1");
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[1], 0, 2), tcaErrorTimeout);
    EXPECT_CONTAINS(tcaLastMessage(), "; tag 1 of that node lies in the slot");
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[1], 1, 1), tcaErrorTimeout); // no other slot is looked at
    EXPECT_STREQ(tcaLastMessage(),
                 "tcaWaitDMARecvDesc: tag 1 did not come to slot 1 from node 1 within 200 us: check the "
                 "sender and the cables in between");
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[0], 0, 2), tcaErrorTimeout); // nor is another tag of another node
    EXPECT_CONTAINS(tcaLastMessage(), "in between; the handle is of this node itself: for messages of another, pass a "
                                      "handle of that node");
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[1], 0, 1), tcaSuccess);
    c->flag = true;
}

TEST(TcaSenders, AreToldApartByNodeSlotAndTag)
{
    struct cluster c;
    cluster_init(&c, 2);
    cluster_run(&c, waits_by_another_handle, sends_once);
    cluster_fini(&c);
}

// Programs wait with any handle of the sender that they have.
static void waits_by_unrelated_memory(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    void *other;
    tcaHandle unrelated;
    cluster_memory(c, board, 1);
    EXPECT_EQ(tcaMalloc(&other, 4096, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&unrelated, other, 4096, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(cluster_copy(&c->handles[0], 4096, &c->handles[0], 0, 64, tcaDMANotify), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&unrelated, 0, 1), tcaSuccess);
    EXPECT_EQ(cluster_copy(&c->handles[0], 4096, &c->handles[0], 0, 64, tcaDMANotifySelf), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&unrelated, 0, 1), tcaSuccess);
}

TEST(TcaSenders, AreNamedByAnyHandleOfTheirs)
{
    struct cluster c;
    cluster_init(&c, 1);
    cluster_run(&c, waits_by_unrelated_memory, NULL);
    cluster_fini(&c);
}

// --- one start, several destinations -------------------------------------------------------------------------------

static void sends_to_all(void *arg, peach2_handle_t *board)
{
    struct senders *s = arg;
    struct cluster *c = &s->cluster;
    cluster_memory(c, board, NODES);
    tcaDesc *desc = tcaDescNew();
    for (uint32_t to = 1; to < NODES; to++) {
        EXPECT_EQ(tcaDescSetMemcpy(desc, &c->handles[to], 128, &c->handles[0], 0, 64, s->flags | tcaDMANotify,
                                   (int)(10 + to), 0x100),
                  tcaSuccess);
    }
    for (uint32_t round = 0; round < 3; round++) {
        site_fill(c->memory[0], 64, round);
        EXPECT_EQ(tcaDescSet(desc, 0), tcaSuccess); // before each start, although nothing changed
        EXPECT_EQ(tcaDescSet(desc, 0), tcaSuccess);
        EXPECT_EQ(tcaStartDMADesc(0), tcaSuccess);
        for (uint32_t to = 1; to < NODES; to++) { // they answer
            EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[to], 0, 1), tcaSuccess);
        }
    }
}

static void receives_from_first(void *arg, peach2_handle_t *board)
{
    struct senders *s = arg;
    struct cluster *c = &s->cluster;
    uint32_t rank = peach2_node(board);
    cluster_memory(c, board, NODES);
    for (uint32_t round = 0; round < 3; round++) {
        EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[0], (int)(10 + rank), 0x100), tcaSuccess);
        EXPECT_TRUE(site_is_filled(c->memory[rank] + 128, 64, round));
        EXPECT_EQ(cluster_copy(&c->handles[0], 1024 + rank * 16u, &c->handles[rank], 0, 4, s->flags | tcaDMANotify),
                  tcaSuccess);
    }
}

TEST(TcaSenders, ReachSeveralDestinationsByOneStart)
{
    const int flags[] = {0, tcaDMAUseInternal | tcaDMAUseNotifyInternal | tcaDMAPipeline};
    for (unsigned i = 0; i < 2; i++) {
        struct senders s = {.flags = flags[i]};
        cluster_init(&s.cluster, NODES);
        cluster_run(&s.cluster, sends_to_all, receives_from_first);
        cluster_fini(&s.cluster);
    }
}

// A notification to the sender is at the end of the chain and may be seen before the channel reports its end.
static void starts_again_at_once(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew(), *other = tcaDescNew();
    const int flags = tcaDMANotifySelf | tcaDMAUseInternal;
    EXPECT_EQ(tcaDescSetMemcpy(desc, &c->handles[1], 0, &c->handles[0], 0, 64, flags, 3, 9), tcaSuccess);
    EXPECT_EQ(tcaDescSetMemcpy(other, &c->handles[1], 64, &c->handles[0], 0, 64, flags, 3, 9), tcaSuccess);
    for (unsigned round = 0; round < 20; round++) {
        EXPECT_EQ(tcaDescSet(round % 2 == 0 ? desc : other, 0), tcaSuccess);
        EXPECT_EQ(tcaStartDMADesc(0), tcaSuccess);
        EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[0], 3, 9), tcaSuccess);
    }
    c->flag = true;
}

TEST(TcaSenders, MayStartAgainWhenTheirOwnNotificationIsThere)
{
    struct cluster c;
    cluster_init(&c, 2);
    cluster_run(&c, starts_again_at_once, cluster_target);
    cluster_fini(&c);
}
