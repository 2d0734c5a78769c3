#include "sim/platform/series.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/platform/routes.h"

// --- the programs --------------------------------------------------------------------------------------------------

struct program {
    uint32_t ranks;
    int (*run)(struct workload *workload);
};

static const struct program programs[] = {
    [SCN_PROGRAM_PINGPONG] = {2, workload_pingpong},
    [SCN_PROGRAM_LOCAL_DMA] = {1, workload_local_dma},
};

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
        break;
    }
    return WORKLOAD_CHAIN_BOARD;
}

enum sim_status plat_series_check(const struct scn_scenario *scenario, const struct scn_run *run, char *error,
                                  size_t error_size)
{
    if (run->node >= scenario->node_count) {
        snprintf(error, error_size, "series '%s': there is no node %u", run->series, run->node);
        return SIM_ERR_INVALID;
    }
    if (programs[run->program].ranks == 1) {
        return SIM_OK;
    }
    const char *name = scenario->nodes[run->node].name;
    if (run->peer >= scenario->node_count || run->peer == run->node) {
        snprintf(error, error_size, "series '%s': %s needs another node as its peer", run->series, name);
        return SIM_ERR_INVALID;
    }
    if (!plat_routes_joined(scenario, run->node, run->peer)) {
        snprintf(error, error_size, "series '%s': no cables join %s and %s", run->series, name,
                 scenario->nodes[run->peer].name);
        return SIM_ERR_INVALID;
    }
    return SIM_OK;
}

// --- what a workload calls -----------------------------------------------------------------------------------------

static void rank_exchange(void *ctx, const void *mine, void *theirs, size_t bytes)
{
    struct plat_rank *rank = ctx;
    if (rank->series->rank_count == 1) {
        memcpy(theirs, mine, bytes);
        return;
    }
    plat_mailbox_exchange(&rank->series->mailbox, rank->workload.rank, mine, theirs, bytes);
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
    };
    series->points_done++;
    if (hooks->point != NULL) {
        hooks->point(hooks->ctx, &point);
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
    plat_machine_fail(rank->series->machine, "%s: %s", rank->series->scenario->nodes[rank->workload.node].name, text);
}

static void rank_run(void *arg, peach2_handle_t *board)
{
    struct plat_rank *rank = arg;
    rank->workload.board = board;
    int error = programs[rank->series->run->program].run(&rank->workload);
    if (error != 0 && plat_machine_failure(rank->series->machine) == NULL) {
        rank_fail(rank, "%s: %s", scn_program_name(rank->series->run->program), strerror(-error));
    }
}

// --- set-up --------------------------------------------------------------------------------------------------------

static struct workload workload_of(const struct plat_series *series, uint32_t rank)
{
    const struct scn_run *run = series->run;
    return (struct workload){
        .rank = rank,
        .ranks = series->rank_count,
        .node = rank == 0 ? run->node : run->peer,
        .peer_node = rank == 0 ? run->peer : run->node,
        .method = method_of(run->method),
        .channel = run->channel,
        .bytes = run->bytes,
        .bytes_count = run->bytes_count,
        .descriptors = run->descriptors,
        .descriptors_count = run->descriptors_count,
        .iterations = run->iterations,
        .warmup = run->warmup,
        .exchange = rank_exchange,
        .report = rank_report,
        .fail = rank_fail,
    };
}

void plat_series_init(struct plat_series *series, const struct scn_scenario *scenario, const struct scn_run *run,
                      const struct plat_hooks *hooks, plat_machine_t *machine)
{
    *series = (struct plat_series){
        .scenario = scenario,
        .run = run,
        .hooks = hooks,
        .machine = machine,
        .rank_count = programs[run->program].ranks,
        .points = (uint64_t)run->bytes_count * run->descriptors_count,
    };
    plat_mailbox_init(&series->mailbox, plat_machine_sim(machine));
    for (uint32_t i = 0; i < series->rank_count; i++) {
        struct plat_rank *rank = &series->ranks[i];
        rank->series = series;
        rank->workload = workload_of(series, i);
        rank->workload.ctx = rank;
        plat_machine_set_program(machine, rank->workload.node, rank_run, rank);
    }
}
