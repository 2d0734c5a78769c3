// Children of the program: how each one's end becomes its result.
#include "sim/cli/pool.h"

#include <signal.h>

#include "tests/shim/test.h"

enum { CHILDREN = 3 };

static bool prepare(void *ctx, size_t i, enum cli_exit *result)
{
    (void)ctx;
    (void)i;
    (void)result;
    return true;
}

// The second is killed; the third ends with a status of its own.
static enum cli_exit run(void *ctx, size_t i)
{
    (void)ctx;
    if (i == 1) {
        (void)raise(SIGKILL);
    }
    return i == 2 ? CLI_EXIT_STUCK : CLI_EXIT_OK;
}

static void forked(void *ctx, size_t i)
{
    (void)ctx;
    (void)i;
}

static void ended(void *ctx, size_t i, enum cli_exit result)
{
    enum cli_exit *results = ctx;
    results[i] = result;
}

static const char *name(void *ctx, size_t i)
{
    (void)ctx;
    (void)i;
    return "child";
}

TEST(Pool, AChildThatASignalEndsHasFailed)
{
    static const struct cli_pool_ops ops = {
        .prepare = prepare, .run = run, .forked = forked, .ended = ended, .name = name};
    enum cli_exit results[CHILDREN] = {CLI_EXIT_EXPECT, CLI_EXIT_EXPECT, CLI_EXIT_EXPECT};
    struct cli_progress progress;
    const struct cli_pool pool = {&ops, results, CHILDREN, 1, "children", &progress};
    cli_progress_init(&progress, false);
    ASSERT_TRUE(cli_pool_run(&pool));
    EXPECT_EQ(results[0], CLI_EXIT_OK);
    EXPECT_EQ(results[1], CLI_EXIT_INPUT);
    EXPECT_EQ(results[2], CLI_EXIT_STUCK);
}
