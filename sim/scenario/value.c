#include "sim/scenario/value.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/kernel/text.h"
#include "sim/scenario/names.h"

static void store_number(const struct scn_key *key, void *base, size_t offset, uint64_t number)
{
    char *field = (char *)base + offset;
    if (key->size == sizeof(uint64_t)) {
        memcpy(field, &number, sizeof number);
    } else if (key->size == sizeof(uint32_t)) {
        uint32_t narrow = (uint32_t)number;
        memcpy(field, &narrow, sizeof narrow);
    } else {
        bool truth = number != 0;
        memcpy(field, &truth, sizeof truth);
    }
}

static bool parse_choice(const struct scn_choice *choices, const char *text, uint64_t *number_out,
                         char why[SCN_WHY_MAX])
{
    int length = snprintf(why, SCN_WHY_MAX, "'%.80s' is none of ", text);
    const char *separator = "";
    for (const struct scn_choice *choice = choices; choice->name != NULL; choice++) {
        if (strcmp(choice->name, text) == 0) {
            *number_out = choice->value;
            return true;
        }
        if (scn_choice_is_offered(choice)) {
            length += snprintf(why + length, SCN_WHY_MAX - (size_t)length, "%s%s", separator, choice->name);
            separator = ", ";
        }
    }
    return false;
}

static bool parse_bool(const char *text, uint64_t *number_out, char why[SCN_WHY_MAX])
{
    *number_out = strcmp(text, "true") == 0;
    if (*number_out == 0 && strcmp(text, "false") != 0) {
        snprintf(why, SCN_WHY_MAX, "'%.80s' is neither true nor false", text);
        return false;
    }
    return true;
}

static bool parse_unit(const struct scn_key *key, const char *text, uint64_t *number_out, char why[SCN_WHY_MAX])
{
    switch (scn_unit_element(key->unit)) {
    case SCN_UNIT_SIZE:
        return scn_quantity_parse(SCN_QUANTITY_SIZE, text, number_out, why);
    case SCN_UNIT_TIME:
        return scn_quantity_parse(SCN_QUANTITY_TIME, text, number_out, why);
    case SCN_UNIT_FREQUENCY:
        return scn_quantity_parse(SCN_QUANTITY_FREQUENCY, text, number_out, why);
    case SCN_UNIT_RATE:
        return scn_quantity_parse(SCN_QUANTITY_RATE, text, number_out, why);
    case SCN_UNIT_INTEGER:
    case SCN_UNIT_ADDRESS:
    case SCN_UNIT_ABSENT:
        return scn_integer_parse(text, number_out, why);
    case SCN_UNIT_CHOICE:
        return parse_choice(key->choices, text, number_out, why);
    case SCN_UNIT_BOOL:
        return parse_bool(text, number_out, why);
    case SCN_UNIT_REAL:
    case SCN_UNIT_PERCENT:
    case SCN_UNIT_TEXT:
    case SCN_UNIT_NODE:
    case SCN_UNIT_ENDPOINT:
    case SCN_UNIT_SIZES:
    case SCN_UNIT_INTEGERS:
    case SCN_UNIT_OBJECT:
    case SCN_UNIT_EMBED:
    case SCN_UNIT_OBJECTS:
    case SCN_UNIT_GENERATOR:
        break;
    }
    snprintf(why, SCN_WHY_MAX, "holds no number");
    return false;
}

static bool check_range(const struct scn_key *key, const char *text, uint64_t number, char why[SCN_WHY_MAX])
{
    bool fits = number >= key->min && number <= key->max;
    fits = fits && (key->multiple == 0 || number % key->multiple == 0);
    fits = fits && ((key->flags & SCN_KEY_POWER_OF_TWO) == 0 || (number & (number - 1)) == 0);
    if (fits || !scn_key_has_range(key)) {
        return true;
    }
    FILE *out = fmemopen(why, SCN_WHY_MAX, "w");
    if (out == NULL) {
        snprintf(why, SCN_WHY_MAX, "%.80s is out of range", text);
        return false;
    }
    fprintf(out, "%.80s is out of range (", text);
    scn_range_print(out, key);
    fputs(")", out);
    fclose(out);
    return false;
}

