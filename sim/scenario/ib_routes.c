#include "sim/scenario/ib_routes.h"

#include <stdlib.h>
#include <string.h>

#define FAR UINT32_MAX

// What one destination switch needs; arrays have an element for each switch.
struct search {
    struct scn_ib_fabric *fabric;
    bool up_down;
    uint32_t *queue;
    uint32_t *down;     // shortest distance by moves down alone; of shortest routes: by any moves
    uint32_t *distance; // on the routes
    uint32_t *load;     // of each port: nodes that it leads to so far
};

// The switch at the other end of a port; FAR: an HCA.
static uint32_t switch_beyond(const struct scn_ib_fabric *fabric, uint32_t ib_switch, uint32_t port)
{
    uint32_t vertex = scn_ib_plug(fabric, ib_switch, port)->vertex;
    return vertex >= SCN_NODES_MAX ? vertex - SCN_NODES_MAX : FAR;
}

uint32_t scn_ib_distances(const struct scn_ib_fabric *fabric, uint32_t ib_switch, uint32_t *distances, uint32_t *queue)
{
    uint32_t head = 0, tail = 0, sum = 0;
    memset(distances, 0xff, fabric->switch_count * sizeof *distances); // FAR
    distances[ib_switch] = 0;
    queue[tail++] = ib_switch;
    while (head < tail) {
        uint32_t at = queue[head++];
        sum += distances[at];
        for (uint32_t port = 0; port < scn_ib_port_count(fabric, at); port++) {
            uint32_t next = switch_beyond(fabric, at, port);
            if (next != FAR && distances[next] == FAR) {
                distances[next] = distances[at] + 1;
                queue[tail++] = next;
            }
        }
    }
    return sum;
}

// --- the order of switches -----------------------------------------------------------------------------------------

// The switch with the smallest sum of distances, of those that are joined with this one. Marks all of them.
static uint32_t root_find(const struct scn_ib_fabric *fabric, uint32_t member, bool *seen)
{
    uint32_t *queue = scn_ib_cells(fabric->switch_count, sizeof *queue);
    uint32_t *distances = scn_ib_cells(fabric->switch_count, sizeof *distances);
    uint32_t *members = scn_ib_cells(fabric->switch_count, sizeof *members);
    uint32_t best = member, least = FAR;
    (void)scn_ib_distances(fabric, member, members, queue);
    for (uint32_t i = 0; i < fabric->switch_count; i++) {
        if (members[i] == FAR) {
            continue;
        }
        seen[i] = true;
        uint32_t sum = scn_ib_distances(fabric, i, distances, queue);
        if (sum < least) {
            least = sum;
            best = i;
        }
    }
    free(queue);
    free(distances);
    free(members);
    return best;
}

static uint32_t tree_grow(struct scn_ib_fabric *fabric, uint32_t root, uint32_t head, bool *reached)
{
    uint32_t tail = head;
    fabric->order[tail++] = root;
    reached[root] = true;
    while (head < tail) {
        uint32_t at = fabric->order[head];
        fabric->position[at] = head++;
        for (uint32_t port = 0; port < scn_ib_port_count(fabric, at); port++) {
            uint32_t next = switch_beyond(fabric, at, port);
            if (next != FAR && !reached[next]) {
                reached[next] = true;
                fabric->parent_ports[next] = scn_ib_plug(fabric, at, port)->port;
                fabric->order[tail++] = next;
            }
        }
    }
    return tail;
}

void scn_ib_order(struct scn_ib_fabric *fabric)
{
    bool *seen = scn_ib_cells(fabric->switch_count, sizeof *seen);
    bool *reached = scn_ib_cells(fabric->switch_count, sizeof *reached);
    uint32_t count = 0;
    memset(fabric->parent_ports, SCN_IB_NO_PORT, fabric->switch_count * sizeof *fabric->parent_ports);
    for (uint32_t i = 0; i < fabric->switch_count; i++) {
        if (!seen[i]) {
            count = tree_grow(fabric, root_find(fabric, i, seen), count, reached);
        }
    }
    free(seen);
    free(reached);
}

// --- routes to the nodes of one switch -------------------------------------------------------------------------------

static bool is_above(const struct scn_ib_fabric *fabric, uint32_t ib_switch, uint32_t other)
{
    return fabric->position[ib_switch] < fabric->position[other];
}

