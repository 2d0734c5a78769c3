// --set path=value: follows the rows of the table to the fields that the path names.
#include "sim/scenario/loader.h"

#include <inttypes.h>
#include <string.h>

#include "sim/scenario/routes.h"
#include "sim/scenario/value.h"

// Mistakes in settings are shown after those in files.
#define RANK_FIRST 1000000u

struct setting {
    struct scn_location location;
    const char *value; // the text behind '='
    bool failed;       // ends the loop over `*`
    bool all;          // after a `*`: entries without the key are skipped
};

static void walk(struct scn_loader *loader, struct setting *setting, const struct scn_kind *kind, char *path,
                 void *base);

static void complain(struct scn_loader *loader, struct setting *setting, const char *text)
{
    scn_mistakes_add(&loader->mistakes, setting->location, "%s", text);
    setting->failed = true;
}

// Splits the first step off a path and returns the rest; NULL: there is none.
static char *split(char *path)
{
    char *dot = strchr(path, '.');
    if (dot == NULL) {
        return NULL;
    }
    *dot = '\0';
    return dot + 1;
}

static void apply(struct scn_loader *loader, struct setting *setting, const struct scn_key *key, void *base)
{
    struct scn_tree literal = {.kind = SCN_TREE_SCALAR, .location = setting->location, .text = setting->value};
    struct scn_tree *tree = &literal;
    if (key->unit != SCN_UNIT_TEXT) {
        tree = scn_tree_parse(loader->arena, &loader->mistakes, setting->location.file, setting->value,
                              strlen(setting->value));
    }
    size_t before = loader->mistakes.count;
    if (tree != NULL) {
        scn_object_load_key(loader, key, tree, base);
    }
    setting->failed = tree == NULL || loader->mistakes.count > before;
}

// The key that names the entries of a list, always the first one; NULL: entries have no name.
static const struct scn_key *name_key(const struct scn_kind *kind)
{
    const struct scn_key *first = &kind->keys[0];
    return first->unit == SCN_UNIT_TEXT && first->min > 0 ? first : NULL;
}

// The entries that a step selects by index, or all; false: reported, with what else a step may be.
static bool entries_by_index(struct scn_loader *loader, struct setting *setting, const char *list, const char *step,
                             uint32_t count, const char *other, uint64_t *first, uint64_t *last)
{
    char why[SCN_WHY_MAX];
    *first = 0;
    *last = count - 1;
    if (strcmp(step, "*") == 0) {
        return true;
    }
    if (scn_integer_parse(step, first, why) && *first < count) {
        *last = *first;
        return true;
    }
    complain(
        loader, setting,
        scn_arena_format(loader->arena, "'%s.%.80s': expected 0 to %" PRIu32 "%s, or *", list, step, count - 1, other));
    return false;
}

// The same, or by name.
static bool entries_find(struct scn_loader *loader, struct setting *setting, const struct scn_key *key,
                         const char *step, const char *base, uint32_t count, uint64_t *first, uint64_t *last)
{
    const struct scn_key *name = name_key(key->child);
    bool by_name = name != NULL && strcmp(step, "*") != 0;
    for (uint32_t i = 0; by_name && i < count; i++) {
        if (strcmp(base + key->offset + i * key->child->size + name->offset, step) == 0) {
            *first = *last = i;
            return true;
        }
    }
    return entries_by_index(loader, setting, key->name, step, count, name != NULL ? ", a name" : "", first, last);
}

static void complain_empty(struct scn_loader *loader, struct setting *setting, const struct scn_key *key)
{
    complain(loader, setting,
             scn_arena_format(loader->arena,
                              "the list '%s' is empty, and --set adds no entries: the file must give them", key->name));
}

static bool is_empty(const struct scn_key *key, const char *base)
{
    uint32_t count = 0;
    memcpy(&count, base + key->second, sizeof count);
    return count == 0;
}