bool scn_number_parse(const struct scn_key *key, const char *text, uint64_t *number_out, char why[SCN_WHY_MAX])
{
    uint64_t number = 0;
    if (!parse_unit(key, text, &number, why) || !check_range(key, text, number, why)) {
        return false;
    }
    *number_out = number;
    return true;
}

static bool load_real(const struct scn_key *key, const char *text, void *base, char why[SCN_WHY_MAX])
{
    double number = 0;
    bool percent = key->unit == SCN_UNIT_PERCENT;
    if (percent ? !scn_percent_parse(text, &number, why) : !scn_real_parse(text, &number, why)) {
        return false;
    }
    if (key->max != 0 && (number < (double)key->min || number > (double)key->max)) {
        snprintf(why, SCN_WHY_MAX, "%.80s is out of range (%" PRIu64 " .. %" PRIu64 ")", text, key->min, key->max);
        return false;
    }
    memcpy((char *)base + key->offset, &number, sizeof number);
    return true;
}

static bool load_text(const struct scn_key *key, const char *text, void *base, char why[SCN_WHY_MAX])
{
    size_t length = strlen(text);
    for (size_t at = 0; at < length; at += sim_text_character(text + at)) {
        if (sim_text_character(text + at) == 0) { // from the command line
            snprintf(why, SCN_WHY_MAX, "is no UTF-8");
            return false;
        }
        if (sim_text_is_control(text + at)) {
            snprintf(why, SCN_WHY_MAX, "must be one line without control characters");
            return false;
        }
    }
    if (length < key->min) {
        snprintf(why, SCN_WHY_MAX, "is empty");
        return false;
    }
    if (length >= key->size) {
        snprintf(why, SCN_WHY_MAX, "is longer than %zu bytes", key->size - 1);
        return false;
    }
    char *field = (char *)base + key->offset;
    memset(field, 0, key->size);
    memcpy(field, text, length);
    return true;
}

// The name of vertex i, if nodes are counted first, then switches.
static const char *vertex_name(const struct scn_scenario *scenario, uint32_t i)
{
    return i < scenario->node_count ? scenario->nodes[i].name : scenario->ib_switches[i - scenario->node_count].name;
}

static void complain_unknown_node(const struct scn_scenario *scenario, const char *name, bool switches,
                                  char why[SCN_WHY_MAX])
{
    struct scn_nearest nearest;
    uint32_t count = scenario->node_count + (switches ? scenario->ib_switch_count : 0);
    scn_nearest_init(&nearest, name);
    for (uint32_t i = 0; i < count; i++) {
        scn_nearest_offer(&nearest, vertex_name(scenario, i));
    }
    size_t length = (size_t)snprintf(why, SCN_WHY_MAX, "unknown node%s '%.80s'", switches ? " or switch" : "", name);
    if (nearest.name != NULL) {
        snprintf(why + length, SCN_WHY_MAX - length, " (did you mean '%s'?)", nearest.name);
        return;
    }
    for (uint32_t i = 0; i < count && length + SCN_NAME_MAX + 3 < SCN_WHY_MAX; i++) {
        length += (size_t)snprintf(why + length, SCN_WHY_MAX - length, "%s%s", i == 0 ? " (there are: " : ", ",
                                   vertex_name(scenario, i));
    }
    snprintf(why + length, SCN_WHY_MAX - length, ")");
}

// Also true, with SCN_NODE_NONE, if the scenario has no nodes, which is reported already.
static bool find_node(const struct scn_loader *loader, const char *name, bool switches, uint32_t *node_out,
                      char why[SCN_WHY_MAX])
{
    const struct scn_scenario *scenario = loader->scenario;
    *node_out = scn_loader_find_node(loader, name);
    for (uint32_t i = 0; switches && *node_out == SCN_NODE_NONE && i < scenario->ib_switch_count; i++) {
        *node_out = strcmp(scenario->ib_switches[i].name, name) == 0 ? SCN_IB_SWITCH(i) : SCN_NODE_NONE;
    }
    if (*node_out != SCN_NODE_NONE || scenario->node_count == 0) {
        return true;
    }
    complain_unknown_node(scenario, name, switches, why);
    return false;
}

