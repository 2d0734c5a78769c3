// The list of nodes: an entry with `count: 4` is four nodes, and the sub-cluster limits the number of nodes.
#include "sim/scenario/loader.h"

#include <inttypes.h>
#include <string.h>

#include "sim/scenario/value.h"

// The number of nodes of an entry; *numbered_out: whether numbers are added to their names.
static uint64_t entry_count(struct scn_loader *loader, const struct scn_tree *item, bool *numbered_out)
{
    char why[SCN_WHY_MAX];
    const struct scn_key *key = scn_key_find(&scn_kind_node, "count", NULL);
    const struct scn_tree *tree = scn_tree_find(item, "count");
    uint64_t count = 1;
    *numbered_out = tree != NULL;
    if (tree == NULL) {
        return 1;
    }
    if (tree->kind != SCN_TREE_SCALAR) {
        scn_mistakes_add(&loader->mistakes, tree->location, "count: expected an integer, found %s",
                         scn_tree_kind_text(tree));
    } else if (!scn_number_parse(key, tree->text, &count, why)) {
        scn_mistakes_add(&loader->mistakes, tree->location, "count: %s", why);
    }
    return count;
}

static void number_name(struct scn_loader *loader, const struct scn_tree *item, struct scn_node *node, uint32_t number)
{
    size_t length = strlen(node->name);
    int added = snprintf(node->name + length, sizeof node->name - length, "%" PRIu32, number);
    if (length + (size_t)added >= sizeof node->name) {
        scn_mistakes_add(&loader->mistakes, item->location, "name: with its number longer than %zu bytes",
                         sizeof node->name - 1);
    }
}

void scn_node_load(struct scn_loader *loader, const struct scn_tree *item, struct scn_node *node)
{
    memset(node, 0, sizeof *node);
    scn_kind_defaults(&scn_kind_node, node);
    scn_object_load(loader, &scn_kind_node, item, node);
    const struct scn_tree *preset = scn_tree_find(item, "preset");
    if (preset != NULL && preset->kind == SCN_TREE_SCALAR && node->preset[0] == '\0') {
        snprintf(node->preset, sizeof node->preset, "%s", preset->text);
    }
}

static bool is_list_of_nodes(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree)
{
    if (tree->kind != SCN_TREE_SEQUENCE) {
        scn_mistakes_add(&loader->mistakes, tree->location, "%s: expected a list of mappings, found %s", key->name,
                         scn_tree_kind_text(tree));
        return false;
    }
    if (tree->count == 0) {
        scn_mistakes_add(&loader->mistakes, tree->location, "%s: at least one node is needed", key->name);
        return false;
    }
    return true;
}

void scn_nodes_load(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree)
{
    struct scn_scenario *scenario = loader->scenario;
    if (!is_list_of_nodes(loader, key, tree)) {
        scn_loader_note_bad(loader, &scenario->node_count, true, tree->location);
        return;
    }
    scn_loader_note(loader, &scenario->node_count, true, tree->location, NULL);
    scn_sources_forget(loader->sources, offsetof(struct scn_scenario, nodes), sizeof scenario->nodes);
    uint64_t total = 0;
    scenario->node_count = 0;
    for (const struct scn_tree *item = tree->first; item != NULL; item = item->next) {
        bool numbered = false;
        uint64_t count = entry_count(loader, item, &numbered);
        total += count;
        for (uint32_t i = 0; i < count && scenario->node_count < SCN_NODES_MAX; i++) {
            struct scn_node *node = &scenario->nodes[scenario->node_count];
            scn_node_load(loader, item, node);
            scenario->node_count++;
            if (numbered) {
                number_name(loader, item, node, i);
            }
        }
    }
    if (total > SCN_NODES_MAX) {
        scn_mistakes_add(&loader->mistakes, tree->location, SCN_TOO_MANY_NODES, key->name, total, SCN_NODES_MAX);
        scn_loader_note_bad(loader, &scenario->node_count, true, tree->location);
    }
}