// Distances to the switch from those above it, by moves down alone.
static void down_find(struct search *search, uint32_t target)
{
    const struct scn_ib_fabric *fabric = search->fabric;
    uint32_t head = 0, tail = 0;
    memset(search->down, 0xff, fabric->switch_count * sizeof *search->down); // FAR
    search->down[target] = 0;
    search->queue[tail++] = target;
    while (head < tail) {
        uint32_t at = search->queue[head++];
        for (uint32_t port = 0; port < scn_ib_port_count(fabric, at); port++) {
            uint32_t next = switch_beyond(fabric, at, port);
            if (next != FAR && is_above(fabric, next, at) && search->down[next] == FAR) {
                search->down[next] = search->down[at] + 1;
                search->queue[tail++] = next;
            }
        }
    }
}

// The others go through a switch above them, whose distance is known because it comes earlier in the order.
static void up_find(struct search *search)
{
    const struct scn_ib_fabric *fabric = search->fabric;
    for (uint32_t i = 0; i < fabric->switch_count; i++) {
        uint32_t at = fabric->order[i];
        search->distance[at] = search->down[at];
        for (uint32_t port = 0; search->down[at] == FAR && port < scn_ib_port_count(fabric, at); port++) {
            uint32_t next = switch_beyond(fabric, at, port);
            if (next != FAR && is_above(fabric, next, at) && search->distance[next] != FAR &&
                search->distance[next] + 1 < search->distance[at]) {
                search->distance[at] = search->distance[next] + 1;
            }
        }
    }
}

static void distances_find(struct search *search, uint32_t target)
{
    if (search->up_down) {
        down_find(search, target);
        up_find(search);
        return;
    }
    (void)scn_ib_distances(search->fabric, target, search->down, search->queue);
    memcpy(search->distance, search->down, search->fabric->switch_count * sizeof *search->distance);
}

// Does a route of the chosen kind begin at this port?
static bool begins_route(const struct search *search, uint32_t at, uint32_t port)
{
    uint32_t next = switch_beyond(search->fabric, at, port);
    if (next == FAR || search->distance[next] == FAR || search->distance[next] + 1 != search->distance[at]) {
        return false;
    }
    if (!search->up_down) {
        return true;
    }
    return search->down[at] != FAR ? search->down[next] != FAR && is_above(search->fabric, at, next)
                                   : is_above(search->fabric, next, at);
}

// The least loaded port of each switch that begins a route to the node.
static void ports_choose(struct search *search, uint32_t target, uint32_t node)
{
    struct scn_ib_fabric *fabric = search->fabric;
    for (uint32_t at = 0; at < fabric->switch_count; at++) {
        const uint32_t *load = &search->load[fabric->first[at]];
        uint8_t *best = &fabric->ports[(size_t)at * fabric->node_count + node];
        if (at == target) {
            *best = fabric->hcas[node].port;
            continue;
        }
        for (uint32_t port = 0; search->distance[at] != FAR && port < scn_ib_port_count(fabric, at); port++) {
            if ((*best == SCN_IB_NO_PORT || load[port] < load[*best]) && begins_route(search, at, port)) {
                *best = (uint8_t)port;
            }
        }
        if (*best != SCN_IB_NO_PORT) {
            search->load[fabric->first[at] + *best]++;
        }
    }
}

void scn_ib_route(struct scn_ib_fabric *fabric, bool up_down)
{
    struct search search = {
        .fabric = fabric,
        .up_down = up_down,
        .queue = scn_ib_cells(fabric->switch_count, sizeof *search.queue),
        .down = scn_ib_cells(fabric->switch_count, sizeof *search.down),
        .distance = scn_ib_cells(fabric->switch_count, sizeof *search.distance),
        .load = scn_ib_cells(fabric->first[fabric->switch_count], sizeof *search.load),
    };
    uint32_t known = FAR; // the switch whose distances are known
    fabric->up_down = up_down;
    memset(fabric->ports, SCN_IB_NO_PORT, (size_t)fabric->switch_count * fabric->node_count * sizeof *fabric->ports);
    for (uint32_t node = 0; node < fabric->node_count; node++) {
        uint32_t vertex = fabric->hcas[node].vertex;
        if (vertex == SCN_NODE_NONE || vertex < SCN_NODES_MAX) {
            continue; // it has no cable, or one to another HCA
        }
        if (vertex - SCN_NODES_MAX != known) {
            known = vertex - SCN_NODES_MAX;
            distances_find(&search, known);
        }
        ports_choose(&search, known, node);
    }
    free(search.queue);
    free(search.down);
    free(search.distance);
    free(search.load);
}
