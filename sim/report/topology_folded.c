#include "sim/report/topology_folded.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/ib_fabric.h"
#include "sim/scenario/links.h"

// All lengths are in SVG pixels.
#define BOX_WIDTH     96.0
#define BOX_HEIGHT    52.0
#define SWITCH_WIDTH  68.0
#define SWITCH_HEIGHT 26.0
#define GAP           12.0  // between neighbours of a row
#define ROW           150.0 // from one row to the next
#define MARGIN        40.0
#define HEAD          90.0
#define FOOT          40.0
#define ARCH          240.0 // control point of the widest arch; the arch is half as high
#define WIDTH_MIN     700.0

#define LEVELS_MAX 64
#define NO_LEVEL   UINT32_MAX

static const char board_colour[] = "#0072B2", ib_colour[] = "#009E73";

struct box {
    uint32_t first, last, nodes; // nodes of the scenario
    bool boards;                 // cables of boards join them
    double x, y;
};

struct folded {
    const struct scn_scenario *scenario;
    const struct scn_routes *routes;
    struct scn_ib_fabric *ib;
    FILE *out;
    struct box *boxes;
    uint32_t box_count;
    uint32_t *box_of; // of each node
    uint32_t *levels; // of each switch: its distance from the nearest switch with a node
    uint32_t level_count;
    double *xs, *ys; // of each switch
    double width, height;
};

bool topology_is_folded(const struct scn_scenario *scenario, const struct scn_routes *routes)
{
    uint32_t joined = 0;
    for (uint32_t i = 0; i < routes->sub_cluster_count; i++) {
        joined += routes->sub_clusters[i].node_count > 1;
    }
    return scenario->node_count > SCN_WINDOW_NODES_MAX || joined > 1;
}

// --- what is folded ------------------------------------------------------------------------------------------------

// Whether node i belongs into the box of the node before it.
static bool continues_box(const struct folded *folded, const struct box *box, uint32_t i)
{
    const struct scn_routes *routes = folded->routes;
    bool alone = routes->sub_clusters[routes->sub_cluster_of[i]].node_count == 1;
    return alone && !box->boards && folded->ib->hcas[i].vertex == folded->ib->hcas[box->last].vertex;
}

static struct box *box_of_sub_cluster(struct folded *folded, uint32_t node)
{
    const struct scn_routes *routes = folded->routes;
    uint32_t first = routes->sub_clusters[routes->sub_cluster_of[node]].nodes[0];
    return first < node ? &folded->boxes[folded->box_of[first]] : NULL;
}

static void boxes_find(struct folded *folded)
{
    for (uint32_t i = 0; i < folded->scenario->node_count; i++) {
        struct box *box = box_of_sub_cluster(folded, i);
        if (box == NULL && i > 0 && continues_box(folded, &folded->boxes[folded->box_of[i - 1]], i)) {
            box = &folded->boxes[folded->box_of[i - 1]];
        }
        if (box == NULL) {
            uint32_t members = folded->routes->sub_clusters[folded->routes->sub_cluster_of[i]].node_count;
            box = &folded->boxes[folded->box_count++];
            *box = (struct box){.first = i, .boards = members > 1};
        }
        box->last = i;
        box->nodes++;
        folded->box_of[i] = (uint32_t)(box - folded->boxes);
    }
}

