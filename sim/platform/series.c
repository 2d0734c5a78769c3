#include "sim/platform/series.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/routes.h"
#include "sim/scenario/workloads.h"

#define PERFTEST_INLINE_BYTES 220 // default of the latency programs of perftest 3.0

// --- the workloads --------------------------------------------------------------------------------------------------

static int (*const workloads[])(struct workload *workload) = {
#define WORKLOAD(id, function, name, nodes, method, keys) [SCN_WORKLOAD_##id] = workload_##function,
#include "sim/scenario/workloads.def"
#undef WORKLOAD
};

static enum scn_workload_nodes nodes_of(const struct scn_run *run)
{
    return scn_workload_row(run->workload)->nodes;
}

// The first two ranks run on `node` and `peer`, the others on the other nodes in turn.
static uint32_t assign_acp_nodes(const struct scn_scenario *scenario, const struct scn_run *run, uint32_t ranks_index,
                                 uint32_t nodes_out[PLAT_RANKS_MAX])
{
    uint32_t order[SCN_NODES_MAX], nodes = 1 + (run->peer != run->node);
    order[0] = run->node;
    order[1] = run->peer;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        uint32_t node = (run->peer + i) % scenario->node_count;
        if (node != run->node && node != run->peer) {
            order[nodes++] = node;
        }
    }
    uint32_t count = (uint32_t)scn_acp_ranks(scenario, run, run->ranks[ranks_index]);
    for (uint32_t i = 0; i < count; i++) {
        nodes_out[i] = order[i % nodes];
    }
    return count;
}

static uint32_t assign_nodes(const struct scn_scenario *scenario, const struct scn_run *run, uint32_t ranks_index,
                             const struct scn_routes *routes, uint32_t nodes_out[PLAT_RANKS_MAX])
{
    nodes_out[0] = run->node;
    switch (nodes_of(run)) {
    case SCN_NODES_ANY_NODE:
    case SCN_NODES_NODE:
        return 1;
    case SCN_NODES_PAIR:
        nodes_out[1] = run->peer;
        return 2;
    case SCN_NODES_WAY:
        nodes_out[1] =
            scn_routes_neighbour(routes, run->node, (enum scn_port)scn_routes_port(routes, run->node, run->peer), NULL);
        nodes_out[2] = run->peer;
        return 3;
    case SCN_NODES_VERBS:
        nodes_out[1] = nodes_out[3] = run->peer;
        nodes_out[2] = run->node;
        return run->beside.given ? 4 : 2;
    case SCN_NODES_ACP:
        return assign_acp_nodes(scenario, run, ranks_index, nodes_out);
    case SCN_NODES_ALL:
    case SCN_NODES_HYBRID:
        break;
    }
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        nodes_out[i] = (run->node + i) % scenario->node_count;
    }
    return scenario->node_count;
}

static enum workload_method method_of(enum scn_method method)
{
    switch (method) {
    case SCN_METHOD_PIO:
        return WORKLOAD_PIO;
    case SCN_METHOD_REGISTER:
        return WORKLOAD_REGISTER;
    case SCN_METHOD_CHAIN_HOST:
        return WORKLOAD_CHAIN_HOST;
    case SCN_METHOD_CHAIN_BOARD:
        return WORKLOAD_CHAIN_BOARD;
    case SCN_METHOD_UVA:
        return WORKLOAD_UVA;
    case SCN_METHOD_NO_UVA:
        return WORKLOAD_NO_UVA;
    case SCN_METHOD_DIRECT:
        return WORKLOAD_DIRECT;
    case SCN_METHOD_VIA_CPU:
    case SCN_METHOD_NONE:
        break;
    }
    return WORKLOAD_VIA_CPU;
}

static int memory_of(enum scn_memory memory)
{
    switch (memory) {
    case SCN_MEMORY_HOST:
        return WORKLOAD_HOST;
    case SCN_MEMORY_FPGA:
        return WORKLOAD_FPGA;
    case SCN_MEMORY_GPU0:
    case SCN_MEMORY_GPU1:
    case SCN_MEMORY_GPU2:
    case SCN_MEMORY_GPU3:
        break;
    }
    return (int)memory - (int)SCN_MEMORY_GPU0;
}

static enum workload_operation operation_of(enum scn_operation operation)
{
    static const enum workload_operation operations[] = {
        [SCN_OPERATION_NONE] = WORKLOAD_SEND,
#define VERBS_OPERATION(ID, name, verb) [SCN_OPERATION_##ID] = WORKLOAD_##ID,
#define ACP_OPERATION(ID, name)         [SCN_OPERATION_##ID] = WORKLOAD_##ID,
#include "sim/scenario/operations.def"
    };
    return operations[operation];
}

