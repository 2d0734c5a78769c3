// The older generation of names: tables of descriptors by index.
#include "tests/support/cluster.h"
#include "verbs-shim/libtca/tca-api.h"

static void run_pair(plat_program_fn program)
{
    struct cluster cluster;
    cluster_init(&cluster, 2);
    cluster_run(&cluster, program, cluster_target);
    cluster_fini(&cluster);
}

static void expect_started(int channel)
{
    EXPECT_EQ(tcaStartDMADesc(channel), tcaSuccess);
    EXPECT_EQ(tcaWaitDMAC(channel), tcaSuccess);
}

static void chains(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    const tcaHandle *own = &c->handles[0], *other = &c->handles[1];
    int next = 0, table = -1;
    cluster_memory(c, board, 2);
    site_fill(c->memory[0], 1024, 5);
    EXPECT_EQ(tcaCreateDMADesc(&table, 4), tcaSuccess);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, next, &next, other, 0, own, 0, 256, tcaDMAContinue, 0, 0), tcaSuccess);
    EXPECT_EQ(next, 1);
    EXPECT_EQ(tcaSetDMADesc_Memcpy2D(table, next, &next, other, 256, 128, own, 256, 128, 64, 6,
                                     tcaDMANotify | tcaDMANotifySelf, 2, 7),
              tcaSuccess);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, next, &next, other, 8192, own, 0, 64, 0, 0, 0), tcaSuccess); // after the end
    EXPECT_EQ(tcaSetDMAChain(1, table), tcaSuccess);
    expect_started(1);
    EXPECT_EQ(tcaWaitDMARecvDesc(own, 2, 7), tcaSuccess);
    cluster_await(board, &c->ready[1]);
    EXPECT_EQ(cluster_copy(other, 16384, own, 0, 16, tcaDMANotifySelf), tcaSuccess);
    EXPECT_TRUE(site_is_filled(c->memory[1], 256, 5));
    EXPECT_TRUE(site_is_value(c->memory[1] + 8192, 64, 0));
    for (unsigned row = 0; row < 6; row++) {
        EXPECT_MEMEQ(c->memory[1] + 256 + row * 128, c->memory[0] + 256 + row * 128, 64);
        EXPECT_TRUE(site_is_value(c->memory[1] + 256 + row * 128 + 64, 64, 0));
    }
    c->flag = true;
}

TEST(TcaTable, ChainGoesOnWhileMoreIsToFollow)
{
    run_pair(chains);
}

static void internal_chains(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    const tcaHandle *own = &c->handles[0], *other = &c->handles[1];
    int slot = 0;
    cluster_memory(c, board, 2);
    site_fill(c->memory[0], 1024, 8);
    EXPECT_EQ(tcaDMADescInt_Init(), tcaSuccess);
    EXPECT_EQ(tcaSetDMADescInt_Memcpy(slot, &slot, other, 0, own, 0, 64, tcaDMANotify, 0, 1), tcaSuccess);
    int second = slot; // one table for all arrays of a program, each with its own chain
    EXPECT_EQ(tcaSetDMADescInt_Memcpy(slot, &slot, other, 256, own, 256, 64, tcaDMAContinue, 0, 1), tcaSuccess);
    EXPECT_EQ(tcaSetDMADescInt_Memcpy2D(slot, &slot, other, 512, 64, own, 512, 64, 32, 2, 0, 0, 1), tcaSuccess);
    EXPECT_EQ(slot, 3);
    EXPECT_EQ(tcaSetDMAChainInt(0, second), tcaSuccess);
    expect_started(0);
    EXPECT_EQ(tcaSetDMAChainInt(0, second), tcaSuccess); // again, as programs do
    expect_started(0);
    EXPECT_EQ(cluster_copy(other, 16384, own, 0, 16, 0), tcaSuccess);
    EXPECT_TRUE(site_is_value(c->memory[1], 64, 0)); // the first chain was not started
    EXPECT_MEMEQ(c->memory[1] + 256, c->memory[0] + 256, 64);
    EXPECT_MEMEQ(c->memory[1] + 512, c->memory[0] + 512, 32);
    EXPECT_EQ(tcaSetDMADescInt_Memcpy(second, &slot, other, 1024, own, 0, 64, 0, 0, 0),
              tcaSuccess); // set anew: shorter
    EXPECT_EQ(tcaSetDMAChainInt(0, second), tcaSuccess);
    expect_started(0);
    EXPECT_EQ(cluster_copy(other, 16384, own, 0, 16, 0), tcaSuccess);
    EXPECT_MEMEQ(c->memory[1] + 1024, c->memory[0], 64);
    EXPECT_EQ(tcaDMADescInt_Init(), tcaSuccess);
    EXPECT_EQ(tcaSetDMAChainInt(0, second), tcaErrorNotSet);
    c->flag = true;
}