static void levels_find(struct folded *folded)
{
    uint32_t count = folded->ib->switch_count, head = 0, tail = 0;
    uint32_t *queue = calloc(count + 1, sizeof *queue);
    for (uint32_t i = 0; i < count; i++) {
        folded->levels[i] = NO_LEVEL;
    }
    for (uint32_t i = 0; queue != NULL && i < folded->scenario->node_count; i++) {
        uint32_t vertex = folded->ib->hcas[i].vertex;
        if (vertex != SCN_NODE_NONE && vertex >= SCN_NODES_MAX && folded->levels[vertex - SCN_NODES_MAX] == NO_LEVEL) {
            folded->levels[vertex - SCN_NODES_MAX] = 0;
            queue[tail++] = vertex - SCN_NODES_MAX;
        }
    }
    while (head < tail) {
        uint32_t at = queue[head++];
        for (uint32_t port = 0; port < scn_ib_port_count(folded->ib, at); port++) {
            uint32_t vertex = scn_ib_plug(folded->ib, at, port)->vertex;
            if (vertex >= SCN_NODES_MAX && folded->levels[vertex - SCN_NODES_MAX] == NO_LEVEL) {
                folded->levels[vertex - SCN_NODES_MAX] = folded->levels[at] + 1;
                queue[tail++] = vertex - SCN_NODES_MAX;
            }
        }
    }
    free(queue);
    for (uint32_t i = 0; i < count; i++) { // switches without a way to a node are beside the leaves
        folded->levels[i] = folded->levels[i] == NO_LEVEL || folded->levels[i] >= LEVELS_MAX ? 0 : folded->levels[i];
        folded->level_count = folded->levels[i] >= folded->level_count ? folded->levels[i] + 1 : folded->level_count;
    }
}

// --- positions -----------------------------------------------------------------------------------------------------

static bool has_arches(const struct folded *folded)
{
    for (uint32_t i = 0; i < folded->ib->switch_count; i++) {
        for (uint32_t port = 0; port < scn_ib_port_count(folded->ib, i); port++) {
            uint32_t vertex = scn_ib_plug(folded->ib, i, port)->vertex;
            if (vertex >= SCN_NODES_MAX && folded->levels[vertex - SCN_NODES_MAX] == folded->levels[i]) {
                return true;
            }
        }
    }
    return false;
}

static void lay(struct folded *folded)
{
    uint32_t counts[LEVELS_MAX] = {0}, placed[LEVELS_MAX] = {0};
    double widest = folded->box_count * (BOX_WIDTH + GAP), bottom;
    for (uint32_t i = 0; i < folded->ib->switch_count; i++) {
        counts[folded->levels[i]]++;
    }
    for (uint32_t level = 0; level < folded->level_count; level++) {
        double wide = counts[level] * (SWITCH_WIDTH + GAP);
        widest = wide > widest ? wide : widest;
    }
    folded->width = widest + 2 * MARGIN > WIDTH_MIN ? widest + 2 * MARGIN : WIDTH_MIN;
    bottom = HEAD + (has_arches(folded) ? ARCH / 2 : 0) + ROW * folded->level_count;
    folded->height = bottom + BOX_HEIGHT + FOOT;
    for (uint32_t i = 0; i < folded->box_count; i++) {
        folded->boxes[i].x = MARGIN + (folded->width - 2 * MARGIN) * (2 * i + 1) / (2 * folded->box_count);
        folded->boxes[i].y = bottom;
    }
    for (uint32_t i = 0; i < folded->ib->switch_count; i++) {
        uint32_t level = folded->levels[i];
        folded->xs[i] = MARGIN + (folded->width - 2 * MARGIN) * (2 * placed[level]++ + 1) / (2 * counts[level]);
        folded->ys[i] = bottom - ROW * (level + 1);
    }
}

// --- drawing -------------------------------------------------------------------------------------------------------

// What is drawn for the other end of a switch's cable: a box (its number), or another switch (its number after those).
static uint32_t other_end(const struct folded *folded, uint32_t vertex)
{
    return vertex < SCN_NODES_MAX ? folded->box_of[vertex] : folded->box_count + vertex - SCN_NODES_MAX;
}

// The names of the cables between a switch and what is drawn at their other end.
static void line_names_write(const struct folded *folded, uint32_t at, uint32_t other)
{
    struct topology_names names = {.out = folded->out};
    for (uint32_t port = 0; port < scn_ib_port_count(folded->ib, at); port++) {
        const struct scn_ib_plug *plug = scn_ib_plug(folded->ib, at, port);
        if (other_end(folded, plug->vertex) == other) {
            char name[SCN_LINK_NAME_MAX];
            scn_ib_cable_name(folded->scenario, plug->cable, name);
            topology_name_write(&names, name);
        }
    }
    topology_names_end(&names);
}