static bool load_node(const struct scn_loader *loader, const struct scn_key *key, const char *text, void *base,
                      char why[SCN_WHY_MAX])
{
    uint32_t node = SCN_NODE_NONE;
    if (!find_node(loader, text, (key->flags & SCN_KEY_SWITCHES) != 0, &node, why)) {
        return false;
    }
    store_number(key, base, key->offset, node);
    return true;
}

static bool load_endpoint(struct scn_loader *loader, const struct scn_key *key, const char *text, void *base,
                          char why[SCN_WHY_MAX])
{
    const char *dot = strrchr(text, '.');
    if (dot == NULL) {
        snprintf(why, SCN_WHY_MAX, "'%.80s' is not a node and a port such as node0.E", text);
        return false;
    }
    uint32_t node = SCN_NODE_NONE;
    uint64_t port = 0;
    if (!find_node(loader, scn_arena_copy(loader->arena, text, (size_t)(dot - text)), false, &node, why)) {
        return false;
    }
    if (!parse_choice(scn_choices_port, dot + 1, &port, why)) {
        snprintf(why, SCN_WHY_MAX, "'%.80s' has no port '%.20s' for a cable (E, W, S)", text, dot + 1);
        return false;
    }
    store_number(key, base, key->offset, node);
    store_number(key, base, key->second, port);
    return true;
}

static bool load_scalar(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree, void *base,
                        char why[SCN_WHY_MAX])
{
    uint64_t number = 0;
    if (tree->quoted && (key->unit == SCN_UNIT_INTEGER || key->unit == SCN_UNIT_BOOL || key->unit == SCN_UNIT_REAL)) {
        snprintf(why, SCN_WHY_MAX, "expected %s %s, found a text in quotes", key->unit == SCN_UNIT_INTEGER ? "an" : "a",
                 scn_unit_text(key->unit));
        return false;
    }
    if (key->unit == SCN_UNIT_REAL || key->unit == SCN_UNIT_PERCENT) {
        return load_real(key, tree->text, base, why);
    }
    if (key->unit == SCN_UNIT_TEXT) {
        return load_text(key, tree->text, base, why);
    }
    if (key->unit == SCN_UNIT_NODE) {
        return load_node(loader, key, tree->text, base, why);
    }
    if (key->unit == SCN_UNIT_ENDPOINT) {
        return load_endpoint(loader, key, tree->text, base, why);
    }
    if (!scn_number_parse(key, tree->text, &number, why)) {
        return false;
    }
    store_number(key, base, key->offset, number);
    if (key->second != 0) {
        store_number(key, base, key->second, number);
    }
    return true;
}

// false: reported. The range of a value in a preset: [least, most], which has the value in it.
static bool range_holds(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *range,
                        const struct scn_tree *value)
{
    const struct scn_tree *texts[] = {range->first, value, range->last};
    uint64_t numbers[3] = {0};
    char why[SCN_WHY_MAX] = "expected [LEAST, MOST]";
    for (unsigned i = 0; i < 3; i++) {
        if (range->kind != SCN_TREE_SEQUENCE || range->count != 2 || texts[i]->kind != SCN_TREE_SCALAR ||
            !scn_number_parse(key, texts[i]->text, &numbers[i], why)) {
            scn_mistakes_add(&loader->mistakes, range->location, "%s: range: %s", key->name, why);
            return false;
        }
    }
    if (numbers[0] > numbers[1] || numbers[1] > numbers[2]) {
        scn_mistakes_add(&loader->mistakes, value->location, "%s: %s is outside of its range, %s to %s", key->name,
                         texts[1]->text, texts[0]->text, texts[2]->text);
        return false;
    }
    return true;
}

static const char *note_text(struct scn_loader *loader, const struct scn_tree *source, const struct scn_tree *assumption,
                             const struct scn_tree *range)
{
    const char *head = source != NULL ? "" : "assumption: ", *text = source != NULL ? source->text : assumption->text;
    return range == NULL ? scn_arena_format(loader->arena, "%s%s", head, text)
                         : scn_arena_format(loader->arena, "%s%s; range %s to %s", head, text, range->first->text,
                                            range->last->text);
}

