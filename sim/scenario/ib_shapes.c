#include "sim/scenario/ib_shapes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct work {
    struct scn_ib_shape shape; // with its defaults
    struct scn_ib_layout *layout;
    char *why;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct work *work, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(work->why, SCN_WHY_MAX, format, args);
    va_end(args);
    return false;
}

static uint32_t ceiling(uint32_t amount, uint32_t of)
{
    return (amount + of - 1) / of;
}

// Before switches and cables are made.
static bool check_room(struct work *work, uint64_t switches, uint64_t cables)
{
    if (switches > SCN_IB_SWITCHES_MAX || cables > SCN_IB_CABLES_MAX) {
        return refuse(work, "%" PRIu64 " switches and %" PRIu64 " cables; a scenario has at most %d and %d", switches,
                      cables, SCN_IB_SWITCHES_MAX, SCN_IB_CABLES_MAX);
    }
    return true;
}

static bool check_ports(struct work *work, const char *which, uint32_t ports)
{
    return ports <= work->shape.radix ||
           refuse(work, "%s needs %" PRIu32 " ports, of %" PRIu32, which, ports, work->shape.radix);
}

__attribute__((format(printf, 2, 3))) static void switch_add(struct work *work, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(work->layout->names[work->layout->switch_count++], sizeof work->layout->names[0], format, args);
    va_end(args);
}

static void cable_add(struct work *work, uint32_t from, uint32_t to)
{
    work->layout->cables[work->layout->cable_count].from = from;
    work->layout->cables[work->layout->cable_count++].to = to;
}

static void nodes_join(struct work *work)
{
    for (uint32_t node = 0; node < work->shape.nodes; node++) {
        cable_add(work, node, SCN_IB_SWITCH(node / work->shape.nodes_per_switch));
    }
}

// --- fat tree --------------------------------------------------------------------------------------------------------

struct fat_tree {
    uint32_t leaves, up;             // cables up of a leaf
    uint32_t pods, pod_leaves;       // with three levels
    uint32_t columns, spines;        // spines of each column
    uint32_t column_switches, links; // switches below each spine of a column, and the cables up of each
};

// As few spines as can take `links` cables from each of `below` switches, spread evenly. 0: impossible.
static uint32_t spines_find(uint32_t below, uint32_t links, uint32_t radix)
{
    for (uint32_t spines = 1; spines <= links; spines++) {
        if (below * ceiling(links, spines) <= radix) {
            return spines;
        }
    }
    return 0;
}

static bool fat_tree_level(struct work *work, uint32_t levels, struct fat_tree *tree)
{
    const struct scn_ib_shape *shape = &work->shape;
    uint32_t half = shape->radix / 2;
    *tree = (struct fat_tree){.leaves = ceiling(shape->nodes, shape->nodes_per_switch)};
    tree->up = ceiling(shape->nodes_per_switch, shape->oversubscription);
    if (levels == 1) {
        return tree->leaves == 1;
    }
    tree->columns = 1;
    tree->column_switches = tree->leaves;
    tree->links = tree->up;
    if (levels == 3) {
        tree->pods = ceiling(tree->leaves, half);
        tree->pod_leaves = ceiling(tree->leaves, tree->pods);
        tree->columns = tree->up;
        tree->column_switches = tree->pods;
        tree->links = tree->pod_leaves;
    }
    tree->spines = spines_find(tree->column_switches, tree->links, shape->radix);
    return tree->spines != 0;
}

static bool fat_tree_size(struct work *work, struct fat_tree *tree)
{
    struct scn_ib_shape *shape = &work->shape;
    shape->oversubscription = shape->oversubscription != 0 ? shape->oversubscription : 1;
    if (shape->nodes_per_switch == 0 && shape->levels == 1) {
        shape->nodes_per_switch = shape->radix;
    } else if (shape->nodes_per_switch == 0) { // whole multiples, so that every cable up has the same number of nodes
        uint32_t up = shape->radix / (1 + shape->oversubscription);
        shape->nodes_per_switch = up * shape->oversubscription;
    }
    if (shape->nodes_per_switch == 0) {
        return refuse(work, "an oversubscription of %" PRIu32 " leaves no port of %" PRIu32 " for a cable up",
                      shape->oversubscription, shape->radix);
    }
    uint32_t first = shape->levels != 0 ? shape->levels : 1, last = shape->levels != 0 ? shape->levels : 3;
    for (uint32_t levels = first; levels <= last; levels++) {
        if (fat_tree_level(work, levels, tree)) {
            shape->levels = levels;
            return levels == 1
                       ? check_ports(work, "a leaf",
                                     shape->nodes_per_switch < shape->nodes ? shape->nodes_per_switch : shape->nodes)
                       : check_ports(work, "a leaf", shape->nodes_per_switch + tree->up);
        }
    }
    return refuse(
        work, "%" PRIu32 " nodes need %" PRIu32 " leaves, too many for %" PRIu32 " level%s of %" PRIu32 " ports",
        shape->nodes, ceiling(shape->nodes, shape->nodes_per_switch), last, last == 1 ? "" : "s", shape->radix);
}