// A line from a switch that stands for `cables` cables. Arched between two of the same row.
static void line_draw(const struct folded *folded, uint32_t at, uint32_t other, uint32_t cables)
{
    bool to_box = other < folded->box_count;
    double x1 = folded->xs[at], y1 = folded->ys[at];
    double x2 = to_box ? folded->boxes[other].x : folded->xs[other - folded->box_count];
    double y2 = to_box ? folded->boxes[other].y : folded->ys[other - folded->box_count];
    double arch = y1 == y2 ? ARCH * sqrt(fabs(x2 - x1) / folded->width) : 0;
    double width = cables > 1 ? 2.0 : 1.0, x = (x1 + x2) / 2, y = (y1 + y2) / 2 - arch;
    fprintf(folded->out,
            "<path d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" "
            "stroke-opacity=\"0.5\"",
            x1, y1, x, y, x2, y2, ib_colour, width);
    line_names_write(folded, at, other);
    fputs("/>\n", folded->out);
    if (cables > 1) {
        fprintf(folded->out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" fill=\"%s\">%" PRIu32 "</text>\n", x,
                y + arch / 2, ib_colour, cables);
    }
}

// The cables of one switch: to boxes, and to switches with a higher number.
static void switch_lines_draw(const struct folded *folded, uint32_t at, uint32_t *counts)
{
    uint32_t ports = scn_ib_port_count(folded->ib, at);
    for (unsigned pass = 0; pass < 2; pass++) { // count, then draw once and forget
        for (uint32_t port = 0; port < ports; port++) {
            uint32_t vertex = scn_ib_plug(folded->ib, at, port)->vertex;
            uint32_t other = other_end(folded, vertex);
            if (pass == 0) {
                ++counts[other];
                continue;
            }
            if (counts[other] > 0 && (vertex < SCN_NODES_MAX || vertex > SCN_IB_SWITCH(at))) {
                line_draw(folded, at, other, counts[other]);
            }
            counts[other] = 0;
        }
    }
}

static void label_draw(const struct folded *folded, double x, double y, unsigned size, const char *text)
{
    fprintf(folded->out, "<text x=\"%.1f\" y=\"%.1f\" dy=\".35em\" font-size=\"%u\">", x, y, size);
    topology_text_write(folded->out, text);
    fputs("</text>\n", folded->out);
}

static void switch_draw(const struct folded *folded, uint32_t index)
{
    const char *name = folded->scenario->ib_switches[index].name;
    fprintf(folded->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" fill=\"#e8f5f0\" stroke=\"%s\"",
            folded->xs[index] - SWITCH_WIDTH / 2, folded->ys[index] - SWITCH_HEIGHT / 2, SWITCH_WIDTH, SWITCH_HEIGHT,
            ib_colour);
    topology_switch_links_write(folded->scenario, index, folded->out);
    fputs("/>\n", folded->out);
    label_draw(folded, folded->xs[index], folded->ys[index], strlen(name) > 9 ? 9 : 11, name);
}

// The cables of boards, which are all inside of a box.
static void box_names_write(const struct folded *folded, const struct box *box)
{
    struct topology_names names = {.out = folded->out};
    for (uint32_t i = 0; box->boards && i < folded->scenario->cable_count; i++) {
        if (&folded->boxes[folded->box_of[folded->scenario->cables[i].from_node]] == box) {
            char name[SCN_LINK_NAME_MAX];
            scn_cable_name(folded->scenario, i, name);
            topology_name_write(&names, name);
        }
    }
    topology_names_end(&names);
}

