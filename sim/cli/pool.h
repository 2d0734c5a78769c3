// Parallel children of this process: each is forked, in their order, at most `limit` at once. Results do not depend on
// the order in which they end, because the owner collects them in the order of the children.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/cli/job.h"
#include "sim/cli/progress.h"

struct cli_pool_ops {
    // Optional. In the parent, before the fork: prepares what the child needs. false: there is nothing to run, and
    // `result` is its result, CLI_EXIT_OK if it is already done.
    bool (*prepare)(void *ctx, size_t i, enum cli_exit *result);
    enum cli_exit (*run)(void *ctx, size_t i); // in the child
    void (*forked)(void *ctx, size_t i);       // optional; in the parent, after the fork: releases it
    // In the parent, both optional: as each child ends; and in the order of the children, when all before have ended.
    void (*ended)(void *ctx, size_t i, enum cli_exit result);
    void (*in_order)(void *ctx, size_t i, enum cli_exit result);
    const char *(*name)(void *ctx, size_t i);  // for errors, until the next call
    unsigned (*permille)(void *ctx, size_t i); // optional: how much of a running child is done
    bool (*unwanted)(void *ctx, size_t i);     // optional: a running child is ended, without a message
};

struct cli_pool {
    const struct cli_pool_ops *ops;
    void *ctx;
    size_t count;
    uint32_t limit;   // at least 1
    const char *what; // a plural noun for the progress bar
    struct cli_progress *progress;
};

// The number of parallel jobs that --jobs gives; NULL: the number of processors. false: reported.
bool cli_jobs_read(const char *text, uint32_t *jobs_out);

// Returns after all have ended. A child that was killed by a signal or cannot be started is reported and counts as
// CLI_EXIT_INPUT. false: no memory, and nothing was started.
bool cli_pool_run(const struct cli_pool *pool);
