// Trees to structs: loads objects by the rows of their kind, presets first, `with:` over them.
#include "sim/scenario/loader.h"

#include <string.h>

#include "sim/scenario/value.h"

#define PRESET_DEPTH_MAX 8

static size_t offset_of(const struct scn_loader *loader, const void *address)
{
    return (size_t)((const char *)address - (const char *)loader->scenario);
}

void scn_loader_note(struct scn_loader *loader, const void *address, bool structure, struct scn_location location,
                     const char *note)
{
    struct scn_source source = {offset_of(loader, address), structure, false, location, note};
    scn_sources_put(loader->sources, &source);
}

void scn_loader_note_bad(struct scn_loader *loader, const void *address, bool structure, struct scn_location location)
{
    struct scn_source source = {offset_of(loader, address), structure, true, location, NULL};
    scn_sources_put(loader->sources, &source);
}

struct scn_location scn_loader_location(const struct scn_loader *loader, const void *address, const void *object)
{
    const struct scn_source *source = scn_sources_find(loader->sources, offset_of(loader, address), false);
    if (source == NULL) {
        source = scn_sources_find(loader->sources, offset_of(loader, object), true);
    }
    return source != NULL ? source->location : (struct scn_location){loader->file, 1, 1};
}

bool scn_loader_is_given(const struct scn_loader *loader, const void *address)
{
    return scn_sources_find(loader->sources, offset_of(loader, address), false) != NULL;
}

bool scn_loader_is_bad(const struct scn_loader *loader, const void *address, bool structure)
{
    const struct scn_source *source = scn_sources_find(loader->sources, offset_of(loader, address), structure);
    return source != NULL && source->bad;
}

uint32_t scn_loader_find_node(const struct scn_loader *loader, const char *name)
{
    for (uint32_t i = 0; i < loader->scenario->node_count; i++) {
        if (strcmp(loader->scenario->nodes[i].name, name) == 0) {
            return i;
        }
    }
    return SCN_NODE_NONE;
}

void scn_object_complain_unknown(struct scn_loader *loader, const struct scn_kind *kind, struct scn_location location,
                                 const char *name)
{
    const char *nearest = scn_key_nearest(kind, name);
    if (strchr(name, ':') != NULL) {
        scn_mistakes_add(&loader->mistakes, location, "unknown key '%.80s' in %s: a space is missing after the ':'",
                         name, kind->name);
    } else if (nearest != NULL) {
        scn_mistakes_add(&loader->mistakes, location, "unknown key '%.80s' (did you mean '%s'?)", name, nearest);
    } else if (strpbrk(name, " /") != NULL) {
        scn_mistakes_add(&loader->mistakes, location,
                         "unknown key '%.80s' in %s: inside {} or [], a text with a comma needs quotes", name,
                         kind->name);
    } else {
        scn_mistakes_add(&loader->mistakes, location, "unknown key '%.80s' in %s", name, kind->name);
    }
}

static void *list_item(const struct scn_key *key, void *base, uint32_t index)
{
    return (char *)base + key->offset + index * key->child->size;
}

static void load_objects(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree, void *base)
{
    uint32_t count = 0;
    char *count_field = (char *)base + key->second;
    if (tree->kind != SCN_TREE_SEQUENCE) {
        scn_mistakes_add(&loader->mistakes, tree->location, "%s: expected a list of mappings, found %s", key->name,
                         scn_tree_kind_text(tree));
        scn_loader_note_bad(loader, count_field, true, tree->location);
        return;
    }
    scn_loader_note(loader, count_field, true, tree->location, NULL);
    if (tree->count < key->min || tree->count > key->max) {
        scn_mistakes_add(&loader->mistakes, tree->location, "%s: %zu entries, allowed are %zu to %zu", key->name,
                         tree->count, (size_t)key->min, (size_t)key->max);
        scn_loader_note_bad(loader, count_field, true, tree->location);
    }
    for (const struct scn_tree *item = tree->first; item != NULL && count < key->max; item = item->next) {
        void *object = list_item(key, base, count++);
        memset(object, 0, key->child->size);
        scn_sources_forget(loader->sources, offset_of(loader, object), key->child->size);
        scn_kind_defaults(key->child, object);
        memcpy(count_field, &count, sizeof count);
        scn_object_load(loader, key->child, item, object);
    }
    memcpy(count_field, &count, sizeof count);
}

