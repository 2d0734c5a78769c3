// What the library asks of its environment and tells it: the claim on the board, and the journal.
#include <errno.h>

#include "tests/support/cluster.h"
#include "verbs-shim/libtca/board_memory.h"

enum { RECORDS = 16 };

// The program's own backend, except for what is observed here. Calls of a backend get the backend's context, so there
// is one of these; only the program of node 0 uses it.
static struct {
    struct backend inner;
    struct backend_ops ops;
    unsigned claims, releases;
    unsigned count;
    struct journal_record records[RECORDS];
} observed;

static int board_claim(void *ctx)
{
    (void)ctx;
    observed.claims++;
    return 0;
}

static void board_release(void *ctx)
{
    (void)ctx;
    observed.releases++;
}

static int no_memory(void *ctx, size_t bytes, struct backend_buffer *buffer_out)
{
    (void)ctx, (void)bytes, (void)buffer_out;
    return -ENOMEM;
}

static bool journal_all(void *ctx)
{
    (void)ctx;
    return true;
}

static uint64_t journal_now_ps(void *ctx)
{
    (void)ctx;
    return 0;
}

static void journal_note(void *ctx, const struct journal_record *record)
{
    (void)ctx;
    if (EXPECT_LT(observed.count, RECORDS)) {
        observed.records[observed.count++] = *record;
    }
}

static const struct backend_journal_ops journal = {.all = journal_all, .now_ps = journal_now_ps, .note = journal_note};

static void observe(void)
{
    struct backend_process *process = backend_current();
    observed.inner = process->backend;
    observed.ops = *process->backend.ops;
    observed.ops.journal = &journal;
    observed.ops.board_claim = board_claim;
    observed.ops.board_release = board_release;
    observed.claims = observed.releases = observed.count = 0;
    process->backend.ops = &observed.ops;
}

static void observe_end(void)
{
    backend_current()->backend = observed.inner;
}

static void run_alone(plat_program_fn program)
{
    struct cluster cluster;
    cluster_init(&cluster, 1);
    cluster_run(&cluster, program, NULL);
    cluster_fini(&cluster);
}

// --- the board ------------------------------------------------------------------------------------------------------

static void fails_to_begin(void *arg, peach2_handle_t *board)
{
    (void)arg, (void)board;
    observe();
    observed.ops.alloc_pinned = no_memory;
    EXPECT_EQ(tcaInit(), tcaErrorNoMemory);
    EXPECT_EQ(observed.claims, 1);
    EXPECT_EQ(observed.releases, 1);
    observe_end();
}

TEST(TcaInit, GivesTheBoardBackWhereItFails)
{
    run_alone(fails_to_begin);
}

// --- the journal ----------------------------------------------------------------------------------------------------

static void starts_rows(void *arg, peach2_handle_t *board)
{
    struct cluster *c = arg;
    observe();
    cluster_memory(c, board, 1);
    const tcaHandle *own = &c->handles[0];
    tcaDesc *desc = tcaDescNew();
    EXPECT_EQ(tcaDescSetMemcpy2D(desc, own, 0, 128, own, 32768, 128, 64, 16, 0, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaDescSetMemcpy(desc, own, 4096, own, 0, 256, 0, 0, 0), tcaSuccess);
    EXPECT_EQ(tcaDescSet(desc, 2), tcaSuccess);
    EXPECT_EQ(tcaStartDMADesc(2), tcaSuccess);
    ASSERT_EQ(observed.count, 1);
    EXPECT_EQ(observed.records[0].call, JOURNAL_TCA_START);
    EXPECT_EQ(observed.records[0].dma.channel, 2);
    EXPECT_EQ(observed.records[0].dma.bytes, 64 * 16 + 256);
    EXPECT_EQ(tcaWaitDMAC(2), tcaSuccess);
    EXPECT_EQ(tcaDescFree(desc), tcaSuccess);
    observe_end();
}

TEST(TcaJournal, HasTheBytesOfAllRowsOfADma)
{
    run_alone(starts_rows);
}

static void is_refused(void *arg, peach2_handle_t *board)
{
    (void)arg, (void)board;
    observe();
    EXPECT_EQ(tcaInit(), tcaSuccess);
    tca_note_suppress(true); // the caller is a library
    EXPECT_EQ(tcaWaitDMAC(4), tcaErrorChannel);
    EXPECT_EQ(observed.count, 0);
    tca_note_suppress(false);
    EXPECT_EQ(tcaWaitDMAC(5), tcaErrorChannel);
    ASSERT_EQ(observed.count, 1);
    EXPECT_EQ(observed.records[0].call, JOURNAL_TCA_REFUSED);
    EXPECT_CONTAINS(observed.records[0].refusal.sentence, "tcaWaitDMAC: channel 5");
    observe_end();
}

TEST(TcaJournal, HasTheRefusalsOfTheProgramsCallsAndNotOfALibrarys)
{
    run_alone(is_refused);
}
