#include "sim/calibrate/calibration.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/names.h"
#include "sim/scenario/tree.h"
#include "sim/scenario/units.h"

#define PATH_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.*"

struct loaded {
    struct calibration calibration; // first, so that a pointer to it is one to this
    struct scn_arena arena;
};

struct reading {
    struct loaded *loaded;
    struct scn_mistakes mistakes;
    const char *directory; // of the file, with a slash at its end, or ""
};

// --- values ---------------------------------------------------------------------------------------------------------

static const enum scn_quantity quantities[] = {
    [CALIBRATION_TIME] = SCN_QUANTITY_TIME,
    [CALIBRATION_SIZE] = SCN_QUANTITY_SIZE,
    [CALIBRATION_FREQUENCY] = SCN_QUANTITY_FREQUENCY,
    [CALIBRATION_RATE] = SCN_QUANTITY_RATE,
};

static bool value_parse(enum calibration_unit unit, const char *text, uint64_t *value_out)
{
    char why[SCN_WHY_MAX];
    return unit == CALIBRATION_NUMBER ? scn_integer_parse(text, value_out, why)
                                      : scn_quantity_parse(quantities[unit], text, value_out, why);
}

static bool unit_find(const char *text, enum calibration_unit *unit_out)
{
    uint64_t value;
    for (int unit = CALIBRATION_NUMBER; unit <= CALIBRATION_RATE; unit++) {
        if (value_parse((enum calibration_unit)unit, text, &value)) {
            *unit_out = (enum calibration_unit)unit;
            return true;
        }
    }
    return false;
}

uint64_t calibration_value(const struct calibration_key *key, uint32_t index)
{
    return key->from + index * key->step;
}

void calibration_value_format(const struct calibration_key *key, uint32_t index, char text[CALIBRATION_VALUE_MAX])
{
    _Static_assert(CALIBRATION_VALUE_MAX >= SCN_QUANTITY_MAX, "a value fits");
    uint64_t value = calibration_value(key, index);
    if (key->unit == CALIBRATION_NUMBER) {
        snprintf(text, CALIBRATION_VALUE_MAX, "%" PRIu64, value);
    } else {
        scn_quantity_format(quantities[key->unit], value, text);
    }
}

uint32_t calibration_value_nearest(const struct calibration_key *key, const char *text)
{
    uint64_t value;
    if (!value_parse(key->unit, text, &value)) {
        return key->value_count / 2;
    }
    if (value <= key->from) {
        return 0;
    }
    uint64_t index = (value - key->from) / key->step + ((value - key->from) % key->step * 2 >= key->step ? 1 : 0);
    return index < key->value_count ? (uint32_t)index : key->value_count - 1;
}

// --- the file -------------------------------------------------------------------------------------------------------

static const char *text_of(struct reading *reading, const struct scn_tree *tree)
{
    if (tree->kind != SCN_TREE_SCALAR || tree->text[0] == '\0') {
        scn_mistakes_add(&reading->mistakes, tree->location, "'%s' needs a text, not %s",
                         tree->key != NULL ? tree->key : "-",
                         tree->kind == SCN_TREE_SCALAR ? "an empty one" : scn_tree_kind_text(tree));
        return "";
    }
    return tree->text;
}

// The texts of a list, or a single one. Returns their number.
static size_t texts_read(struct reading *reading, const struct scn_tree *tree, const char **texts, size_t max)
{
    size_t count = 0;
    if (tree->kind == SCN_TREE_SCALAR) {
        texts[0] = text_of(reading, tree);
        return 1;
    }
    if (tree->kind == SCN_TREE_MAPPING || tree->count == 0) {
        scn_mistakes_add(&reading->mistakes, tree->location, "'%s' needs a list of texts", tree->key);
        return 0;
    }
    for (const struct scn_tree *item = tree->first; item != NULL; item = item->next) {
        if (count == max) {
            scn_mistakes_add(&reading->mistakes, item->location, "'%s' has more than %zu entries", tree->key, max);
            break;
        }
        texts[count++] = text_of(reading, item);
    }
    return count;
}

