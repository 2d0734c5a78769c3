// Refusals when a descriptor is filled.
#include <string.h>

#include "tests/support/cluster.h"
#include "verbs-shim/libtca/board_memory.h"

static int set(tcaDesc *desc, const struct cluster *c, size_t to, size_t from, size_t size)
{
    return tcaDescSetMemcpy(desc, &c->handles[1], to, &c->handles[0], from, size, tcaDMANotify, 0, 1);
}

static void finish(struct cluster *cluster, tcaDesc *desc)
{
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    cluster->flag = true;
}

static void run_pair(plat_program_fn program)
{
    struct cluster cluster;
    cluster_init(&cluster, 2);
    cluster_run(&cluster, program, cluster_target);
    cluster_fini(&cluster);
}

static void sizes(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(set(desc, c, 0, 0, 0), tcaErrorSize);
    EXPECT_EQ(set(desc, c, 0, 0, 6), tcaErrorSize);
    EXPECT_EQ(set(desc, c, 2, 0, 8), tcaErrorAlignment);
    EXPECT_EQ(set(desc, c, 0, 2, 8), tcaErrorAlignment);
    EXPECT_EQ(set(desc, c, 4, 0, 8), tcaErrorAlignment);
    EXPECT_CONTAINS(tcaLastMessage(), "low 4 address bits");
    EXPECT_EQ(set(desc, c, 0, 0, CLUSTER_BYTES + 4), tcaErrorRange);
    EXPECT_EQ(set(desc, c, CLUSTER_BYTES, 0, 4), tcaErrorRange);
    EXPECT_EQ(set(desc, c, 0, CLUSTER_BYTES - 4, 8), tcaErrorRange);
    EXPECT_EQ(set(desc, c, SIZE_MAX - 15, 0, 32), tcaErrorRange);
    EXPECT_EQ(set(desc, c, 0, 0, SIZE_MAX - 3), tcaErrorRange);
    EXPECT_EQ(tcaDescSet(desc, 0), tcaErrorNotSet); // no copy was added
    finish(c, desc);
}

TEST(TcaDesc, RefusesSizesAndPlacesThatTheBoardCannotCopy)
{
    run_pair(sizes);
}

static int set_rows(tcaDesc *desc, const struct cluster *c, size_t to_pitch, size_t from_pitch, size_t width,
                    size_t count)
{
    return tcaDescSetMemcpy2D(desc, &c->handles[1], 0, to_pitch, &c->handles[0], 0, from_pitch, width, count,
                              tcaDMANotify, 0, 1);
}

static void rows(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(set_rows(desc, c, 64, 64, 0, 4), tcaErrorSize);
    EXPECT_EQ(set_rows(desc, c, 64, 64, 16, 0), tcaErrorSize);
    EXPECT_EQ(set_rows(desc, c, 62, 64, 16, 4), tcaErrorSize);
    EXPECT_EQ(set_rows(desc, c, 8, 64, 16, 4), tcaErrorSize); // rows that overlap
    EXPECT_EQ(set_rows(desc, c, 64, 68, 16, 4), tcaErrorAlignment);
    EXPECT_EQ(set_rows(desc, c, 64, CLUSTER_BYTES, 16, 2), tcaErrorRange);
    EXPECT_EQ(set_rows(desc, c, SIZE_MAX / 2 - 15, 64, 16, 8), tcaErrorRange);
    EXPECT_EQ(set_rows(desc, c, CLUSTER_BYTES - 16, 64, 16, 2), tcaSuccess);
    EXPECT_EQ(set_rows(desc, c, 64, 68, 16, 1), tcaSuccess); // there is no second row
    finish(c, desc);
}

TEST(TcaDesc, RefusesRowsThatTheBoardCannotCopy)
{
    run_pair(rows);
}

