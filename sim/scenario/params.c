// `tcasim params`: prints the table of keys as help, with the values of the presets.
#include "sim/scenario/loader.h"

#include <stdlib.h>
#include <string.h>

#include "sim/scenario/value.h"

struct printer {
    FILE *out;
    struct scn_arena arena;
    struct scn_mistakes mistakes;
    const char *configs_dir;
    const char *filter;
    bool found;
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

static void print_preset_value(struct printer *printer, const struct preset_text *presets,
                               const struct preset_text *preset, const char *key)
{
    const struct scn_tree *entry = NULL;
    const struct preset_text *owner = entry_find(presets, preset, key, &entry);
    const struct scn_tree *value = entry != NULL ? scn_tree_find(entry, "value") : NULL;
    const char *source = text_of(entry, "source"), *assumption = text_of(entry, "assumption");
    if (entry != NULL && value == NULL) {
        value = entry;
    }
    if (value == NULL || value->kind != SCN_TREE_SCALAR) {
        return;
    }
    fprintf(printer->out, "      %-24s %-14s", preset->name, value->text);
    if (owner != preset) {
        fprintf(printer->out, " as %s", owner->name);
    } else if (source != NULL) {
        fprintf(printer->out, " source: %s", source);
    } else if (assumption != NULL) {
        fprintf(printer->out, " assumption: %s", assumption);
    }
    fputc('\n', printer->out);
}

static const char *default_text(const struct scn_key *key)
{
    if (key->fallback == NULL) {
        return "required";
    }
    bool open = (key->flags & (SCN_KEY_OPEN | SCN_KEY_SHOWN)) == SCN_KEY_OPEN || key->fallback[0] == '\0';
    return open && key->unit != SCN_UNIT_REAL ? "-" : key->fallback;
}

static void print_key(struct printer *printer, const struct scn_key *key, const struct preset_text *presets)
{
    char *range = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&range, &size);
    if (out == NULL) {
        sim_panic("scenario", "no memory for a range");
    }
    scn_range_print(out, key);
    fclose(out);
    fprintf(printer->out, "  %-25s %-17s %-13s %-42s %s\n", key->name, scn_unit_text(key->unit), default_text(key),
            range[0] != '\0' ? range : "-", key->doc);
    free(range);
    for (size_t i = 0; presets[i].name != NULL; i++) {
        print_preset_value(printer, presets, &presets[i], key->name);
    }
}

static bool is_wanted(const struct printer *printer, const struct scn_kind *kind, const struct scn_key *key)
{
    if (key->unit == SCN_UNIT_EMBED) {
        return false;
    }
    if (printer->filter == NULL) {
        return true;
    }
    char path[2 * SCN_NAME_MAX];
    snprintf(path, sizeof path, "%s.%s", kind->name, key->name);
    bool wanted = strcasestr(path, printer->filter) != NULL || strcasestr(key->doc, printer->filter) != NULL;
    for (const struct scn_choice *choice = key->choices; !wanted && choice != NULL && choice->name != NULL; choice++) {
        wanted = strcasestr(choice->name, printer->filter) != NULL;
    }
    return wanted;
}

static void print_heading(struct printer *printer, const struct scn_kind *kind)
{
    fprintf(printer->out, "%s: %s", kind->name, kind->doc);
    if (kind->presets != NULL) {
        fprintf(printer->out, "; {preset: NAME, with: {...}} takes configs/%s/NAME.yaml", kind->presets);
    }
    for (size_t i = 0; i < kind->key_count; i++) {
        if (kind->keys[i].unit == SCN_UNIT_EMBED) {
            fprintf(printer->out, "; takes the keys of a %s as well", kind->keys[i].child->name);
        }
    }
    fprintf(printer->out, "\n  %-25s %-17s %-13s %-42s %s\n", "key", "unit", "default", "range", "meaning");
}

static void print_kind(struct printer *printer, const struct scn_kind *kind)
{
    const struct preset_text *presets = NULL;
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct scn_key *key = &kind->keys[i];
        if (!is_wanted(printer, kind, key)) {
            continue;
        }
        if (presets == NULL) {
            print_heading(printer, kind);
            presets = read_presets(printer, kind == &scn_kind_cable ? NULL : kind->presets);
        }
        print_key(printer, key, presets);
    }
    if (presets != NULL) {
        fputc('\n', printer->out);
        printer->found = true;
    }
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

enum sim_status scn_print_params(FILE *out, const char *configs_dir, const char *filter)
{
    struct printer printer = {.out = out, .configs_dir = configs_dir, .filter = filter};
    printer.mistakes.arena = &printer.arena;
    for (size_t i = 0; scn_kinds[i] != NULL; i++) {
        print_kind(&printer, scn_kinds[i]);
    }
    bool good = printer.mistakes.count == 0;
    if (!good) {
        print_mistakes(&printer);
    }
    scn_arena_fini(&printer.arena);
    if (!good) {
        return SIM_ERR_INVALID;
    }
    return printer.found ? SIM_OK : SIM_ERR_NOT_FOUND;
}
