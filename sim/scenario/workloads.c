#include "sim/scenario/workloads.h"

// The names that rows of workloads.def use.
enum {
    CHANNEL = SCN_USES_CHANNEL,
    WARMUP = SCN_USES_WARMUP,
    DESCRIPTORS = SCN_USES_DESCRIPTORS,
    NOTIFY = SCN_USES_NOTIFY,
    COLUMNS = SCN_USES_COLUMNS,
    RANKS = SCN_USES_RANKS,
    GPUS = SCN_USES_GPUS,
    SERVICE = SCN_USES_SERVICE,
    COUNTS = SCN_USES_COUNTS,
    BLOCKS = SCN_USES_BLOCKS,
    ALGORITHM = SCN_USES_ALGORITHM,
    BOARD_DMA = SCN_USES_BOARD_DMA,
    LIBTCA = SCN_USES_LIBTCA
};

static const struct scn_workload_row rows[] = {
#define WORKLOAD(id, function, name, nodes, method, keys) {name, SCN_NODES_##nodes, SCN_BY_##method, keys},
#include "sim/scenario/workloads.def"
#undef WORKLOAD
};

const struct scn_workload_row *scn_workload_row(enum scn_workload workload)
{
    return &rows[workload];
}

const char *scn_workload_name(enum scn_workload workload)
{
    return rows[workload].name;
}

bool scn_workload_uses(enum scn_workload workload, unsigned keys)
{
    return (rows[workload].keys & keys) != 0;
}

bool scn_is_acp(enum scn_workload workload)
{
    return rows[workload].nodes == SCN_NODES_ACP;
}

bool scn_workload_is_verbs(enum scn_workload workload)
{
    return rows[workload].nodes == SCN_NODES_VERBS || rows[workload].nodes == SCN_NODES_ACP;
}

bool scn_workload_has_peer(enum scn_workload workload)
{
    enum scn_workload_nodes nodes = rows[workload].nodes;
    return nodes == SCN_NODES_PAIR || nodes == SCN_NODES_WAY || scn_workload_is_verbs(workload);
}

bool scn_workload_is_hybrid(enum scn_workload workload)
{
    return rows[workload].nodes == SCN_NODES_HYBRID;
}

bool scn_workload_needs_board(enum scn_workload workload)
{
    return rows[workload].nodes != SCN_NODES_ANY_NODE && !scn_workload_is_verbs(workload) &&
           !scn_workload_is_hybrid(workload);
}

uint32_t scn_block_columns(const struct scn_run *run, uint32_t nodes)
{
    uint32_t high = 1;
    for (uint32_t i = 1; i * i <= nodes; i++) {
        high = nodes % i == 0 ? i : high;
    }
    return run->block_columns != 0 ? run->block_columns : nodes / high;
}
