// Channels: order of calls, and DMAs that fail.
#include "tests/support/cluster.h"
#include "verbs-shim/libtca/board_memory.h"

static void run_pair(plat_program_fn program)
{
    struct cluster cluster;
    cluster_init(&cluster, 2);
    cluster_run(&cluster, program, cluster_target);
    cluster_fini(&cluster);
}

static void out_of_order(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(tcaStartDMADesc(0), tcaErrorNotSet);
    EXPECT_EQ(tcaWaitDMAC(0), tcaSuccess); // nothing runs
    EXPECT_EQ(tcaDescSet(desc, 0), tcaErrorNotSet);
    EXPECT_EQ(tcaDescSet(NULL, 0), tcaErrorArgument);
    EXPECT_EQ(tcaDescSet(desc, 4), tcaErrorChannel);
    EXPECT_EQ(tcaDescSet(desc, -1), tcaErrorChannel);
    EXPECT_EQ(tcaStartDMADesc(4), tcaErrorChannel);
    EXPECT_EQ(tcaWaitDMAC(-1), tcaErrorChannel);
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[0], 32, 1), tcaErrorSlot);
    EXPECT_EQ(tcaWaitDMARecvDesc(NULL, 0, 1), tcaErrorArgument);
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    c->flag = true;
}

TEST(TcaDma, RefusesChannelsAndOrdersThatAreNone)
{
    run_pair(out_of_order);
}

static void while_running(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    const tcaHandle *own = &c->handles[0], *other = &c->handles[1];
    EXPECT_EQ(tcaDescSetMemcpy(desc, other, 0, own, 0, CLUSTER_BYTES, 0, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 2), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(2), tcaSuccess);
    EXPECT_EQ(tcaDescSetMemcpy(desc, other, 0, own, 0, 64, 0, 0, 0), tcaErrorBusy);
    EXPECT_EQ(tcaDescFree(desc), tcaErrorBusy);
    EXPECT_EQ(tcaFree(c->memory[0], tcaMemoryCPU), tcaErrorBusy);
    EXPECT_CONTAINS(tcaLastMessage(), "tcaWaitDMAC");
    EXPECT_EQ(tcaWaitDMAC(2), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(2), tcaSuccess);
    EXPECT_EQ(tcaWaitDMAC(2), tcaSuccess);
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(2), tcaErrorNotSet); // it was removed with its descriptor
    EXPECT_EQ(tcaFree(c->memory[0], tcaMemoryCPU), tcaSuccess);
    c->flag = true;
}

TEST(TcaDma, RefusesToTouchWhatRuns)
{
    run_pair(while_running);
}