void scn_object_load_key(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree, void *base)
{
    if (key->unit == SCN_UNIT_OBJECTS && key->child == &scn_kind_node) {
        scn_nodes_load(loader, key, tree);
    } else if (key->unit == SCN_UNIT_OBJECTS) {
        load_objects(loader, key, tree, base);
    } else if (key->unit == SCN_UNIT_OBJECT) {
        scn_object_load(loader, key->child, tree, (char *)base + key->offset);
    } else if (key->unit != SCN_UNIT_ABSENT && key->unit != SCN_UNIT_GENERATOR) {
        scn_value_load(loader, key, tree, base);
    }
}

// A row that sets two fields excludes another row that sets one of them.
static void check_exclusive(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_tree *tree,
                            const struct scn_key *key)
{
    for (const struct scn_tree *entry = tree->first; entry != NULL; entry = entry->next) {
        const struct scn_key *other = scn_key_find(kind, entry->key, NULL);
        if (other != NULL && other != key && (other->offset == key->offset || other->offset == key->second)) {
            scn_mistakes_add(&loader->mistakes, entry->key_location, "'%s' and '%s' exclude each other", other->name,
                             key->name);
        }
    }
}

static void load_entry(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_tree *tree,
                       const struct scn_tree *entry, void *base)
{
    const struct scn_key *key = scn_key_find(kind, entry->key, &base);
    if (loader->preset_depth > 0 && (key->flags & SCN_KEY_OWN) != 0) {
        scn_mistakes_add(&loader->mistakes, entry->key_location,
                         "'%s' belongs to one %s, not into a preset or with:", key->name, kind->name);
        return;
    }
    if (key->unit == SCN_UNIT_GENERATOR) {
        if (strcmp(key->name, "sweep") == 0) {
            scn_sweep_load(loader, entry);
        } else {
            scn_topology_load(loader, tree, entry);
        }
        return;
    }
    bool pair = key->second != 0 && (key->unit == SCN_UNIT_SIZE || key->unit == SCN_UNIT_INTEGER);
    if (pair) {
        check_exclusive(loader, kind, tree, key);
    }
    scn_object_load_key(loader, key, entry, base);
}

// In the order of the table, not of the file, because cables and runs name nodes.
static void load_in_table_order(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_tree *tree,
                                void *base)
{
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct scn_key *key = &kind->keys[i];
        if (key->unit == SCN_UNIT_EMBED) {
            load_in_table_order(loader, key->child, tree, (char *)base + key->offset);
            continue;
        }
        const struct scn_tree *entry = scn_tree_find(tree, key->name);
        if (entry == NULL && key->was != NULL) {
            entry = scn_tree_find(tree, key->was);
        }
        if (entry != NULL) {
            load_entry(loader, kind, tree, entry, base);
        }
    }
}

static bool is_form(const struct scn_kind *kind, const char *name)
{
    return kind->presets != NULL && (strcmp(name, "preset") == 0 || strcmp(name, "with") == 0);
}

static void check_old_name(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree,
                           const struct scn_tree *entry)
{
    if (strcmp(key->name, entry->key) == 0) {
        return;
    }
    if (scn_tree_find(tree, key->name) != NULL) {
        scn_mistakes_add(&loader->mistakes, entry->key_location, "'%s' and '%s' are the same key", entry->key,
                         key->name);
    } else {
        scn_mistakes_warn(&loader->mistakes, entry->key_location, "'%s' is called '%s' now", entry->key, key->name);
    }
}

