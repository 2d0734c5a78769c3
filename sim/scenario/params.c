// The table of keys as documentation, with the values of the presets.
#include "sim/scenario/loader.h"

#include <stdlib.h>
#include <string.h>

#include "sim/scenario/params.h"
#include "sim/scenario/value.h"

struct printer {
    FILE *out;
    struct scn_arena arena;
    struct scn_mistakes mistakes;
    const char *configs_dir;
    const char *filter;
};

// The contents of a preset's file.
struct preset_text {
    const char *name;
    const struct scn_tree *tree;
};

static struct preset_text *read_presets(struct printer *printer, const char *folder)
{
    char **names = NULL;
    size_t count = 0;
    if (printer->configs_dir != NULL && folder != NULL) {
        names = scn_preset_names(&printer->arena, printer->configs_dir, folder);
    }
    while (names != NULL && names[count] != NULL) {
        count++;
    }
    struct preset_text *presets = scn_arena_alloc(&printer->arena, (count + 1) * sizeof *presets);
    for (size_t i = 0; i < count; i++) {
        struct scn_file *file = scn_arena_alloc(&printer->arena, sizeof *file);
        bool readable = false;
        file->name = scn_arena_format(&printer->arena, "%s/%s/%s.yaml", printer->configs_dir, folder, names[i]);
        presets[i].name = names[i];
        presets[i].tree = scn_tree_read(&printer->arena, &printer->mistakes, file, &readable);
    }
    return presets;
}

static const char *text_of(const struct scn_tree *tree, const char *key)
{
    const struct scn_tree *found = tree != NULL ? scn_tree_find(tree, key) : NULL;
    return found != NULL && found->kind == SCN_TREE_SCALAR ? found->text : NULL;
}

// The preset that gives a key its value: the preset itself, or the one that it builds on (`preset:` and `with:`). NULL:
// none does. A preset that builds on itself ends the search; loading it reports the mistake.
static const struct preset_text *entry_find(const struct preset_text *presets, const struct preset_text *preset,
                                            const char *key, const struct scn_tree **entry_out)
{
    for (size_t steps = 0; preset->tree != NULL && presets[steps].name != NULL; steps++) {
        const char *base = text_of(preset->tree, "preset");
        const struct scn_tree *own = base == NULL ? preset->tree : scn_tree_find(preset->tree, "with");
        *entry_out = own != NULL ? scn_tree_find(own, key) : NULL;
        if (*entry_out != NULL || base == NULL) {
            return *entry_out != NULL ? preset : NULL;
        }
        for (preset = presets; preset->name != NULL && strcmp(preset->name, base) != 0;) {
            preset++;
        }
    }
    return NULL;
}

// false: the preset says nothing of the key.
static bool value_make(const struct preset_text *presets, const struct preset_text *preset, const char *key,
                       struct params_value *value_out)
{
    const struct scn_tree *entry = NULL;
    const struct preset_text *owner = entry_find(presets, preset, key, &entry);
    const struct scn_tree *value = entry != NULL ? scn_tree_find(entry, "value") : NULL;
    if (entry != NULL && value == NULL) {
        value = entry;
    }
    if (value == NULL || value->kind != SCN_TREE_SCALAR) {
        return false;
    }
    const struct scn_tree *range = scn_tree_find(entry, "range");
    bool ranged = range != NULL && range->kind == SCN_TREE_SEQUENCE && range->count == 2;
    *value_out = (struct params_value){.preset = preset->name,
                                       .text = value->text,
                                       .owner = owner != preset ? owner->name : NULL,
                                       .source = text_of(entry, "source"),
                                       .assumption = text_of(entry, "assumption"),
                                       .least = ranged ? range->first->text : NULL,
                                       .most = ranged ? range->last->text : NULL};
    return true;
}

