// The InfiniBand part of `topology:`: switches and cables, as if the file listed them.
#include "sim/scenario/generate.h"

#include <inttypes.h>
#include <string.h>

#include "sim/scenario/ib_shapes.h"
#include "sim/scenario/value.h"

// The keys of ib_fabric that are numbers, and the kinds of fabrics that have them.
enum {
    OF_FAT_TREE = 1 << SCN_IB_KIND_FAT_TREE,
    OF_DRAGONFLY = 1 << SCN_IB_KIND_DRAGONFLY,
    OF_TORUS = 1 << SCN_IB_KIND_TORUS
};
static const struct number {
    const char *name;
    unsigned kinds;
    size_t offset;
} numbers[] = {
    {"radix", OF_FAT_TREE | OF_DRAGONFLY | OF_TORUS, offsetof(struct scn_ib_shape, radix)},
    {"nodes_per_switch", OF_FAT_TREE | OF_DRAGONFLY | OF_TORUS, offsetof(struct scn_ib_shape, nodes_per_switch)},
    {"levels", OF_FAT_TREE, offsetof(struct scn_ib_shape, levels)},
    {"oversubscription", OF_FAT_TREE, offsetof(struct scn_ib_shape, oversubscription)},
    {"group_switches", OF_DRAGONFLY, offsetof(struct scn_ib_shape, group_switches)},
    {"global_links", OF_DRAGONFLY, offsetof(struct scn_ib_shape, global_links)},
};

static void scenario_load(struct scn_loader *loader, const char *name, const struct scn_tree *list)
{
    void *base = loader->scenario;
    scn_object_load_key(loader, scn_key_find(&scn_kind_scenario, name, &base), list, base);
}

static void switch_append(struct scn_loader *loader, struct scn_tree *switches, const char *name,
                          const struct scn_tree *preset)
{
    struct scn_tree *one = scn_generate_collection(loader, SCN_TREE_MAPPING, preset->location);
    scn_generate_text(loader, one, "name", name);
    if (preset->kind == SCN_TREE_MAPPING) {
        scn_generate_copy(loader, one, "preset", scn_tree_find(preset, "preset"));
        scn_generate_copy(loader, one, "with", scn_tree_find(preset, "with"));
    } else {
        scn_generate_copy(loader, one, "preset", preset);
    }
    scn_tree_append(switches, one);
}

// flight NULL: the default of the key.
static void cable_append(struct scn_loader *loader, struct scn_tree *cables, const char *from, const char *to,
                         const struct scn_tree *flight, const struct scn_key *key)
{
    struct scn_tree *cable = scn_generate_collection(loader, SCN_TREE_MAPPING, cables->location);
    scn_generate_text(loader, cable, "from", from);
    scn_generate_text(loader, cable, "to", to);
    if (flight != NULL) {
        scn_generate_copy(loader, cable, "flight", flight);
    } else {
        scn_generate_text(loader, cable, "flight", key->fallback);
    }
    scn_tree_append(cables, cable);
}

// --- one switch ----------------------------------------------------------------------------------------------------

// One switch, and a cable from each node to it.
static void make_switch(struct scn_loader *loader, const struct scn_generate *request, const struct scn_tree *preset)
{
    static const char switch_name[] = "switch";
    const struct scn_tree *flight = scn_tree_find(request->tree, "ib_flight");
    struct scn_tree *switches = scn_generate_collection(loader, SCN_TREE_SEQUENCE, preset->location);
    switch_append(loader, switches, switch_name, preset);
    scenario_load(loader, "ib_switches", switches);
    struct scn_tree *cables = scn_generate_collection(loader, SCN_TREE_SEQUENCE, preset->location);
    for (uint32_t i = 0; i < loader->scenario->node_count; i++) {
        cable_append(loader, cables, loader->scenario->nodes[i].name, switch_name, flight,
                     scn_key_find(&scn_kind_topology, "ib_flight", NULL));
    }
    scenario_load(loader, "ib_cables", cables);
}

