// Mistakes of programs: each is refused with a message that says what to do, and the board is not accessed.
#include <string.h>

#include "tests/support/cluster.h"

static uint64_t board_accesses(const struct cluster *c)
{
    return site_counter(&c->site, "node0.core", "uc_stores") + site_counter(&c->site, "node0.core", "uc_loads") +
           site_counter(&c->site, "node0.core", "wc_writes");
}

// Expects a refusal with this code and this advice, and no access to the board.
static void expect_refusal(const struct cluster *c, uint64_t before, int code, enum tcaError expected,
                           const char *advice)
{
    EXPECT_EQ(code, expected);
    EXPECT_CONTAINS(tcaLastMessage(), advice);
    EXPECT_EQ(board_accesses(c), before);
}

static void run_pair(plat_program_fn program)
{
    struct cluster cluster;
    cluster_init(&cluster, 2);
    cluster_run(&cluster, program, cluster_target);
    cluster_fini(&cluster);
}

static void bad_handles(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    const tcaHandle *own = &c->handles[0], *other = &c->handles[1];
    tcaHandle small = *other, grown = *other;
    small.bytes -= 8; // from a library with another struct
    grown.size *= 2;
    uint64_t before = board_accesses(c);
    expect_refusal(c, before, tcaDescSetMemcpy(desc, &small, 0, own, 0, 8, 0, 0, 0), tcaErrorHandle, "same library");
    expect_refusal(c, before, tcaDescSetMemcpy(desc, &grown, 0, own, 0, 8, 0, 0, 0), tcaErrorHandle, "unchanged");
    expect_refusal(c, before, tcaDescSetMemcpy(desc, own, 0, other, 0, 8, 0, 0, 0), tcaErrorNotLocal, "own");
    expect_refusal(c, before, tcaWaitDMARecvDesc(&small, 0, 1), tcaErrorHandle, "same library");
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    c->flag = true;
}

TEST(TcaMisuse, OfHandlesIsRefusedWithAdvice)
{
    run_pair(bad_handles);
}

static void bad_numbers(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    const tcaHandle *own = &c->handles[0], *other = &c->handles[1];
    uint64_t before = board_accesses(c);
    expect_refusal(c, before, tcaDescSetMemcpy(desc, other, 0, own, 0, 8, tcaDMANotify, 32, 1), tcaErrorSlot,
                   "slot 32: they are 0 to 31");
    expect_refusal(c, before, tcaWaitDMARecvDesc(own, -1, 1), tcaErrorSlot, "slot -1: they are 0 to 31");
    expect_refusal(c, before, tcaDescSet(desc, 4), tcaErrorChannel, "channel 4: they are 0 to 3");
    expect_refusal(c, before, tcaStartDMADesc(-1), tcaErrorChannel, "channel -1: they are 0 to 3");
    expect_refusal(c, before, tcaWaitDMAC(99), tcaErrorChannel, "channel 99: they are 0 to 3");
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    c->flag = true;
}

TEST(TcaMisuse, OfSlotsAndChannelsIsRefusedWithAdvice)
{
    run_pair(bad_numbers);
}

static void bad_moments(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    cluster_memory(c, board, 2);
    tcaDesc *desc = tcaDescNew();
    const tcaHandle *own = &c->handles[0], *other = &c->handles[1];
    EXPECT_EQ(tcaDescSetMemcpy(desc, other, 0, own, 0, CLUSTER_BYTES, 0, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 0), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(0), tcaSuccess);
    uint64_t before = board_accesses(c);
    expect_refusal(c, before, tcaDescSetMemcpy(desc, other, 0, own, 0, 8, 0, 0, 0), tcaErrorBusy, "tcaWaitDMAC");
    expect_refusal(c, before, tcaFree(c->memory[0], tcaMemoryCPU), tcaErrorBusy, "tcaWaitDMAC");
    EXPECT_EQ(tcaWaitDMAC(0), tcaSuccess);
    EXPECT_EQ(tcaFree(c->memory[0], tcaMemoryCPU), tcaSuccess);
    before = board_accesses(c);
    expect_refusal(c, before, tcaStartDMADesc(0), tcaErrorFreed, "new handle");
    expect_refusal(c, before, tcaDescSet(desc, 0), tcaErrorFreed, "new handle");
    expect_refusal(c, before, tcaWaitDMARecvDesc(own, 0, 1), tcaErrorFreed, "new handle");
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    c->flag = true;
}

TEST(TcaMisuse, OfWhatRunsOrWasFreedIsRefusedWithAdvice)
{
    run_pair(bad_moments);
}
