#include "sim/scenario/ib_fabric.h"

#include <stddef.h>

#define VERTICES_MAX (SCN_NODES_MAX + SCN_IB_SWITCHES_MAX)
#define FAR        UINT32_MAX

static bool vertex_exists(const struct scn_scenario *scenario, uint32_t vertex)
{
    return vertex < scenario->node_count ||
           (vertex >= SCN_NODES_MAX && vertex < SCN_IB_SWITCH(scenario->ib_switch_count));
}

const char *scn_ib_vertex_name(const struct scn_scenario *scenario, uint32_t vertex)
{
    if (!vertex_exists(scenario, vertex)) {
        return "";
    }
    return vertex < SCN_NODES_MAX ? scenario->nodes[vertex].name : scenario->ib_switches[vertex - SCN_NODES_MAX].name;
}

// The vertex at the other end of a cable; SCN_NODE_NONE: there is none, or the cable does not end at this vertex.
static uint32_t other_end(const struct scn_scenario *scenario, uint32_t index, uint32_t vertex)
{
    const struct scn_ib_cable *cable = &scenario->ib_cables[index];
    if (!vertex_exists(scenario, cable->from_node) || !vertex_exists(scenario, cable->to_node)) {
        return SCN_NODE_NONE; // the scenario has mistakes
    }
    if (cable->from_node == vertex) {
        return cable->to_node;
    }
    return cable->to_node == vertex ? cable->from_node : SCN_NODE_NONE;
}

// Distances of all vertices to a node, in cables.
static void distances_find(const struct scn_scenario *scenario, uint32_t to_node, uint32_t distances[VERTICES_MAX])
{
    uint32_t queue[VERTICES_MAX], first = 0, count = 0;
    for (uint32_t i = 0; i < VERTICES_MAX; i++) {
        distances[i] = FAR;
    }
    distances[to_node] = 0;
    queue[count++] = to_node;
    while (first < count) {
        uint32_t vertex = queue[first++];
        for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
            uint32_t next = other_end(scenario, i, vertex);
            if (next == SCN_NODE_NONE || distances[next] != FAR) {
                continue;
            }
            distances[next] = distances[vertex] + 1;
            if (next >= SCN_NODES_MAX) {
                queue[count++] = next;
            }
        }
    }
}

uint32_t scn_ib_first_cable(const struct scn_scenario *scenario, uint32_t from, uint32_t to_node, uint32_t *cables_out)
{
    uint32_t distances[VERTICES_MAX];
    distances_find(scenario, to_node, distances);
    if (from == to_node || distances[from] == FAR) {
        return SCN_IB_NO_CABLE;
    }
    if (cables_out != NULL) {
        *cables_out = distances[from];
    }
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        uint32_t next = other_end(scenario, i, from);
        if (next != SCN_NODE_NONE && distances[next] < distances[from]) {
            return i;
        }
    }
    return SCN_IB_NO_CABLE;
}