// perftest's default: only its latency programs put short messages into the request.
static uint32_t inline_of(const struct scn_run *run)
{
    if (run->verbs.inline_bytes != SCN_INLINE_DEFAULT) {
        return run->verbs.inline_bytes;
    }
    return run->workload == SCN_WORKLOAD_VERBS_LATENCY ? PERFTEST_INLINE_BYTES : 0;
}

static struct workload_verbs verbs_of(const struct plat_series *series)
{
    static const enum workload_transport transports[] = {
        [SCN_TRANSPORT_RC] = WORKLOAD_RC, [SCN_TRANSPORT_UC] = WORKLOAD_UC, [SCN_TRANSPORT_UD] = WORKLOAD_UD};
    const struct scn_verbs *verbs = &series->run->verbs;
    return (struct workload_verbs){
        .device = verbs->device == SCN_DEVICE_TCA0 ? "tca0" : "ibsim0",
        .operation = operation_of(verbs->operation),
        .transport = transports[verbs->transport],
        .queue_pairs = verbs->queue_pairs,
        .depth = verbs->depth,
        .receive_depth = verbs->receive_depth,
        .cq_mod = verbs->cq_mod,
        .inline_bytes = inline_of(series->run),
        .inline_or_less = verbs->inline_bytes == SCN_INLINE_DEFAULT,
        .bidirectional = verbs->bidirectional,
        .volume_bytes = verbs->volume_bytes,
        .beside_bytes = series->run->beside.given ? series->run->beside.bytes : 0,
        .qp_timeout = (uint8_t)verbs->qp_timeout,
        .retry_count = (uint8_t)verbs->retry_count,
    };
}

// The interfering flow uses the device of the measured flow, and requests of its own.
static struct workload_verbs beside_of(const struct plat_series *series)
{
    const struct scn_beside *beside = &series->run->beside;
    struct workload_verbs verbs = verbs_of(series);
    verbs.operation = operation_of(beside->operation);
    verbs.transport = WORKLOAD_RC;
    verbs.queue_pairs = 1;
    verbs.depth = beside->depth;
    verbs.cq_mod = beside->cq_mod;
    verbs.inline_bytes = 0;
    verbs.bidirectional = false;
    return verbs;
}

// --- functions for workloads ---------------------------------------------------------------------------------------

static void rank_exchange(void *ctx, const void *mine, void *theirs, size_t bytes)
{
    struct plat_rank *rank = ctx;
    unsigned char both[2 * PLAT_MAILBOX_BYTES];
    if (rank->series->rank_count == 1) {
        memcpy(theirs, mine, bytes);
        return;
    }
    plat_mailbox_gather(&rank->series->mailbox, rank->workload.rank, mine, both, bytes);
    memcpy(theirs, both + (1 - rank->workload.rank) * bytes, bytes);
}

static void rank_gather(void *ctx, const void *mine, void *all, size_t bytes)
{
    struct plat_rank *rank = ctx;
    plat_mailbox_gather(&rank->series->mailbox, rank->workload.rank, mine, all, bytes);
}

static void rank_gather_near(void *ctx, const void *mine, void *all, size_t bytes)
{
    struct plat_rank *rank = ctx;
    struct plat_places *places = rank->series->places;
    uint32_t sub_cluster = places->workload.sub_cluster_of[rank->workload.rank];
    plat_mailbox_gather(&places->mailboxes[sub_cluster], rank->workload.node, mine, all, bytes);
}

static void rank_post(void *ctx, const void *mine, size_t bytes)
{
    struct plat_rank *rank = ctx;
    plat_mailbox_post(&rank->series->mailbox, rank->workload.rank, mine, bytes);
}

static const void *rank_letter(void *ctx, uint32_t from)
{
    const struct plat_rank *rank = ctx;
    return plat_mailbox_letter(&rank->series->mailbox, rank->workload.rank, from);
}

// Called from the thread that measured.
static void path_report(const struct plat_rank *rank, const struct plat_point *point)
{
    const struct plat_hooks *hooks = rank->series->hooks;
    struct sim_piece *pieces = NULL;
    size_t count = 0;
    (void)sim_cause_path(plat_machine_sim(rank->series->machine), point->total_ps, &pieces, &count);
    hooks->path(hooks->ctx, point, rank->series->scenario->nodes[rank->node].name, pieces, count);
    free(pieces);
}

