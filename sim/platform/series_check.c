// Whether a run is possible in a scenario.
#include <stdio.h>

#include "sim/platform/series.h"
#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/workloads.h"

static enum sim_status check_all(const struct scn_scenario *scenario, const struct scn_run *run,
                                 const struct scn_routes *routes, char *error, size_t error_size)
{
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        if (!scn_routes_joined(routes, run->node, i)) {
            snprintf(error, error_size, "series '%s': no cables join %s and %s", run->series,
                     scenario->nodes[run->node].name, scenario->nodes[i].name);
            return SIM_ERR_INVALID;
        }
    }
    return SIM_OK;
}

// scn_load checks the same, but tests make scenarios without it.
static enum sim_status check_verbs(const struct scn_scenario *scenario, const struct scn_run *run,
                                   const struct scn_routes *routes, char *error, size_t error_size)
{
    const uint32_t ends[] = {run->node, run->peer};
    bool boards = run->verbs.device == SCN_DEVICE_TCA0;
    for (unsigned i = 0; i < 2; i++) {
        const struct scn_node *node = ends[i] < scenario->node_count ? &scenario->nodes[ends[i]] : NULL;
        if (node == NULL || (boards ? !node->board.given : !node->hca.given)) {
            snprintf(error, error_size, "series '%s': %s has no %s", run->series,
                     node != NULL ? node->name : "the peer", boards ? "board" : "HCA");
            return SIM_ERR_INVALID;
        }
    }
    if (boards && (run->node == run->peer || run->beside.given || !scn_routes_joined(routes, run->node, run->peer))) {
        snprintf(error, error_size, "series '%s': tca0 needs two joined nodes, each with one process", run->series);
        return SIM_ERR_INVALID;
    }
    return SIM_OK;
}

static enum sim_status check_peer(const struct scn_scenario *scenario, const struct scn_run *run,
                                  const struct scn_routes *routes, char *error, size_t error_size)
{
    const char *name = scenario->nodes[run->node].name;
    if (run->peer >= scenario->node_count || run->peer == run->node) {
        snprintf(error, error_size, "series '%s': %s needs another node as its peer", run->series, name);
        return SIM_ERR_INVALID;
    }
    if (!scn_routes_joined(routes, run->node, run->peer)) {
        snprintf(error, error_size, "series '%s': no cables join %s and %s", run->series, name,
                 scenario->nodes[run->peer].name);
        return SIM_ERR_INVALID;
    }
    if (scn_workload_row(run->workload)->nodes == SCN_NODES_WAY && scn_routes_hops(routes, run->node, run->peer) < 2) {
        snprintf(error, error_size, "series '%s': %s needs a node between %s and %s", run->series,
                 scn_workload_name(run->workload), name, scenario->nodes[run->peer].name);
        return SIM_ERR_INVALID;
    }
    return SIM_OK;
}

// InfiniBand joins the sub-clusters.
static enum sim_status check_hybrid(const struct scn_scenario *scenario, const struct scn_run *run,
                                    const struct scn_routes *routes, char *error, size_t error_size)
{
    enum sim_status status = SIM_OK;
    struct scn_ib_fabric *fabric = scn_ib_fabric_find(scenario);
    uint32_t parts = scn_routes_parts(routes);
    for (uint32_t i = 0; status == SIM_OK && i < scenario->node_count && parts > 1; i++) {
        if (!scenario->nodes[i].hca.given || (i > 0 && scn_ib_cables(fabric, 0, i) == UINT32_MAX)) {
            snprintf(error, error_size, "series '%s': InfiniBand does not join %s with the other sub-clusters",
                     run->series, scenario->nodes[i].name);
            status = SIM_ERR_INVALID;
        }
    }
    scn_ib_fabric_free(fabric);
    return status;
}

static enum sim_status check_run(const struct scn_scenario *scenario, const struct scn_run *run,
                                 const struct scn_routes *routes, char *error, size_t error_size)
{
    enum scn_workload_nodes placement = scn_workload_row(run->workload)->nodes;
    if (placement == SCN_NODES_ANY_NODE) {
        return SIM_OK;
    }
    if (placement == SCN_NODES_HYBRID) {
        return check_hybrid(scenario, run, routes, error, error_size);
    }
    if (placement == SCN_NODES_VERBS || placement == SCN_NODES_ACP) {
        return check_verbs(scenario, run, routes, error, error_size);
    }
    if (!scenario->nodes[run->node].board.given) {
        snprintf(error, error_size, "series '%s': %s has no board", run->series, scenario->nodes[run->node].name);
        return SIM_ERR_INVALID;
    }
    if (placement == SCN_NODES_NODE) {
        return SIM_OK;
    }
    return placement == SCN_NODES_ALL ? check_all(scenario, run, routes, error, error_size)
                                      : check_peer(scenario, run, routes, error, error_size);
}

enum sim_status plat_series_check(const struct scn_scenario *scenario, const struct scn_run *run, char *error,
                                  size_t error_size)
{
    if (run->node >= scenario->node_count) {
        snprintf(error, error_size, "series '%s': there is no node %u", run->series, run->node);
        return SIM_ERR_INVALID;
    }
    struct scn_routes *routes = scn_routes_find(scenario);
    enum sim_status status = check_run(scenario, run, routes, error, error_size);
    scn_routes_free(routes);
    return status;
}
