// Rules about runs, and about the values taken from them.
#include "sim/scenario/loader.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "rtl/peach2_regs.h"
#include "sim/scenario/keys.h"
#include "sim/scenario/names.h"
#include "sim/scenario/sets.h"
#include "sim/scenario/units.h"
#include "sim/scenario/workloads.h"

#define WORD_BYTES 4

bool scn_check_are_cables_good(const struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    bool good = !scn_loader_is_bad(loader, &scenario->cable_count, true);
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        const struct scn_cable *cable = &scenario->cables[i];
        good = good && scn_loader_is_good(loader, &cable->from_node) && scn_loader_is_good(loader, &cable->to_node) &&
               cable->from_node < scenario->node_count && cable->to_node < scenario->node_count;
    }
    return good;
}

bool scn_check_joined(const struct scn_loader *loader, uint32_t from, uint32_t to)
{
    struct scn_sets sets;
    scn_sets_init(&sets);
    scn_sets_join_boards(&sets, loader->scenario);
    return !scn_check_are_cables_good(loader) || scn_sets_joined(&sets, from, to);
}

static void complain_unused(struct scn_loader *loader, const struct scn_run *run, const void *field, const char *key,
                            unsigned use, bool is_default, const char *reason)
{
    // A key with its default value is accepted, because resolved scenarios contain every key.
    if (!scn_workload_uses(run->workload, use) && !is_default && scn_loader_is_good(loader, field)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, field, run), "%s: %s does not use it: %s", key,
                         scn_workload_name(run->workload), reason);
    }
}

static void check_unused(struct scn_loader *loader, const struct scn_run *run)
{
    bool single = run->method == SCN_METHOD_REGISTER || run->method == SCN_METHOD_PIO; // check_descriptors reports it
    bool one = single || (run->descriptors_count == 1 && run->descriptors[0] == 1);
    complain_unused(loader, run, &run->channel, "channel", SCN_USES_CHANNEL, run->channel == SCN_FALLBACK_CHANNEL,
                    "it chooses its channels itself");
    complain_unused(loader, run, &run->warmup, "warmup", SCN_USES_WARMUP,
                    run->warmup == 0 || run->warmup == SCN_FALLBACK_WARMUP, "every repetition counts");
    complain_unused(loader, run, run->descriptors, "descriptors", SCN_USES_DESCRIPTORS, one,
                    "it builds its chains itself");
    complain_unused(loader, run, &run->notify, "notify", SCN_USES_NOTIFY, run->notify == SCN_NOTIFY_HOST,
                    "only programs on libtca wait for notifications");
    complain_unused(loader, run, &run->block_columns, "block_columns", SCN_USES_BLOCKS, run->block_columns == 0,
                    "only a hybrid-halo has blocks");
    complain_unused(loader, run, &run->algorithm, "algorithm", SCN_USES_ALGORITHM,
                    run->algorithm == SCN_ALGORITHM_HIERARCHICAL, "it has no all-reduce with a choice");
    complain_unused(loader, run, &run->columns, "columns", SCN_USES_COLUMNS, run->columns == SCN_FALLBACK_COLUMNS,
                    "only a halo has a grid");
    complain_unused(loader, run, run->ranks, "ranks", SCN_USES_RANKS, run->ranks_count == 1 && run->ranks[0] == 0,
                    "only programs on ACP do");
}

// A halo's grid has no empty position, and its all-reduce halves the nodes.
static void check_grid(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    uint32_t nodes = scenario->node_count;
    struct scn_location location = scn_loader_location(loader, &run->columns, run);
    if (run->workload != SCN_WORKLOAD_HALO || nodes == 0 || run->columns == 0 ||
        !scn_loader_is_good(loader, &run->columns) || scn_loader_is_bad(loader, &scenario->node_count, true)) {
        return;
    }
    if (nodes % run->columns != 0) {
        scn_mistakes_add(&loader->mistakes, location, "columns: %" PRIu32 " nodes are no grid of %" PRIu32 " columns",
                         nodes, run->columns);
    } else if ((nodes & (nodes - 1)) != 0) {
        scn_mistakes_add(&loader->mistakes, location,
                         "workload: the all-reduce of a halo needs 2, 4, 8 or 16 nodes, not %" PRIu32, nodes);
    }
}