static void check_names(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_tree *tree)
{
    bool has_preset = kind->presets != NULL && scn_tree_find(tree, "preset") != NULL;
    for (const struct scn_tree *entry = tree->first; entry != NULL; entry = entry->next) {
        const struct scn_key *key = scn_key_find(kind, entry->key, NULL);
        if (is_form(kind, entry->key)) {
            if (!has_preset) {
                scn_mistakes_add(&loader->mistakes, entry->key_location, "with: needs preset: beside it");
            }
        } else if (key == NULL) {
            scn_object_complain_unknown(loader, kind, entry->key_location, entry->key);
        } else if (has_preset && (key->flags & SCN_KEY_OWN) == 0) {
            scn_mistakes_add(&loader->mistakes, entry->key_location,
                             "'%s' beside preset: belongs under with:", entry->key);
        } else {
            check_old_name(loader, key, tree, entry);
        }
    }
}

static void reset(struct scn_loader *loader, const struct scn_kind *kind, void *base)
{
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct scn_key *key = &kind->keys[i];
        if (key->unit != SCN_UNIT_ABSENT && key->unit != SCN_UNIT_GENERATOR && (key->flags & SCN_KEY_OWN) == 0) {
            memset((char *)base + key->offset, 0, key->size);
            scn_sources_forget(loader->sources, offset_of(loader, base) + key->offset, key->size);
        }
    }
    struct scn_kind others = *kind;
    while (others.key_count > 0 && (others.keys->flags & SCN_KEY_OWN) != 0) {
        others.keys++;
        others.key_count--;
    }
    scn_kind_defaults(&others, base);
}

// False: reported.
static bool load_preset(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_tree *name, void *base)
{
    if (loader->preset_depth == PRESET_DEPTH_MAX) {
        scn_mistakes_add(&loader->mistakes, name->location, "presets refer to one another in a circle");
        return false;
    }
    const struct scn_tree *tree = scn_preset_get(loader, kind->presets, name);
    if (tree == NULL) {
        return false;
    }
    bool sourced = loader->sourced;
    loader->sourced = true;
    loader->preset_depth++;
    scn_object_load(loader, kind, tree, base);
    loader->preset_depth--;
    loader->sourced = sourced;
    return true;
}

static void load_with(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_tree *tree, void *base)
{
    loader->preset_depth++;
    scn_object_load(loader, kind, tree, base); // in a preset's file its values have sources, too
    loader->preset_depth--;
}

// --- values over presets -------------------------------------------------------------------------------------------

struct scn_given {
    struct scn_given *next;      // older, in the same bucket
    size_t offset;               // of the object
    bool preset;                 // the object has a preset
    const struct scn_tree *tree; // values over the preset; NULL: none
};

static size_t bucket_of(size_t offset)
{
    return offset / sizeof(uint64_t) % SCN_GIVEN_BUCKETS;
}

static const struct scn_given *given_find(const struct scn_loader *loader, const void *base)
{
    const struct scn_given *given = loader->given[bucket_of(offset_of(loader, base))];
    while (given != NULL && given->offset != offset_of(loader, base)) {
        given = given->next;
    }
    return given;
}

const struct scn_tree *scn_given_find(const struct scn_loader *loader, const void *base)
{
    const struct scn_given *given = given_find(loader, base);
    return given != NULL ? given->tree : NULL;
}

// An object inside `with:` without preset: is as a whole put over the preset that the object already has.
static void given_note(struct scn_loader *loader, const struct scn_tree *tree, const struct scn_tree *preset,
                       const struct scn_tree *with, const void *base)
{
    const struct scn_given *before = given_find(loader, base);
    const struct scn_tree *over = preset != NULL ? with : loader->preset_depth > 0 ? tree : NULL;
    if (over != NULL && over->location.file != loader->file) {
        over = NULL; // from a preset's file
    }
    struct scn_given *given = scn_arena_alloc(loader->arena, sizeof *given);
    struct scn_given **bucket = &loader->given[bucket_of(offset_of(loader, base))];
    *given = (struct scn_given){*bucket, offset_of(loader, base), preset != NULL || (before != NULL && before->preset),
                                over};
    *bucket = given;
}

