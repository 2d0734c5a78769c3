#include "sim/platform/routes.h"

#include <string.h>

_Static_assert(SCN_WINDOW_NODES_MAX == PEACH2_NODES_MAX, "the window has a block for each node");

struct peach2_routing plat_routing_of(const struct scn_routes *routes, uint32_t node)
{
    const struct scn_sub_cluster *of = &routes->sub_clusters[routes->sub_cluster_of[node]];
    uint32_t number = routes->numbers[node];
    struct peach2_routing routing = {.node = number, .node_count = of->node_count};
    memset(routing.port_of_node, PEACH2_NO_PORT, sizeof routing.port_of_node);
    for (uint32_t target = 0; target < of->node_count && of->node_count <= PEACH2_NODES_MAX; target++) {
        uint8_t port = of->ports[number][target];
        routing.port_of_node[target] = port == SCN_NO_PORT ? PEACH2_NO_PORT : port; // both enums have the same numbers
    }
    return routing;
}