static void unknown_report(struct reading *reading, const struct scn_tree *entry, const char *what,
                           const char *const *names)
{
    struct scn_nearest nearest;
    scn_nearest_init(&nearest, entry->key);
    for (size_t i = 0; names[i] != NULL; i++) {
        scn_nearest_offer(&nearest, names[i]);
    }
    const char *found = nearest.name;
    scn_mistakes_add(&reading->mistakes, entry->key_location,
                     found != NULL ? "unknown key '%s' of %s (did you mean '%s'?)" : "unknown key '%s' of %s",
                     entry->key, what, found);
}

// Every key of the mapping is one of the names, which end with NULL; the first `required` ones are there.
static bool names_check(struct reading *reading, const struct scn_tree *tree, const char *what,
                        const char *const *names, size_t required)
{
    size_t before = reading->mistakes.count;
    if (tree->kind != SCN_TREE_MAPPING) {
        scn_mistakes_add(&reading->mistakes, tree->location, "%s is a mapping, not %s", what, scn_tree_kind_text(tree));
        return false;
    }
    for (const struct scn_tree *entry = tree->first; entry != NULL; entry = entry->next) {
        size_t i = 0;
        while (names[i] != NULL && strcmp(names[i], entry->key) != 0) {
            i++;
        }
        if (names[i] == NULL) {
            unknown_report(reading, entry, what, names);
        }
    }
    for (size_t i = 0; i < required; i++) {
        if (scn_tree_find(tree, names[i]) == NULL) {
            scn_mistakes_add(&reading->mistakes, tree->location, "%s needs '%s'", what, names[i]);
        }
    }
    return reading->mistakes.count == before;
}

static bool number_read(struct reading *reading, const struct scn_tree *tree, enum calibration_unit unit,
                        uint64_t *value_out)
{
    if (!value_parse(unit, text_of(reading, tree), value_out)) {
        scn_mistakes_add(&reading->mistakes, tree->location, "'%s: %s' is not a quantity from 0 on as 'from' is",
                         tree->key, tree->kind == SCN_TREE_SCALAR ? tree->text : "");
        return false;
    }
    return true;
}

static void range_read(struct reading *reading, const struct scn_tree *tree, struct calibration_key *key)
{
    const struct scn_tree *from = scn_tree_find(tree, "from"), *to = scn_tree_find(tree, "to");
    const struct scn_tree *step = scn_tree_find(tree, "step");
    uint64_t last = 0;
    if (!unit_find(text_of(reading, from), &key->unit)) {
        scn_mistakes_add(&reading->mistakes, from->location,
                         "'from' needs a whole number, or a quantity such as '30 ns', '256 B', '250 MHz'");
        return;
    }
    if (!number_read(reading, from, key->unit, &key->from) || !number_read(reading, to, key->unit, &last) ||
        !number_read(reading, step, key->unit, &key->step)) {
        return;
    }
    if (last <= key->from || key->step == 0 || key->step > last - key->from) {
        scn_mistakes_add(&reading->mistakes, from->location, "'from', 'to' and 'step' leave the key a single value");
        return;
    }
    uint64_t steps = (last - key->from) / key->step;
    if (steps >= CALIBRATION_VALUES_MAX) {
        scn_mistakes_add(&reading->mistakes, step->location, "more than %d values", CALIBRATION_VALUES_MAX);
        return;
    }
    key->value_count = (uint32_t)steps + 1;
}

static void key_read(struct reading *reading, const struct scn_tree *tree)
{
    static const char *const names[] = {"key", "from", "to", "step", "source", NULL};
    struct calibration *calibration = &reading->loaded->calibration;
    if (!names_check(reading, tree, "an entry of 'keys'", names, 5)) {
        return;
    }
    if (calibration->key_count == CALIBRATION_KEYS_MAX) {
        scn_mistakes_add(&reading->mistakes, tree->location, "more than %d keys", CALIBRATION_KEYS_MAX);
        return;
    }
    struct calibration_key *key = &calibration->keys[calibration->key_count++];
    key->path_count = texts_read(reading, scn_tree_find(tree, "key"), key->paths, CALIBRATION_PATHS_MAX);
    key->source = text_of(reading, scn_tree_find(tree, "source"));
    for (size_t i = 0; i < key->path_count; i++) {
        if (key->paths[i][strspn(key->paths[i], PATH_CHARACTERS)] != '\0') {
            scn_mistakes_add(&reading->mistakes, tree->location, "'key: %s' is no path as --set takes it",
                             key->paths[i]);
        }
    }
    range_read(reading, tree, key);
}