static void handles(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    tcaHandle bad = c->handles[1];
    const tcaHandle *own = &c->handles[0], *other = &c->handles[1];
    EXPECT_EQ(tcaDescSetMemcpy(desc, NULL, 0, own, 0, 8, 0, 0, 0), tcaErrorArgument);
    EXPECT_EQ(tcaDescSetMemcpy(desc, other, 0, NULL, 0, 8, 0, 0, 0), tcaErrorArgument);
    bad.size *= 2;
    EXPECT_EQ(tcaDescSetMemcpy(desc, &bad, 0, own, 0, 8, 0, 0, 0), tcaErrorHandle);
    bad = *other;
    bad.bytes -= 8;
    EXPECT_EQ(tcaDescSetMemcpy(desc, &bad, 0, own, 0, 8, 0, 0, 0), tcaErrorHandle);
    EXPECT_CONTAINS(tcaLastMessage(), "same library");
    memset(&bad, 0xa5, sizeof bad);
    EXPECT_EQ(tcaDescSetMemcpy(desc, &bad, 0, own, 0, 8, 0, 0, 0), tcaErrorHandle);
    EXPECT_EQ(tcaDescSetMemcpy(desc, own, 0, other, 0, 8, 0, 0, 0), tcaErrorNotLocal);
    EXPECT_CONTAINS(tcaLastMessage(), "node 1");
    finish(c, desc);
}

TEST(TcaDesc, RefusesGarbageAndSourcesOfOtherNodes)
{
    run_pair(handles);
}

static void flags(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    const tcaHandle *own = &c->handles[0], *other = &c->handles[1];
    EXPECT_EQ(tcaDescSetMemcpy(desc, other, 0, own, 0, 8, 1 << 20, 0, 0), tcaErrorArgument);
    EXPECT_EQ(tcaDescSetMemcpy(desc, other, 0, own, 0, 8, tcaDMANotify, 32, 0), tcaErrorSlot);
    EXPECT_EQ(tcaDescSetMemcpy(desc, other, 0, own, 0, 8, tcaDMANotifySelf, -1, 0), tcaErrorSlot);
    EXPECT_EQ(tcaDescSetMemcpy(desc, other, 0, own, 0, 8, 0, -1, 0), tcaSuccess); // no notification, no slot
    EXPECT_EQ(tcaDescSetMemcpy(desc, other, 0, own, 0, 8, tcaDMAUseInternal, 0, 0), tcaErrorArgument);
    EXPECT_EQ(tcaDescSetMemcpy(NULL, other, 0, own, 0, 8, 0, 0, 0), tcaErrorArgument);
    finish(c, desc);
    EXPECT_EQ(tcaDescSetMemcpy(desc, other, 0, own, 0, 8, 0, 0, 0), tcaErrorArgument); // freed
    EXPECT_EQ(tcaDescFree(desc), tcaErrorArgument);
    EXPECT_EQ(tcaDescFree(NULL), tcaErrorArgument);
}

TEST(TcaDesc, RefusesUnknownFlagsSlotsAndDescriptors)
{
    run_pair(flags);
}

static void freed(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(set(desc, c, 0, 0, 64), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 0), tcaSuccess);
    EXPECT_EQ(tcaFree(c->memory[0], tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(0), tcaErrorFreed);
    EXPECT_EQ(tcaDescSet(desc, 1), tcaErrorFreed);
    EXPECT_EQ(set(desc, c, 0, 0, 64), tcaErrorFreed);
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[0], 0, 1), tcaErrorFreed);
    void *again = NULL; // the same address, but other memory
    EXPECT_EQ(tcaMalloc(&again, CLUSTER_BYTES, tcaMemoryCPU), tcaSuccess);
    EXPECT_EQ(again, (void *)c->memory[0]);
    EXPECT_EQ(tcaStartDMADesc(0), tcaErrorFreed);
    EXPECT_CONTAINS(tcaLastMessage(), "new handle");
    finish(c, desc);
}

TEST(TcaDesc, RefusesMemoryThatWasFreed)
{
    run_pair(freed);
}