// Programs on libtca reach the nodes that cables of boards join.
static void check_all_joined(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    struct scn_sets sets;
    if (scn_workload_row(run->workload)->nodes != SCN_NODES_ALL || !scn_check_are_cables_good(loader) ||
        !scn_loader_is_good(loader, &run->node) || run->node >= scenario->node_count || scenario->cable_count == 0) {
        return;
    }
    scn_sets_init(&sets);
    scn_sets_join_boards(&sets, scenario);
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        if (!scn_sets_joined(&sets, run->node, i)) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->workload, run),
                             "workload: %s runs on every node, and no cables of boards lead from '%s' to '%s'",
                             scn_workload_name(run->workload), scenario->nodes[run->node].name,
                             scenario->nodes[i].name);
            return;
        }
    }
}

static void check_board(struct scn_loader *loader, const struct scn_run *run, const uint32_t *field)
{
    const struct scn_scenario *scenario = loader->scenario;
    const struct scn_node *node = *field < scenario->node_count ? &scenario->nodes[*field] : NULL;
    if (node != NULL && scn_loader_is_good(loader, &run->workload) && scn_workload_needs_board(run->workload) &&
        scn_loader_is_good(loader, field) && !node->board.given && !scn_loader_is_bad(loader, node, true) &&
        !scn_loader_is_bad(loader, &node->board, true)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, field, run),
                         "%s: a %s needs a board, '%s' has none", field == &run->node ? "node" : "peer",
                         scn_workload_name(run->workload), node->name);
    }
}

// `from:` is memory of the node, `to:` of the node or of its peer.
static void check_memory(struct scn_loader *loader, const struct scn_run *run, const enum scn_memory *field,
                         uint32_t node)
{
    const struct scn_scenario *scenario = loader->scenario;
    if (*field == SCN_MEMORY_HOST || *field == SCN_MEMORY_FPGA || node >= scenario->node_count ||
        !scn_loader_is_good(loader, field)) {
        return;
    }
    if (scn_loader_is_good(loader, &run->workload) && !scn_workload_uses(run->workload, SCN_USES_GPUS)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, field, run),
                         "%s: %s keeps its data in host memory", field == &run->from ? "from" : "to",
                         scn_workload_name(run->workload));
        return;
    }
    uint32_t count = scenario->nodes[node].gpu_count;
    if ((uint32_t)(*field - SCN_MEMORY_GPU0) >= count) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, field, run), "%s: '%s' has %" PRIu32 " GPU%s",
                         field == &run->from ? "from" : "to", scenario->nodes[node].name, count, count == 1 ? "" : "s");
    }
}

// In a ping-pong the peer also sends from `from:`, and the node receives in `to:`.
static void check_way_back(struct scn_loader *loader, const struct scn_run *run)
{
    bool pingpong = run->workload == SCN_WORKLOAD_PINGPONG || run->workload == SCN_WORKLOAD_TCA_PINGPONG ||
                    run->workload == SCN_WORKLOAD_STAGED_PINGPONG;
    if (pingpong && scn_loader_is_good(loader, &run->workload) && run->peer < loader->scenario->node_count &&
        run->peer != run->node) {
        check_memory(loader, run, &run->from, run->peer);
        check_memory(loader, run, &run->to, run->node);
    }
}

static void check_peer(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    struct scn_location location = scn_loader_location(loader, &run->peer, run);
    const char *name = scn_workload_name(run->workload);
    bool local = !scn_workload_has_peer(run->workload);
    if (!scn_loader_is_good(loader, &run->workload) || !scn_loader_is_good(loader, &run->peer) ||
        !scn_loader_is_good(loader, &run->node)) {
        return;
    }
    if (local && run->peer != SCN_NODE_NONE) {
        enum scn_workload_nodes nodes = scn_workload_row(run->workload)->nodes;
        bool every = nodes == SCN_NODES_ALL || nodes == SCN_NODES_HYBRID;
        scn_mistakes_add(&loader->mistakes, location, "peer: %s %s and takes no peer", name,
                         every ? "runs on every node" : "stays on one node");
    } else if (!local && run->peer == SCN_NODE_NONE) {
        if (scenario->node_count > 0) {
            scn_mistakes_add(&loader->mistakes, location, "missing key 'peer' in run: a %s needs one", name);
        }
    } else if (!local && run->peer == run->node) {
        scn_mistakes_add(&loader->mistakes, location, "peer: a %s needs another node than '%s'", name,
                         scenario->nodes[run->node].name);
    } else if (!local && !scn_check_joined(loader, run->node, run->peer)) {
        scn_mistakes_add(&loader->mistakes, location, "peer: no cables lead from '%s' to '%s'",
                         scenario->nodes[run->node].name, scenario->nodes[run->peer].name);
    }
}