void scn_object_load(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_tree *tree, void *base)
{
    if (tree->kind != SCN_TREE_MAPPING) {
        scn_mistakes_add(&loader->mistakes, tree->location, "%s: expected a mapping, found %s", kind->name,
                         scn_tree_kind_text(tree));
        scn_loader_note_bad(loader, base, true, tree->location);
        return;
    }
    check_names(loader, kind, tree);
    const struct scn_tree *preset = kind->presets != NULL ? scn_tree_find(tree, "preset") : NULL;
    const struct scn_tree *with = kind->presets != NULL ? scn_tree_find(tree, "with") : NULL;
    given_note(loader, tree, preset, with, base);
    bool bad = preset == NULL && (with != NULL || scn_loader_is_bad(loader, base, true));
    if (preset != NULL) {
        reset(loader, kind, base);
        bad = !load_preset(loader, kind, preset, base) || scn_loader_is_bad(loader, base, true);
    }
    load_in_table_order(loader, kind, tree, base);
    if (with != NULL) {
        load_with(loader, kind, with, base);
    }
    if (kind->loaded != NULL) {
        kind->loaded(base, tree);
    }
    if (bad) {
        scn_loader_note_bad(loader, base, true, tree->location);
    } else {
        scn_loader_note(loader, base, true, tree->location, NULL);
    }
}

static void require_items(struct scn_loader *loader, const struct scn_key *key, struct scn_location location,
                          void *base)
{
    uint32_t count = 0;
    memcpy(&count, (char *)base + key->second, sizeof count);
    for (uint32_t i = 0; i < count; i++) {
        void *item = list_item(key, base, i);
        const struct scn_source *source = scn_sources_find(loader->sources, offset_of(loader, item), true);
        scn_object_require(loader, key->child, source != NULL ? source->location : location, item);
    }
}

// A hint, once for each object, that a preset would supply all missing keys.
static const char *preset_hint(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_key *key,
                               bool *hinted)
{
    if (*hinted || kind->presets == NULL || (key->flags & SCN_KEY_OWN) != 0) {
        return "";
    }
    *hinted = true;
    char **names = scn_preset_names(loader->arena, loader->configs_dir, kind->presets);
    if (names == NULL || names[0] == NULL) {
        return "";
    }
    const char *list = names[0];
    for (size_t i = 1; names[i] != NULL; i++) {
        list = scn_arena_format(loader->arena, "%s, %s", list, names[i]);
    }
    return scn_arena_format(loader->arena, "; preset: gives all of them (there are: %s)", list);
}

static void require_key(struct scn_loader *loader, const struct scn_kind *kind, const struct scn_key *key,
                        struct scn_location location, void *base, bool *hinted)
{
    bool list = key->unit == SCN_UNIT_OBJECTS;
    void *field = (char *)base + (list ? key->second : key->offset);
    size_t offset = offset_of(loader, field);
    const struct scn_source *source = scn_sources_find(loader->sources, offset, scn_key_is_structure(key));
    if (source == NULL && key->fallback == NULL) {
        const char *hint = preset_hint(loader, kind, key, hinted);
        scn_mistakes_add(&loader->mistakes, location, "missing key '%s' in %s%s", key->name, kind->name, hint);
        scn_loader_note_bad(loader, field, scn_key_is_structure(key), location);
    } else if (source != NULL && key->unit == SCN_UNIT_OBJECT) {
        scn_object_require(loader, key->child, source->location, field);
    } else if (source != NULL && list) {
        require_items(loader, key, source->location, base);
    }
}

static void require_keys(struct scn_loader *loader, const struct scn_kind *kind, struct scn_location location,
                         void *base, bool *hinted)
{
    if (scn_loader_is_bad(loader, base, true)) {
        return;
    }
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct scn_key *key = &kind->keys[i];
        if (key->unit == SCN_UNIT_EMBED) {
            require_keys(loader, key->child, location, (char *)base + key->offset, hinted);
        } else {
            require_key(loader, kind, key, location, base, hinted);
        }
    }
}

void scn_object_require(struct scn_loader *loader, const struct scn_kind *kind, struct scn_location location,
                        void *base)
{
    const struct scn_given *given = given_find(loader, base);
    bool hinted = given != NULL && given->preset; // no hint if the object has a preset, which lacks the key
    require_keys(loader, kind, location, base, &hinted);
}
