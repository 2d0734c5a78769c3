// Notifications: their target, their tag, and their order after the data.
#include "tests/support/cluster.h"

struct notified {
    struct cluster cluster;
    int flags;
    bool seen_data[2], seen_self;
};

#define MESSAGE 4096u

static void sender(void *arg, peach2_handle_t *board)
{
    struct notified *n = arg;
    struct cluster *c = &n->cluster;
    cluster_memory(c, board, 2);
    site_fill(c->memory[0], 2 * MESSAGE, 1);
    tcaDesc *desc = tcaDescNew();
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(tcaDescSetMemcpy(desc, &c->handles[1], i * MESSAGE, &c->handles[0], i * MESSAGE, MESSAGE,
                                   n->flags | tcaDMANotify | tcaDMANotifySelf, (int)i, 70 + i),
                  tcaSuccess);
    }
    EXPECT_EQ(tcaDescSet(desc, 0), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(0), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[0], 0, 70), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[0], 1, 71), tcaSuccess);
    n->seen_self = true;
    EXPECT_EQ(tcaWaitDMAC(0), tcaSuccess);
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
}

// Slots in either order: each notification stays until it is taken.
static void receiver(void *arg, peach2_handle_t *board)
{
    struct notified *n = arg;
    struct cluster *c = &n->cluster;
    cluster_memory(c, board, 2);
    for (unsigned i = 2; i-- > 0;) {
        uint8_t expected[2 * MESSAGE];
        EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[0], (int)i, 70 + i), tcaSuccess);
        site_fill(expected, sizeof expected, 1);
        EXPECT_MEMEQ(c->memory[1] + i * MESSAGE, expected + i * MESSAGE, MESSAGE);
        n->seen_data[i] = true;
    }
}

static void expect_notified(int flags)
{
    struct notified n = {.flags = flags};
    cluster_init(&n.cluster, 2);
    cluster_run(&n.cluster, sender, receiver);
    EXPECT_TRUE(n.seen_data[0] && n.seen_data[1] && n.seen_self);
    cluster_fini(&n.cluster);
}

TEST(TcaNotify, StaysBehindTheDataInHostMemory)
{
    expect_notified(0);
    expect_notified(tcaDMAPipeline);
    expect_notified(tcaDMAUseInternal | tcaDMAPipeline);
}

TEST(TcaNotify, StaysBehindTheDataInTheBoardsMemory)
{
    expect_notified(tcaDMAUseNotifyInternal);
    expect_notified(tcaDMAUseNotifyInternal | tcaDMAPipeline);
    expect_notified(tcaDMAUseNotifyInternal | tcaDMAUseInternal | tcaDMAPipeline);
}

// The same slot and tag repeatedly: each wait takes the notification of its own round.
static void echo(struct notified *n, peach2_handle_t *board, unsigned rank)
{
    struct cluster *c = &n->cluster;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(
        tcaDescSetMemcpy(desc, &c->handles[1 - rank], 0, &c->handles[rank], 1024, 8, n->flags | tcaDMANotify, 7, 9),
        tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 0), tcaSuccess);
    for (uint32_t round = 1; round <= 20; round++) {
        uint32_t *send = (uint32_t *)(void *)(c->memory[rank] + 1024);
        if (rank == 0) {
            *send = round;
            EXPECT_EQ(tcaStartDMADesc(0), tcaSuccess);
        }
        EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[1 - rank], 7, 9), tcaSuccess);
        EXPECT_EQ(*(uint32_t *)(void *)c->memory[rank], round);
        if (rank == 1) {
            *send = round;
            EXPECT_EQ(tcaStartDMADesc(0), tcaSuccess);
        }
    }
    EXPECT_EQ(tcaWaitDMAC(0), tcaSuccess);
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
}

static void echo_first(void *arg, peach2_handle_t *board)
{
    echo(arg, board, 0);
}

static void echo_second(void *arg, peach2_handle_t *board)
{
    echo(arg, board, 1);
}

TEST(TcaNotify, IsTakenOnceForEachTurn)
{
    const int flags[] = {0, tcaDMAUseNotifyInternal, tcaDMAUseInternal | tcaDMAPipeline};
    for (unsigned i = 0; i < 3; i++) {
        struct notified n = {.flags = flags[i]};
        cluster_init(&n.cluster, 2);
        cluster_run(&n.cluster, echo_first, echo_second);
        cluster_fini(&n.cluster);
    }
}

// A receiver that never set a descriptor finds a notification in either memory.
static void silent_receiver(void *arg, peach2_handle_t *board)
{
    struct notified *n = arg;
    cluster_memory(&n->cluster, board, 2);
    EXPECT_EQ(tcaWaitDMARecvDesc(&n->cluster.handles[0], 0, 1), tcaSuccess);
    n->seen_data[0] = true;
}

static void single_sender(void *arg, peach2_handle_t *board)
{
    struct notified *n = arg;
    cluster_memory(&n->cluster, board, 2);
    EXPECT_EQ(cluster_copy(&n->cluster.handles[1], 0, &n->cluster.handles[0], 0, 64, n->flags | tcaDMANotify),
              tcaSuccess);
}

TEST(TcaNotify, IsFoundWhereverTheSenderPutsIt)
{
    for (unsigned i = 0; i < 2; i++) {
        struct notified n = {.flags = i == 0 ? 0 : tcaDMAUseNotifyInternal};
        cluster_init(&n.cluster, 2);
        cluster_run(&n.cluster, single_sender, silent_receiver);
        EXPECT_TRUE(n.seen_data[0]);
        cluster_fini(&n.cluster);
    }
}

// The first process of node 0 ends before it takes its notification.
static void earlier_and_later_receiver(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    const struct backend *backend = peach2_backend(board);
    struct backend_library *library = &backend_current()->libraries[BACKEND_LIBRARY_TCA];
    cluster_memory(c, board, 2);
    cluster_await(board, &c->flag);
    backend->ops->cost(backend->ctx, BACKEND_COST_TIME, 50000); // it has arrived
    library->release(library->state);
    *library = (struct backend_library){0};
    EXPECT_EQ(tcaInit(), tcaSuccess);
    EXPECT_EQ(tcaSetTimeout(300000), tcaSuccess);
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[1], 0, 1), tcaErrorTimeout);
}

static void sender_to_the_earlier(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    const int flags = tcaDMANotify | tcaDMAUseNotifyInternal;
    cluster_memory(c, board, 2);
    EXPECT_EQ(cluster_copy(&c->handles[0], 0, &c->handles[1], 0, 64, flags), tcaSuccess);
    c->flag = true;
}

TEST(TcaNotify, OfAnEarlierProcessDoesNotReachALaterOne)
{
    struct cluster cluster;
    cluster_init(&cluster, 2);
    cluster_run(&cluster, earlier_and_later_receiver, sender_to_the_earlier);
    cluster_fini(&cluster);
}
