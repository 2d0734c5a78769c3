// Can packets on the routes wait for one another in a cycle? The channel dependency graph: a channel is one direction
// of a cable, or one direction of a whole ring; channel a waits for channel b if a route leads from a directly to b.
// Sub-clusters share no channel.
#include "sim/scenario/routes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CABLE_CHANNELS (SCN_WINDOW_NODES_MAX * SCN_PORTS)          // out of each port
#define CHANNELS       (CABLE_CHANNELS + 2 * SCN_WINDOW_NODES_MAX) // of each ring: eastward, and westward

enum mark { MARK_NEW, MARK_OPEN, MARK_DONE };

// Of one sub-cluster; nodes have their numbers in its window.
struct graph {
    const struct scn_scenario *scenario;
    const struct scn_routes *routes;
    const struct scn_sub_cluster *of;
    struct scn_rings rings;
    bool waits[CHANNELS][CHANNELS];
    enum mark marks[CHANNELS];
    uint32_t stack[CHANNELS]; // the open channels, in the order of the search
    uint32_t depth;
};

// The channel that a packet enters when it leaves a node through a port.
static uint32_t channel_of(const struct graph *graph, uint32_t number, enum scn_port port)
{
    const struct scn_plug *plug = &graph->routes->plugs[graph->of->nodes[number]][port];
    uint32_t ring = graph->rings.ring_of[number];
    bool on_ring = ring != SCN_NODE_NONE && ring == graph->rings.ring_of[graph->routes->numbers[plug->node]];
    if (on_ring && port == SCN_PORT_E && plug->port == SCN_PORT_W) {
        return CABLE_CHANNELS + 2 * ring;
    }
    if (on_ring && port == SCN_PORT_W && plug->port == SCN_PORT_E) {
        return CABLE_CHANNELS + 2 * ring + 1;
    }
    return number * SCN_PORTS + port;
}

static void way_add(struct graph *graph, uint32_t number, uint32_t target)
{
    uint32_t before = CHANNELS;
    while (number != target) {
        enum scn_port port = (enum scn_port)graph->of->ports[number][target];
        uint32_t channel = channel_of(graph, number, port);
        if (before != CHANNELS && before != channel) { // the bubble rule keeps packets of a ring moving
            graph->waits[before][channel] = true;
        }
        before = channel;
        number = graph->routes->numbers[graph->routes->plugs[graph->of->nodes[number]][port].node];
    }
}

// The first channel from `from` on that the channel waits for; CHANNELS: there is none.
static uint32_t wait_next(const struct graph *graph, uint32_t channel, uint32_t from)
{
    const bool *waits = graph->waits[channel], *found = memchr(waits + from, true, CHANNELS - from);
    return found != NULL ? (uint32_t)(found - waits) : CHANNELS;
}

// Depth-first search. Returns the first channel of a cycle, which is then the end of the stack; CHANNELS: no cycle.
static uint32_t circle_find(struct graph *graph, uint32_t channel)
{
    graph->marks[channel] = MARK_OPEN;
    graph->stack[graph->depth++] = channel;
    for (uint32_t next = wait_next(graph, channel, 0); next < CHANNELS; next = wait_next(graph, channel, next + 1)) {
        if (graph->marks[next] == MARK_DONE) {
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
    const struct scn_node *nodes = graph->scenario->nodes;
    if (channel >= CABLE_CHANNELS) {
        uint32_t first = graph->of->nodes[graph->rings.nodes[(channel - CABLE_CHANNELS) / 2][0]];
        fprintf(out, "the ring of %s %sward", nodes[first].name, channel % 2 == 0 ? "east" : "west");
        return;
    }
    uint32_t node = graph->of->nodes[channel / SCN_PORTS];
    enum scn_port port = (enum scn_port)(channel % SCN_PORTS);
    const struct scn_plug *plug = &graph->routes->plugs[node][port];
    fprintf(out, "%s.%s to %s.%s", nodes[node].name, scn_port_name(port), nodes[plug->node].name,
            scn_port_name(plug->port));
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

static bool is_safe(struct graph *graph, char *text, size_t text_size)
{
    for (uint32_t number = 0; number < graph->of->node_count; number++) {
        for (uint32_t target = 0; target < graph->of->node_count; target++) {
            if (graph->of->ports[number][target] != SCN_NO_PORT) {
                way_add(graph, number, target);
            }
        }
    }
    for (uint32_t channel = 0; channel < CHANNELS; channel++) {
        uint32_t first = graph->marks[channel] == MARK_NEW ? circle_find(graph, channel) : CHANNELS;
        if (first != CHANNELS) {
            circle_print(graph, first, text, text_size);
            return false;
        }
    }
    return true;
}

bool scn_routes_are_safe(const struct scn_scenario *scenario, const struct scn_routes *routes, char *text,
                         size_t text_size)
{
    for (uint32_t i = 0; i < routes->sub_cluster_count; i++) {
        struct graph graph = {.scenario = scenario, .routes = routes, .of = &routes->sub_clusters[i]};
        if (graph.of->node_count < 2 || graph.of->node_count > SCN_WINDOW_NODES_MAX) {
            continue;
        }
        scn_rings_find(routes, i, &graph.rings);
        if (!is_safe(&graph, text, text_size)) {
            return false;
        }
    }
    return true;
}
