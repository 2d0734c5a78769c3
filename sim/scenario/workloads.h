// The nodes on which each workload of workloads.def runs, and the keys of a run that it uses.
#pragma once

#include <stdbool.h>

#include "sim/scenario/scenario.h"

enum scn_workload_nodes {
    SCN_NODES_NODE,     // `node`
    SCN_NODES_ANY_NODE, // the same, with or without a board; any number of bytes
    SCN_NODES_PAIR,     // `node` and `peer`
    SCN_NODES_WAY,      // `node`, the first node on the route to `peer`, and `peer`
    SCN_NODES_ALL,      // every node of the scenario; each needs a board, and cables must join them
    SCN_NODES_HYBRID,   // the same, of several sub-clusters that InfiniBand joins
    SCN_NODES_VERBS,    // two processes on two nodes, which may be the same and need no boards; two more for `beside:`
    SCN_NODES_ACP       // the same, and further ranks on the other nodes in turn
};

enum scn_workload_method { SCN_BY_ANY, SCN_BY_DMA, SCN_BY_PIO, SCN_BY_REGISTER, SCN_BY_CHAIN, SCN_BY_CUDA };

enum scn_workload_key {
    SCN_USES_CHANNEL = 1,     // other workloads choose their channel
    SCN_USES_WARMUP = 2,      // other workloads measure every repetition
    SCN_USES_DESCRIPTORS = 4, // other workloads build their chains themselves
    SCN_USES_NOTIFY = 8,      // on libtca
    SCN_USES_COLUMNS = 16,
    SCN_USES_RANKS = 32,       // on ACP
    SCN_USES_GPUS = 64,        // `from:` and `to:` may be memory of a GPU
    SCN_USES_SERVICE = 128,    // no key: nodes serve remote reads
    SCN_USES_COUNTS = 256,     // no key: its programs count (scenarios/workloads/counts.def)
    SCN_USES_BLOCKS = 512,     // of a grid
    SCN_USES_ALGORITHM = 1024, // of an all-reduce
    SCN_USES_BOARD_DMA = SCN_USES_CHANNEL | SCN_USES_WARMUP | SCN_USES_DESCRIPTORS,
    SCN_USES_LIBTCA = SCN_USES_WARMUP | SCN_USES_NOTIFY
};

struct scn_workload_row {
    const char *name;
    enum scn_workload_nodes nodes;
    enum scn_workload_method method;
    unsigned keys; // enum scn_workload_key
};

const struct scn_workload_row *scn_workload_row(enum scn_workload workload);
bool scn_workload_uses(enum scn_workload workload, unsigned keys);
bool scn_workload_has_peer(enum scn_workload workload);
bool scn_workload_is_verbs(enum scn_workload workload);    // on libibverbs or ACP
bool scn_workload_is_hybrid(enum scn_workload workload);   // on boards and InfiniBand
bool scn_workload_needs_board(enum scn_workload workload); // on each of its nodes

// The columns of the block of a hybrid-halo's grid that a sub-cluster of so many nodes has.
uint32_t scn_block_columns(const struct scn_run *run, uint32_t nodes);
