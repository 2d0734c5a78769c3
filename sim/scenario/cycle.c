// Can packets on the routes wait for one another in a cycle? The channel dependency graph: a channel is one direction
// of a cable, or one direction of a whole ring; channel a waits for channel b if a route leads from a directly to b.
#include "sim/scenario/routes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CABLE_CHANNELS (2 * SCN_CABLES_MAX)                 // from `from` to `to`, and back
#define CHANNELS       (CABLE_CHANNELS + 2 * SCN_NODES_MAX) // eastward, and westward

enum mark { MARK_NEW, MARK_OPEN, MARK_DONE };

struct graph {
    const struct scn_scenario *scenario;
    struct scn_rings rings;
    bool waits[CHANNELS][CHANNELS];
    enum mark marks[CHANNELS];
    uint32_t stack[CHANNELS]; // the open channels, in the order of the search
    uint32_t depth;
};

// The channel that a packet enters when it leaves a node through a port.
static uint32_t channel_of(const struct graph *graph, uint32_t node, enum scn_port port)
{
    enum scn_port far = SCN_PORT_N;
    uint32_t ring = graph->rings.ring_of[node];
    uint32_t neighbour = scn_routes_neighbour(graph->scenario, node, port, &far);
    bool on_ring = ring != SCN_NODE_NONE && ring == graph->rings.ring_of[neighbour];
    if (on_ring && port == SCN_PORT_E && far == SCN_PORT_W) {
        return CABLE_CHANNELS + 2 * ring;
    }
    if (on_ring && port == SCN_PORT_W && far == SCN_PORT_E) {
        return CABLE_CHANNELS + 2 * ring + 1;
    }
    uint32_t cable = 0;
    while (graph->scenario->cables[cable].from_node != node || graph->scenario->cables[cable].from_port != port) {
        if (graph->scenario->cables[cable].to_node == node && graph->scenario->cables[cable].to_port == port) {
            return 2 * cable + 1;
        }
        cable++;
    }
    return 2 * cable;
}

static void way_add(struct graph *graph, const struct scn_routes *routes, uint32_t node, uint32_t target)
{
    uint32_t before = CHANNELS;
    while (node != target) {
        enum scn_port port = routes->ports[node][target];
        uint32_t channel = channel_of(graph, node, port);
        if (before != CHANNELS && before != channel) { // the bubble rule keeps packets of a ring moving
            graph->waits[before][channel] = true;
        }
        before = channel;
        node = scn_routes_neighbour(graph->scenario, node, port, NULL);
    }
}

// Depth-first search. Returns the first channel of a cycle, which is then the end of the stack; CHANNELS: no cycle.
static uint32_t circle_find(struct graph *graph, uint32_t channel)
{
    graph->marks[channel] = MARK_OPEN;
    graph->stack[graph->depth++] = channel;
    for (uint32_t next = 0; next < CHANNELS; next++) {
        if (!graph->waits[channel][next] || graph->marks[next] == MARK_DONE) {
            continue;
        }
        uint32_t found = graph->marks[next] == MARK_OPEN ? next : circle_find(graph, next);
        if (found != CHANNELS) {
            return found;
        }
    }
    graph->marks[channel] = MARK_DONE;
    graph->depth--;
    return CHANNELS;
}

static void channel_print(const struct graph *graph, uint32_t channel, FILE *out)
{
    const struct scn_scenario *scenario = graph->scenario;
    if (channel >= CABLE_CHANNELS) {
        uint32_t first = graph->rings.nodes[(channel - CABLE_CHANNELS) / 2][0];
        fprintf(out, "the ring of %s %sward", scenario->nodes[first].name, channel % 2 == 0 ? "east" : "west");
        return;
    }
    const struct scn_cable *cable = &scenario->cables[channel / 2];
    bool forward = channel % 2 == 0;
    fprintf(out, "%s.%s to %s.%s", scenario->nodes[forward ? cable->from_node : cable->to_node].name,
            scn_port_name(forward ? cable->from_port : cable->to_port),
            scenario->nodes[forward ? cable->to_node : cable->from_node].name,
            scn_port_name(forward ? cable->to_port : cable->from_port));
}

static void circle_print(const struct graph *graph, uint32_t first, char *text, size_t text_size)
{
    FILE *out = fmemopen(text, text_size, "w");
    if (out == NULL) {
        text[0] = '\0';
        return;
    }
    uint32_t at = 0;
    while (graph->stack[at] != first) {
        at++;
    }
    for (; at < graph->depth; at++) {
        channel_print(graph, graph->stack[at], out);
        fputs(", ", out);
    }
    channel_print(graph, first, out);
    fclose(out); // text that does not fit is cut off
    text[text_size - 1] = '\0';
}

bool scn_routes_are_safe(const struct scn_scenario *scenario, const struct scn_routes *routes, char *text,
                         size_t text_size)
{
    struct graph graph = {.scenario = scenario};
    scn_rings_find(scenario, &graph.rings);
    for (uint32_t node = 0; node < routes->node_count; node++) {
        for (uint32_t target = 0; target < routes->node_count; target++) {
            if (routes->ports[node][target] != SCN_NO_PORT) {
                way_add(&graph, routes, node, target);
            }
        }
    }
    for (uint32_t channel = 0; channel < CHANNELS; channel++) {
        uint32_t first = graph.marks[channel] == MARK_NEW ? circle_find(&graph, channel) : CHANNELS;
        if (first != CHANNELS) {
            circle_print(&graph, first, text, text_size);
            return false;
        }
    }
    return true;
}