static void rank_report(void *ctx, const struct workload_point *measured)
{
    struct plat_rank *rank = ctx;
    struct plat_series *series = rank->series;
    const struct plat_hooks *hooks = series->hooks;
    const struct plat_point point = {
        .series = series->run->series,
        .bytes = measured->bytes,
        .descriptors = measured->descriptors,
        .operations = measured->operations,
        .total_ps = measured->total_ps,
        .min_ps = measured->min_ps,
        .max_ps = measured->max_ps,
        .ranks = nodes_of(series->run) == SCN_NODES_ACP ? series->rank_count : 0,
        .memory_bytes = measured->memory_bytes,
    };
    series->points_done++;
    if (hooks->point != NULL) {
        hooks->point(hooks->ctx, &point);
    }
    if (hooks->path != NULL) {
        path_report(rank, &point);
    }
    if (hooks->progress != NULL) {
        hooks->progress(hooks->ctx, (unsigned)(series->points_done * 1000 / series->points));
    }
}

static void rank_fail(void *ctx, const char *format, ...)
{
    struct plat_rank *rank = ctx;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    plat_machine_fail(rank->series->machine, "%s: %s", rank->series->scenario->nodes[rank->node].name, text);
}

static void rank_give_up(void *ctx, const char *text)
{
    struct plat_rank *rank = ctx;
    plat_machine_fail(rank->series->machine, "%s", text);
}

static uint64_t rank_pinned_bytes(void *ctx)
{
    const struct backend_process *process = backend_current();
    (void)ctx;
    return ((const struct plat_backend_inproc *)process->backend.ctx)->allocated_bytes;
}

static void service_start(struct plat_rank *rank, peach2_handle_t *board)
{
    int error = plat_service_start(&rank->service, rank->series->machine, rank->node, board, &rank->address);
    if (error != 0) {
        rank_fail(rank, "the service for remote reads does not start: %s", strerror(-error));
        return;
    }
    rank->workload.proxy = &rank->address;
}

// The last rank that is done ends the services, so that every request is served.
static void services_stop(struct plat_series *series, peach2_handle_t *board)
{
    for (uint32_t i = 0; i < series->rank_count; i++) {
        (void)peach2_proxy_stop(board, series->ranks[i].workload.node);
    }
}

static void rank_run(void *arg, peach2_handle_t *board)
{
    struct plat_rank *rank = arg;
    bool serves = scn_workload_uses(rank->series->run->workload, SCN_USES_SERVICE);
    rank->workload.board = board;
    for (unsigned id = 0; id < WORKLOAD_DEVICES; id++) {
        rank->workload.drivers[id] = plat_machine_driver(rank->series->machine, rank->node, id);
    }
    if (serves) {
        service_start(rank, board);
    }
    bool beside = nodes_of(rank->series->run) == SCN_NODES_VERBS && rank->workload.rank > 1;
    int error =
        beside ? workload_verbs_beside(&rank->workload) : workloads[rank->series->run->workload](&rank->workload);
    if (error == 0 && ++rank->series->ranks_done == rank->series->rank_count && serves) {
        services_stop(rank->series, board);
    }
    if (error != 0 && plat_machine_failure(rank->series->machine) == NULL) {
        rank_fail(rank, "%s: %s", scn_workload_name(rank->series->run->workload), strerror(-error));
    }
}

// --- set-up --------------------------------------------------------------------------------------------------------

static struct workload workload_of(struct plat_series *series, uint32_t rank, uint32_t node)
{
    const struct scn_run *run = series->run;
    const struct scn_routes *routes = plat_machine_routes(series->machine);
    uint32_t peer = rank == 0 ? run->peer : run->node;
    const struct scn_sub_cluster *of = &routes->sub_clusters[routes->sub_cluster_of[node]];
    uint32_t near = of->joined ? of->node_count : 1;
    static const enum workload_algorithm algorithms[] = {[SCN_ALGORITHM_RING] = WORKLOAD_RING,
                                                         [SCN_ALGORITHM_DOUBLING] = WORKLOAD_DOUBLING,
                                                         [SCN_ALGORITHM_HIERARCHICAL] = WORKLOAD_HIERARCHICAL};
    return (struct workload){
        .rank = rank,
        .ranks = series->rank_count,
        .node = routes->numbers[node],
        .peer_node = peer < routes->node_count ? routes->numbers[peer] : SCN_NODE_NONE,
        .method = method_of(run->method),
        .channel = run->channel,
        .bytes = run->bytes,
        .bytes_count = run->bytes_count,
        .descriptors = run->descriptors,
        .descriptors_count = run->descriptors_count,
        .iterations = run->iterations,
        .warmup = run->warmup,
        .source_gpu = memory_of(run->from),
        .destination_gpu = memory_of(run->to),
        .notify_board = run->notify == SCN_NOTIFY_BOARD,
        .columns = run->columns,
        .block_columns = scn_block_columns(run, near),
        .algorithm = algorithms[run->algorithm],
        .near_ranks = near,
        .places = series->places != NULL ? &series->places->workload : NULL,
        .verbs = rank > 1 && run->beside.given ? beside_of(series) : verbs_of(series),
        .counts = series->counts[node],
        .shared = &series->shared,
        .exchange = rank_exchange,
        .gather = rank_gather,
        .gather_near = rank_gather_near,
        .post = rank_post,
        .letter = rank_letter,
        .pinned_bytes = rank_pinned_bytes,
        .give_up = rank_give_up,
        .report = rank_report,
        .fail = rank_fail,
    };
}

