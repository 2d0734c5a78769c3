#include "sim/scenario/routes.h"

#include <string.h>

// Of equally short routes, the one through the first of these ports is taken.
static const enum scn_port preference[] = {SCN_PORT_S, SCN_PORT_E, SCN_PORT_W};
#define PREFERENCES (sizeof preference / sizeof preference[0])

uint32_t scn_routes_neighbour(const struct scn_scenario *scenario, uint32_t node, enum scn_port port,
                              enum scn_port *port_out)
{
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        const struct scn_cable *cable = &scenario->cables[i];
        bool is_from = cable->from_node == node && cable->from_port == port;
        bool is_to = cable->to_node == node && cable->to_port == port;
        if (!is_from && !is_to) {
            continue;
        }
        if (port_out != NULL) {
            *port_out = is_from ? cable->to_port : cable->from_port;
        }
        return is_from ? cable->to_node : cable->from_node;
    }
    return SCN_NODE_NONE;
}

// Hops from every node to target.
static void distances_find(const struct scn_scenario *scenario, uint32_t target, struct scn_routes *routes)
{
    uint32_t queue[SCN_NODES_MAX], head = 0, tail = 0;
    routes->hops[target][target] = 0;
    queue[tail++] = target;
    while (head < tail) {
        uint32_t node = queue[head++];
        for (size_t i = 0; i < PREFERENCES; i++) {
            uint32_t neighbour = scn_routes_neighbour(scenario, node, preference[i], NULL);
            if (neighbour != SCN_NODE_NONE && routes->hops[neighbour][target] == SCN_UNREACHED) {
                routes->hops[neighbour][target] = routes->hops[node][target] + 1;
                queue[tail++] = neighbour;
            }
        }
    }
}

static uint8_t next_port(const struct scn_scenario *scenario, const struct scn_routes *routes, uint32_t node,
                         uint32_t target)
{
    for (size_t i = 0; i < PREFERENCES; i++) {
        uint32_t neighbour = scn_routes_neighbour(scenario, node, preference[i], NULL);
        if (neighbour != SCN_NODE_NONE && routes->hops[neighbour][target] < routes->hops[node][target]) {
            return (uint8_t)preference[i];
        }
    }
    return SCN_NO_PORT;
}

void scn_routes_find(const struct scn_scenario *scenario, struct scn_routes *routes_out)
{
    memset(routes_out, 0xff, sizeof *routes_out); // SCN_UNREACHED and SCN_NO_PORT everywhere
    routes_out->node_count = scenario->node_count;
    for (uint32_t target = 0; target < scenario->node_count; target++) {
        distances_find(scenario, target, routes_out);
        for (uint32_t node = 0; node < scenario->node_count; node++) {
            routes_out->ports[node][target] = next_port(scenario, routes_out, node, target);
        }
    }
}

uint32_t scn_routes_ranges(const struct scn_routes *routes, uint32_t node, enum scn_port port)
{
    uint32_t ranges = 0;
    bool inside = false;
    for (uint32_t target = 0; target < routes->node_count; target++) {
        bool leads = routes->ports[node][target] == port;
        ranges += leads && !inside;
        inside = leads;
    }
    return ranges;
}

// Follows the E ports from a node. Returns the size of the ring; 0: they do not lead back to the node.
static uint32_t ring_follow(const struct scn_scenario *scenario, uint32_t first, uint32_t nodes[SCN_NODES_MAX])
{
    uint32_t size = 0, node = first;
    while (size < SCN_NODES_MAX) {
        enum scn_port port = SCN_PORT_N;
        nodes[size++] = node;
        node = scn_routes_neighbour(scenario, node, SCN_PORT_E, &port);
        if (node == SCN_NODE_NONE || port != SCN_PORT_W) {
            return 0;
        }
        if (node == first) {
            return size;
        }
    }
    return 0;
}

void scn_rings_find(const struct scn_scenario *scenario, struct scn_rings *rings_out)
{
    memset(rings_out, 0, sizeof *rings_out);
    for (uint32_t i = 0; i < SCN_NODES_MAX; i++) {
        rings_out->ring_of[i] = SCN_NODE_NONE;
    }
    for (uint32_t first = 0; first < scenario->node_count; first++) {
        uint32_t *nodes = rings_out->nodes[rings_out->count];
        uint32_t size = rings_out->ring_of[first] == SCN_NODE_NONE ? ring_follow(scenario, first, nodes) : 0;
        if (size == 0) {
            continue;
        }
        for (uint32_t i = 0; i < size; i++) {
            rings_out->ring_of[nodes[i]] = rings_out->count;
        }
        rings_out->sizes[rings_out->count++] = size;
    }
}