static void fat_tree_pods(struct work *work, const struct fat_tree *tree)
{
    for (uint32_t leaf = 0; leaf < tree->leaves; leaf++) {
        for (uint32_t i = 0; i < tree->up; i++) {
            uint32_t middle = tree->leaves + leaf / tree->pod_leaves * tree->up + i;
            cable_add(work, SCN_IB_SWITCH(leaf), SCN_IB_SWITCH(middle));
        }
    }
}

static bool fat_tree_lay(struct work *work)
{
    struct fat_tree tree = {0};
    if (!fat_tree_size(work, &tree)) {
        return false;
    }
    uint32_t levels = work->shape.levels, middles = levels == 3 ? tree.pods * tree.up : 0;
    uint32_t uplinks = tree.columns * tree.column_switches * tree.links;
    uint32_t spines = levels > 1 ? tree.columns * tree.spines : 0;
    if (!check_room(work, (uint64_t)tree.leaves + middles + spines,
                    work->shape.nodes + (uint64_t)(levels == 3 ? tree.leaves * tree.up : 0) + uplinks)) {
        return false;
    }
    for (uint32_t i = 0; i < tree.leaves; i++) {
        switch_add(work, "leaf%" PRIu32, i);
    }
    for (uint32_t i = 0; i < middles; i++) {
        switch_add(work, "middle%" PRIu32, i);
    }
    for (uint32_t i = 0; i < spines; i++) {
        switch_add(work, "spine%" PRIu32, i);
    }
    nodes_join(work);
    if (levels == 3) {
        fat_tree_pods(work, &tree);
    }
    for (uint32_t i = 0; levels > 1 && i < uplinks; i++) {
        uint32_t below = i / tree.links, column = below % tree.columns; // middle switches are numbered pod by pod
        uint32_t from = levels == 3 ? tree.leaves + below : below;
        uint32_t spine = column * tree.spines + i % tree.links % tree.spines;
        cable_add(work, SCN_IB_SWITCH(from), SCN_IB_SWITCH(tree.leaves + middles + spine));
    }
    return true;
}

// --- dragonfly -------------------------------------------------------------------------------------------------------

// A quarter of the ports for nodes, half for the group, a quarter for other groups.
static void dragonfly_defaults(struct scn_ib_shape *shape)
{
    uint32_t quarter = (shape->radix + 1) / 4;
    shape->nodes_per_switch = shape->nodes_per_switch != 0 ? shape->nodes_per_switch : quarter;
    shape->group_switches = shape->group_switches != 0 ? shape->group_switches : 2 * quarter;
    shape->global_links = shape->global_links != 0 ? shape->global_links : quarter;
}

// Global cable k of a group leads to the group that is 1 + k % (groups - 1) groups further.
static void global_cables(struct work *work, uint32_t groups, uint32_t each)
{
    uint32_t switches = work->shape.group_switches, links = work->shape.global_links, others = groups - 1;
    for (uint32_t group = 0; group < groups; group++) {
        for (uint32_t k = 0; k < each * others; k++) {
            uint32_t step = k % others, other = (group + 1 + step) % groups;
            uint32_t back = k / others * others + (others - 1 - step); // the same cable in the other group
            if (group < other) {
                cable_add(work, SCN_IB_SWITCH(group * switches + k / links),
                          SCN_IB_SWITCH(other * switches + back / links));
            }
        }
    }
}

