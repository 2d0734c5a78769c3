// `topology:` becomes nodes and cables, as if they had been written out.
#include "sim/scenario/loader.h"

#include <inttypes.h>
#include <string.h>

#include "sim/scenario/topology.h"
#include "sim/scenario/value.h"

struct request {
    enum scn_topology topology;
    uint32_t nodes;
    const struct scn_tree *tree;  // all of it
    const struct scn_tree *cable; // a preset's name, or the keys of a link
};

static const struct scn_key *key_of(const char *name)
{
    void *base = NULL;
    return scn_key_find(&scn_kind_topology, name, &base);
}

// False: there is none, or not a good one; reported.
static bool read_number(struct scn_loader *loader, const struct scn_tree *tree, const char *name, uint64_t *number_out)
{
    char why[SCN_WHY_MAX];
    const struct scn_tree *entry = scn_tree_find(tree, name);
    if (entry == NULL) {
        scn_mistakes_add(&loader->mistakes, tree->place, "missing key '%s' in topology", name);
        return false;
    }
    if (entry->kind != SCN_TREE_SCALAR) {
        scn_mistakes_add(&loader->mistakes, entry->place, "%s: expected a single value, found %s", name,
                         scn_tree_kind_text(entry));
        return false;
    }
    uint64_t number = 0;
    if (strcmp(name, "nodes") == 0 && scn_integer_parse(entry->text, &number, why) && number > SCN_NODES_MAX) {
        scn_mistakes_add(&loader->mistakes, entry->place, SCN_TOO_MANY_NODES, name, number, SCN_NODES_MAX);
        return false;
    }
    if (!scn_number_parse(key_of(name), entry->text, number_out, why)) {
        scn_mistakes_add(&loader->mistakes, entry->place, "%s: %s", name, why);
        return false;
    }
    return true;
}

// What a shape takes beyond the range of the key.
static const char *shape_complaint(enum scn_topology topology, uint64_t nodes)
{
    switch (topology) {
    case SCN_TOPOLOGY_PAIR:
        return nodes == 2 ? NULL : "a pair has 2";
    case SCN_TOPOLOGY_RING:
        return NULL;
    case SCN_TOPOLOGY_TWO_RINGS:
        break;
    }
    if (nodes % 2 != 0) {
        return "two_rings needs an even number, half of them on each ring";
    }
    return nodes >= 4 ? NULL : "two_rings needs at least 4, two on each ring";
}

static bool read_shape(struct scn_loader *loader, struct request *request)
{
    uint64_t topology = 0, nodes = 2;
    bool good = read_number(loader, request->tree, "kind", &topology);
    const struct scn_tree *entry = scn_tree_find(request->tree, "nodes");
    if (!good || entry != NULL || topology != SCN_TOPOLOGY_PAIR) {
        good = read_number(loader, request->tree, "nodes", &nodes) && good;
    }
    const char *complaint = good ? shape_complaint((enum scn_topology)topology, nodes) : NULL;
    if (complaint != NULL && entry != NULL) {
        scn_mistakes_add(&loader->mistakes, entry->place, "nodes: %" PRIu64 " nodes; %s", nodes, complaint);
        return false;
    }
    request->topology = (enum scn_topology)topology;
    request->nodes = (uint32_t)nodes;
    return good;
}

static bool read_request(struct scn_loader *loader, struct request *request)
{
    static const char *const required[] = {"preset", "cable"};
    bool good = true;
    for (const struct scn_tree *entry = request->tree->first; entry != NULL; entry = entry->next) {
        if (key_of(entry->key) == NULL) {
            scn_object_complain_unknown(loader, &scn_kind_topology, entry->key_place, entry->key);
        }
    }
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        if (scn_tree_find(request->tree, required[i]) == NULL) {
            scn_mistakes_add(&loader->mistakes, request->tree->place, "missing key '%s' in topology", required[i]);
            good = false;
        }
    }
    request->cable = scn_tree_find(request->tree, "cable");
    return read_shape(loader, request) && good;
}

