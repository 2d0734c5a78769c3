#include "sim/report/topology_svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/report/files.h"
#include "sim/report/topology_folded.h"
#include "sim/scenario/links.h"
#include "sim/scenario/routes.h"
#include "sim/scenario/topology.h"

// All lengths are in SVG pixels.
#define NODE_RADIUS   27.0
#define NODE_DISTANCE 110.0 // between neighbours
#define RING_GAP      130.0 // between two rings
#define MARGIN        60.0
#define HEAD          70.0 // title and numbers
#define FOOT          30.0 // legend
#define END_RADIUS    4.0
#define LETTER_ALONG  19.0 // from the rim of a node to a port's letter
#define LETTER_ASIDE  10.0
#define BOW           110.0 // bend of the second cable between the same nodes
#define WIDTH_MIN     500.0

static const double pi = 3.14159265358979323846;
#define SWITCH_HEIGHT 34.0
#define SWITCH_LETTER 9.0 // width of a letter of a switch's name

static const char ring_colour[] = "#0072B2", crossing_colour[] = "#D55E00", ib_colour[] = "#009E73";

struct point {
    double x, y;
};

struct drawing {
    const struct scn_scenario *scenario;
    const struct scn_routes *routes;
    FILE *out;
    struct point positions[SCN_NODES_MAX + SCN_IB_SWITCHES_MAX]; // as InfiniBand cables number them
    double width, height;
};

// --- positions of the nodes ----------------------------------------------------------------------------------------

// The radius at which neighbours keep their distance.
static double circle_radius(uint32_t count)
{
    return count < 2 ? 0.0 : NODE_DISTANCE / 2 / sin(pi / count);
}

static void circle_fill(struct drawing *drawing, const uint32_t *nodes, uint32_t count, double radius)
{
    for (uint32_t i = 0; i < count; i++) {
        double angle = 2 * pi * i / count - pi / 2;
        drawing->positions[nodes[i]] =
            (struct point){drawing->width / 2 + radius * cos(angle), HEAD + MARGIN + radius * sin(angle)};
    }
}

static void canvas_set(struct drawing *drawing, double wide, double high)
{
    double width = wide + 2 * MARGIN;
    drawing->width = width > WIDTH_MIN ? width : WIDTH_MIN;
    drawing->height = high + 2 * MARGIN + HEAD + FOOT;
}

static void positions_lower(struct drawing *drawing, double by)
{
    for (uint32_t i = 0; i < drawing->scenario->node_count; i++) {
        drawing->positions[i].y += by;
    }
}

static void circle_lay(struct drawing *drawing, const uint32_t *nodes, uint32_t count)
{
    double radius = circle_radius(count);
    canvas_set(drawing, 2 * radius, 2 * radius);
    circle_fill(drawing, nodes, count, radius);
    positions_lower(drawing, radius);
}

static void line_lay(struct drawing *drawing, const uint32_t *nodes, uint32_t count, double distance, double y)
{
    double length = distance * (count - 1);
    canvas_set(drawing, length, y);
    for (uint32_t i = 0; i < count; i++) {
        drawing->positions[nodes[i]] =
            (struct point){drawing->width / 2 - length / 2 + distance * i, HEAD + MARGIN + y};
    }
}

// Each inner node is beside the outer node that S connects it with. False: S does not connect the rings one to one.
static bool inner_order(const struct scn_routes *routes, const struct scn_rings *rings,
                        uint32_t inner[SCN_WINDOW_NODES_MAX])
{
    for (uint32_t i = 0; i < rings->sizes[0]; i++) {
        inner[i] = scn_routes_neighbour(routes, rings->nodes[0][i], SCN_PORT_S, NULL);
        if (inner[i] == SCN_NODE_NONE || rings->ring_of[inner[i]] != 1) {
            return false;
        }
    }
    return true;
}