static void check_descriptors(struct scn_loader *loader, const struct scn_run *run)
{
    struct scn_location location = scn_loader_location(loader, run->descriptors, run);
    bool single = run->method != SCN_METHOD_CHAIN_HOST && run->method != SCN_METHOD_CHAIN_BOARD;
    if (!scn_loader_is_good(loader, run->descriptors)) {
        return;
    }
    for (uint32_t i = 0; i < run->descriptors_count; i++) {
        uint64_t descriptors = run->descriptors[i];
        if (single && descriptors != 1) {
            scn_mistakes_add(&loader->mistakes, location, "descriptors: method %s makes one transfer, not %" PRIu64,
                             scn_method_name(run->method), descriptors);
        } else if (run->method == SCN_METHOD_CHAIN_BOARD && descriptors > PEACH2_MEMORY_DESCRIPTORS) {
            scn_mistakes_add(&loader->mistakes, location, "descriptors: the board's memory holds %u, not %" PRIu64,
                             (unsigned)PEACH2_MEMORY_DESCRIPTORS, descriptors);
        }
    }
}

static void check_bytes(struct scn_loader *loader, const struct scn_run *run)
{
    struct scn_location location = scn_loader_location(loader, run->bytes, run);
    bool dma = run->method != SCN_METHOD_PIO;
    for (uint32_t i = 0; i < run->bytes_count; i++) {
        if (run->bytes[i] % WORD_BYTES != 0) {
            scn_mistakes_add(&loader->mistakes, location, "bytes: %" PRIu64 " B is not a multiple of %d B, as %s needs",
                             run->bytes[i], WORD_BYTES, dma ? "DMA" : "a message by PIO");
        } else if (dma && run->bytes[i] > (PEACH2_DESCRIPTOR_LENGTH_MAX & ~3u)) {
            scn_mistakes_add(&loader->mistakes, location, "bytes: %" PRIu64 " B are more than the %u B of one transfer",
                             run->bytes[i], (unsigned)(PEACH2_DESCRIPTOR_LENGTH_MAX & ~3u));
        }
    }
}

// Of delivery each message has a place of its own, so that they are of one size.
static void check_delivery(struct scn_loader *loader, const struct scn_run *run)
{
    const struct {
        const void *field;
        const char *key;
        uint32_t count;
    } lists[] = {{run->bytes, "bytes", run->bytes_count}, {run->descriptors, "descriptors", run->descriptors_count}};
    for (unsigned i = 0; i < 2 && run->workload == SCN_WORKLOAD_DELIVERY; i++) {
        if (lists[i].count > 1 && scn_loader_is_good(loader, lists[i].field)) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, lists[i].field, run),
                             "%s: a delivery has messages of one size, not of %" PRIu32, lists[i].key, lists[i].count);
        }
    }
}

static uint64_t largest(const uint64_t *items, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; i++) {
        value = items[i] > value ? items[i] : value;
    }
    return value;
}

static void check_fits(struct scn_loader *loader, const struct scn_run *run, uint32_t node)
{
    const struct scn_scenario *scenario = loader->scenario;
    if (node >= scenario->node_count || scenario->nodes[node].host.memory_bytes == 0) {
        return;
    }
    uint64_t bytes = largest(run->bytes, run->bytes_count) * largest(run->descriptors, run->descriptors_count);
    if (bytes > scenario->nodes[node].host.memory_bytes / 4) {
        char text[SCN_QUANTITY_MAX];
        scn_quantity_format(SCN_QUANTITY_SIZE, bytes, text);
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, run->bytes, run),
                         "bytes: %s do not fit into a quarter of the memory of '%s'", text, scenario->nodes[node].name);
    }
}

// The methods that the rule accepts, if the method is not one of them; NULL: it is.
static const char *method_wanted(enum scn_workload_method rule, enum scn_method method)
{
    bool cuda = method == SCN_METHOD_UVA || method == SCN_METHOD_NO_UVA;
    bool chain = method == SCN_METHOD_CHAIN_HOST || method == SCN_METHOD_CHAIN_BOARD;
    switch (rule) {
    case SCN_BY_ANY:
        return cuda ? "pio or a DMA method" : NULL;
    case SCN_BY_DMA:
        return cuda || method == SCN_METHOD_PIO ? "a DMA method" : NULL;
    case SCN_BY_PIO:
        return method != SCN_METHOD_PIO ? "pio" : NULL;
    case SCN_BY_REGISTER:
        return method != SCN_METHOD_REGISTER ? "register" : NULL;
    case SCN_BY_CHAIN:
        return !chain ? "chain-host or chain-board" : NULL;
    case SCN_BY_CUDA:
        break;
    }
    return !cuda ? "uva or no-uva" : NULL;
}