// A mapping at the same place with those of the two entries that are there.
static struct scn_tree *mapping_make(struct scn_loader *loader, const struct scn_tree *source, const char *first,
                                     const char *second)
{
    struct scn_tree *mapping = scn_arena_alloc(loader->arena, sizeof *mapping);
    mapping->kind = SCN_TREE_MAPPING;
    mapping->place = source->place;
    const char *names[] = {first, second};
    for (size_t i = 0; i < 2; i++) {
        const struct scn_tree *entry = scn_tree_find(source, names[i]);
        if (entry != NULL) {
            struct scn_tree *copy = scn_arena_alloc(loader->arena, sizeof *copy);
            *copy = *entry;
            scn_tree_append(mapping, copy);
        }
    }
    return mapping;
}

static void make_nodes(struct scn_loader *loader, const struct request *request)
{
    struct scn_scenario *scenario = loader->scenario;
    const struct scn_tree *item = mapping_make(loader, request->tree, "preset", "with");
    for (uint32_t i = 0; i < request->nodes; i++) {
        struct scn_node *node = &scenario->nodes[scenario->node_count++];
        scn_node_load(loader, item, node);
        snprintf(node->name, sizeof node->name, "node%" PRIu32, i);
        scn_loader_note(loader, node->name, false, item->place, NULL);
    }
}

static const struct scn_tree *link_tree(struct scn_loader *loader, const struct request *request)
{
    if (request->cable->kind == SCN_TREE_MAPPING) {
        return request->cable;
    }
    struct scn_tree *mapping = scn_arena_alloc(loader->arena, sizeof *mapping);
    struct scn_tree *name = scn_arena_alloc(loader->arena, sizeof *name);
    mapping->kind = SCN_TREE_MAPPING;
    mapping->place = request->cable->place;
    *name = *request->cable;
    name->key = "preset";
    scn_tree_append(mapping, name);
    return mapping;
}

static void make_cables(struct scn_loader *loader, const struct request *request)
{
    struct scn_scenario *scenario = loader->scenario;
    const struct scn_tree *link = link_tree(loader, request);
    scenario->cable_count = scn_topology_cables(request->topology, request->nodes, scenario->cables);
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        struct scn_cable *cable = &scenario->cables[i];
        scn_kind_defaults(&scn_kind_link, &cable->link);
        scn_object_load(loader, &scn_kind_link, link, &cable->link);
        scn_loader_note(loader, cable, true, request->tree->place, NULL);
        scn_loader_note(loader, &cable->from_node, false, request->tree->place, NULL);
        scn_loader_note(loader, &cable->to_node, false, request->tree->place, NULL);
    }
}

// A file gives its nodes and cables in one of the two forms.
static void check_forms(struct scn_loader *loader, const struct scn_tree *parent)
{
    static const char *const others[] = {"nodes", "cables"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const struct scn_tree *entry = scn_tree_find(parent, others[i]);
        if (entry != NULL) {
            scn_mistakes_add(&loader->mistakes, entry->key_place,
                             "'%s' and 'topology' exclude each other: topology makes nodes and cables", entry->key);
        }
    }
}

void scn_topology_load(struct scn_loader *loader, const struct scn_tree *parent, const struct scn_tree *tree)
{
    struct scn_scenario *scenario = loader->scenario;
    struct request request = {.tree = tree};
    check_forms(loader, parent);
    bool good = tree->kind == SCN_TREE_MAPPING;
    if (!good) {
        scn_mistakes_add(&loader->mistakes, tree->place, "topology: expected a mapping, found %s",
                         scn_tree_kind_text(tree));
    }
    good = good && read_request(loader, &request);
    if (!good || scn_tree_find(parent, "nodes") != NULL) {
        scn_loader_note_bad(loader, &scenario->node_count, true, tree->place);
        scn_loader_note_bad(loader, &scenario->cable_count, true, tree->place);
        return;
    }
    scn_loader_note(loader, &scenario->node_count, true, tree->place, NULL);
    scn_loader_note(loader, &scenario->cable_count, true, tree->place, NULL);
    make_nodes(loader, &request);
    make_cables(loader, &request);
}
