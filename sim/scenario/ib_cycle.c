// Can packets on the routes of an InfiniBand fabric wait for one another in a cycle? The channel dependency graph: a
// channel is a port of a switch that leads to another switch; channel a waits for channel b if packets of a node that
// came through a leave the next switch through b. Cables of HCAs are no part of a cycle, as HCAs forward nothing.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/ib_routes.h"

#define NONE UINT32_MAX

enum mark { MARK_NEW, MARK_OPEN, MARK_DONE };

struct graph {
    const struct scn_ib_fabric *fabric;
    uint64_t *waits;    // of each port, counted over all switches: the ports of the next switch, a bit each
    uint32_t *switches; // the switch of each port
    uint8_t *marks;
    uint8_t *looked_at; // of each open port: ports of the next switch that are done
    uint32_t *stack, depth;
};

_Static_assert(SCN_IB_PORTS_MAX <= 64, "a bit for each port");

// The switch that a port leads to; NONE: it leads to an HCA.
static uint32_t switch_after(const struct scn_ib_fabric *fabric, uint32_t channel)
{
    uint32_t vertex = fabric->plugs[channel].vertex;
    return vertex >= SCN_NODES_MAX ? vertex - SCN_NODES_MAX : NONE;
}

// Packets to the node from the HCAs at one switch. The rest of a route that another switch shares is known already.
static void way_add(struct graph *graph, uint32_t at, uint32_t node, uint32_t *seen)
{
    const struct scn_ib_fabric *fabric = graph->fabric;
    uint32_t before = NONE;
    for (;;) {
        uint8_t port = scn_ib_port(fabric, at, node);
        if (port == SCN_IB_NO_PORT) {
            return;
        }
        uint32_t channel = fabric->first[at] + port;
        if (switch_after(fabric, channel) == NONE) {
            return;
        }
        if (before != NONE) {
            graph->waits[before] |= UINT64_C(1) << port;
        }
        if (seen[at] == node + 1) {
            return;
        }
        seen[at] = node + 1;
        before = channel;
        at = switch_after(fabric, channel);
    }
}

static void ways_add(struct graph *graph)
{
    const struct scn_ib_fabric *fabric = graph->fabric;
    uint32_t *seen = scn_ib_cells(fabric->switch_count, sizeof *seen); // the number of the last node, from 1
    bool *sends = scn_ib_cells(fabric->switch_count, sizeof *sends);   // an HCA has a cable to the switch
    for (uint32_t node = 0; node < fabric->node_count; node++) {
        uint32_t vertex = fabric->hcas[node].vertex;
        if (vertex != SCN_NODE_NONE && vertex >= SCN_NODES_MAX) {
            sends[vertex - SCN_NODES_MAX] = true;
        }
    }
    for (uint32_t node = 0; node < fabric->node_count; node++) {
        for (uint32_t at = 0; at < fabric->switch_count; at++) {
            if (sends[at]) {
                way_add(graph, at, node, seen);
            }
        }
    }
    free(seen);
    free(sends);
}

// The next channel that the newest open one waits for and that is not done; NONE: there is no more.
static uint32_t waited_for(struct graph *graph)
{
    const struct scn_ib_fabric *fabric = graph->fabric;
    uint32_t channel = graph->stack[graph->depth - 1];
    while (graph->looked_at[channel] < SCN_IB_PORTS_MAX) {
        uint32_t port = graph->looked_at[channel]++;
        uint32_t next = fabric->first[switch_after(fabric, channel)] + port;
        if ((graph->waits[channel] >> port & 1) != 0 && graph->marks[next] != MARK_DONE) {
            return next;
        }
    }
    return NONE;
}

// Depth-first search. Returns the first channel of a cycle, which then ends the stack; NONE: no cycle.
static uint32_t circle_find(struct graph *graph, uint32_t first)
{
    graph->stack[graph->depth++] = first;
    graph->marks[first] = MARK_OPEN;
    while (graph->depth > 0) {
        uint32_t next = waited_for(graph);
        if (next == NONE) {
            graph->marks[graph->stack[--graph->depth]] = MARK_DONE;
        } else if (graph->marks[next] == MARK_OPEN) {
            return next;
        } else {
            graph->marks[next] = MARK_OPEN;
            graph->stack[graph->depth++] = next;
        }
    }
    return NONE;
}

static void circle_print(const struct graph *graph, const struct scn_scenario *scenario, uint32_t first, char *text,
                         size_t text_size)
{
    FILE *out = text != NULL ? fmemopen(text, text_size, "w") : NULL;
    if (out == NULL) {
        return;
    }
    uint32_t at = 0;
    while (graph->stack[at] != first) {
        at++;
    }
    for (; at < graph->depth; at++) {
        fprintf(out, "%s to ", scenario->ib_switches[graph->switches[graph->stack[at]]].name);
    }
    fputs(scenario->ib_switches[graph->switches[first]].name, out);
    fclose(out); // text that does not fit is cut off
    text[text_size - 1] = '\0';
}

bool scn_ib_is_safe(const struct scn_ib_fabric *fabric, const struct scn_scenario *scenario, char *text,
                    size_t text_size)
{
    uint32_t channels = fabric->first[fabric->switch_count], first = NONE;
    struct graph graph = {
        .fabric = fabric,
        .waits = scn_ib_cells(channels, sizeof *graph.waits),
        .switches = scn_ib_cells(channels, sizeof *graph.switches),
        .marks = scn_ib_cells(channels, sizeof *graph.marks),
        .looked_at = scn_ib_cells(channels, sizeof *graph.looked_at),
        .stack = scn_ib_cells(channels, sizeof *graph.stack),
    };
    for (uint32_t i = 0; i < fabric->switch_count; i++) {
        for (uint32_t port = 0; port < scn_ib_port_count(fabric, i); port++) {
            graph.switches[fabric->first[i] + port] = i;
        }
    }
    ways_add(&graph);
    for (uint32_t channel = 0; channel < channels && first == NONE; channel++) {
        if (graph.marks[channel] == MARK_NEW && switch_after(fabric, channel) != NONE) {
            first = circle_find(&graph, channel);
        }
    }
    if (first != NONE) {
        circle_print(&graph, scenario, first, text, text_size);
    }
    free(graph.waits);
    free(graph.switches);
    free(graph.marks);
    free(graph.looked_at);
    free(graph.stack);
    return first == NONE;
}