// --- what programs count ---------------------------------------------------------------------------------------------

static const struct sim_counter_desc count_descs[WORKLOAD_COUNTS] = {
#define COUNT(ID, name, unit, doc) [WORKLOAD_COUNT_##ID] = {name, unit, doc},
#include "scenarios/workloads/counts.def"
};

void plat_series_counts_register(plat_machine_t *machine, const struct scn_scenario *scenario,
                                 uint64_t (*counts)[WORKLOAD_COUNTS])
{
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        char name[SCN_NAME_MAX + 16];
        snprintf(name, sizeof name, "%s.program", scenario->nodes[i].name);
        if (sim_counters_register(plat_machine_sim(machine), name, count_descs, counts[i], WORKLOAD_COUNTS) != SIM_OK) {
            plat_machine_fail(machine, "no memory for the counters of programs");
        }
    }
}

static void counts_register(struct plat_series *series)
{
    if (scn_workload_uses(series->run->workload, SCN_USES_COUNTS)) {
        plat_series_counts_register(series->machine, series->scenario, series->counts);
    }
}

// --- life -----------------------------------------------------------------------------------------------------------

static void programs_set(struct plat_series *series, const uint32_t *nodes)
{
    const struct scn_scenario *scenario = series->scenario;
    const struct scn_routes *routes = plat_machine_routes(series->machine);
    bool placed[SCN_NODES_MAX] = {false}; // a rank is the node's first process
    for (uint32_t i = 0; i < series->rank_count; i++) {
        struct plat_rank *rank = &series->ranks[i];
        rank->series = series;
        rank->node = nodes[i];
        rank->workload = workload_of(series, i, nodes[i]);
        rank->workload.ctx = rank;
        for (uint32_t j = 0; j < series->rank_count && j < WORKLOAD_HOPS_MAX; j++) {
            rank->workload.hops[j] = scn_routes_hops(routes, nodes[0], nodes[j]);
        }
        if (!placed[nodes[i]]) {
            plat_machine_set_program(series->machine, nodes[i], rank_run, rank);
        } else if (plat_machine_add_process(series->machine, nodes[i], rank_run, rank) != SIM_OK) {
            plat_machine_fail(series->machine, "%s: no memory for a process", scenario->nodes[nodes[i]].name);
        }
        placed[nodes[i]] = true;
    }
}

void plat_series_init(struct plat_series *series, const struct scn_scenario *scenario, const struct scn_run *run,
                      uint32_t ranks_index, const struct plat_hooks *hooks, plat_machine_t *machine)
{
    *series = (struct plat_series){
        .scenario = scenario,
        .run = run,
        .hooks = hooks,
        .machine = machine,
        .ranks_index = ranks_index,
        .points = (uint64_t)run->bytes_count * run->descriptors_count * (run->ranks_count > 1 ? run->ranks_count : 1),
        .points_done = (uint64_t)run->bytes_count * run->descriptors_count * ranks_index,
    };
    uint32_t nodes[PLAT_RANKS_MAX];
    const struct scn_routes *routes = plat_machine_routes(machine);
    series->rank_count = assign_nodes(scenario, run, ranks_index, routes, nodes);
    series->ranks = calloc(series->rank_count, sizeof *series->ranks);
    series->counts = calloc(scenario->node_count, sizeof *series->counts);
    if (series->ranks == NULL || series->counts == NULL ||
        !plat_mailbox_init(&series->mailbox, plat_machine_sim(machine), series->rank_count)) {
        plat_machine_fail(machine, "no memory for the ranks of series '%s'", run->series);
        return;
    }
    if (nodes_of(run) == SCN_NODES_HYBRID) {
        series->places = plat_places_create(plat_machine_sim(machine), routes, nodes);
        if (series->places == NULL) {
            plat_machine_fail(machine, "no memory for the places of series '%s'", run->series);
            return;
        }
    }
    counts_register(series);
    programs_set(series, nodes);
}

void plat_series_fini(struct plat_series *series)
{
    for (uint32_t i = 0; series->ranks != NULL && i < series->rank_count; i++) {
        plat_service_fini(&series->ranks[i].service);
    }
    for (uint32_t i = 0; series->counts != NULL && i < series->scenario->node_count; i++) {
        sim_counters_unregister(plat_machine_sim(series->machine), series->counts[i]);
    }
    plat_mailbox_fini(&series->mailbox);
    plat_places_destroy(series->places);
    free(series->ranks);
    free(series->counts);
}
