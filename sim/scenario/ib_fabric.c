#include "sim/scenario/ib_fabric.h"

#include <stdlib.h>
#include <string.h>

#include "sim/kernel/status.h"
#include "sim/scenario/ib_routes.h"

void *scn_ib_cells(size_t count, size_t size)
{
    void *made = calloc(count > 0 ? count : 1, size);
    if (made == NULL) {
        sim_panic("scenario", "no memory for the routes of the InfiniBand fabric");
    }
    return made;
}

// --- the graph -----------------------------------------------------------------------------------------------------

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

static bool cable_counts(const struct scn_scenario *scenario, const struct scn_ib_cable *cable)
{
    return vertex_exists(scenario, cable->from_node) && vertex_exists(scenario, cable->to_node) &&
           cable->from_node != cable->to_node;
}

static void port_count(uint32_t *counts, uint32_t vertex)
{
    if (vertex >= SCN_NODES_MAX) {
        counts[vertex - SCN_NODES_MAX]++;
    }
}

// The next free port of a vertex. NULL: a mistake of the scenario, more cables at an HCA than its port.
static struct scn_ib_plug *plug_take(struct scn_ib_fabric *fabric, uint32_t *used, uint32_t vertex, uint8_t *port_out)
{
    if (vertex < SCN_NODES_MAX) {
        struct scn_ib_plug *hca = &fabric->hcas[vertex];
        *port_out = 0;
        return hca->vertex == SCN_NODE_NONE ? hca : NULL;
    }
    uint32_t index = vertex - SCN_NODES_MAX;
    *port_out = (uint8_t)used[index];
    return &fabric->plugs[fabric->first[index] + used[index]++];
}

static void plugs_find(const struct scn_scenario *scenario, struct scn_ib_fabric *fabric)
{
    uint32_t *used = scn_ib_cells(fabric->switch_count, sizeof *used);
    for (uint32_t i = 0; i < fabric->node_count; i++) {
        fabric->hcas[i].vertex = SCN_NODE_NONE;
    }
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        const struct scn_ib_cable *cable = &scenario->ib_cables[i];
        uint8_t from_port, to_port;
        struct scn_ib_plug ignored, *from, *to;
        if (!cable_counts(scenario, cable)) {
            continue;
        }
        from = plug_take(fabric, used, cable->from_node, &from_port);
        to = plug_take(fabric, used, cable->to_node, &to_port);
        *(from != NULL ? from : &ignored) = (struct scn_ib_plug){cable->to_node, i, to_port};
        *(to != NULL ? to : &ignored) = (struct scn_ib_plug){cable->from_node, i, from_port};
    }
    free(used);
}

static void graph_find(const struct scn_scenario *scenario, struct scn_ib_fabric *fabric)
{
    uint32_t *counts = scn_ib_cells(fabric->switch_count, sizeof *counts), total = 0;
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        if (cable_counts(scenario, &scenario->ib_cables[i])) {
            port_count(counts, scenario->ib_cables[i].from_node);
            port_count(counts, scenario->ib_cables[i].to_node);
        }
    }
    for (uint32_t i = 0; i < fabric->switch_count; i++) {
        fabric->first[i] = total;
        total += counts[i];
    }
    fabric->first[fabric->switch_count] = total;
    free(counts);
    fabric->plugs = scn_ib_cells(total, sizeof *fabric->plugs);
    plugs_find(scenario, fabric);
}

// --- life ----------------------------------------------------------------------------------------------------------

struct scn_ib_fabric *scn_ib_fabric_find(const struct scn_scenario *scenario)
{
    struct scn_ib_fabric *fabric = scn_ib_cells(1, sizeof *fabric);
    uint32_t switches = scenario->ib_switch_count;
    fabric->node_count = scenario->node_count;
    fabric->switch_count = switches;
    fabric->hcas = scn_ib_cells(scenario->node_count, sizeof *fabric->hcas);
    fabric->first = scn_ib_cells(switches + 1, sizeof *fabric->first);
    fabric->order = scn_ib_cells(switches, sizeof *fabric->order);
    fabric->position = scn_ib_cells(switches, sizeof *fabric->position);
    fabric->parent_ports = scn_ib_cells(switches, sizeof *fabric->parent_ports);
    fabric->ports = scn_ib_cells((size_t)switches * scenario->node_count, sizeof *fabric->ports);
    graph_find(scenario, fabric);
    scn_ib_order(fabric);
    scn_ib_route(fabric, scenario->ib_routing == SCN_IB_ROUTING_UP_DOWN);
    fabric->safe = scn_ib_is_safe(fabric, scenario, NULL, 0);
    if (!fabric->safe && scenario->ib_routing == SCN_IB_ROUTING_AUTO) {
        scn_ib_route(fabric, true);
        fabric->safe = scn_ib_is_safe(fabric, scenario, NULL, 0);
    }
    return fabric;
}

void scn_ib_fabric_free(struct scn_ib_fabric *fabric)
{
    if (fabric != NULL) {
        free(fabric->hcas);
        free(fabric->first);
        free(fabric->plugs);
        free(fabric->order);
        free(fabric->position);
        free(fabric->parent_ports);
        free(fabric->ports);
        free(fabric);
    }
}

// --- answers -------------------------------------------------------------------------------------------------------

uint8_t scn_ib_port(const struct scn_ib_fabric *fabric, uint32_t ib_switch, uint32_t node)
{
    return fabric->ports[(size_t)ib_switch * fabric->node_count + node];
}

uint32_t scn_ib_port_count(const struct scn_ib_fabric *fabric, uint32_t ib_switch)
{
    return fabric->first[ib_switch + 1] - fabric->first[ib_switch];
}

const struct scn_ib_plug *scn_ib_plug(const struct scn_ib_fabric *fabric, uint32_t ib_switch, uint32_t port)
{
    return &fabric->plugs[fabric->first[ib_switch] + port];
}

uint32_t scn_ib_cables(const struct scn_ib_fabric *fabric, uint32_t from, uint32_t to)
{
    uint32_t cables = 1, vertex = fabric->hcas[from].vertex;
    if (from == to || vertex == SCN_NODE_NONE) {
        return UINT32_MAX;
    }
    while (vertex != to) {
        uint8_t port = vertex >= SCN_NODES_MAX ? scn_ib_port(fabric, vertex - SCN_NODES_MAX, to) : SCN_IB_NO_PORT;
        if (port == SCN_IB_NO_PORT) {
            return UINT32_MAX;
        }
        vertex = scn_ib_plug(fabric, vertex - SCN_NODES_MAX, port)->vertex;
        cables++;
    }
    return cables;
}

void scn_ib_tree_ports(const struct scn_ib_fabric *fabric, uint32_t node, uint8_t *ports_out)
{
    const struct scn_ib_plug *hca = &fabric->hcas[node];
    memcpy(ports_out, fabric->parent_ports, fabric->switch_count * sizeof *ports_out);
    if (hca->vertex == SCN_NODE_NONE || hca->vertex < SCN_NODES_MAX) {
        memset(ports_out, SCN_IB_NO_PORT, fabric->switch_count * sizeof *ports_out);
        return;
    }
    uint32_t at = hca->vertex - SCN_NODES_MAX;
    ports_out[at] = hca->port;
    while (fabric->parent_ports[at] != SCN_IB_NO_PORT) { // the switches above lead down
        const struct scn_ib_plug *up = scn_ib_plug(fabric, at, fabric->parent_ports[at]);
        at = up->vertex - SCN_NODES_MAX;
        ports_out[at] = up->port;
    }
}