// --- fabrics -------------------------------------------------------------------------------------------------------

static const char *kind_name(enum scn_ib_kind kind)
{
    const struct scn_choice *choice = scn_key_find(&scn_kind_ib_fabric, "kind", NULL)->choices;
    while (choice->value != kind) {
        choice++;
    }
    return choice->name;
}

static bool complain_other_kind(struct scn_loader *loader, const struct scn_tree *entry, enum scn_ib_kind kind)
{
    scn_mistakes_add(&loader->mistakes, entry->key_location, "%s: a %s has no such key", entry->key, kind_name(kind));
    return false;
}

static bool read_numbers(struct scn_loader *loader, const struct scn_tree *tree, struct scn_ib_shape *shape)
{
    bool good = true;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct scn_tree *entry = scn_tree_find(tree, numbers[i].name);
        uint64_t number = 0;
        if (entry == NULL) {
            continue;
        }
        if ((numbers[i].kinds & 1u << shape->kind) == 0) {
            good = complain_other_kind(loader, entry, shape->kind);
        } else if (scn_generate_number(loader, &scn_kind_ib_fabric, tree, numbers[i].name, &number)) {
            *(uint32_t *)(void *)((char *)shape + numbers[i].offset) = (uint32_t)number;
        } else {
            good = false;
        }
    }
    return good;
}

static bool read_size(struct scn_loader *loader, const struct scn_tree *tree, struct scn_ib_shape *shape)
{
    uint64_t items[SCN_LIST_MAX];
    const struct scn_tree *entry = scn_tree_find(tree, "size");
    if (entry == NULL) {
        return true;
    }
    if (shape->kind != SCN_IB_KIND_TORUS) {
        return complain_other_kind(loader, entry, shape->kind);
    }
    if (!scn_list_load(loader, scn_key_find(&scn_kind_ib_fabric, "size", NULL), entry, items, &shape->dimensions)) {
        return false;
    }
    if (shape->dimensions > SCN_IB_DIMENSIONS_MAX) {
        scn_mistakes_add(&loader->mistakes, entry->location, "size: %" PRIu32 " dimensions, at most %d are possible",
                         shape->dimensions, SCN_IB_DIMENSIONS_MAX);
        return false;
    }
    for (uint32_t i = 0; i < shape->dimensions; i++) {
        shape->size[i] = (uint32_t)items[i];
    }
    return true;
}

static bool read_shape(struct scn_loader *loader, const struct scn_tree *tree, struct scn_ib_shape *shape)
{
    uint64_t kind = 0;
    bool good = true;
    for (const struct scn_tree *entry = tree->first; entry != NULL; entry = entry->next) {
        if (scn_key_find(&scn_kind_ib_fabric, entry->key, NULL) == NULL) {
            scn_object_complain_unknown(loader, &scn_kind_ib_fabric, entry->key_location, entry->key);
            good = false;
        }
    }
    if (scn_tree_find(tree, "switch") == NULL) {
        scn_mistakes_add(&loader->mistakes, tree->location, "missing key 'switch' in ib_fabric");
        good = false;
    }
    if (!scn_generate_number(loader, &scn_kind_ib_fabric, tree, "kind", &kind)) {
        return false;
    }
    shape->kind = (enum scn_ib_kind)kind;
    good = read_numbers(loader, tree, shape) && good;
    return read_size(loader, tree, shape) && good;
}

// The ports of the switches, read from one that is loaded for this purpose. 0: it has mistakes.
static uint32_t ports_find(struct scn_loader *loader, const struct scn_tree *preset)
{
    size_t before = loader->mistakes.count;
    struct scn_tree *switches = scn_generate_collection(loader, SCN_TREE_SEQUENCE, preset->location);
    switch_append(loader, switches, "switch", preset);
    scenario_load(loader, "ib_switches", switches);
    return loader->mistakes.count == before ? loader->scenario->ib_switches[0].ports : 0;
}