static void check_method(struct scn_loader *loader, const struct scn_run *run)
{
    const char *wanted = method_wanted(scn_workload_row(run->workload)->method, run->method);
    if (wanted != NULL) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->method, run),
                         "method: %s needs %s, not %s", scn_workload_name(run->workload), wanted,
                         scn_method_name(run->method));
    }
}

// Workloads whose data must be in a certain memory.
static void check_memories(struct scn_loader *loader, const struct scn_run *run)
{
    struct scn_location location = scn_loader_location(loader, &run->from, run);
    bool from_gpu = run->from != SCN_MEMORY_HOST, to_gpu = run->to != SCN_MEMORY_HOST;
    if (!scn_loader_is_good(loader, &run->workload) || !scn_loader_is_good(loader, &run->from) ||
        !scn_loader_is_good(loader, &run->to)) {
        return;
    }
    bool between_nodes = run->workload == SCN_WORKLOAD_PINGPONG || run->workload == SCN_WORKLOAD_DELIVERY;
    if (between_nodes && run->method == SCN_METHOD_PIO && from_gpu) {
        scn_mistakes_add(&loader->mistakes, location, "from: a %s by pio sends from host memory",
                         scn_workload_name(run->workload));
    }
    if (scn_workload_has_peer(run->workload) && (run->to == SCN_MEMORY_GPU2 || run->to == SCN_MEMORY_GPU3)) {
        scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, &run->to, run),
                         "to: the board's window reaches gpu0 and gpu1 of another node");
    }
    if (run->workload == SCN_WORKLOAD_STAGED_PINGPONG && !from_gpu) {
        scn_mistakes_add(&loader->mistakes, location, "from: staged-pingpong sends from a GPU's memory");
    }
    if (run->workload == SCN_WORKLOAD_CUDA_PINGPONG && (!from_gpu || !to_gpu || run->from == run->to)) {
        scn_mistakes_add(&loader->mistakes, location,
                         "from: cuda-pingpong needs two GPUs, one in from: and one in to:");
    }
    if (run->workload == SCN_WORKLOAD_GDR_COPY && from_gpu == to_gpu) {
        scn_mistakes_add(&loader->mistakes, location, "from: gdr-copy needs a GPU in from: or in to:, and not in both");
    }
}

static void check_run(struct scn_loader *loader, const struct scn_run *run)
{
    if (scn_loader_is_good(loader, &run->workload) && scn_workload_is_verbs(run->workload)) {
        check_unused(loader, run);
        scn_check_verbs_run(loader, run);
        return;
    }
    bool method = scn_check_other_run(loader, run);
    check_memory(loader, run, &run->from, run->node);
    check_memory(loader, run, &run->to, run->peer != SCN_NODE_NONE ? run->peer : run->node);
    check_way_back(loader, run);
    check_memories(loader, run);
    check_peer(loader, run);
    if (scn_loader_is_good(loader, &run->workload)) {
        check_unused(loader, run);
        check_grid(loader, run);
        check_all_joined(loader, run);
        scn_check_hybrid_run(loader, run);
    }
    if (method && scn_loader_is_good(loader, &run->workload) && run->workload == SCN_WORKLOAD_FPGA_TRANSFER) {
        scn_check_fpga_run(loader, run);
        return;
    }
    check_board(loader, run, &run->node);
    check_board(loader, run, &run->peer);
    if (!method || !scn_check_board_run(loader, run) || !scn_loader_is_good(loader, &run->method)) {
        return;
    }
    if (scn_loader_is_good(loader, &run->workload)) {
        check_method(loader, run);
    }
    check_descriptors(loader, run);
    if (scn_loader_is_good(loader, run->bytes)) {
        if (!scn_loader_is_good(loader, &run->workload) || scn_workload_needs_board(run->workload) ||
            scn_workload_is_hybrid(run->workload)) {
            check_bytes(loader, run);
        }
        check_delivery(loader, run);
        check_fits(loader, run, run->node);
        check_fits(loader, run, run->peer);
    }
}

void scn_check_runs(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        check_run(loader, &scenario->runs[i]);
    }
}
