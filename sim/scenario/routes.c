#include "sim/scenario/routes.h"

#include <stdlib.h>
#include <string.h>

#include "sim/kernel/status.h"

// Of equally short routes, the one through the first of these ports is taken.
static const enum scn_port preference[] = {SCN_PORT_S, SCN_PORT_E, SCN_PORT_W};
#define PREFERENCES (sizeof preference / sizeof preference[0])
#define FAR         0xffu

static void *cells(size_t count, size_t size)
{
    void *made = calloc(count > 0 ? count : 1, size);
    if (made == NULL) {
        sim_panic("scenario", "no memory for the routes of %zu nodes", count);
    }
    return made;
}

// --- sub-clusters --------------------------------------------------------------------------------------------------

static void plugs_find(const struct scn_scenario *scenario, struct scn_routes *routes)
{
    for (uint32_t node = 0; node < routes->node_count; node++) {
        for (unsigned port = 0; port < SCN_PORTS; port++) {
            routes->plugs[node][port].node = SCN_NODE_NONE;
        }
    }
    for (uint32_t i = scenario->cable_count; i-- > 0;) { // of two cables at a port, the first one counts
        const struct scn_cable *cable = &scenario->cables[i];
        routes->plugs[cable->from_node][cable->from_port] = (struct scn_plug){cable->to_node, i, cable->to_port};
        routes->plugs[cable->to_node][cable->to_port] = (struct scn_plug){cable->from_node, i, cable->from_port};
    }
}

// Marks the nodes that cables join with this one as members of a sub-cluster.
static void members_mark(struct scn_routes *routes, uint32_t first, uint32_t sub_cluster, uint32_t *queue)
{
    uint32_t head = 0, tail = 0;
    routes->sub_cluster_of[first] = sub_cluster;
    queue[tail++] = first;
    while (head < tail) {
        uint32_t node = queue[head++];
        for (unsigned port = 0; port < SCN_PORTS; port++) {
            uint32_t next = routes->plugs[node][port].node;
            if (next != SCN_NODE_NONE && routes->sub_cluster_of[next] == SCN_NODE_NONE) {
                routes->sub_cluster_of[next] = sub_cluster;
                queue[tail++] = next;
            }
        }
    }
}

static bool is_unplugged(const struct scn_scenario *scenario)
{
    bool boards = scenario->node_count > 1 && scenario->node_count <= SCN_WINDOW_NODES_MAX;
    for (uint32_t i = 0; boards && i < scenario->node_count; i++) {
        boards = scenario->nodes[i].board.given;
    }
    return boards && scenario->cable_count == 0;
}

static void sub_clusters_find(const struct scn_scenario *scenario, struct scn_routes *routes)
{
    bool unplugged = is_unplugged(scenario);
    uint32_t *queue = cells(routes->node_count, sizeof *queue);
    for (uint32_t node = 0; node < routes->node_count; node++) {
        routes->sub_cluster_of[node] = SCN_NODE_NONE;
    }
    for (uint32_t node = 0; node < routes->node_count; node++) {
        if (unplugged) {
            routes->sub_cluster_of[node] = 0;
            routes->sub_cluster_count = 1;
        } else if (routes->sub_cluster_of[node] == SCN_NODE_NONE) {
            members_mark(routes, node, routes->sub_cluster_count++, queue);
        }
    }
    free(queue);
    routes->sub_clusters = cells(routes->sub_cluster_count, sizeof *routes->sub_clusters);
    for (uint32_t node = 0; node < routes->node_count; node++) {
        struct scn_sub_cluster *of = &routes->sub_clusters[routes->sub_cluster_of[node]];
        of->joined = !unplugged;
        routes->numbers[node] = of->node_count;
        if (of->node_count < SCN_WINDOW_NODES_MAX) {
            of->nodes[of->node_count] = node;
        }
        of->node_count++;
    }
}

// --- routes --------------------------------------------------------------------------------------------------------

// The number of the node at the other end of a port's cable; SCN_NODE_NONE: no cable.
static uint32_t number_beyond(const struct scn_routes *routes, const struct scn_sub_cluster *of, uint32_t number,
                              enum scn_port port)
{
    uint32_t node = routes->plugs[of->nodes[number]][port].node;
    return node != SCN_NODE_NONE ? routes->numbers[node] : SCN_NODE_NONE;
}

// Hops from every node to target.
static void distances_find(const struct scn_routes *routes, struct scn_sub_cluster *of, uint32_t target)
{
    uint32_t queue[SCN_WINDOW_NODES_MAX], head = 0, tail = 0;
    of->hops[target][target] = 0;
    queue[tail++] = target;
    while (head < tail) {
        uint32_t number = queue[head++];
        for (size_t i = 0; i < PREFERENCES; i++) {
            uint32_t next = number_beyond(routes, of, number, preference[i]);
            if (next != SCN_NODE_NONE && of->hops[next][target] == FAR) {
                of->hops[next][target] = (uint8_t)(of->hops[number][target] + 1);
                queue[tail++] = next;
            }
        }
    }
}

static uint8_t next_port(const struct scn_routes *routes, const struct scn_sub_cluster *of, uint32_t number,
                         uint32_t target)
{
    for (size_t i = 0; i < PREFERENCES; i++) {
        uint32_t next = number_beyond(routes, of, number, preference[i]);
        if (next != SCN_NODE_NONE && of->hops[next][target] < of->hops[number][target]) {
            return (uint8_t)preference[i];
        }
    }
    return SCN_NO_PORT;
}