static void walk_list(struct scn_loader *loader, struct setting *setting, const struct scn_key *key, char *path,
                      char *base)
{
    uint32_t count = 0;
    uint64_t first = 0, last = 0;
    char *rest = split(path);
    memcpy(&count, base + key->second, sizeof count);
    if (count == 0 && setting->all) {
        return;
    }
    if (count == 0) {
        complain_empty(loader, setting, key);
        return;
    }
    if (!entries_find(loader, setting, key, path, base, count, &first, &last)) {
        return;
    }
    if (rest == NULL) {
        complain(loader, setting, scn_arena_format(loader->arena, "a key must follow '%s.%s'", key->name, path));
        return;
    }
    setting->all = setting->all || strcmp(path, "*") == 0;
    for (uint64_t i = first; i <= last && !setting->failed; i++) {
        char *copy = scn_arena_format(loader->arena, "%s", rest);
        walk(loader, setting, key->child, copy, base + key->offset + i * key->child->size);
    }
}

// Applies another preset, with the same `with:` over it.
static void apply_preset(struct scn_loader *loader, struct setting *setting, const struct scn_kind *kind, void *base)
{
    const struct scn_tree *with = scn_given_find(loader, base);
    // The loader keeps what was given, for the next setting of the same object.
    struct scn_tree *mapping = scn_arena_alloc(loader->arena, sizeof *mapping);
    struct scn_tree *name = scn_arena_alloc(loader->arena, sizeof *name);
    *mapping = (struct scn_tree){.kind = SCN_TREE_MAPPING, .location = setting->location};
    *name = (struct scn_tree){
        .kind = SCN_TREE_SCALAR, .location = setting->location, .key = "preset", .text = setting->value};
    scn_tree_append(mapping, name);
    if (with != NULL) {
        struct scn_tree *over = scn_arena_alloc(loader->arena, sizeof *over);
        *over = *with;
        over->key = "with";
        over->next = NULL;
        scn_tree_append(mapping, over);
    }
    size_t before = loader->mistakes.count;
    scn_object_load(loader, kind, mapping, base);
    setting->failed = loader->mistakes.count > before;
    struct scn_node *node = kind == &scn_kind_node ? base : NULL;
    if (node != NULL && scn_loader_is_given(loader, node->preset) == false) {
        snprintf(node->preset, sizeof node->preset, "%s", setting->value);
    }
}

static void walk_object(struct scn_loader *loader, struct setting *setting, const struct scn_key *key, char *path,
                        char *base)
{
    size_t offset = (size_t)(base + key->offset - (char *)loader->scenario);
    bool given = scn_sources_find(loader->sources, offset, true) != NULL;
    if (!given && setting->all) {
        return;
    }
    if (!given) {
        complain(loader, setting, scn_arena_format(loader->arena, "'%s' is not given", key->name));
        return;
    }
    walk(loader, setting, key->child, path, base + key->offset);
}

// At the top, a key of nodes or runs may have been meant, of all of them.
static void complain_unknown(struct scn_loader *loader, struct setting *setting, const struct scn_kind *kind,
                             const char *path, const char *rest)
{
    bool top = kind == &scn_kind_scenario && scn_key_nearest(kind, path) == NULL;
    bool of_nodes = top && scn_key_find(&scn_kind_node, path, NULL) != NULL;
    bool of_runs = top && scn_key_find(&scn_kind_run, path, NULL) != NULL;
    if (of_nodes || of_runs) {
        complain(loader, setting,
                 scn_arena_format(loader->arena, "unknown key '%.80s' in scenario (did you mean '%s.*.%.80s%s%.80s'?)",
                                  path, of_nodes ? "nodes" : "runs", path, rest != NULL ? "." : "",
                                  rest != NULL ? rest : ""));
    } else {
        scn_object_complain_unknown(loader, kind, setting->location, path);
        setting->failed = true;
    }
}

