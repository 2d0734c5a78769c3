// Do routes wait for one another in a circle? The graph: a place to wait in is one direction of a cable, or one
// direction of a whole ring; place a waits for place b if some way goes from a directly on to b.
#include "sim/scenario/routes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CABLE_PLACES (2 * SCN_CABLES_MAX)               // from to to, and back
#define PLACES       (CABLE_PLACES + 2 * SCN_NODES_MAX) // eastward, and westward

enum mark { MARK_NEW, MARK_OPEN, MARK_DONE };

struct graph {
    const struct scn_scenario *scenario;
    struct scn_rings rings;
    bool waits[PLACES][PLACES];
    enum mark marks[PLACES];
    uint32_t stack[PLACES]; // the open places, in their order
    uint32_t depth;
};

// The place that a packet takes when it leaves a node through a port.
static uint32_t place_of(const struct graph *graph, uint32_t node, enum scn_port port)
{
    enum scn_port far = SCN_PORT_N;
    uint32_t ring = graph->rings.ring_of[node];
    uint32_t neighbour = scn_routes_neighbour(graph->scenario, node, port, &far);
    bool on_ring = ring != SCN_NODE_NONE && ring == graph->rings.ring_of[neighbour];
    if (on_ring && port == SCN_PORT_E && far == SCN_PORT_W) {
        return CABLE_PLACES + 2 * ring;
    }
    if (on_ring && port == SCN_PORT_W && far == SCN_PORT_E) {
        return CABLE_PLACES + 2 * ring + 1;
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
    uint32_t before = PLACES;
    while (node != target) {
        enum scn_port port = routes->ports[node][target];
        uint32_t place = place_of(graph, node, port);
        if (before != PLACES && before != place) { // a ring keeps itself moving
            graph->waits[before][place] = true;
        }
        before = place;
        node = scn_routes_neighbour(graph->scenario, node, port, NULL);
    }
}

// Depth first. The first place of a circle, or PLACES; the circle is then the end of the stack.
static uint32_t circle_find(struct graph *graph, uint32_t place)
{
    graph->marks[place] = MARK_OPEN;
    graph->stack[graph->depth++] = place;
    for (uint32_t next = 0; next < PLACES; next++) {
        if (!graph->waits[place][next] || graph->marks[next] == MARK_DONE) {
            continue;
        }
        uint32_t found = graph->marks[next] == MARK_OPEN ? next : circle_find(graph, next);
        if (found != PLACES) {
            return found;
        }
    }
    graph->marks[place] = MARK_DONE;
    graph->depth--;
    return PLACES;
}

static void place_print(const struct graph *graph, uint32_t place, FILE *out)
{
    const struct scn_scenario *scenario = graph->scenario;
    if (place >= CABLE_PLACES) {
        uint32_t first = graph->rings.nodes[(place - CABLE_PLACES) / 2][0];
        fprintf(out, "the ring of %s %sward", scenario->nodes[first].name, place % 2 == 0 ? "east" : "west");
        return;
    }
    const struct scn_cable *cable = &scenario->cables[place / 2];
    bool forward = place % 2 == 0;
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
        place_print(graph, graph->stack[at], out);
        fputs(", ", out);
    }
    place_print(graph, first, out);
    fclose(out); // what does not fit is cut
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
    for (uint32_t place = 0; place < PLACES; place++) {
        uint32_t first = graph.marks[place] == MARK_NEW ? circle_find(&graph, place) : PLACES;
        if (first != PLACES) {
            circle_print(&graph, first, text, text_size);
            return false;
        }
    }
    return true;
}