static void board_memory(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew(), *second = tcaDescNew();
    for (unsigned i = 0; i < 600; i++) {
        EXPECT_EQ(tcaDescSetMemcpy(desc, &c->handles[1], 0, &c->handles[0], 0, 4, tcaDMAUseInternal, 0, 0), tcaSuccess);
        EXPECT_EQ(tcaDescSetMemcpy(second, &c->handles[1], 0, &c->handles[0], 0, 4, tcaDMAUseInternal, 0, 0),
                  tcaSuccess);
    }
    EXPECT_EQ(tcaDescSet(desc, 0), tcaSuccess);
    EXPECT_EQ(tcaDescSet(second, 1), tcaErrorBoardMemory);
    EXPECT_CONTAINS(tcaLastMessage(), "600 descriptors");
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    EXPECT_EQ(tcaDescSet(second, 1), tcaSuccess);
    finish(c, second);
}

// More chains than fit in the board's memory at the same time, as in programs with a descriptor for each peer.
static void many_chains(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    tcaDesc *descs[5];
    cluster_memory(c, board, 2);
    site_fill(c->memory[0], 5 * 1024, 1);
    for (unsigned i = 0; i < 5; i++) {
        descs[i] = tcaDescNew();
        for (unsigned j = 0; j < 256; j++) {
            EXPECT_EQ(tcaDescSetMemcpy(descs[i], &c->handles[1], i * 1024 + j * 4, &c->handles[0], i * 1024 + j * 4, 4,
                                       tcaDMAUseInternal | tcaDMAPipeline, 0, 0),
                      tcaSuccess);
        }
    }
    for (unsigned round = 0; round < 10; round++) {
        EXPECT_EQ(tcaDescSet(descs[round % 5], 0), tcaSuccess);
        EXPECT_EQ(tcaStartDMADesc(0), tcaSuccess);
        EXPECT_EQ(tcaWaitDMAC(0), tcaSuccess);
    }
    EXPECT_EQ(cluster_copy(&c->handles[1], 8192, &c->handles[0], 0, 64, tcaDMANotify), tcaSuccess);
    cluster_await(board, &c->flag);
}

static void many_chains_target(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    EXPECT_EQ(tcaWaitDMARecvDesc(&c->handles[0], 0, 1), tcaSuccess);
    EXPECT_TRUE(site_is_filled(c->memory[1], 5 * 1024, 1));
    c->flag = true;
}

TEST(TcaDesc, GivesUpItsPlaceInTheBoardsMemoryWhereItIsSetOnNoChannel)
{
    struct cluster cluster;
    cluster_init(&cluster, 2);
    cluster_run(&cluster, many_chains, many_chains_target);
    cluster_fini(&cluster);
}

TEST(TcaDesc, TakesTheBoardsMemoryAndGivesItBack)
{
    run_pair(board_memory);
}

static void longest_chain(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    const tcaHandle *own = &c->handles[0];
    const int flags = tcaDMAUseInternal | tcaDMAPipeline;
    cluster_memory(c, board, 1);
    site_fill(c->memory[0], TCA_BOARD_SLOTS * 4, 1);
    tcaDesc *desc = tcaDescNew();
    for (size_t i = 0; i < TCA_BOARD_SLOTS; i++) {
        EXPECT_EQ(tcaDescSetMemcpy(desc, own, 32768 + i * 4, own, i * 4, 4, flags, 0, 0), tcaSuccess);
    }
    EXPECT_EQ(tcaDescSet(desc, 0), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(0), tcaSuccess);
    EXPECT_EQ(tcaWaitDMAC(0), tcaSuccess);
    EXPECT_EQ(cluster_copy(own, 16384, own, 0, 4, tcaDMANotify), tcaSuccess); // its notification is behind all of them
    EXPECT_EQ(tcaWaitDMARecvDesc(own, 0, 1), tcaSuccess);
    EXPECT_TRUE(site_is_filled(c->memory[0] + 32768, TCA_BOARD_SLOTS * 4, 1));
    EXPECT_EQ(tcaDescSetMemcpy(desc, own, 16384, own, 0, 4, flags, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 0), tcaErrorBoardMemory);
    EXPECT_CONTAINS(tcaLastMessage(), "it has room for 880"); // of 1024, 16 and those of 16 x 32 slots of 8 B are taken
}

TEST(TcaDesc, HasRoomForAChainAsLongAsTheBoardsMemoryForChains)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    cluster_run(&cluster, longest_chain, NULL);
    cluster_fini(&cluster);
}
