#include "sim/platform/routes.h"

#include <string.h>

#define UNREACHED UINT32_MAX

// The node at the other end of a cable of `node`'s; UNREACHED: the cable is not plugged in there. *port_out: node's.
static uint32_t cable_neighbour(const struct scn_cable *cable, uint32_t node, enum scn_port *port_out)
{
    if (cable->from_node == node) {
        *port_out = cable->from_port;
        return cable->to_node;
    }
    if (cable->to_node == node) {
        *port_out = cable->to_port;
        return cable->from_node;
    }
    return UNREACHED;
}

// Hops from every node to `target`.
static void distances_find(const struct scn_scenario *scenario, uint32_t target, uint32_t hops[SCN_NODES_MAX])
{
    uint32_t queue[SCN_NODES_MAX], head = 0, tail = 0;
    for (uint32_t i = 0; i < SCN_NODES_MAX; i++) {
        hops[i] = UNREACHED;
    }
    hops[target] = 0;
    queue[tail++] = target;
    while (head < tail) {
        uint32_t node = queue[head++];
        for (uint32_t i = 0; i < scenario->cable_count; i++) {
            enum scn_port port;
            uint32_t neighbour = cable_neighbour(&scenario->cables[i], node, &port);
            if (neighbour != UNREACHED && hops[neighbour] == UNREACHED) {
                hops[neighbour] = hops[node] + 1;
                queue[tail++] = neighbour;
            }
        }
    }
}

// Both ends of a cable from a node to itself are its own: it leads nowhere and never shortens a way.
static uint8_t next_port(const struct scn_scenario *scenario, uint32_t node, const uint32_t hops[SCN_NODES_MAX])
{
    uint8_t best = PEACH2_NO_PORT;
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        enum scn_port port;
        uint32_t neighbour = cable_neighbour(&scenario->cables[i], node, &port);
        bool nearer = neighbour != UNREACHED && hops[neighbour] != UNREACHED && hops[neighbour] < hops[node];
        if (nearer && (uint8_t)port < best) {
            best = (uint8_t)port;
        }
    }
    return best;
}

struct peach2_routing plat_routes_find(const struct scn_scenario *scenario, uint32_t node)
{
    struct peach2_routing routing = {.node = node, .node_count = scenario->node_count};
    memset(routing.port_of_node, PEACH2_NO_PORT, sizeof routing.port_of_node);
    for (uint32_t target = 0; target < scenario->node_count; target++) {
        uint32_t hops[SCN_NODES_MAX];
        distances_find(scenario, target, hops);
        routing.port_of_node[target] = next_port(scenario, node, hops);
    }
    return routing;
}

bool plat_routes_joined(const struct scn_scenario *scenario, uint32_t a, uint32_t b)
{
    uint32_t hops[SCN_NODES_MAX];
    distances_find(scenario, b, hops);
    return hops[a] != UNREACHED;
}
