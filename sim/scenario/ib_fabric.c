#include "sim/scenario/ib_fabric.h"

#include <stddef.h>

#define PLACES_MAX (SCN_NODES_MAX + SCN_IB_SWITCHES_MAX)
#define FAR        UINT32_MAX

static bool place_exists(const struct scn_scenario *scenario, uint32_t place)
{
    return place < scenario->node_count || (place >= SCN_NODES_MAX && place < SCN_IB_SWITCH(scenario->ib_switch_count));
}

const char *scn_ib_place_name(const struct scn_scenario *scenario, uint32_t place)
{
    if (!place_exists(scenario, place)) {
        return "";
    }
    return place < SCN_NODES_MAX ? scenario->nodes[place].name : scenario->ib_switches[place - SCN_NODES_MAX].name;
}

// Where a cable leads from a place; SCN_NODE_NONE: nowhere, or it is not at this place.
static uint32_t other_end(const struct scn_scenario *scenario, uint32_t index, uint32_t place)
{
    const struct scn_ib_cable *cable = &scenario->ib_cables[index];
    if (!place_exists(scenario, cable->from_node) || !place_exists(scenario, cable->to_node)) {
        return SCN_NODE_NONE; // of a scenario with mistakes
    }
    if (cable->from_node == place) {
        return cable->to_node;
    }
    return cable->to_node == place ? cable->from_node : SCN_NODE_NONE;
}

// Distances of all places to a node, in cables.
static void distances_find(const struct scn_scenario *scenario, uint32_t to_node, uint32_t distances[PLACES_MAX])
{
    uint32_t queue[PLACES_MAX], first = 0, count = 0;
    for (uint32_t i = 0; i < PLACES_MAX; i++) {
        distances[i] = FAR;
    }
    distances[to_node] = 0;
    queue[count++] = to_node;
    while (first < count) {
        uint32_t place = queue[first++];
        for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
            uint32_t next = other_end(scenario, i, place);
            if (next == SCN_NODE_NONE || distances[next] != FAR) {
                continue;
            }
            distances[next] = distances[place] + 1;
            if (next >= SCN_NODES_MAX) {
                queue[count++] = next;
            }
        }
    }
}

uint32_t scn_ib_first_cable(const struct scn_scenario *scenario, uint32_t from, uint32_t to_node, uint32_t *cables_out)
{
    uint32_t distances[PLACES_MAX];
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
