// `topology:` becomes nodes and cables, as if the file listed them; InfiniBand is in generate_ib.c.
#include "sim/scenario/generate.h"

#include <inttypes.h>
#include <string.h>

#include "sim/scenario/value.h"

static const struct scn_key *key_of(const char *name)
{
    return scn_key_find(&scn_kind_topology, name, NULL);
}

bool scn_generate_number(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_tree *tree,
                         const char *name, uint64_t *number_out)
{
    char why[SCN_WHY_MAX];
    const struct scn_tree *entry = scn_tree_find(tree, name);
    if (entry == NULL) {
        scn_mistakes_add(&loader->mistakes, tree->location, "missing key '%s' in %s", name, kind->name);
        return false;
    }
    if (entry->kind != SCN_TREE_SCALAR) {
        scn_mistakes_add(&loader->mistakes, entry->location, "%s: expected a single value, found %s", name,
                         scn_tree_kind_text(entry));
        return false;
    }
    if (!scn_number_parse(scn_key_find(kind, name, NULL), entry->text, number_out, why)) {
        scn_mistakes_add(&loader->mistakes, entry->location, "%s: %s", name, why);
        return false;
    }
    return true;
}

// The numbers of nodes that a shape allows, in addition to the range of the key.
static const char *shape_complaint(enum scn_topology topology, uint64_t nodes)
{
    switch (topology) {
    case SCN_TOPOLOGY_PAIR:
        return nodes == 2 ? NULL : "a pair has 2";
    case SCN_TOPOLOGY_RING:
        return nodes >= 2 ? NULL : "a ring has 2 or more";
    case SCN_TOPOLOGY_SEPARATE:
        return NULL;
    case SCN_TOPOLOGY_TWO_RINGS:
        break;
    }
    if (nodes % 2 != 0) {
        return "two_rings needs an even number, half of them on each ring";
    }
    return nodes >= 4 ? NULL : "two_rings needs at least 4, two on each ring";
}

// The window of the boards limits a shape with cables.
static bool check_window(struct scn_loader *loader, const struct scn_tree *entry, uint64_t topology)
{
    char why[SCN_WHY_MAX];
    uint64_t nodes = 0;
    if (topology == SCN_TOPOLOGY_SEPARATE || entry == NULL || entry->kind != SCN_TREE_SCALAR ||
        !scn_integer_parse(entry->text, &nodes, why) || nodes <= SCN_WINDOW_NODES_MAX) {
        return true;
    }
    scn_mistakes_add(&loader->mistakes, entry->location, "nodes: %" PRIu64 " nodes; " SCN_WINDOW_IS_FULL, nodes,
                     SCN_WINDOW_NODES_MAX);
    return false;
}

static bool read_numbers(struct scn_loader *loader, const struct scn_tree *tree, uint64_t *topology, uint64_t *nodes,
                         uint64_t *sub_clusters)
{
    const struct scn_tree *entry = scn_tree_find(tree, "nodes");
    bool good = scn_generate_number(loader, &scn_kind_topology, tree, "kind", topology);
    if (!check_window(loader, entry, *topology)) {
        return false;
    }
    if (!good || entry != NULL || *topology != SCN_TOPOLOGY_PAIR) {
        good = scn_generate_number(loader, &scn_kind_topology, tree, "nodes", nodes) && good;
    }
    if (scn_tree_find(tree, "sub_clusters") != NULL) {
        good = scn_generate_number(loader, &scn_kind_topology, tree, "sub_clusters", sub_clusters) && good;
    }
    return good;
}

static bool read_shape(struct scn_loader *loader, struct scn_generate *request)
{
    uint64_t topology = 0, nodes = 2, sub_clusters = 1;
    bool good = read_numbers(loader, request->tree, &topology, &nodes, &sub_clusters);
    const struct scn_tree *entry = scn_tree_find(request->tree, "nodes");
    const char *complaint = good ? shape_complaint((enum scn_topology)topology, nodes) : NULL;
    if (complaint != NULL && entry != NULL) {
        scn_mistakes_add(&loader->mistakes, entry->location, "nodes: %" PRIu64 " nodes; %s", nodes, complaint);
        return false;
    }
    if (good && nodes * sub_clusters > SCN_NODES_MAX) {
        scn_mistakes_add(&loader->mistakes, scn_tree_find(request->tree, "sub_clusters")->location, SCN_TOO_MANY_NODES,
                         "sub_clusters", nodes * sub_clusters, SCN_NODES_MAX);
        return false;
    }
    request->topology = (enum scn_topology)topology;
    request->nodes = (uint32_t)nodes;
    request->sub_clusters = (uint32_t)sub_clusters;
    return good;
}

