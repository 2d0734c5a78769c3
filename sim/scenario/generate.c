// `topology:` becomes nodes, cables and an InfiniBand switch, as if the file listed them.
#include "sim/scenario/loader.h"

#include <inttypes.h>
#include <string.h>

#include "sim/scenario/topology.h"
#include "sim/scenario/value.h"

struct request {
    enum scn_topology topology;
    uint32_t nodes;
    const struct scn_tree *tree;  // the mapping of topology:
    const struct scn_tree *cable; // a preset's name, or the keys of a link
    const struct scn_tree *names; // a list of them; NULL: node0, node1, ...
};

static const struct scn_key *key_of(const char *name)
{
    return scn_key_find(&scn_kind_topology, name, NULL);
}

// False: the number is missing or bad; reported.
static bool read_number(struct scn_loader *loader, const struct scn_tree *tree, const char *name, uint64_t *number_out)
{
    char why[SCN_WHY_MAX];
    const struct scn_tree *entry = scn_tree_find(tree, name);
    if (entry == NULL) {
        scn_mistakes_add(&loader->mistakes, tree->location, "missing key '%s' in topology", name);
        return false;
    }
    if (entry->kind != SCN_TREE_SCALAR) {
        scn_mistakes_add(&loader->mistakes, entry->location, "%s: expected a single value, found %s", name,
                         scn_tree_kind_text(entry));
        return false;
    }
    uint64_t number = 0;
    if (strcmp(name, "nodes") == 0 && scn_integer_parse(entry->text, &number, why) && number > SCN_WINDOW_NODES_MAX) {
        scn_mistakes_add(&loader->mistakes, entry->location, "%s: %" PRIu64 " nodes; " SCN_WINDOW_IS_FULL, name, number,
                         SCN_WINDOW_NODES_MAX);
        return false;
    }
    if (!scn_number_parse(key_of(name), entry->text, number_out, why)) {
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
        scn_mistakes_add(&loader->mistakes, entry->location, "nodes: %" PRIu64 " nodes; %s", nodes, complaint);
        return false;
    }
    request->topology = (enum scn_topology)topology;
    request->nodes = (uint32_t)nodes;
    return good;
}

static bool check_list(struct scn_loader *loader, const struct request *request)
{
    const struct scn_tree *names = request->names;
    if (names == NULL || (names->kind == SCN_TREE_SEQUENCE && names->count == request->nodes)) {
        return true;
    }
    if (names->kind != SCN_TREE_SEQUENCE) {
        scn_mistakes_add(&loader->mistakes, names->location, "names: expected a list, found %s",
                         scn_tree_kind_text(names));
    } else {
        scn_mistakes_add(&loader->mistakes, names->location, "names: %zu for %" PRIu32 " nodes", (size_t)names->count,
                         request->nodes);
    }
    return false;
}

static bool read_request(struct scn_loader *loader, struct request *request)
{
    static const char *const required[] = {"preset", "cable"};
    bool good = true;
    for (const struct scn_tree *entry = request->tree->first; entry != NULL; entry = entry->next) {
        if (key_of(entry->key) == NULL) {
            scn_object_complain_unknown(loader, &scn_kind_topology, entry->key_location, entry->key);
        }
    }
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        if (scn_tree_find(request->tree, required[i]) == NULL) {
            scn_mistakes_add(&loader->mistakes, request->tree->location, "missing key '%s' in topology", required[i]);
            good = false;
        }
    }
    request->cable = scn_tree_find(request->tree, "cable");
    request->names = scn_tree_find(request->tree, "names");
    return read_shape(loader, request) && good && check_list(loader, request);
}

// --- entries as a file would contain them ---------------------------------------------------------------------------

static struct scn_tree *collection_make(struct scn_loader *loader, enum scn_tree_kind kind,
                                        struct scn_location location)
{
    struct scn_tree *collection = scn_arena_alloc(loader->arena, sizeof *collection);
    collection->kind = kind;
    collection->location = location;
    return collection;
}

// Adds a copy of the entry to the mapping, under this key, which may be the entry's own. entry NULL: adds nothing.
static void entry_copy(struct scn_loader *loader, struct scn_tree *mapping, const char *key,
                       const struct scn_tree *entry)
{
    if (entry != NULL) {
        struct scn_tree *copy = scn_arena_alloc(loader->arena, sizeof *copy);
        *copy = *entry;
        copy->key = key;
        scn_tree_append(mapping, copy);
    }
}

static void text_add(struct scn_loader *loader, struct scn_tree *mapping, const char *key, const char *text)
{
    struct scn_tree *entry = collection_make(loader, SCN_TREE_SCALAR, mapping->location);
    entry->key = key;
    entry->key_location = mapping->location;
    entry->text = text;
    scn_tree_append(mapping, entry);
}