static bool two_rings_lay(struct drawing *drawing, const struct scn_rings *rings)
{
    uint32_t inner[SCN_WINDOW_NODES_MAX], size = rings->sizes[0];
    bool fits = rings->count == 2 && rings->sizes[1] == size && 2 * size == drawing->scenario->node_count;
    if (!fits || !inner_order(drawing->routes, rings, inner)) {
        return false;
    }
    if (size == 2) { // rings of two nodes are lines, one above the other
        line_lay(drawing, rings->nodes[0], size, RING_GAP + NODE_DISTANCE, 0);
        line_lay(drawing, inner, size, RING_GAP + NODE_DISTANCE, RING_GAP);
        return true;
    }
    double small = circle_radius(size), large = small + RING_GAP;
    canvas_set(drawing, 2 * large, 2 * large);
    circle_fill(drawing, rings->nodes[0], size, large);
    circle_fill(drawing, inner, size, small);
    positions_lower(drawing, large);
    return true;
}

// Does a cable lead from another node's E port to this node's W port?
static bool has_west(const struct scn_routes *routes, uint32_t node)
{
    enum scn_port port = SCN_PORT_N;
    return scn_routes_neighbour(routes, node, SCN_PORT_W, &port) != SCN_NODE_NONE && port == SCN_PORT_E;
}

// Appends the nodes to the east of this one, until one is known.
static uint32_t strand_follow(const struct scn_routes *routes, uint32_t node, bool seen[SCN_NODES_MAX],
                              uint32_t order[SCN_NODES_MAX], uint32_t count)
{
    while (node != SCN_NODE_NONE && !seen[node]) {
        seen[node] = true;
        order[count++] = node;
        enum scn_port port = SCN_PORT_N;
        node = scn_routes_neighbour(routes, node, SCN_PORT_E, &port);
        node = port == SCN_PORT_W ? node : SCN_NODE_NONE;
    }
    return count;
}

// Orders chains first, from their western end, then rings. Returns the number of chains.
static uint32_t strands_order(const struct scn_routes *routes, uint32_t order[SCN_NODES_MAX])
{
    bool seen[SCN_NODES_MAX] = {false};
    uint32_t count = 0, chains = 0;
    for (uint32_t i = 0; i < routes->node_count; i++) {
        if (!has_west(routes, i)) {
            count = strand_follow(routes, i, seen, order, count);
            chains++;
        }
    }
    for (uint32_t i = 0; i < routes->node_count; i++) {
        count = strand_follow(routes, i, seen, order, count);
    }
    return chains;
}

// Draws the switches in a row below the nodes.
static void switches_lay(struct drawing *drawing)
{
    uint32_t count = drawing->scenario->ib_switch_count;
    double y = drawing->height - FOOT - MARGIN + NODE_DISTANCE;
    double wide = count * (NODE_DISTANCE + MARGIN) + MARGIN;
    if (count == 0) {
        return;
    }
    for (uint32_t i = 0; wide > drawing->width && i < drawing->scenario->node_count; i++) {
        drawing->positions[i].x += (wide - drawing->width) / 2;
    }
    drawing->width = wide > drawing->width ? wide : drawing->width;
    drawing->height += NODE_DISTANCE + (count > 1 ? BOW / 2 - MARGIN / 2 : 0); // room for the cables between them
    for (uint32_t i = 0; i < count; i++) {
        drawing->positions[SCN_IB_SWITCH(i)] = (struct point){drawing->width * (2 * i + 1) / (2 * count), y};
    }
}

static void nodes_lay(struct drawing *drawing)
{
    struct scn_rings rings = {0};
    uint32_t order[SCN_NODES_MAX] = {0};
    if (drawing->routes->sub_cluster_count == 1) { // else nothing but InfiniBand joins all of them
        scn_rings_find(drawing->routes, 0, &rings);
    }
    if (two_rings_lay(drawing, &rings)) {
        return;
    }
    uint32_t chains = strands_order(drawing->routes, order);
    if (drawing->scenario->node_count == 2) { // the second cable needs room for its bow
        line_lay(drawing, order, 2, NODE_DISTANCE + RING_GAP, 0);
    } else if ((chains == 1 && rings.count == 0) || drawing->scenario->cable_count == 0) {
        line_lay(drawing, order, drawing->scenario->node_count, NODE_DISTANCE, 0);
    } else {
        circle_lay(drawing, order, drawing->scenario->node_count);
    }
}

