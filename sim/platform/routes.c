#include "sim/platform/routes.h"

#include <string.h>

#include "sim/scenario/routes.h"

struct peach2_routing plat_routes_find(const struct scn_scenario *scenario, uint32_t node)
{
    struct scn_routes routes;
    struct peach2_routing routing = {.node = node, .node_count = scenario->node_count};
    memset(routing.port_of_node, PEACH2_NO_PORT, sizeof routing.port_of_node);
    scn_routes_find(scenario, &routes);
    for (uint32_t target = 0; target < scenario->node_count; target++) {
        uint8_t port = routes.ports[node][target];
        routing.port_of_node[target] = port == SCN_NO_PORT ? PEACH2_NO_PORT : port; // both enums have the same numbers
    }
    return routing;
}

bool plat_routes_joined(const struct scn_scenario *scenario, uint32_t a, uint32_t b)
{
    struct scn_routes routes;
    scn_routes_find(scenario, &routes);
    return routes.hops[a][b] != SCN_UNREACHED;
}
