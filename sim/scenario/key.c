// Finds keys in the table; properties of keys that need no value.
#include "sim/scenario/keys.h"

#include <string.h>

#include "sim/scenario/names.h"
#include "sim/scenario/value.h"

const struct scn_key *scn_key_find(const struct scn_kind *kind, const char *name, void **base)
{
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct scn_key *key = &kind->keys[i];
        if (key->unit == SCN_UNIT_EMBED) {
            void *inner = base != NULL ? (char *)*base + key->offset : NULL;
            const struct scn_key *found = scn_key_find(key->child, name, base != NULL ? &inner : NULL);
            if (found != NULL && base != NULL) {
                *base = inner;
            }
            if (found != NULL) {
                return found;
            }
        } else if (scn_name_is(key->name, name) || (key->was != NULL && scn_name_is(key->was, name))) {
            return key;
        }
    }
    return NULL;
}

static void offer_keys(const struct scn_kind *kind, struct scn_nearest *nearest)
{
    for (size_t i = 0; i < kind->key_count; i++) {
        if (kind->keys[i].unit == SCN_UNIT_EMBED) {
            offer_keys(kind->keys[i].child, nearest);
        } else {
            scn_nearest_offer(nearest, kind->keys[i].name);
        }
    }
}

const char *scn_key_nearest(const struct scn_kind *kind, const char *name)
{
    struct scn_nearest nearest;
    scn_nearest_init(&nearest, name);
    offer_keys(kind, &nearest);
    if (kind->presets != NULL && strcmp(name, "preset") != 0 && strcmp(name, "with") != 0) {
        scn_nearest_offer(&nearest, "preset");
        scn_nearest_offer(&nearest, "with");
    }
    return nearest.name;
}

const char *scn_key_suggest(const char *word)
{
    struct scn_nearest nearest;
    const char *dot = strrchr(word, '.');
    scn_nearest_init(&nearest, dot != NULL ? dot + 1 : word);
    for (size_t i = 0; scn_kinds[i] != NULL; i++) {
        offer_keys(scn_kinds[i], &nearest);
        scn_nearest_offer(&nearest, scn_kinds[i]->name);
    }
    return nearest.name;
}

bool scn_key_is_structure(const struct scn_key *key)
{
    return key->unit == SCN_UNIT_OBJECT || key->unit == SCN_UNIT_EMBED || key->unit == SCN_UNIT_OBJECTS;
}

enum scn_unit scn_unit_element(enum scn_unit unit)
{
    if (unit == SCN_UNIT_SIZES) {
        return SCN_UNIT_SIZE;
    }
    return unit == SCN_UNIT_INTEGERS ? SCN_UNIT_INTEGER : unit;
}

const char *scn_unit_text(enum scn_unit unit)
{
    static const char *const texts[] = {
        [SCN_UNIT_SIZE] = "size",
        [SCN_UNIT_TIME] = "time",
        [SCN_UNIT_FREQUENCY] = "frequency",
        [SCN_UNIT_RATE] = "rate",
        [SCN_UNIT_INTEGER] = "integer",
        [SCN_UNIT_ADDRESS] = "address",
        [SCN_UNIT_CHOICE] = "choice",
        [SCN_UNIT_BOOL] = "boolean",
        [SCN_UNIT_REAL] = "number",
        [SCN_UNIT_PERCENT] = "percentage",
        [SCN_UNIT_TEXT] = "text",
        [SCN_UNIT_NODE] = "node name",
        [SCN_UNIT_ENDPOINT] = "node and port",
        [SCN_UNIT_SIZES] = "list of sizes",
        [SCN_UNIT_INTEGERS] = "list of integers",
        [SCN_UNIT_OBJECT] = "mapping",
        [SCN_UNIT_EMBED] = "keys",
        [SCN_UNIT_OBJECTS] = "list of mappings",
        [SCN_UNIT_ABSENT] = "integer",
        [SCN_UNIT_GENERATOR] = "mapping",
    };
    return texts[unit];
}

void scn_kind_defaults(const struct scn_kind *kind, void *base)
{
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct scn_key *key = &kind->keys[i];
        if (key->unit == SCN_UNIT_OBJECT || key->unit == SCN_UNIT_EMBED) {
            scn_kind_defaults(key->child, (char *)base + key->offset);
        } else if (key->fallback != NULL && (key->second == 0 || key->unit == SCN_UNIT_INTEGERS)) {
            scn_value_default(key, base);
        }
    }
}

static const char *choice_name(const struct scn_kind *kind, const char *key_name, uint64_t value)
{
    const struct scn_key *key = scn_key_find(kind, key_name, NULL);
    for (const struct scn_choice *choice = key->choices; choice->name != NULL; choice++) {
        if (choice->value == value) {
            return choice->name;
        }
    }
    return "?";
}

const char *scn_port_name(enum scn_port port)
{
    return scn_choices_port[port].name;
}

const char *scn_method_name(enum scn_method method)
{
    return choice_name(&scn_kind_run, "method", method);
}

bool scn_operation_is_verbs(enum scn_operation operation)
{
    switch (operation) {
#define VERBS_OPERATION(ID, name, verb) case SCN_OPERATION_##ID:
#define ACP_OPERATION(ID, name)
#include "sim/scenario/operations.def"
        return true;
    default:
        return false;
    }
}

bool scn_operation_is_acp(enum scn_operation operation)
{
    switch (operation) {
#define VERBS_OPERATION(ID, name, verb)
#define BOTH_OPERATION(ID, name, verb) case SCN_OPERATION_##ID:
#define ACP_OPERATION(ID, name)        case SCN_OPERATION_##ID:
#include "sim/scenario/operations.def"
        return true;
    default:
        return false;
    }
}

const char *scn_operation_name(enum scn_operation operation)
{
    return choice_name(&scn_kind_verbs, "operation", operation);
}