static const char *default_text(const struct scn_key *key)
{
    if (key->fallback == NULL) {
        return "required";
    }
    bool open = (key->flags & (SCN_KEY_OPEN | SCN_KEY_SHOWN)) == SCN_KEY_OPEN || key->fallback[0] == '\0';
    return open && key->unit != SCN_UNIT_REAL ? "-" : key->fallback;
}

static const char *range_text(struct printer *printer, const struct scn_key *key)
{
    char *range = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&range, &size);
    if (out == NULL) {
        sim_panic("scenario", "no memory for a range");
    }
    scn_range_print(out, key);
    fclose(out);
    const char *text = range[0] != '\0' ? scn_arena_format(&printer->arena, "%s", range) : "-";
    free(range);
    return text;
}

static struct params_key key_make(struct printer *printer, const struct scn_key *key, const struct preset_text *presets)
{
    size_t count = 0;
    while (presets[count].name != NULL) {
        count++;
    }
    struct params_key made = {.key = key,
                              .fallback = default_text(key),
                              .range = range_text(printer, key),
                              .values = scn_arena_alloc(&printer->arena, (count + 1) * sizeof *made.values)};
    for (size_t i = 0; i < count; i++) {
        made.value_count += value_make(presets, &presets[i], key->name, &made.values[made.value_count]) ? 1 : 0;
    }
    return made;
}

static bool is_wanted(const char *filter, const struct scn_kind *kind, const struct params_key *key)
{
    char path[2 * SCN_NAME_MAX];
    snprintf(path, sizeof path, "%s.%s", kind->name, key->key->name);
    bool wanted = filter == NULL || params_word_fits(path, filter) || params_word_fits(key->key->doc, filter);
    for (const struct scn_choice *choice = key->key->choices; !wanted && choice != NULL && choice->name != NULL;
         choice++) {
        wanted = params_word_fits(choice->name, filter);
    }
    for (size_t i = 0; !wanted && i < key->value_count; i++) {
        const struct params_value *value = &key->values[i];
        wanted = (value->source != NULL && params_word_fits(value->source, filter)) ||
                 (value->assumption != NULL && params_word_fits(value->assumption, filter));
    }
    return wanted;
}

static struct params_kind kind_make(struct printer *printer, const struct scn_kind *kind)
{
    struct params_kind made = {.kind = kind,
                               .keys = scn_arena_alloc(&printer->arena, kind->key_count * sizeof *made.keys)};
    const struct preset_text *presets = read_presets(printer, kind == &scn_kind_cable ? NULL : kind->presets);
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct params_key key = key_make(printer, &kind->keys[i], presets);
        if (key.key->unit != SCN_UNIT_EMBED && is_wanted(printer->filter, kind, &key)) {
            made.keys[made.key_count++] = key;
        }
    }
    return made;
}

static void print_mistakes(struct printer *printer)
{
    struct scn_messages messages = {0};
    scn_mistakes_export(&printer->mistakes, &messages);
    for (size_t i = 0; i < messages.count; i++) {
        fprintf(printer->out, "%s\n", messages.lines[i]);
    }
    scn_messages_free(&messages);
}

enum sim_status scn_print_params(FILE *out, const char *configs_dir, const char *filter, enum scn_params_form form)
{
    struct printer printer = {.out = out, .configs_dir = configs_dir, .filter = filter};
    const struct params_form *style = &params_forms[form];
    bool found = false;
    printer.mistakes.arena = &printer.arena;
    for (size_t i = 0; scn_kinds[i] != NULL; i++) {
        const struct params_kind kind = kind_make(&printer, scn_kinds[i]);
        if (kind.key_count > 0) {
            fputs(found ? style->between : style->begin, out);
            style->kind(out, &kind);
            found = true;
        }
    }
    fputs(found ? style->end : "", out);
    bool good = printer.mistakes.count == 0;
    if (!good) {
        print_mistakes(&printer);
    }
    scn_arena_fini(&printer.arena);
    if (!good) {
        return SIM_ERR_INVALID;
    }
    return found ? SIM_OK : SIM_ERR_NOT_FOUND;
}