// "board.dmac_start_cycles" of "nodes.*.board.dmac_start_cycles".
static const char *short_name(const char *path)
{
    const char *rest = strncmp(path, "nodes.", 6) == 0 ? strchr(path + 6, '.') : NULL;
    return rest != NULL ? rest + 1 : path;
}

static void names_make(struct calibration *calibration)
{
    for (size_t i = 0; i < calibration->key_count; i++) {
        struct calibration_key *key = &calibration->keys[i];
        key->name = short_name(key->paths[0]);
        for (size_t k = 0; k < calibration->key_count; k++) {
            bool same = k != i && strcmp(short_name(calibration->keys[k].paths[0]), short_name(key->paths[0])) == 0;
            key->name = same ? key->paths[0] : key->name;
        }
    }
}

static void keys_read(struct reading *reading, const struct scn_tree *tree)
{
    if (tree->kind != SCN_TREE_SEQUENCE || tree->count == 0) {
        scn_mistakes_add(&reading->mistakes, tree->location, "'keys' needs a list of keys with their ranges");
        return;
    }
    for (const struct scn_tree *item = tree->first; item != NULL; item = item->next) {
        key_read(reading, item);
    }
    if (reading->mistakes.count == 0) {
        names_make(&reading->loaded->calibration);
    }
}

static void root_read(struct reading *reading, const struct scn_tree *root)
{
    static const char *const names[] = {"scenarios", "keys", "title", "rows", NULL};
    struct calibration *calibration = &reading->loaded->calibration;
    if (!names_check(reading, root, "a calibration", names, 2)) {
        return;
    }
    const struct scn_tree *title = scn_tree_find(root, "title"), *rows = scn_tree_find(root, "rows");
    calibration->title = title != NULL ? text_of(reading, title) : "";
    calibration->scenario_count =
        texts_read(reading, scn_tree_find(root, "scenarios"), calibration->scenarios, CALIBRATION_SCENARIOS_MAX);
    for (size_t i = 0; i < calibration->scenario_count; i++) {
        const char *name = calibration->scenarios[i];
        calibration->scenarios[i] =
            scn_arena_format(&reading->loaded->arena, "%s%s", name[0] == '/' ? "" : reading->directory, name);
    }
    calibration->row_count = rows != NULL ? texts_read(reading, rows, calibration->rows, SCN_CHECKS_MAX) : 0;
    keys_read(reading, scn_tree_find(root, "keys"));
}

enum sim_status calibration_load(const char *path, calibration_t **calibration_out, struct scn_messages *messages)
{
    struct loaded *loaded = calloc(1, sizeof *loaded);
    if (loaded == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    const char *slash = strrchr(path, '/');
    struct reading reading = {.loaded = loaded, .mistakes = {.arena = &loaded->arena}};
    const struct scn_file file = {.name = scn_arena_format(&loaded->arena, "%s", path)};
    reading.directory = scn_arena_copy(&loaded->arena, path, slash != NULL ? (size_t)(slash + 1 - path) : 0);
    bool readable = true;
    const struct scn_tree *root = scn_tree_read(&loaded->arena, &reading.mistakes, &file, &readable);
    if (root != NULL && reading.mistakes.count == 0) {
        root_read(&reading, root);
    }
    if (reading.mistakes.count != 0) {
        scn_mistakes_export(&reading.mistakes, messages);
        calibration_free(&loaded->calibration);
        return readable ? SIM_ERR_INVALID : SIM_ERR_IO;
    }
    *calibration_out = &loaded->calibration;
    return SIM_OK;
}

void calibration_free(calibration_t *calibration)
{
    if (calibration != NULL) {
        struct loaded *loaded = (struct loaded *)calibration;
        scn_arena_fini(&loaded->arena);
        free(loaded);
    }
}