static void make_nodes(struct scn_loader *loader, const struct request *request)
{
    struct scn_scenario *scenario = loader->scenario;
    const struct scn_tree *name = request->names != NULL ? request->names->first : NULL;
    for (uint32_t i = 0; i < request->nodes; i++) {
        struct scn_node *node = &scenario->nodes[scenario->node_count++];
        struct scn_tree *item = collection_make(loader, SCN_TREE_MAPPING, request->tree->location);
        entry_copy(loader, item, "name", name);
        entry_copy(loader, item, "preset", scn_tree_find(request->tree, "preset"));
        entry_copy(loader, item, "with", scn_tree_find(request->tree, "with"));
        scn_node_load(loader, item, node);
        if (name != NULL) {
            name = name->next;
        } else {
            snprintf(node->name, sizeof node->name, "node%" PRIu32, i);
            scn_loader_note(loader, node->name, false, item->location, NULL);
        }
    }
}

static const struct scn_tree *link_tree(struct scn_loader *loader, const struct request *request)
{
    if (request->cable->kind == SCN_TREE_MAPPING) {
        return request->cable;
    }
    struct scn_tree *mapping = collection_make(loader, SCN_TREE_MAPPING, request->cable->location);
    entry_copy(loader, mapping, "preset", request->cable);
    return mapping;
}

static void make_cables(struct scn_loader *loader, const struct request *request)
{
    struct scn_scenario *scenario = loader->scenario;
    const struct scn_tree *link = link_tree(loader, request);
    scenario->cable_count = scn_topology_cables(request->topology, 0, request->nodes, scenario->cables);
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        struct scn_cable *cable = &scenario->cables[i];
        scn_kind_defaults(&scn_kind_link, &cable->link);
        scn_object_load(loader, &scn_kind_link, link, &cable->link);
        scn_loader_note(loader, cable, true, request->tree->location, NULL);
        scn_loader_note(loader, &cable->from_node, false, request->tree->location, NULL);
        scn_loader_note(loader, &cable->to_node, false, request->tree->location, NULL);
    }
}

static void scenario_load(struct scn_loader *loader, const char *name, const struct scn_tree *list)
{
    void *base = loader->scenario;
    scn_object_load_key(loader, scn_key_find(&scn_kind_scenario, name, &base), list, base);
}

// One switch, and a cable from each node to it.
static void make_ib_switch(struct scn_loader *loader, const struct request *request)
{
    static const char switch_name[] = "switch";
    const struct scn_tree *preset = scn_tree_find(request->tree, "ib_switch");
    const struct scn_tree *flight = scn_tree_find(request->tree, "ib_flight");
    if (preset == NULL) {
        if (flight != NULL) {
            scn_mistakes_add(&loader->mistakes, flight->key_location, "'ib_flight' needs 'ib_switch' beside it");
        }
        return;
    }
    struct scn_tree *switches = collection_make(loader, SCN_TREE_SEQUENCE, preset->location);
    struct scn_tree *one = collection_make(loader, SCN_TREE_MAPPING, preset->location);
    text_add(loader, one, "name", switch_name);
    entry_copy(loader, one, "preset", preset);
    scn_tree_append(switches, one);
    scenario_load(loader, "ib_switches", switches);
    struct scn_tree *cables = collection_make(loader, SCN_TREE_SEQUENCE, preset->location);
    for (uint32_t i = 0; i < request->nodes; i++) {
        struct scn_tree *cable = collection_make(loader, SCN_TREE_MAPPING, preset->location);
        text_add(loader, cable, "from", loader->scenario->nodes[i].name);
        text_add(loader, cable, "to", switch_name);
        if (flight != NULL) {
            entry_copy(loader, cable, "flight", flight);
        } else {
            text_add(loader, cable, "flight", key_of("ib_flight")->fallback);
        }
        scn_tree_append(cables, cable);
    }
    scenario_load(loader, "ib_cables", cables);
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
    if (tree->kind == SCN_TREE_MAPPING && scn_tree_find(tree, "ib_switch") != NULL) {
        complain_both(loader, scn_tree_find(parent, "ib_switches"), "ib_switch", "the switch and its cables");
        complain_both(loader, scn_tree_find(parent, "ib_cables"), "ib_switch", "the switch and its cables");
    }
}

void scn_topology_load(struct scn_loader *loader, const struct scn_tree *parent, const struct scn_tree *tree)
{
    struct scn_scenario *scenario = loader->scenario;
    struct request request = {.tree = tree};
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
    make_ib_switch(loader, &request);
}
