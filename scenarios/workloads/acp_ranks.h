// Shared by programs on ACP: a rank with registered memory, the others' global addresses, its checks. Private to the
// room.
#pragma once

#include "scenarios/workloads/region.h"
#include "scenarios/workloads/workload.h"
#include "verbs-shim/acp/acp.h"

struct acp_ranks {
    struct workload *workload;
    const char *program;
    const struct backend *backend;
    struct region source, target; // registered
    acp_atkey_t source_key, target_key;
    acp_ga_t sources[WORKLOAD_RANKS_MAX], targets[WORKLOAD_RANKS_MAX]; // of all ranks
    uint64_t bytes;
};

// Initialises the library for as many ranks as the workload has. capacity: of each region.
int acp_ranks_begin(struct acp_ranks *ranks, struct workload *workload, const char *program, size_t capacity);
// Only after a successful point; otherwise everything is abandoned.
int acp_ranks_end(struct acp_ranks *ranks);
// A barrier outside the fabric and outside measured time.
void acp_ranks_meet(struct acp_ranks *ranks);
uint64_t acp_ranks_now_ps(const struct acp_ranks *ranks);
int acp_ranks_fail(const struct acp_ranks *ranks, const char *what);