// Both nodes call their first memory by the same number.
static void frees_while_running(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    void *source;
    tcaHandle handle;
    cluster_memory(c, board, 2);
    EXPECT_EQ(tcaMalloc(&source, CLUSTER_BYTES, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaCreateHandle(&handle, source, CLUSTER_BYTES, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(c->handles[0].allocation, c->handles[1].allocation);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(tcaDescSetMemcpy(desc, &c->handles[1], 0, &handle, 0, CLUSTER_BYTES, 0, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 2), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(2), tcaSuccess);
    EXPECT_EQ(tcaFree(c->memory[0], tcaMemoryCPU), tcaSuccess); // the DMA does not use it
    EXPECT_EQ(tcaFree(source, tcaMemoryCPU), tcaErrorBusy);
    EXPECT_EQ(tcaWaitDMAC(2), tcaSuccess);
    c->flag = true;
}

TEST(TcaDma, KeepsNoMemoryButThatItReadsOrWrites)
{
    run_pair(frees_while_running);
}

// Each start takes as long as the DMA before it still runs, and none is lost: the receiver counts them.
static void starts_in_a_row(void *arg, peach2_handle_t *board)
{
    enum { STARTS = 4 };
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew(), *other = tcaDescNew();
    const tcaHandle *own = &c->handles[0], *far = &c->handles[1];
    EXPECT_EQ(tcaDescSetMemcpy(desc, far, 0, own, 0, CLUSTER_BYTES, tcaDMANotifySelf, 0, 7), tcaSuccess);
    EXPECT_EQ(tcaDescSetMemcpy(other, far, 0, own, 0, 64, tcaDMANotifySelf, 1, 8), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 2), tcaSuccess);
    for (int i = 0; i < STARTS; i++) {
        EXPECT_EQ(tcaDescSet(desc, 2), tcaSuccess); // also when nothing changed
        EXPECT_EQ(tcaStartDMADesc(2), tcaSuccess);
        EXPECT_EQ(tcaWaitDMARecvDesc(own, 0, 7), tcaSuccess);
    }
    EXPECT_EQ(tcaStartDMADesc(2), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 1), tcaSuccess); // the descriptor runs on the other channel
    EXPECT_EQ(tcaStartDMADesc(1), tcaSuccess);
    EXPECT_EQ(tcaDescSet(other, 1), tcaSuccess); // another one runs on the channel
    EXPECT_EQ(tcaSetTimeout(2000), tcaSuccess);  // 64 KB take 18 us
    EXPECT_EQ(tcaStartDMADesc(2), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(2), tcaErrorTimeout);
    EXPECT_CONTAINS(tcaLastMessage(), "tcaStartDMADesc: the DMA of channel 2 still runs after 2 us");
    EXPECT_EQ(tcaDescSet(other, 2), tcaErrorTimeout);
    EXPECT_EQ(tcaSetTimeout(0), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(2), tcaSuccess);
    EXPECT_EQ(tcaWaitDMAC(2), tcaSuccess);
    c->flag = true;
}

TEST(TcaDma, IsStartedAgainWhenTheLastOneHasEnded)
{
    run_pair(starts_in_a_row);
}

static void taken_channels(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(tcaDescSetMemcpy(desc, &c->handles[1], 0, &c->handles[0], 0, CLUSTER_BYTES, 0, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 2), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(2), tcaSuccess);
    EXPECT_FALSE(tca_channel_take(tca_context_current(), 2)); // it runs
    EXPECT_EQ(tcaWaitDMAC(2), tcaSuccess);
    EXPECT_TRUE(tca_channel_take(tca_context_current(), 2));
    EXPECT_EQ(tcaDescSet(desc, 2), tcaErrorBusy);
    EXPECT_CONTAINS(tcaLastMessage(), "TCA Verbs has channel 2");
    EXPECT_EQ(tcaStartDMADesc(2), tcaErrorBusy);
    EXPECT_EQ(tcaFree(c->memory[0], tcaMemoryCPU), tcaSuccess); // no DMA of libtca is in flight
    tca_channel_give(tca_context_current(), 2);
    EXPECT_EQ(tcaStartDMADesc(2), tcaErrorNotSet); // the setting was dropped
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    c->flag = true;
}

TEST(TcaDma, LeavesChannelsToTcaVerbsWhileItHasThem)
{
    run_pair(taken_channels);
}

static void unreachable(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    EXPECT_EQ(cluster_copy(&c->handles[1], 0, &c->handles[0], 0, 64, 0), tcaErrorDMA);
    EXPECT_CONTAINS(tcaLastMessage(), "unroutable");
    EXPECT_EQ(tcaWaitDMAC(0), tcaSuccess); // reported only once
    EXPECT_EQ(cluster_copy(&c->handles[0], 64, &c->handles[0], 0, 64, 0), tcaSuccess);
    c->flag = true;
}

TEST(TcaDma, TellsOfADmaThatFailsAndGoesOn)
{
    struct cluster cluster = {0};
    site_init(&cluster.site, 2);
    cluster.site.scenario->cable_count = 0;
    site_build(&cluster.site);
    cluster_run(&cluster, unreachable, cluster_target);
    cluster_fini(&cluster);
}