// --- drawing -------------------------------------------------------------------------------------------------------

void topology_text_write(FILE *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        const char *name = *c == '&' ? "&amp;" : *c == '<' ? "&lt;" : *c == '>' ? "&gt;" : NULL;
        if (name != NULL) {
            fputs(name, out);
        } else {
            fputc(*c, out);
        }
    }
}

// Names have no character that is special in an attribute (sim/scenario/names.h).
void topology_name_write(struct topology_names *names, const char *name)
{
    fprintf(names->out, "%s%s", names->some ? " " : " data-links=\"", name);
    names->some = true;
}

void topology_names_end(struct topology_names *names)
{
    fputs(names->some ? "\"" : "", names->out);
}

void topology_switch_links_write(const struct scn_scenario *scenario, uint32_t index, FILE *out)
{
    struct topology_names names = {.out = out};
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        const struct scn_ib_cable *cable = &scenario->ib_cables[i];
        if (cable->from_node == SCN_IB_SWITCH(index) || cable->to_node == SCN_IB_SWITCH(index)) {
            char name[SCN_LINK_NAME_MAX];
            scn_ib_cable_name(scenario, i, name);
            topology_name_write(&names, name);
        }
    }
    topology_names_end(&names);
    fprintf(out, " data-name=\"%s\"", scenario->ib_switches[index].name);
}

// The point at distance `along` from one point towards another, moved to the right by `aside`.
static struct point point_towards(struct point from, struct point to, double along, double aside)
{
    double x = to.x - from.x, y = to.y - from.y, length = sqrt(x * x + y * y);
    x /= length;
    y /= length;
    return (struct point){from.x + along * x - aside * y, from.y + along * y + aside * x};
}

static void end_draw(const struct drawing *drawing, struct point node, struct point towards, enum scn_port port,
                     bool is_root, const char *colour)
{
    struct point end = point_towards(node, towards, NODE_RADIUS + END_RADIUS, 0);
    struct point letter = point_towards(node, towards, NODE_RADIUS + LETTER_ALONG, LETTER_ASIDE);
    fprintf(drawing->out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", end.x,
            end.y, END_RADIUS, is_root ? colour : "white", colour);
    fprintf(drawing->out, "<text x=\"%.1f\" y=\"%.1f\" dy=\".35em\" font-size=\"13\" fill=\"%s\">%s</text>\n", letter.x,
            letter.y, colour, scn_port_name(port));
}

// How many earlier cables connect the same two nodes.
static uint32_t twins_before(const struct scn_scenario *scenario, uint32_t index)
{
    const struct scn_cable *cable = &scenario->cables[index];
    uint32_t twins = 0;
    for (uint32_t i = 0; i < index; i++) {
        const struct scn_cable *other = &scenario->cables[i];
        twins += (other->from_node == cable->from_node && other->to_node == cable->to_node) ||
                 (other->from_node == cable->to_node && other->to_node == cable->from_node);
    }
    return twins;
}

static void cable_draw(const struct drawing *drawing, uint32_t index)
{
    const struct scn_cable *cable = &drawing->scenario->cables[index];
    struct point from = drawing->positions[cable->from_node], to = drawing->positions[cable->to_node];
    struct point middle = {(from.x + to.x) / 2, (from.y + to.y) / 2};
    struct point bend = point_towards(middle, to, 0, BOW * twins_before(drawing->scenario, index));
    bool crossing = cable->from_port == SCN_PORT_S || cable->to_port == SCN_PORT_S;
    bool from_is_root = scn_cable_from_is_root(cable);
    const char *colour = crossing ? crossing_colour : ring_colour;
    char name[SCN_LINK_NAME_MAX];
    scn_cable_name(drawing->scenario, index, name);
    fprintf(drawing->out,
            "<path d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" "
            "data-link=\"%s\"/>\n",
            from.x, from.y, bend.x, bend.y, to.x, to.y, colour, name);
    end_draw(drawing, from, bend, cable->from_port, from_is_root, colour);
    end_draw(drawing, to, bend, cable->to_port, !from_is_root, colour);
}

