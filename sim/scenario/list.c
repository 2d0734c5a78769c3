// Lists of numbers: [8 B, 16 B], {from: 8 B, to: 1 MiB, factor: 2}, {from: 1, to: 8, step: 1}, or a single value.
#include "sim/scenario/value.h"

#include <inttypes.h>
#include <string.h>

static bool complain(struct scn_loader *loader, const struct scn_key *key, struct scn_location location,
                     const char *text)
{
    scn_mistakes_add(&loader->mistakes, location, "%s: %s", key->name, text);
    return false;
}

static bool load_element(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree,
                         uint64_t *number_out)
{
    char why[SCN_WHY_MAX];
    if (tree->kind != SCN_TREE_SCALAR) {
        snprintf(why, sizeof why, "expected a %s, found %s", scn_unit_text(key->unit), scn_tree_kind_text(tree));
        return complain(loader, key, tree->location, why);
    }
    return scn_number_parse(key, tree->text, number_out, why) || complain(loader, key, tree->location, why);
}

static bool load_sequence(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree,
                          uint64_t items[SCN_LIST_MAX], uint32_t *count_out)
{
    bool good = true;
    char why[SCN_WHY_MAX];
    if (tree->count == 0) {
        return complain(loader, key, tree->location, "the list is empty");
    }
    if (tree->count > SCN_LIST_MAX) {
        snprintf(why, sizeof why, "%zu values, at most %d are allowed", tree->count, SCN_LIST_MAX);
        return complain(loader, key, tree->location, why);
    }
    uint32_t count = 0;
    for (const struct scn_tree *item = tree->first; item != NULL; item = item->next) {
        good = load_element(loader, key, item, &items[count++]) && good;
    }
    *count_out = count;
    return good;
}

struct sweep {
    uint64_t from, to;
    uint64_t factor, step; // one of them is 0
};

// The increment of a list of sizes is a size, but it need not lie in the range of the elements.
static bool load_progress(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree,
                          struct sweep *sweep)
{
    struct scn_key row = {.name = key->name, .unit = SCN_UNIT_INTEGER, .min = 2, .max = UINT64_MAX};
    if (strcmp(tree->key, "step") != 0) {
        return load_element(loader, &row, tree, &sweep->factor);
    }
    row.unit = scn_unit_element(key->unit);
    row.min = 1;
    return load_element(loader, &row, tree, &sweep->step);
}

static bool read_sweep(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree,
                       struct sweep *sweep)
{
    bool good = tree->count == 3 && scn_tree_find(tree, "from") != NULL && scn_tree_find(tree, "to") != NULL &&
                (scn_tree_find(tree, "factor") != NULL || scn_tree_find(tree, "step") != NULL);
    if (!good) {
        return complain(loader, key, tree->location,
                        "expected {from: ..., to: ..., factor: ...} or step: instead of factor:");
    }
    for (const struct scn_tree *entry = tree->first; entry != NULL; entry = entry->next) {
        if (strcmp(entry->key, "from") == 0) {
            good = load_element(loader, key, entry, &sweep->from) && good;
        } else if (strcmp(entry->key, "to") == 0) {
            good = load_element(loader, key, entry, &sweep->to) && good;
        } else {
            good = load_progress(loader, key, entry, sweep) && good;
        }
    }
    return good;
}

// The range ends at `last`, and its next value, `beyond`, is larger than to:. beyond 0: none fits 64 bits.
static bool complain_missed(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree,
                            uint64_t last, uint64_t beyond)
{
    bool sizes = key->unit == SCN_UNIT_SIZES;
    char low[SCN_QUANTITY_MAX], high[SCN_QUANTITY_MAX], why[SCN_WHY_MAX];
    if (sizes) {
        scn_quantity_format(SCN_QUANTITY_SIZE, last, low);
        scn_quantity_format(SCN_QUANTITY_SIZE, beyond, high);
    } else {
        (void)snprintf(low, sizeof low, "%" PRIu64, last);
        (void)snprintf(high, sizeof high, "%" PRIu64, beyond);
    }
    if (beyond != 0) {
        (void)snprintf(why, sizeof why, "the steps from from: give %s and then %s, but not to:", low, high);
    } else {
        (void)snprintf(why, sizeof why, "the steps from from: end at %s, before to:", low);
    }
    return complain(loader, key, tree->location, why);
}

static bool load_sweep(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree,
                       uint64_t items[SCN_LIST_MAX], uint32_t *count_out)
{
    struct sweep sweep = {0};
    if (!read_sweep(loader, key, tree, &sweep)) {
        return false;
    }
    if (sweep.from > sweep.to) {
        return complain(loader, key, tree->location, "from: is larger than to:");
    }
    uint32_t count = 0;
    uint64_t value = sweep.from;
    bool overflow = false;
    while (!overflow && value <= sweep.to) {
        if (count == SCN_LIST_MAX) {
            char why[SCN_WHY_MAX];
            snprintf(why, sizeof why, "more than %d values", SCN_LIST_MAX);
            return complain(loader, key, tree->location, why);
        }
        items[count++] = value;
        overflow = sweep.factor != 0 ? __builtin_mul_overflow(value, sweep.factor, &value)
                                     : __builtin_add_overflow(value, sweep.step, &value);
    }
    *count_out = count;
    return items[count - 1] == sweep.to || complain_missed(loader, key, tree, items[count - 1], overflow ? 0 : value);
}

bool scn_list_load(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree,
                   uint64_t items[SCN_LIST_MAX], uint32_t *count_out)
{
    switch (tree->kind) {
    case SCN_TREE_SCALAR:
        *count_out = 1;
        return load_element(loader, key, tree, &items[0]);
    case SCN_TREE_SEQUENCE:
        return load_sequence(loader, key, tree, items, count_out);
    case SCN_TREE_MAPPING:
        return load_sweep(loader, key, tree, items, count_out);
    }
    return false;
}
