// Rules about runs on every node of several sub-clusters.
#include "sim/scenario/loader.h"

#include <inttypes.h>

#include "sim/scenario/routes.h"
#include "sim/scenario/sets.h"
#include "sim/scenario/workloads.h"

#define ELEMENT_BYTES 8 // of an all-reduce

struct hybrid {
    struct scn_loader *loader;
    const struct scn_run *run;
    const struct scn_routes *routes;
    uint32_t parts; // sub-clusters; nodes whose cables are unplugged are one each
    uint32_t near;  // nodes of each, if all have as many; else 0
};

static bool is_power_of_two(uint32_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

static struct scn_location location_of(const struct hybrid *hybrid, const void *field)
{
    return scn_loader_location(hybrid->loader, field, hybrid->run);
}

static uint32_t size_of_all(const struct scn_routes *routes)
{
    if (!routes->sub_clusters[0].joined) {
        return 1;
    }
    for (uint32_t i = 1; i < routes->sub_cluster_count; i++) {
        if (routes->sub_clusters[i].node_count != routes->sub_clusters[0].node_count) {
            return 0;
        }
    }
    return routes->sub_clusters[0].node_count;
}

// What is between sub-clusters. Reports only the first node that lacks it.
static void check_infiniband(const struct hybrid *hybrid)
{
    const struct scn_scenario *scenario = hybrid->loader->scenario;
    const char *name = scn_workload_name(hybrid->run->workload);
    struct scn_sets sets;
    scn_sets_init(&sets);
    scn_sets_join_ib(&sets, scenario);
    for (uint32_t i = 0; i < scenario->node_count && hybrid->parts > 1; i++) {
        if (!scenario->nodes[i].hca.given) {
            scn_mistakes_add(&hybrid->loader->mistakes, location_of(hybrid, &hybrid->run->workload),
                             "workload: %s needs InfiniBand between sub-clusters, and '%s' has no HCA", name,
                             scenario->nodes[i].name);
            return;
        }
        if (!scn_sets_joined(&sets, 0, i)) {
            scn_mistakes_add(&hybrid->loader->mistakes, location_of(hybrid, &hybrid->run->workload),
                             "workload: %s needs InfiniBand between sub-clusters, and no ib_cables join '%s' and '%s'",
                             name, scenario->nodes[0].name, scenario->nodes[i].name);
            return;
        }
    }
}

static void check_algorithm(const struct hybrid *hybrid)
{
    uint32_t nodes = hybrid->routes->node_count, sub_clusters = hybrid->parts;
    struct scn_location location = location_of(hybrid, &hybrid->run->algorithm);
    switch (hybrid->run->algorithm) {
    case SCN_ALGORITHM_RING:
        break;
    case SCN_ALGORITHM_DOUBLING:
        if (!is_power_of_two(nodes)) {
            scn_mistakes_add(&hybrid->loader->mistakes, location,
                             "algorithm: recursive-doubling needs a power of two of nodes, not %" PRIu32, nodes);
        }
        break;
    case SCN_ALGORITHM_HIERARCHICAL:
        if (!is_power_of_two(hybrid->near) || !is_power_of_two(sub_clusters)) {
            scn_mistakes_add(&hybrid->loader->mistakes, location,
                             "algorithm: hierarchical needs a power of two of sub-clusters, and in each the same power "
                             "of two of nodes");
        }
        break;
    }
}

static void check_grid(const struct hybrid *hybrid)
{
    const struct scn_run *run = hybrid->run;
    uint32_t nodes = hybrid->routes->node_count, near = hybrid->near, block = scn_block_columns(run, near);
    struct scn_location location = location_of(hybrid, &run->columns);
    if (near == 0) {
        scn_mistakes_add(&hybrid->loader->mistakes, location_of(hybrid, &run->workload),
                         "workload: a hybrid-halo needs sub-clusters of the same number of nodes");
    } else if (near % block != 0) {
        scn_mistakes_add(&hybrid->loader->mistakes, location_of(hybrid, &run->block_columns),
                         "block_columns: %" PRIu32 " nodes of a sub-cluster are no block of %" PRIu32 " columns", near,
                         block);
    } else if (nodes % run->columns != 0 || run->columns % block != 0 || nodes / run->columns % (near / block) != 0) {
        scn_mistakes_add(&hybrid->loader->mistakes, location,
                         "columns: %" PRIu32 " nodes are no grid of %" PRIu32 " columns of blocks of %" PRIu32
                         " x %" PRIu32,
                         nodes, run->columns, block, near / block);
    }
}

static void check_bytes(const struct hybrid *hybrid)
{
    const struct scn_run *run = hybrid->run;
    for (uint32_t i = 0; run->workload == SCN_WORKLOAD_ALL_REDUCE && i < run->bytes_count; i++) {
        if (run->bytes[i] % ELEMENT_BYTES != 0) {
            scn_mistakes_add(&hybrid->loader->mistakes, location_of(hybrid, run->bytes),
                             "bytes: %" PRIu64 " B are not a multiple of the %d B of a number", run->bytes[i],
                             ELEMENT_BYTES);
        }
    }
}

void scn_check_hybrid_run(struct scn_loader *loader, const struct scn_run *run)
{
    const struct scn_scenario *scenario = loader->scenario;
    if (!scn_workload_is_hybrid(run->workload) || scenario->node_count == 0 ||
        scn_loader_is_bad(loader, &scenario->node_count, true) || !scn_loader_is_good(loader, &run->columns) ||
        !scn_loader_is_good(loader, &run->block_columns) || !scn_loader_is_good(loader, &run->algorithm) ||
        !scn_check_are_cables_good(loader) || scn_loader_is_bad(loader, &scenario->ib_cable_count, true)) {
        return;
    }
    struct scn_routes *routes = scn_routes_find(scenario);
    const struct hybrid hybrid = {loader, run, routes, scn_routes_parts(routes), size_of_all(routes)};
    check_infiniband(&hybrid);
    if (scn_workload_uses(run->workload, SCN_USES_ALGORITHM)) {
        check_algorithm(&hybrid);
    }
    if (scn_workload_uses(run->workload, SCN_USES_BLOCKS)) {
        check_grid(&hybrid);
    }
    check_bytes(&hybrid);
    scn_routes_free(routes);
}