static uint32_t ib_twins_before(const struct scn_scenario *scenario, uint32_t index)
{
    const struct scn_ib_cable *cable = &scenario->ib_cables[index];
    uint32_t twins = 0;
    for (const struct scn_ib_cable *other = scenario->ib_cables; other < cable; other++) {
        twins += (other->from_node == cable->from_node && other->to_node == cable->to_node) ||
                 (other->from_node == cable->to_node && other->to_node == cable->from_node);
    }
    return twins;
}

// Straight between a node and a switch. Curved above two nodes and below two switches, around what is between them.
static void ib_cable_draw(const struct drawing *drawing, uint32_t index)
{
    const struct scn_ib_cable *cable = &drawing->scenario->ib_cables[index];
    char name[SCN_LINK_NAME_MAX];
    scn_ib_cable_name(drawing->scenario, index, name);
    struct point from = drawing->positions[cable->from_node], to = drawing->positions[cable->to_node];
    struct point middle = {(from.x + to.x) / 2, (from.y + to.y) / 2};
    double bow =
        (cable->from_node < SCN_NODES_MAX ? -BOW / 2 : BOW) * (1 + ib_twins_before(drawing->scenario, index) / 4.0);
    bool alike = (cable->from_node < SCN_NODES_MAX) == (cable->to_node < SCN_NODES_MAX);
    struct point bend = point_towards(middle, to, 0, !alike ? 0 : from.x < to.x ? bow : -bow);
    fprintf(drawing->out,
            "<path d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" "
            "stroke-dasharray=\"7 3\" data-link=\"%s\"/>\n",
            from.x, from.y, bend.x, bend.y, to.x, to.y, ib_colour, name);
}

static void switch_draw(const struct drawing *drawing, uint32_t index)
{
    const char *name = drawing->scenario->ib_switches[index].name;
    struct point position = drawing->positions[SCN_IB_SWITCH(index)];
    double width = 24.0 + SWITCH_LETTER * (double)strlen(name);
    fprintf(drawing->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" fill=\"#e8f5f0\" stroke=\"%s\"",
            position.x - width / 2, position.y - SWITCH_HEIGHT / 2, width, SWITCH_HEIGHT, ib_colour);
    topology_switch_links_write(drawing->scenario, index, drawing->out);
    fputs("/>\n", drawing->out);
    fprintf(drawing->out, "<text x=\"%.1f\" y=\"%.1f\" dy=\".35em\" font-size=\"13\">", position.x, position.y);
    topology_text_write(drawing->out, name);
    fputs("</text>\n", drawing->out);
}

// Draws a square below the node's name.
static void hca_draw(const struct drawing *drawing, uint32_t index)
{
    struct point position = drawing->positions[index];
    fprintf(
        drawing->out,
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"30\" height=\"15\" rx=\"2\" fill=\"%s\"/>\n<text x=\"%.1f\" y=\"%.1f\" "
        "dy=\".35em\" font-size=\"10\" fill=\"white\">HCA</text>\n",
        position.x - 15, position.y + NODE_RADIUS - 7.5, ib_colour, position.x, position.y + NODE_RADIUS);
}

static void slot_write(void *ctx, const struct scn_named_link *link)
{
    struct topology_names *names = ctx;
    topology_name_write(names, link->name);
}

static void slots_write(const struct drawing *drawing, uint32_t node)
{
    struct topology_names names = {.out = drawing->out};
    scn_slots_visit(drawing->scenario, node, slot_write, &names);
    topology_names_end(&names);
    fprintf(drawing->out, " data-name=\"%s\"", drawing->scenario->nodes[node].name);
}

static void node_draw(const struct drawing *drawing, uint32_t index)
{
    const char *name = drawing->scenario->nodes[index].name;
    struct point position = drawing->positions[index];
    size_t length = strlen(name);
    fprintf(drawing->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"#f4f4f4\" stroke=\"#444444\"", position.x,
            position.y, NODE_RADIUS);
    slots_write(drawing, index);
    fputs("/>\n", drawing->out);
    fprintf(drawing->out, "<text x=\"%.1f\" y=\"%.1f\" dy=\".35em\" font-size=\"%d\">", position.x, position.y,
            length <= 6   ? 13
            : length <= 8 ? 10
                          : 8);
    topology_text_write(drawing->out, name);
    fputs("</text>\n", drawing->out);
}