// Returns the value of {value: ..., source: ...}, with its source as the note; NULL: reported. The note is NULL if
// there is none.
static const struct scn_tree *unwrap(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree,
                                     const char **note_out)
{
    static const char form[] = "{value: ..., source: ...} or {value: ..., assumption: ...}, with range: [LEAST, MOST]";
    const struct scn_tree *value = scn_tree_find(tree, "value");
    *note_out = NULL;
    if (value == NULL) {
        if (loader->sourced) {
            scn_mistakes_add(&loader->mistakes, tree->location, "%s: a preset names its sources: write %s", key->name,
                             form);
            return NULL;
        }
        return tree;
    }
    const struct scn_tree *source = scn_tree_find(tree, "source");
    const struct scn_tree *assumption = scn_tree_find(tree, "assumption");
    const struct scn_tree *note = source != NULL ? source : assumption;
    const struct scn_tree *range = scn_tree_find(tree, "range");
    if (tree->count != 2u + (range != NULL) || note == NULL || note->kind != SCN_TREE_SCALAR || note->text[0] == '\0') {
        scn_mistakes_add(&loader->mistakes, tree->location, "%s: expected %s", key->name, form);
        return NULL;
    }
    if (range != NULL && !range_holds(loader, key, range, value)) {
        return NULL;
    }
    *note_out = note_text(loader, source, assumption, range);
    return value;
}

static bool load_list(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree, void *base)
{
    uint64_t items[SCN_LIST_MAX] = {0};
    uint32_t count = 0;
    if (!scn_list_load(loader, key, tree, items, &count)) {
        return false;
    }
    memcpy((char *)base + key->offset, items, sizeof items);
    memcpy((char *)base + key->second, &count, sizeof count);
    return true;
}

static bool load_single(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree, void *base)
{
    char why[SCN_WHY_MAX];
    if (tree->kind != SCN_TREE_SCALAR) {
        const char *article = strchr("aeiou", scn_unit_text(key->unit)[0]) != NULL ? "an" : "a";
        scn_mistakes_add(&loader->mistakes, tree->location, "%s: expected %s %s, found %s", key->name, article,
                         scn_unit_text(key->unit), scn_tree_kind_text(tree));
        return false;
    }
    if (!load_scalar(loader, key, tree, base, why)) {
        scn_mistakes_add(&loader->mistakes, tree->location, "%s: %s", key->name, why);
        return false;
    }
    return true;
}

void scn_value_load(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree, void *base)
{
    const char *note = NULL;
    const char *field = (const char *)base + key->offset;
    bool list = key->unit == SCN_UNIT_SIZES || key->unit == SCN_UNIT_INTEGERS;
    const struct scn_tree *value = unwrap(loader, key, tree, &note);
    const struct scn_tree *set = value != NULL && loader->sourced && loader->sets_of_presets != NULL
                                     ? scn_set_of_presets_find(loader, key, &value->location)
                                     : NULL;
    if (set != NULL) {
        value = set;
        note = NULL;
    }
    if (value == NULL || !(list ? load_list(loader, key, value, base) : load_single(loader, key, value, base))) {
        scn_loader_note_bad(loader, field, false, tree->location);
        return;
    }
    scn_loader_note(loader, field, false, value->location, note);
    if (key->second != 0 && !list && key->unit != SCN_UNIT_ENDPOINT) {
        scn_loader_note(loader, (const char *)base + key->second, false, value->location, note);
    }
}

void scn_value_default(const struct scn_key *key, void *base)
{
    char why[SCN_WHY_MAX];
    uint64_t number = SCN_NODE_NONE;
    if (key->unit == SCN_UNIT_ABSENT || key->unit == SCN_UNIT_GENERATOR) {
        return;
    }
    if (key->unit == SCN_UNIT_TEXT) {
        snprintf((char *)base + key->offset, key->size, "%s", key->fallback);
    } else if (key->unit == SCN_UNIT_REAL || key->unit == SCN_UNIT_PERCENT) {
        load_real(key, key->fallback, base, why);
    } else if (key->unit == SCN_UNIT_NODE) {
        store_number(key, base, key->offset, number);
    } else if (!scn_number_parse(key, key->fallback, &number, why)) {
        sim_panic("scenario", "default of key %s: %s", key->name, why);
    } else if (key->unit == SCN_UNIT_INTEGERS) {
        uint32_t count = 1;
        memcpy((char *)base + key->offset, &number, sizeof number);
        memcpy((char *)base + key->second, &count, sizeof count);
    } else {
        store_number(key, base, key->offset, number);
    }
}