static void walk(struct scn_loader *loader, struct setting *setting, const struct scn_kind *kind, char *path,
                 void *base)
{
    char *rest = split(path);
    void *object = base;
    const struct scn_key *key = scn_key_find(kind, path, &base);
    if (kind->presets != NULL && strcmp(path, "preset") == 0 && rest == NULL) {
        apply_preset(loader, setting, kind, object);
    } else if (kind->presets != NULL && strcmp(path, "with") == 0) {
        complain(loader, setting, "leave 'with' out: --set goes over presets by itself");
    } else if (key == NULL || key->unit == SCN_UNIT_ABSENT || key->unit == SCN_UNIT_GENERATOR) {
        complain_unknown(loader, setting, kind, path, rest);
    } else if (key->unit == SCN_UNIT_OBJECTS && rest != NULL) {
        walk_list(loader, setting, key, rest, base);
    } else if (key->unit == SCN_UNIT_OBJECTS && strcmp(setting->value, "[]") == 0 && key->fallback != NULL &&
               key->min == 0) {
        memset((char *)base + key->second, 0, sizeof(uint32_t)); // its count
    } else if (key->unit == SCN_UNIT_OBJECTS && is_empty(key, base)) {
        complain_empty(loader, setting, key);
    } else if (key->unit == SCN_UNIT_OBJECTS) {
        complain(loader, setting, scn_arena_format(loader->arena, "an index or * must follow '%s'", key->name));
    } else if (key->unit == SCN_UNIT_OBJECT && rest != NULL) {
        walk_object(loader, setting, key, rest, base);
    } else if (rest != NULL) {
        complain(loader, setting, scn_arena_format(loader->arena, "'%s' has no keys", key->name));
    } else {
        apply(loader, setting, key, base);
        if (strcmp(key->name, path) != 0) {
            scn_mistakes_warn(&loader->mistakes, setting->location, "'%s' is called '%s' now", path, key->name);
        }
    }
}

// Splits "path=value". Returns the path, and sets setting->value. NULL: reported.
static char *start(struct scn_loader *loader, struct setting *setting, const char *text, unsigned number)
{
    struct scn_file *file = scn_arena_alloc(loader->arena, sizeof *file);
    file->name = scn_arena_format(loader->arena, "--set %s", text);
    file->rank = RANK_FIRST + number;
    file->is_argument = true;
    *setting = (struct setting){.location = {file, 0, 0}};
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        complain(loader, setting, "expected path=value");
        return NULL;
    }
    if (equals[1] == '\0') {
        complain(loader, setting, "the value is empty");
        return NULL;
    }
    setting->value = equals + 1;
    return scn_arena_copy(loader->arena, text, (size_t)(equals - text));
}

// --- sub-clusters ---------------------------------------------------------------------------------------------------

#define SUB_CLUSTERS "sub_clusters."

// "N.KEY": KEY of every node of the sub-cluster; "N.fidelity": of its boards.
static void walk_sub_clusters(struct scn_loader *loader, struct setting *setting, char *path)
{
    struct scn_scenario *scenario = loader->scenario;
    char *key = split(path);
    uint64_t first = 0, last = 0;
    if (loader->mistakes.count != 0 || scenario->node_count == 0) {
        return; // the cables may have no ends, and the scenario is refused
    }
    struct scn_routes *routes = scn_routes_find(scenario);
    if (key == NULL) {
        complain(loader, setting, scn_arena_format(loader->arena, "a key must follow '" SUB_CLUSTERS "%s'", path));
    } else if (entries_by_index(loader, setting, "sub_clusters", path, routes->sub_cluster_count, "", &first, &last)) {
        key = strcmp(key, "fidelity") == 0 ? "board.fidelity" : key;
        setting->all = strcmp(path, "*") == 0;
        for (uint32_t i = 0; i < scenario->node_count && !setting->failed; i++) {
            if (routes->sub_cluster_of[i] >= first && routes->sub_cluster_of[i] <= last) {
                walk(loader, setting, &scn_kind_node, scn_arena_format(loader->arena, "%s", key), &scenario->nodes[i]);
            }
        }
    }
    scn_routes_free(routes);
}

void scn_set_apply(struct scn_loader *loader, const char *text, unsigned number)
{
    struct setting setting;
    char *path = start(loader, &setting, text, number);
    if (path != NULL && strncmp(path, SUB_CLUSTERS, sizeof SUB_CLUSTERS - 1) == 0) {
        walk_sub_clusters(loader, &setting, path + sizeof SUB_CLUSTERS - 1);
    } else if (path != NULL) {
        walk(loader, &setting, &scn_kind_scenario, path, loader->scenario);
    }
}

// --- values of presets ----------------------------------------------------------------------------------------------

#define PRESETS "presets."

bool scn_set_is_of_presets(const char *text)
{
    return strncmp(text, PRESETS, sizeof PRESETS - 1) == 0;
}

