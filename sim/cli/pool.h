// Children of this process side by side, each forked, started in their order, at most so many at once. What comes of
// them does not depend on who ends first, as the owner looks at their results in that order.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/cli/job.h"
#include "sim/cli/progress.h"

struct cli_pool_ops {
    // In the parent, before the fork, and what it needs for it. false: there is nothing to run, and `result` says why:
    // CLI_EXIT_OK for what is done already.
    bool (*prepare)(void *ctx, size_t i, enum cli_exit *result);
    enum cli_exit (*run)(void *ctx, size_t i);                // in the child
    void (*forked)(void *ctx, size_t i);                      // in the parent: what was prepared is no longer needed
    void (*ended)(void *ctx, size_t i, enum cli_exit result); // in the parent, in the order in which they end
    const char *(*name)(void *ctx, size_t i);                 // for errors, until the next call
};

struct cli_pool {
    const struct cli_pool_ops *ops;
    void *ctx;
    size_t count;
    uint32_t limit;   // at least 1
    const char *what; // they are, in the plural, for the progress bar
    struct cli_progress *progress;
};

// Until all have ended. Signals of children, and processes that cannot be started, are told and count as
// CLI_EXIT_INPUT. false: no memory, and nothing was started.
bool cli_pool_run(const struct cli_pool *pool);
