#include "sim/report/json.h"

#include <limits.h>
#include <string.h>

#include "sim/kernel/text.h"
#include "sim/report/files.h"

void json_text_write(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text != '\0') {
        size_t length = sim_text_character(text);
        if (length == 0) {
            fputc('?', out);
            length = 1;
        } else if (*text == '"' || *text == '\\') {
            fprintf(out, "\\%c", *text);
        } else if ((unsigned char)*text < ' ' || *text == '<' || *text == 0x7f) {
            fprintf(out, "\\u%04x", (unsigned)*text);
        } else {
            (void)fwrite(text, 1, length, out);
        }
        text += length;
    }
    fputc('"', out);
}

// Decimal as JSON has it: no leading zero, plus sign, blank or hexadecimal digit.
static bool is_number(const char *text)
{
    const char *at = text + (*text == '-' ? 1 : 0);
    size_t digits = strspn(at, "0123456789");
    if (digits == 0 || (at[0] == '0' && digits > 1)) {
        return false;
    }
    at += digits;
    if (*at == '.') {
        digits = strspn(++at, "0123456789");
        at += digits;
    }
    if (digits != 0 && (*at == 'e' || *at == 'E')) {
        at += at[1] == '-' || at[1] == '+' ? 2 : 1;
        digits = strspn(at, "0123456789");
        at += digits;
    }
    return digits != 0 && *at == '\0';
}

// Columns of names, and of published values, whose precision is in their text.
static bool is_of_texts(const char *column)
{
    static const char *const columns[] = {"series", "component", "name",      "unit",    "id",
                                          "what",   "use",       "published", "part",    "detail",
                                          "node",   "kind",      "point",     "details", "status"};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        if (strcmp(column, columns[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void field_write(FILE *out, const char *text, bool as_text)
{
    if (!as_text && is_number(text)) {
        fputs(text, out);
    } else {
        json_text_write(out, text);
    }
}

void json_table_write(FILE *out, const struct table *table, bool (*keep)(const struct table *table, size_t row))
{
    fputs("{\"columns\":[", out);
    for (size_t i = 0; i < table->columns; i++) {
        fputs(i > 0 ? "," : "", out);
        json_text_write(out, table->fields[i]);
    }
    fputs("],\"rows\":[", out);
    bool first = true;
    for (size_t row = 0; row + 1 < table->rows; row++) {
        if (keep != NULL && !keep(table, row)) {
            continue;
        }
        fputs(first ? "\n[" : ",\n[", out);
        first = false;
        for (size_t i = 0; i < table->columns; i++) {
            fputs(i > 0 ? "," : "", out);
            field_write(out, table_field(table, row, i), is_of_texts(table->fields[i]));
        }
        fputc(']', out);
    }
    fputs("]}", out);
}

enum sim_status json_results_print(FILE *out, const char *scenario, const char *directory, const char *const *files,
                                   char *error, size_t error_size)
{
    enum sim_status status = SIM_OK;
    fputs("{\"scenario\":", out);
    sim_text_quote(out, scenario);
    fputs(",\"results\":", out);
    sim_text_quote(out, directory);
    for (; *files != NULL && (status == SIM_OK || status == SIM_ERR_NOT_FOUND); files++) {
        char path[PATH_MAX];
        struct table table;
        status = files_path(directory, *files, path, sizeof path);
        status = status == SIM_OK ? table_read(path, &table, error, error_size) : status;
        if (status == SIM_OK) {
            fprintf(out, ",\n\"%.*s\":", (int)strcspn(*files, "."), *files);
            json_table_write(out, &table, NULL);
            table_free(&table);
        }
    }
    fputs("}\n", out);
    return status == SIM_ERR_NOT_FOUND ? SIM_OK : status;
}

void json_tree_write(FILE *out, const struct scn_tree *tree)
{
    if (tree->kind == SCN_TREE_SCALAR) {
        json_text_write(out, tree->text);
        return;
    }
    bool mapping = tree->kind == SCN_TREE_MAPPING;
    fputc(mapping ? '{' : '[', out);
    for (const struct scn_tree *entry = tree->first; entry != NULL; entry = entry->next) {
        fputs(entry != tree->first ? "," : "", out);
        if (mapping) {
            json_text_write(out, entry->key);
            fputc(':', out);
        }
        json_tree_write(out, entry);
    }
    fputc(mapping ? '}' : ']', out);
}