static bool lay(struct scn_loader *loader, const struct scn_tree *tree, struct scn_ib_layout *layout)
{
    char why[SCN_WHY_MAX];
    struct scn_ib_shape shape = {.nodes = loader->scenario->node_count};
    if (!read_shape(loader, tree, &shape)) {
        return false;
    }
    uint32_t ports = ports_find(loader, scn_tree_find(tree, "switch"));
    if (ports == 0) {
        return false;
    }
    if (shape.radix > ports) {
        scn_mistakes_add(&loader->mistakes, scn_tree_find(tree, "radix")->location,
                         "radix: %" PRIu32 " ports; a switch has %" PRIu32, shape.radix, ports);
        return false;
    }
    shape.radix = shape.radix != 0 ? shape.radix : ports;
    if (!scn_ib_shape_lay(&shape, layout, why)) {
        scn_mistakes_add(&loader->mistakes, tree->location, "ib_fabric: %s", why);
        return false;
    }
    return true;
}

static const char *end_name(const struct scn_loader *loader, const struct scn_ib_layout *layout, uint32_t vertex)
{
    return vertex < SCN_NODES_MAX ? loader->scenario->nodes[vertex].name : layout->names[vertex - SCN_NODES_MAX];
}

static void make_fabric(struct scn_loader *loader, const struct scn_tree *tree)
{
    struct scn_scenario *scenario = loader->scenario;
    struct scn_ib_layout *layout = scn_arena_alloc(loader->arena, sizeof *layout);
    if (tree->kind != SCN_TREE_MAPPING) {
        scn_mistakes_add(&loader->mistakes, tree->location, "ib_fabric: expected a mapping, found %s",
                         scn_tree_kind_text(tree));
    }
    if (tree->kind != SCN_TREE_MAPPING || !lay(loader, tree, layout)) {
        scenario->ib_switch_count = 0;
        scn_loader_note_bad(loader, &scenario->ib_switch_count, true, tree->location);
        scn_loader_note_bad(loader, &scenario->ib_cable_count, true, tree->location);
        return;
    }
    struct scn_tree *switches = scn_generate_collection(loader, SCN_TREE_SEQUENCE, tree->location);
    for (uint32_t i = 0; i < layout->switch_count; i++) {
        switch_append(loader, switches, layout->names[i], scn_tree_find(tree, "switch"));
    }
    scenario_load(loader, "ib_switches", switches);
    struct scn_tree *cables = scn_generate_collection(loader, SCN_TREE_SEQUENCE, tree->location);
    for (uint32_t i = 0; i < layout->cable_count; i++) {
        cable_append(loader, cables, end_name(loader, layout, layout->cables[i].from),
                     end_name(loader, layout, layout->cables[i].to), scn_tree_find(tree, "flight"),
                     scn_key_find(&scn_kind_ib_fabric, "flight", NULL));
    }
    scenario_load(loader, "ib_cables", cables);
}

void scn_generate_ib(struct scn_loader *loader, const struct scn_generate *request)
{
    const struct scn_tree *preset = scn_tree_find(request->tree, "ib_switch");
    const struct scn_tree *flight = scn_tree_find(request->tree, "ib_flight");
    const struct scn_tree *fabric = scn_tree_find(request->tree, "ib_fabric");
    if (preset != NULL && fabric != NULL) {
        scn_mistakes_add(&loader->mistakes, fabric->key_location, "'ib_fabric' and 'ib_switch' exclude each other");
        return;
    }
    if (preset == NULL && flight != NULL) {
        scn_mistakes_add(&loader->mistakes, flight->key_location, "'ib_flight' needs 'ib_switch' beside it");
    }
    if (preset != NULL) {
        make_switch(loader, request, preset);
    } else if (fabric != NULL) {
        make_fabric(loader, fabric);
    }
}
