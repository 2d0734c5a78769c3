// Rules about the fabric as a whole: all nodes reach one another, boards can hold the routes, and packets on them never
// block one another. Called if each cable by itself is good.
#include "sim/scenario/loader.h"

#include <inttypes.h>

#include "sim/scenario/routes.h"
#include "sim/scenario/sets.h"

#define CIRCLE_BYTES_MAX 4096

// Through boards, or through InfiniBand. Reports the first node of each set of nodes that are joined with one another.
static void check_reached(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    struct scn_sets sets;
    if (scn_loader_is_bad(loader, &scenario->ib_cable_count, true)) {
        return; // reported
    }
    scn_sets_init(&sets);
    scn_sets_join_boards(&sets, scenario);
    scn_sets_join_ib(&sets, scenario);
    for (uint32_t i = 1; i < scenario->node_count; i++) {
        const struct scn_node *node = &scenario->nodes[i];
        if (!scn_sets_joined(&sets, 0, i)) {
            scn_mistakes_add(&loader->mistakes, scn_loader_location(loader, node->name, node),
                             "no cables lead from '%s' to '%s'; join it to the others or leave it out",
                             scenario->nodes[0].name, node->name);
            scn_sets_join(&sets, 0, i);
        }
    }
}

static void check_sizes(struct scn_loader *loader, const struct scn_routes *routes, struct scn_location location)
{
    for (uint32_t i = 0; i < routes->sub_cluster_count; i++) {
        const struct scn_sub_cluster *of = &routes->sub_clusters[i];
        if (of->node_count > SCN_WINDOW_NODES_MAX) {
            scn_mistakes_add(&loader->mistakes, location,
                             "cables: they join %" PRIu32 " nodes with '%s'; " SCN_WINDOW_IS_FULL, of->node_count,
                             loader->scenario->nodes[of->nodes[0]].name, SCN_WINDOW_NODES_MAX);
        }
    }
}

// Reports only the first port, because the cause is the order of the nodes, not that port.
static void check_ranges(struct scn_loader *loader, const struct scn_routes *routes, struct scn_location location)
{
    for (uint32_t i = 0; i < routes->node_count * SCN_PORTS; i++) {
        enum scn_port port = (enum scn_port)(i % SCN_PORTS);
        uint32_t ranges = scn_routes_ranges(routes, i / SCN_PORTS, port);
        if (ranges > SCN_ROUTE_RANGES_MAX) {
            scn_mistakes_add(&loader->mistakes, location,
                             "cables: port %s.%s leads to %" PRIu32 " separate ranges of nodes, a board holds %d; list "
                             "the nodes in the order in which the cables join them",
                             loader->scenario->nodes[i / SCN_PORTS].name, scn_port_name(port), ranges,
                             SCN_ROUTE_RANGES_MAX);
            return;
        }
    }
}

static void check_circles(struct scn_loader *loader, const struct scn_routes *routes, struct scn_location location)
{
    char circle[CIRCLE_BYTES_MAX];
    if (!scn_routes_are_safe(loader->scenario, routes, circle, sizeof circle)) {
        scn_mistakes_add(&loader->mistakes, location,
                         "cables: full buffers can wait for one another in a circle (%s); close circles with E and W "
                         "ports only, and join two rings by an S cable at every node",
                         circle);
    }
}

void scn_check_routes(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    struct scn_location location = scn_loader_location(loader, &scenario->cable_count, &scenario->cable_count);
    size_t before = loader->mistakes.count;
    if (scenario->cable_count == 0) {
        return;
    }
    struct scn_routes *routes = scn_routes_find(scenario);
    check_reached(loader);
    check_sizes(loader, routes, location);
    check_ranges(loader, routes, location);
    if (loader->mistakes.count == before) {
        check_circles(loader, routes, location);
    }
    scn_routes_free(routes);
    if (loader->mistakes.count > before) {
        scn_loader_note_bad(loader, &scenario->cable_count, true, location); // runs are not checked against bad cables
    }
}