static void box_draw(const struct folded *folded, const struct box *box)
{
    char text[2 * SCN_NAME_MAX + 32];
    const struct scn_node *nodes = folded->scenario->nodes;
    fprintf(folded->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\" fill=\"#f4f4f4\" stroke=\"%s\" "
            "stroke-width=\"%d\"",
            box->x - BOX_WIDTH / 2, box->y, BOX_WIDTH, BOX_HEIGHT, box->boards ? board_colour : "#444444",
            box->boards ? 2 : 1);
    box_names_write(folded, box);
    fputs("/>\n", folded->out);
    label_draw(folded, box->x, box->y + 13, 10, nodes[box->first].name);
    if (box->nodes > 1) {
        snprintf(text, sizeof text, "%" PRIu32 " nodes", box->nodes);
        label_draw(folded, box->x, box->y + 26, 10, text);
        label_draw(folded, box->x, box->y + 39, 10, nodes[box->last].name);
    }
}

static void words_draw(const struct folded *folded)
{
    const struct scn_scenario *scenario = folded->scenario;
    fprintf(folded->out, "<text x=\"%.1f\" y=\"28\" font-size=\"16\" font-weight=\"bold\">", folded->width / 2);
    topology_text_write(folded->out, scenario->title);
    fprintf(folded->out,
            "</text>\n<text x=\"%.1f\" y=\"50\" font-size=\"13\">%" PRIu32 " nodes, %" PRIu32 " cables, %" PRIu32
            " InfiniBand switches, %" PRIu32 " InfiniBand cables</text>\n",
            folded->width / 2, scenario->node_count, scenario->cable_count, scenario->ib_switch_count,
            scenario->ib_cable_count);
    fprintf(folded->out,
            "<text x=\"%.1f\" y=\"%.1f\" font-size=\"12\" data-note=\"colours\">blue: nodes joined by boards; a line "
            "with a number stands for "
            "so many InfiniBand cables</text>\n",
            folded->width / 2, folded->height - FOOT / 2 + 6);
}

static void all_draw(const struct folded *folded, uint32_t *counts)
{
    fprintf(folded->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"sans-serif\" text-anchor=\"middle\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            folded->width, folded->height, folded->width, folded->height);
    words_draw(folded);
    for (uint32_t i = 0; i < folded->ib->switch_count; i++) {
        switch_lines_draw(folded, i, counts);
    }
    for (uint32_t i = 0; i < folded->ib->switch_count; i++) {
        switch_draw(folded, i);
    }
    for (uint32_t i = 0; i < folded->box_count; i++) {
        box_draw(folded, &folded->boxes[i]);
    }
    fputs("</svg>\n", folded->out);
}

void topology_folded_draw(const struct scn_scenario *scenario, const struct scn_routes *routes, FILE *out)
{
    uint32_t nodes = scenario->node_count, switches = scenario->ib_switch_count;
    struct folded folded = {
        .scenario = scenario,
        .routes = routes,
        .ib = scn_ib_fabric_find(scenario),
        .out = out,
        .boxes = calloc(nodes + 1, sizeof *folded.boxes),
        .box_of = calloc(nodes + 1, sizeof *folded.box_of),
        .levels = calloc(switches + 1, sizeof *folded.levels),
        .xs = calloc(switches + 1, sizeof *folded.xs),
        .ys = calloc(switches + 1, sizeof *folded.ys),
    };
    uint32_t *counts = calloc(nodes + switches + 1, sizeof *counts);
    if (folded.boxes != NULL && folded.box_of != NULL && folded.levels != NULL && folded.xs != NULL &&
        folded.ys != NULL && counts != NULL) {
        boxes_find(&folded);
        levels_find(&folded);
        lay(&folded);
        all_draw(&folded, counts);
    }
    scn_ib_fabric_free(folded.ib);
    free(folded.boxes);
    free(folded.box_of);
    free(folded.levels);
    free(folded.xs);
    free(folded.ys);
    free(counts);
}