static bool dragonfly_lay(struct work *work)
{
    dragonfly_defaults(&work->shape);
    const struct scn_ib_shape *shape = &work->shape;
    uint32_t switches = shape->group_switches, groups = ceiling(shape->nodes, shape->nodes_per_switch * switches);
    uint32_t global = switches * shape->global_links, each = groups > 1 ? global / (groups - 1) : 0;
    if (groups > 1 && each == 0) {
        return refuse(work,
                      "%" PRIu32 " nodes need %" PRIu32 " groups; the %" PRIu32 " global cables of a group reach "
                      "%" PRIu32 " others",
                      shape->nodes, groups, global, global);
    }
    uint64_t cables =
        shape->nodes + (uint64_t)groups * (switches * (switches - 1) / 2) + (uint64_t)groups * (groups - 1) / 2 * each;
    if (!check_ports(work, "a switch",
                     shape->nodes_per_switch + switches - 1 + (groups > 1 ? shape->global_links : 0)) ||
        !check_room(work, (uint64_t)groups * switches, cables)) {
        return false;
    }
    for (uint32_t i = 0; i < groups * switches; i++) {
        switch_add(work, "group%" PRIu32 "-%" PRIu32, i / switches, i % switches);
    }
    nodes_join(work);
    for (uint32_t i = 0; i < groups * switches; i++) {
        for (uint32_t other = i + 1; other < (i / switches + 1) * switches; other++) {
            cable_add(work, SCN_IB_SWITCH(i), SCN_IB_SWITCH(other));
        }
    }
    if (groups > 1) {
        global_cables(work, groups, each);
    }
    return true;
}

// --- torus -----------------------------------------------------------------------------------------------------------

static void torus_name(struct work *work, uint32_t index)
{
    char text[SCN_NAME_MAX / 2] = "switch";
    size_t length = 6;
    for (uint32_t d = 0; d < work->shape.dimensions; d++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "-%" PRIu32, index % work->shape.size[d]);
        index /= work->shape.size[d];
    }
    switch_add(work, "%s", text);
}

static void torus_cables(struct work *work, uint32_t switches)
{
    for (uint32_t i = 0; i < switches; i++) {
        uint32_t stride = 1;
        for (uint32_t d = 0; d < work->shape.dimensions; d++) {
            uint32_t size = work->shape.size[d], at = i / stride % size;
            uint32_t next = i - at * stride + (at + 1) % size * stride;
            if (size > 2 || (size == 2 && at == 0)) {
                cable_add(work, SCN_IB_SWITCH(i), SCN_IB_SWITCH(next));
            }
            stride *= size;
        }
    }
}

static bool torus_lay(struct work *work)
{
    struct scn_ib_shape *shape = &work->shape;
    uint64_t switches = 1, cables = 0;
    uint32_t ports = 0;
    if (shape->dimensions == 0) {
        return refuse(work, "a torus needs size:, the number of switches in each dimension");
    }
    for (uint32_t d = 0; d < shape->dimensions; d++) {
        switches *= shape->size[d];
        ports += shape->size[d] > 2 ? 2 : shape->size[d] - 1;
        if (!check_room(work, switches, 0)) {
            return false;
        }
    }
    for (uint32_t d = 0; d < shape->dimensions; d++) {
        cables += shape->size[d] > 2 ? switches : switches / 2 * (shape->size[d] - 1);
    }
    if (shape->nodes_per_switch == 0) {
        shape->nodes_per_switch = ceiling(shape->nodes, (uint32_t)switches);
    }
    if (ceiling(shape->nodes, shape->nodes_per_switch) > switches) {
        return refuse(work,
                      "%" PRIu32 " nodes, %" PRIu32 " at a switch, need more than the %" PRIu64 " switches of size:",
                      shape->nodes, shape->nodes_per_switch, switches);
    }
    if (!check_ports(work, "a switch", shape->nodes_per_switch + ports) ||
        !check_room(work, switches, cables + shape->nodes)) {
        return false;
    }
    for (uint32_t i = 0; i < switches; i++) {
        torus_name(work, i);
    }
    nodes_join(work);
    torus_cables(work, (uint32_t)switches);
    return true;
}

// ---------------------------------------------------------------------------------------------------------------------

bool scn_ib_shape_lay(const struct scn_ib_shape *shape, struct scn_ib_layout *layout_out, char why[SCN_WHY_MAX])
{
    struct work work = {.shape = *shape, .layout = layout_out, .why = why};
    layout_out->switch_count = layout_out->cable_count = 0;
    switch (shape->kind) {
    case SCN_IB_KIND_FAT_TREE:
        return fat_tree_lay(&work);
    case SCN_IB_KIND_DRAGONFLY:
        return dragonfly_lay(&work);
    case SCN_IB_KIND_TORUS:
        break;
    }
    return torus_lay(&work);
}