static void sub_cluster_route(const struct scn_routes *routes, struct scn_sub_cluster *of)
{
    memset(of->ports, SCN_NO_PORT, sizeof of->ports);
    memset(of->hops, FAR, sizeof of->hops);
    for (uint32_t target = 0; of->node_count <= SCN_WINDOW_NODES_MAX && target < of->node_count; target++) {
        distances_find(routes, of, target);
        for (uint32_t number = 0; number < of->node_count; number++) {
            of->ports[number][target] = next_port(routes, of, number, target);
        }
    }
}

struct scn_routes *scn_routes_find(const struct scn_scenario *scenario)
{
    struct scn_routes *routes = cells(1, sizeof *routes);
    routes->node_count = scenario->node_count;
    routes->sub_cluster_of = cells(scenario->node_count, sizeof *routes->sub_cluster_of);
    routes->numbers = cells(scenario->node_count, sizeof *routes->numbers);
    routes->plugs = cells(scenario->node_count, sizeof *routes->plugs);
    plugs_find(scenario, routes);
    sub_clusters_find(scenario, routes);
    for (uint32_t i = 0; i < routes->sub_cluster_count; i++) {
        sub_cluster_route(routes, &routes->sub_clusters[i]);
    }
    return routes;
}

void scn_routes_free(struct scn_routes *routes)
{
    if (routes != NULL) {
        free(routes->sub_clusters);
        free(routes->sub_cluster_of);
        free(routes->numbers);
        free(routes->plugs);
        free(routes);
    }
}

// --- answers -------------------------------------------------------------------------------------------------------

bool scn_routes_joined(const struct scn_routes *routes, uint32_t a, uint32_t b)
{
    uint32_t sub_cluster = routes->sub_cluster_of[a];
    return a == b || (sub_cluster == routes->sub_cluster_of[b] && routes->sub_clusters[sub_cluster].joined);
}

uint32_t scn_routes_parts(const struct scn_routes *routes)
{
    return routes->sub_cluster_count == 1 && !routes->sub_clusters[0].joined ? routes->node_count
                                                                             : routes->sub_cluster_count;
}

// NULL: the nodes are not joined, or there are no routes.
static const struct scn_sub_cluster *sub_cluster_of_both(const struct scn_routes *routes, uint32_t from, uint32_t to)
{
    const struct scn_sub_cluster *of = &routes->sub_clusters[routes->sub_cluster_of[from]];
    return scn_routes_joined(routes, from, to) && of->node_count <= SCN_WINDOW_NODES_MAX ? of : NULL;
}

uint8_t scn_routes_port(const struct scn_routes *routes, uint32_t from, uint32_t to)
{
    const struct scn_sub_cluster *of = sub_cluster_of_both(routes, from, to);
    return of != NULL ? of->ports[routes->numbers[from]][routes->numbers[to]] : SCN_NO_PORT;
}

uint32_t scn_routes_hops(const struct scn_routes *routes, uint32_t from, uint32_t to)
{
    const struct scn_sub_cluster *of = sub_cluster_of_both(routes, from, to);
    return of != NULL ? of->hops[routes->numbers[from]][routes->numbers[to]] : SCN_UNREACHED;
}

uint32_t scn_routes_neighbour(const struct scn_routes *routes, uint32_t node, enum scn_port port,
                              enum scn_port *port_out)
{
    const struct scn_plug *plug = &routes->plugs[node][port];
    if (plug->node != SCN_NODE_NONE && port_out != NULL) {
        *port_out = plug->port;
    }
    return plug->node;
}

uint32_t scn_routes_ranges(const struct scn_routes *routes, uint32_t node, enum scn_port port)
{
    const struct scn_sub_cluster *of = sub_cluster_of_both(routes, node, node);
    uint32_t ranges = 0;
    bool inside = false;
    for (uint32_t target = 0; of != NULL && target < of->node_count; target++) {
        bool leads = of->ports[routes->numbers[node]][target] == port;
        ranges += leads && !inside;
        inside = leads;
    }
    return ranges;
}

// --- rings ---------------------------------------------------------------------------------------------------------

// Follows the E ports from a node. Returns the size of the ring; 0: they do not lead back to the node.
static uint32_t ring_follow(const struct scn_routes *routes, const struct scn_sub_cluster *of, uint32_t first,
                            uint32_t numbers[SCN_WINDOW_NODES_MAX])
{
    uint32_t size = 0, number = first;
    while (size < SCN_WINDOW_NODES_MAX) {
        const struct scn_plug *plug = &routes->plugs[of->nodes[number]][SCN_PORT_E];
        numbers[size++] = number;
        if (plug->node == SCN_NODE_NONE || plug->port != SCN_PORT_W) {
            return 0;
        }
        number = routes->numbers[plug->node];
        if (number == first) {
            return size;
        }
    }
    return 0;
}

void scn_rings_find(const struct scn_routes *routes, uint32_t sub_cluster, struct scn_rings *rings_out)
{
    const struct scn_sub_cluster *of = &routes->sub_clusters[sub_cluster];
    memset(rings_out, 0, sizeof *rings_out);
    for (uint32_t i = 0; i < SCN_WINDOW_NODES_MAX; i++) {
        rings_out->ring_of[i] = SCN_NODE_NONE;
    }
    for (uint32_t first = 0; of->node_count <= SCN_WINDOW_NODES_MAX && first < of->node_count; first++) {
        uint32_t *numbers = rings_out->nodes[rings_out->count];
        uint32_t size = rings_out->ring_of[first] == SCN_NODE_NONE ? ring_follow(routes, of, first, numbers) : 0;
        if (size == 0) {
            continue;
        }
        for (uint32_t i = 0; i < size; i++) {
            rings_out->ring_of[numbers[i]] = rings_out->count;
        }
        rings_out->sizes[rings_out->count++] = size;
    }
}