static uint32_t hops_max(const struct scn_routes *routes)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < routes->node_count * routes->node_count; i++) {
        uint32_t hops = scn_routes_hops(routes, i / routes->node_count, i % routes->node_count);
        most = hops != SCN_UNREACHED && hops > most ? hops : most;
    }
    return most;
}

static void words_draw(const struct drawing *drawing)
{
    const struct scn_scenario *scenario = drawing->scenario;
    fprintf(drawing->out, "<text x=\"%.1f\" y=\"28\" font-size=\"16\" font-weight=\"bold\">", drawing->width / 2);
    topology_text_write(drawing->out, scenario->title);
    fprintf(drawing->out, "</text>\n<text x=\"%.1f\" y=\"50\" font-size=\"13\">%" PRIu32 " node%s", drawing->width / 2,
            scenario->node_count, scenario->node_count == 1 ? "" : "s");
    if (scenario->cable_count > 0 || scenario->ib_cable_count == 0) {
        fprintf(drawing->out, ", %" PRIu32 " cable%s, at most %" PRIu32 " hop%s", scenario->cable_count,
                scenario->cable_count == 1 ? "" : "s", hops_max(drawing->routes),
                hops_max(drawing->routes) == 1 ? "" : "s");
    }
    if (scenario->ib_cable_count > 0) {
        fprintf(drawing->out, ", %" PRIu32 " InfiniBand cable%s", scenario->ib_cable_count,
                scenario->ib_cable_count == 1 ? "" : "s");
    }
    fputs("</text>\n", drawing->out);
    fprintf(drawing->out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"12\">%s%s</text>\n", drawing->width / 2,
            drawing->height - FOOT / 2,
            scenario->cable_count > 0 || scenario->ib_cable_count == 0
                ? "N of every node leads to its host; filled end: root complex, hollow: endpoint"
                : "",
            scenario->ib_cable_count == 0 ? ""
            : scenario->cable_count > 0   ? "; dashed: InfiniBand"
                                          : "dashed: InfiniBand");
}

static void whole_draw(struct drawing *drawing, FILE *out)
{
    drawing->out = out;
    nodes_lay(drawing);
    switches_lay(drawing);
    fprintf(
        drawing->out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
        "font-family=\"sans-serif\" text-anchor=\"middle\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        drawing->width, drawing->height, drawing->width, drawing->height);
    words_draw(drawing);
    for (uint32_t i = 0; i < drawing->scenario->cable_count; i++) {
        cable_draw(drawing, i);
    }
    for (uint32_t i = 0; i < drawing->scenario->ib_cable_count; i++) {
        ib_cable_draw(drawing, i);
    }
    for (uint32_t i = 0; i < drawing->scenario->ib_switch_count; i++) {
        switch_draw(drawing, i);
    }
    for (uint32_t i = 0; i < drawing->scenario->node_count; i++) {
        node_draw(drawing, i);
        if (drawing->scenario->nodes[i].hca.given) {
            hca_draw(drawing, i);
        }
    }
    fputs("</svg>\n", drawing->out);
}

void topology_draw(const struct scn_scenario *scenario, FILE *out)
{
    struct scn_routes *routes = scn_routes_find(scenario);
    struct drawing drawing = {.scenario = scenario, .routes = routes};
    if (topology_is_folded(scenario, routes)) {
        topology_folded_draw(scenario, routes, out);
    } else {
        whole_draw(&drawing, out);
    }
    scn_routes_free(routes);
}

static void file_draw(void *ctx, FILE *out)
{
    const struct scn_scenario *const *scenario = ctx;
    topology_draw(*scenario, out);
}

enum sim_status report_topology_write(const struct scn_scenario *scenario, const char *path, char *error,
                                      size_t error_size)
{
    return files_one_write(path, file_draw, &scenario, error, error_size);
}