// Is "presets.KIND.NAME.KEY=..." a setting of that key in the preset's file, ".../KIND/NAME.yaml"?
static bool names_value(const char *text, const char *file, const char *key)
{
    const char *name = strrchr(file, '/'), *kind = name;
    while (kind != NULL && kind > file && kind[-1] != '/') {
        kind--;
    }
    const char *end = name != NULL ? strrchr(name, '.') : NULL, *equals = strchr(text, '=');
    if (end == NULL || equals == NULL) {
        return false;
    }
    const struct {
        const char *text;
        size_t length;
    } parts[] = {{kind, (size_t)(name - kind)}, {name + 1, (size_t)(end - name - 1)}, {key, strlen(key)}};
    text += sizeof PRESETS - 1;
    for (unsigned i = 0; i < 3; i++) {
        char after = i == 2 ? '=' : '.';
        if ((size_t)(equals - text) < parts[i].length || strncmp(text, parts[i].text, parts[i].length) != 0 ||
            text[parts[i].length] != after) {
            return false;
        }
        text += parts[i].length + 1;
    }
    return true;
}

const struct scn_tree *scn_set_of_presets_find(struct scn_loader *loader, const struct scn_key *key,
                                               const struct scn_location *location)
{
    const struct scn_tree *found = NULL;
    for (size_t i = 0; i < loader->set_count; i++) {
        const char *text = loader->sets[i];
        if (!scn_set_is_of_presets(text) || !names_value(text, location->file->name, key->name)) {
            continue;
        }
        struct setting setting;
        (void)start(loader, &setting, text, (unsigned)i);
        found = setting.failed ? NULL
                               : scn_tree_parse(loader->arena, &loader->mistakes, setting.location.file, setting.value,
                                                strlen(setting.value));
        loader->sets_of_presets[i] = true;
    }
    return found;
}

void scn_set_of_presets_check(struct scn_loader *loader)
{
    for (size_t i = 0; i < loader->set_count; i++) {
        struct setting setting;
        if (scn_set_is_of_presets(loader->sets[i]) && !loader->sets_of_presets[i] &&
            start(loader, &setting, loader->sets[i], (unsigned)i) != NULL) {
            complain(loader, &setting, "no preset of the scenario gives that value; expected presets.KIND.NAME.KEY=VALUE");
        }
    }
}

bool scn_set_gives(const char *set, const char *key)
{
    const char *equals = strchr(set, '=');
    size_t length = strlen(key), path = equals != NULL ? (size_t)(equals - set) : 0;
    return path >= length && strncmp(equals - length, key, length) == 0 &&
           (path == length || equals[-1 - (ptrdiff_t)length] == '.');
}

bool scn_set_is_preset(const char *text)
{
    return scn_set_gives(text, "preset");
}

// --- settings of the tree ------------------------------------------------------------------------------------------

bool scn_set_is_early(const char *text)
{
    static const char *const names[] = {"topology", "sweep"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(text, names[i], length) == 0 && (text[length] == '.' || text[length] == '=')) {
            return true;
        }
    }
    return false;
}

// Replaces or adds the entry that the path names, relative to tree.
static void put_value(struct scn_loader *loader, struct setting *setting, struct scn_tree *tree, char *path,
                      const struct scn_tree *value)
{
    char *rest = split(path);
    struct scn_tree *entry = scn_tree_find(tree, path);
    if (rest != NULL && entry == NULL) {
        complain(loader, setting, scn_arena_format(loader->arena, "'%s' is not given", path));
    } else if (rest != NULL && entry->kind != SCN_TREE_MAPPING) {
        complain(loader, setting, scn_arena_format(loader->arena, "'%s' has no keys", path));
    } else if (rest != NULL) {
        put_value(loader, setting, entry, rest, value);
    } else {
        bool added = entry == NULL;
        entry = added ? scn_arena_alloc(loader->arena, sizeof *entry) : entry;
        struct scn_tree *next = entry->next;
        *entry = *value;
        entry->next = next;
        entry->key = path;
        entry->key_location = setting->location;
        if (added) {
            scn_tree_append(tree, entry);
        }
    }
}

void scn_set_apply_early(struct scn_loader *loader, struct scn_tree *tree, const char *text, unsigned number)
{
    struct setting setting;
    char *path = start(loader, &setting, text, number);
    if (path == NULL || tree->kind != SCN_TREE_MAPPING) {
        return;
    }
    const struct scn_tree *value =
        scn_tree_parse(loader->arena, &loader->mistakes, setting.location.file, setting.value, strlen(setting.value));
    if (value != NULL) {
        put_value(loader, &setting, tree, path, value);
    }
}