TEST(TcaTable, InTheBoardsMemoryHasAChainFromAnyEntryOn)
{
    run_pair(internal_chains);
}

static void entry_behind(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    const tcaHandle *own = &c->handles[0], *other = &c->handles[1];
    int next = 0, table = -1;
    cluster_memory(c, board, 2);
    EXPECT_EQ(tcaCreateDMADesc(&table, 3), tcaSuccess);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, next, &next, other, 0, own, 0, 64, tcaDMAContinue, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, next, &next, other, 64, own, 64, 64, 0, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaSetDMAChain(0, table), tcaSuccess);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, next, &next, other, 128, own, 128, 64, 0, 0, 0), tcaSuccess);
    expect_started(0);
    c->flag = true;
}

TEST(TcaTable, KeepsAChainOnItsChannelWhenTheEntryBehindItIsSet)
{
    run_pair(entry_behind);
}

static void refusals(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    const tcaHandle *own = &c->handles[0], *other = &c->handles[1];
    int next, table;
    cluster_memory(c, board, 2);
    EXPECT_EQ(tcaCreateDMADesc(NULL, 4), tcaErrorArgument);
    EXPECT_EQ(tcaCreateDMADesc(&table, 0), tcaErrorArgument);
    EXPECT_EQ(tcaCreateDMADesc(&table, 1 << 30), tcaErrorArgument);
    EXPECT_EQ(tcaCreateDMADesc(&table, 2), tcaSuccess);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table + 1, 0, &next, other, 0, own, 0, 64, 0, 0, 0), tcaErrorArgument);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(tcaTables, 0, &next, other, 0, own, 0, 64, 0, 0, 0), tcaErrorArgument);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(-1, 0, &next, other, 0, own, 0, 64, 0, 0, 0), tcaErrorArgument);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, 2, &next, other, 0, own, 0, 64, 0, 0, 0), tcaErrorArgument);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, -1, &next, other, 0, own, 0, 64, 0, 0, 0), tcaErrorArgument);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, 0, NULL, other, 0, own, 0, 64, 0, 0, 0), tcaErrorArgument);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, 0, &next, own, 0, other, 0, 64, 0, 0, 0), tcaErrorNotLocal);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, 0, &next, other, 0, own, 0, 63, 0, 0, 0), tcaErrorSize);
    EXPECT_EQ(tcaSetDMAChain(0, table), tcaErrorNotSet);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, 0, &next, other, 0, own, 0, 64, tcaDMAContinue, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaSetDMAChain(0, table), tcaErrorNotSet);
    EXPECT_CONTAINS(tcaLastMessage(), "goes on to descriptor 1, which is not set");
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, 1, &next, other, 0, own, 0, 64, tcaDMAContinue, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaSetDMAChain(0, table), tcaErrorNotSet); // the chain continues to the end of the table
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, 1, &next, other, 0, own, 0, CLUSTER_BYTES, 0, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaSetDMAChain(4, table), tcaErrorChannel);
    EXPECT_EQ(tcaSetDMAChain(0, table), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(0), tcaSuccess);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, 0, &next, other, 0, own, 0, 64, 0, 0, 0), tcaErrorBusy);
    EXPECT_EQ(tcaWaitDMAC(0), tcaSuccess);
    EXPECT_EQ(tcaSetDMADesc_Memcpy(table, 0, &next, other, 0, own, 0, 64, 0, 0, 0), tcaSuccess);
    for (int i = 1; i < tcaTables; i++) {
        EXPECT_EQ(tcaCreateDMADesc(&table, 1), tcaSuccess);
    }
    EXPECT_EQ(tcaCreateDMADesc(&table, 1), tcaErrorNoMemory);
    c->flag = true;
}

TEST(TcaTable, RefusesEntriesAndChainsThatAreNone)
{
    run_pair(refusals);
}
