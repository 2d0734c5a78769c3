// Programs that never end: the message names them, and what they hold is freed.
#include "tests/support/site.h"

static void wait_for_nobody(void *arg, peach2_handle_t *board)
{
    (void)arg;
    const struct backend *backend = peach2_backend(board);
    struct backend_buffer word = site_pinned(board, 8);
    (void)backend->ops->wait_word(backend->ctx, word.address, UINT64_MAX, 7, 0);
    FAIL("somebody wrote the word");
}

static void expect_stuck(struct site *site, plat_program_fn program, const char *text)
{
    char waiters[1024];
    site_build(site);
    ASSERT_NOT_NULL(site->machine);
    plat_machine_set_program(site->machine, 1, program, site);
    EXPECT_EQ(plat_machine_run(site->machine), SIM_RUN_STUCK);
    EXPECT_EQ(sim_describe_waiters(plat_machine_sim(site->machine), waiters, sizeof waiters), 1);
    EXPECT_CONTAINS(waiters, text);
    site_fini(site);
}

TEST(Stuck, NamesTheThreadTheWordAndTheValue)
{
    struct site site;
    site_init(&site, 2);
    expect_stuck(&site, wait_for_nobody, "node1 waits for node1.memory: word 0x100000 to become 0x7");
}

static void wait_with_a_chain(void *arg, peach2_handle_t *board)
{
    const struct peach2_transfer transfer = {.source = 0x100000, .destination = 0x101000, .bytes = 64};
    peach2_chain_t *chain;
    EXPECT_EQ(peach2_chain_create(board, PEACH2_CHAIN_HOST, 0, &transfer, 1, &chain), 0);
    wait_for_nobody(arg, board);
}

TEST(Stuck, FreesWhatAnAbandonedProgramHolds)
{
    struct site site;
    site_init(&site, 2);
    expect_stuck(&site, wait_with_a_chain, "node1 waits for node1.memory: word 0x101000 to become 0x7");
}

static void end_early(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    (void)board;
    plat_machine_fail(site->machine, "%s", "enough");
    plat_machine_fail(site->machine, "%s", "too late");
}

TEST(Stuck, DoesNotHappenWhenAProgramFailsWhileAnotherWaits)
{
    struct site site;
    site_init(&site, 2);
    site_build(&site);
    ASSERT_NOT_NULL(site.machine);
    plat_machine_set_program(site.machine, 0, end_early, &site);
    plat_machine_set_program(site.machine, 1, wait_for_nobody, &site);
    EXPECT_EQ(plat_machine_run(site.machine), SIM_RUN_STOPPED);
    EXPECT_STREQ(plat_machine_failure(site.machine), "enough");
    site_fini(&site);
}
