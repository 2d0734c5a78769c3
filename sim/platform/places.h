// The ranks of a program on several sub-clusters: where each one is, and messages between those of one sub-cluster.
// Private to the room.
#pragma once

#include "scenarios/workloads/workload.h"
#include "sim/platform/mailbox.h"
#include "sim/scenario/routes.h"

struct plat_places {
    struct workload_places workload;
    struct plat_mailbox *mailboxes; // of each sub-cluster
    uint32_t *sub_cluster_of, *number_of, *rank_at;
};

// nodes: of each rank; there is one on each node. NULL: no memory.
struct plat_places *plat_places_create(sim_t *sim, const struct scn_routes *routes, const uint32_t *nodes);
void plat_places_destroy(struct plat_places *places);
