// The table of keys as text for a terminal, Markdown, JSON, and a page of the manual.
#include <string.h>

#include "sim/kernel/terminal.h"
#include "sim/kernel/text.h"
#include "sim/scenario/loader.h"
#include "sim/scenario/params.h"

static const char *value_head(const struct params_value *value)
{
    return value->owner != NULL ? "as" : value->source != NULL ? "source:" : "assumption:";
}

// Where the value comes from; NULL: not said.
static const char *value_origin(const struct params_value *value)
{
    return value->owner != NULL ? value->owner : value->source != NULL ? value->source : value->assumption;
}

// The range that the preset gives for its value.
static void value_range_print(FILE *out, const struct params_value *value)
{
    if (value->least != NULL && value->owner == NULL) {
        fprintf(out, "range %s to %s; ", value->least, value->most);
    }
}

// --- text -----------------------------------------------------------------------------------------------------------

static void text_heading_print(FILE *out, const struct scn_kind *kind)
{
    fprintf(out, "%s: %s", kind->name, kind->doc);
    if (kind->presets != NULL) {
        fprintf(out, "; {preset: NAME, with: {...}} takes configs/%s/NAME.yaml", kind->presets);
    }
    for (size_t i = 0; i < kind->key_count; i++) {
        if (kind->keys[i].unit == SCN_UNIT_EMBED) {
            fprintf(out, "; takes the keys of a %s as well", kind->keys[i].child->name);
        }
    }
    fprintf(out, "\n  %-25s %-17s %-13s %-42s %s\n", "key", "unit", "default", "range", "meaning");
}

enum { MEANING_COLUMN = 103, MEANING_INDENT = 6 };

// Range and meaning. On a terminal that is too narrow for them, the meaning goes below, its lines as wide as they fit.
static void text_meaning_print(FILE *out, const struct params_key *key)
{
    unsigned columns = sim_terminal_columns(out);
    const char *doc = key->key->doc;
    if (columns == 0 || columns >= MEANING_COLUMN + strlen(doc)) {
        fprintf(out, "%-42s %s\n", key->range, doc);
        return;
    }
    size_t room = columns > 2 * MEANING_INDENT ? columns - MEANING_INDENT : columns;
    fprintf(out, "%s\n", key->range);
    while (doc[0] != '\0') {
        size_t length = strlen(doc);
        for (size_t cut = room; length > room && cut > 0; cut--) {
            length = doc[cut] == ' ' ? cut : length;
        }
        fprintf(out, "%*s%.*s\n", MEANING_INDENT, "", (int)length, doc);
        doc += length + strspn(doc + length, " ");
    }
}

static void text_kind_print(FILE *out, const struct params_kind *kind)
{
    text_heading_print(out, kind->kind);
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct params_key *key = &kind->keys[i];
        fprintf(out, "  %-25s %-17s %-13s ", key->key->name, scn_unit_text(key->key->unit), key->fallback);
        text_meaning_print(out, key);
        for (size_t k = 0; k < key->value_count; k++) {
            const struct params_value *value = &key->values[k];
            fprintf(out, "      %-24s %-14s", value->preset, value->text);
            if (value_origin(value) != NULL) {
                fputc(' ', out);
                value_range_print(out, value);
                fprintf(out, "%s %s", value_head(value), value_origin(value));
            }
            fputc('\n', out);
        }
    }
    fputc('\n', out);
}

// --- Markdown -------------------------------------------------------------------------------------------------------

// A cell of a table: what Markdown would take for markup stands for itself.
static void cell_print(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            fputc(' ', out);
        } else {
            fputs(strchr("|*_<[\\", *text) != NULL ? "\\" : "", out);
            fputc(*text, out);
        }
    }
    fputs(" | ", out);
}

static void markdown_values_print(FILE *out, const struct params_kind *kind)
{
    bool any = false;
    for (size_t i = 0; i < kind->key_count; i++) {
        for (size_t k = 0; k < kind->keys[i].value_count; k++) {
            const struct params_value *value = &kind->keys[i].values[k];
            fputs(any ? "" : "\n| key | preset | value | source |\n|---|---|---|---|\n", out);
            fprintf(out, "| `%s` | `%s` | ", kind->keys[i].key->name, value->preset);
            cell_print(out, value->text);
            value_range_print(out, value);
            if (value_origin(value) != NULL) {
                fprintf(out, "%s ", value_head(value));
            }
            cell_print(out, value_origin(value) != NULL ? value_origin(value) : "");
            fputc('\n', out);
            any = true;
        }
    }
}

static void markdown_kind_print(FILE *out, const struct params_kind *kind)
{
    fprintf(out, "## %s\n\nA %s: %s.", kind->kind->name, kind->kind->name, kind->kind->doc);
    if (kind->kind->presets != NULL) {
        fprintf(out, " `{preset: NAME, with: {...}}` takes `configs/%s/NAME.yaml`.", kind->kind->presets);
    }
    for (size_t i = 0; i < kind->kind->key_count; i++) {
        if (kind->kind->keys[i].unit == SCN_UNIT_EMBED) {
            const char *name = kind->kind->keys[i].child->name;
            fprintf(out, " The keys of a [%s](#%s) stand here as well.", name, name);
        }
    }
    fputs("\n\n| key | unit | default | range | meaning |\n|---|---|---|---|---|\n", out);
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct params_key *key = &kind->keys[i];
        fprintf(out, "| `%s` | %s | ", key->key->name, scn_unit_text(key->key->unit));
        cell_print(out, key->fallback);
        cell_print(out, key->range);
        cell_print(out, key->key->doc);
        fputc('\n', out);
    }
    markdown_values_print(out, kind);
}