static bool check_list(struct scn_loader *loader, const struct scn_generate *request)
{
    const struct scn_tree *names = request->names;
    uint32_t nodes = request->nodes * request->sub_clusters;
    if (names == NULL || (names->kind == SCN_TREE_SEQUENCE && names->count == nodes)) {
        return true;
    }
    if (names->kind != SCN_TREE_SEQUENCE) {
        scn_mistakes_add(&loader->mistakes, names->location, "names: expected a list, found %s",
                         scn_tree_kind_text(names));
    } else {
        scn_mistakes_add(&loader->mistakes, names->location, "names: %zu for %" PRIu32 " nodes", (size_t)names->count,
                         nodes);
    }
    return false;
}

// Separate nodes have no cables.
static bool check_cable(struct scn_loader *loader, const struct scn_generate *request)
{
    if (request->topology == SCN_TOPOLOGY_SEPARATE && request->cable != NULL) {
        scn_mistakes_add(&loader->mistakes, request->cable->key_location,
                         "cable: separate nodes have no cables of boards");
        return false;
    }
    if (request->topology != SCN_TOPOLOGY_SEPARATE && request->cable == NULL) {
        scn_mistakes_add(&loader->mistakes, request->tree->location, "missing key 'cable' in topology");
        return false;
    }
    return true;
}

static bool read_request(struct scn_loader *loader, struct scn_generate *request)
{
    bool good = true;
    for (const struct scn_tree *entry = request->tree->first; entry != NULL; entry = entry->next) {
        if (key_of(entry->key) == NULL) {
            scn_object_complain_unknown(loader, &scn_kind_topology, entry->key_location, entry->key);
        }
    }
    if (scn_tree_find(request->tree, "preset") == NULL) {
        scn_mistakes_add(&loader->mistakes, request->tree->location, "missing key 'preset' in topology");
        good = false;
    }
    request->cable = scn_tree_find(request->tree, "cable");
    request->names = scn_tree_find(request->tree, "names");
    bool shape = read_shape(loader, request);
    good = check_cable(loader, request) && good;
    return shape && good && check_list(loader, request);
}

// --- entries as a file would contain them ---------------------------------------------------------------------------

struct scn_tree *scn_generate_collection(struct scn_loader *loader, enum scn_tree_kind kind,
                                         struct scn_location location)
{
    struct scn_tree *collection = scn_arena_alloc(loader->arena, sizeof *collection);
    collection->kind = kind;
    collection->location = location;
    return collection;
}

void scn_generate_copy(struct scn_loader *loader, struct scn_tree *mapping, const char *key,
                       const struct scn_tree *entry)
{
    if (entry != NULL) {
        struct scn_tree *copy = scn_arena_alloc(loader->arena, sizeof *copy);
        *copy = *entry;
        copy->key = key;
        scn_tree_append(mapping, copy);
    }
}

void scn_generate_text(struct scn_loader *loader, struct scn_tree *mapping, const char *key, const char *text)
{
    struct scn_tree *entry = scn_generate_collection(loader, SCN_TREE_SCALAR, mapping->location);
    entry->key = key;
    entry->key_location = mapping->location;
    entry->text = text;
    scn_tree_append(mapping, entry);
}