// --- JSON -----------------------------------------------------------------------------------------------------------

static void member_print(FILE *out, const char *name, const char *text)
{
    if (text != NULL) {
        fprintf(out, ",\"%s\":", name);
        sim_text_quote(out, text);
    }
}

static void json_key_print(FILE *out, const struct params_key *key)
{
    fputs("{\"name\":", out);
    sim_text_quote(out, key->key->name);
    member_print(out, "unit", scn_unit_text(key->key->unit));
    bool required = key->key->fallback == NULL;
    fputs(required ? ",\"required\":true" : "", out);
    member_print(out, "default", required || strcmp(key->fallback, "-") == 0 ? NULL : key->fallback);
    member_print(out, "range", strcmp(key->range, "-") != 0 ? key->range : NULL);
    member_print(out, "meaning", key->key->doc);
    fputs(",\"presets\":[", out);
    for (size_t i = 0; i < key->value_count; i++) {
        const struct params_value *value = &key->values[i];
        fputs(i > 0 ? ",{\"preset\":" : "{\"preset\":", out);
        sim_text_quote(out, value->preset);
        member_print(out, "value", value->text);
        member_print(out, "least", value->owner == NULL ? value->least : NULL);
        member_print(out, "most", value->owner == NULL ? value->most : NULL);
        member_print(out, "as", value->owner);
        member_print(out, "source", value->owner == NULL ? value->source : NULL);
        member_print(out, "assumption", value->owner == NULL ? value->assumption : NULL);
        fputc('}', out);
    }
    fputs("]}", out);
}

static void json_kind_print(FILE *out, const struct params_kind *kind)
{
    fputs("{\"name\":", out);
    sim_text_quote(out, kind->kind->name);
    member_print(out, "meaning", kind->kind->doc);
    member_print(out, "presets", kind->kind->presets);
    fputs(",\"keys\":[\n  ", out);
    for (size_t i = 0; i < kind->key_count; i++) {
        fputs(i > 0 ? ",\n  " : "", out);
        json_key_print(out, &kind->keys[i]);
    }
    fputs("]}", out);
}

// --- the manual -----------------------------------------------------------------------------------------------------

static void manual_kind_print(FILE *out, const struct params_kind *kind)
{
    fputs(".SH \"", out);
    sim_text_manual(out, kind->kind->name);
    fputs("\"\n", out);
    sim_text_manual(out, kind->kind->doc);
    if (kind->kind->presets != NULL) {
        fputs("; {preset: NAME, with: {...}} takes configs/", out);
        sim_text_manual(out, kind->kind->presets);
        fputs("/NAME.yaml", out);
    }
    fputs("\n", out);
    for (size_t i = 0; i < kind->kind->key_count; i++) {
        if (kind->kind->keys[i].unit == SCN_UNIT_EMBED) {
            fprintf(out, ".br\nThe keys of a \\fI%s\\fR stand here as well.\n", kind->kind->keys[i].child->name);
        }
    }
    for (size_t i = 0; i < kind->key_count; i++) {
        const struct params_key *key = &kind->keys[i];
        fprintf(out, ".TP\n.B %s\n", key->key->name);
        sim_text_manual(out, key->key->doc);
        fputs("\n.br\n", out);
        sim_text_manual(out, scn_unit_text(key->key->unit));
        fputs("; default ", out);
        sim_text_manual(out, key->fallback);
        fputs("; range ", out);
        sim_text_manual(out, key->range);
        fputc('\n', out);
    }
}

#define MANUAL_BEGIN                                                                                                   \
    ".SH NAME\ntcasim\\-scenario \\- the keys of a scenario of tcasim\n"                                               \
    ".SH DESCRIPTION\nA scenario is a YAML file: a mapping with the keys of the section\n.BR scenario .\n"             \
    "Quantities have a unit (8 B, 4 KiB, 100 ns). The other sections are the mappings inside.\n"                       \
    ".B tcasim params\nprints the same with the values of the presets and their sources, and\n"                        \
    ".B tcasim check\nfinds every mistake of a file.\n"

const struct params_form params_forms[] = {
    [SCN_PARAMS_TEXT] = {"", "", "", text_kind_print},
    [SCN_PARAMS_MARKDOWN] = {"", "\n", "", markdown_kind_print},
    [SCN_PARAMS_JSON] = {"{\"kinds\":[\n", ",\n", "]}\n", json_kind_print},
    [SCN_PARAMS_MANUAL] = {MANUAL_BEGIN, "", ".SH SEE ALSO\n.BR tcasim (1)\n", manual_kind_print},
};