static void make_nodes(struct scn_loader *loader, const struct scn_generate *request)
{
    struct scn_scenario *scenario = loader->scenario;
    const struct scn_tree *name = request->names != NULL ? request->names->first : NULL;
    for (uint32_t i = 0; i < request->nodes * request->sub_clusters; i++) {
        struct scn_node *node = &scenario->nodes[scenario->node_count++];
        struct scn_tree *item = scn_generate_collection(loader, SCN_TREE_MAPPING, request->tree->location);
        scn_generate_copy(loader, item, "name", name);
        scn_generate_copy(loader, item, "preset", scn_tree_find(request->tree, "preset"));
        scn_generate_copy(loader, item, "with", scn_tree_find(request->tree, "with"));
        scn_node_load(loader, item, node);
        if (name != NULL) {
            name = name->next;
        } else {
            snprintf(node->name, sizeof node->name, "node%" PRIu32, i);
            scn_loader_note(loader, node->name, false, item->location, NULL);
        }
    }
}

static const struct scn_tree *link_tree(struct scn_loader *loader, const struct scn_generate *request)
{
    if (request->cable->kind == SCN_TREE_MAPPING) {
        return request->cable;
    }
    struct scn_tree *mapping = scn_generate_collection(loader, SCN_TREE_MAPPING, request->cable->location);
    scn_generate_copy(loader, mapping, "preset", request->cable);
    return mapping;
}

static void make_cables(struct scn_loader *loader, const struct scn_generate *request)
{
    struct scn_scenario *scenario = loader->scenario;
    if (request->cable == NULL) {
        return;
    }
    const struct scn_tree *link = link_tree(loader, request);
    for (uint32_t i = 0; i < request->sub_clusters; i++) {
        scenario->cable_count += scn_topology_cables(request->topology, i * request->nodes, request->nodes,
                                                     &scenario->cables[scenario->cable_count]);
    }
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        struct scn_cable *cable = &scenario->cables[i];
        scn_kind_defaults(&scn_kind_link, &cable->link);
        scn_object_load(loader, &scn_kind_link, link, &cable->link);
        scn_loader_note(loader, cable, true, request->tree->location, NULL);
        scn_loader_note(loader, &cable->from_node, false, request->tree->location, NULL);
        scn_loader_note(loader, &cable->to_node, false, request->tree->location, NULL);
    }
}

static void complain_both(struct scn_loader *loader, const struct scn_tree *entry, const char *other, const char *makes)
{
    if (entry != NULL) {
        scn_mistakes_add(&loader->mistakes, entry->key_location, "'%s' and '%s' exclude each other: %s makes %s",
                         entry->key, other, other, makes);
    }
}

// A file has either topology:, or nodes: and cables:.
static void check_forms(struct scn_loader *loader, const struct scn_tree *parent, const struct scn_tree *tree)
{
    complain_both(loader, scn_tree_find(parent, "nodes"), "topology", "nodes and cables");
    complain_both(loader, scn_tree_find(parent, "cables"), "topology", "nodes and cables");
    static const char *const makers[] = {"ib_switch", "ib_fabric"};
    static const char *const makes[] = {"the switch and its cables", "the switches and their cables"};
    for (size_t i = 0; tree->kind == SCN_TREE_MAPPING && i < sizeof makers / sizeof makers[0]; i++) {
        if (scn_tree_find(tree, makers[i]) != NULL) {
            complain_both(loader, scn_tree_find(parent, "ib_switches"), makers[i], makes[i]);
            complain_both(loader, scn_tree_find(parent, "ib_cables"), makers[i], makes[i]);
        }
    }
}

void scn_topology_load(struct scn_loader *loader, const struct scn_tree *parent, const struct scn_tree *tree)
{
    struct scn_scenario *scenario = loader->scenario;
    struct scn_generate request = {.tree = tree};
    check_forms(loader, parent, tree);
    bool good = tree->kind == SCN_TREE_MAPPING;
    if (!good) {
        scn_mistakes_add(&loader->mistakes, tree->location, "topology: expected a mapping, found %s",
                         scn_tree_kind_text(tree));
    }
    good = good && read_request(loader, &request);
    if (!good || scn_tree_find(parent, "nodes") != NULL) {
        scn_loader_note_bad(loader, &scenario->node_count, true, tree->location);
        scn_loader_note_bad(loader, &scenario->cable_count, true, tree->location);
        return;
    }
    scn_loader_note(loader, &scenario->node_count, true, tree->location, NULL);
    scn_loader_note(loader, &scenario->cable_count, true, tree->location, NULL);
    make_nodes(loader, &request);
    make_cables(loader, &request);
    scn_generate_ib(loader, &request);
}
