#include "sim/report/json.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "sim/kernel/text.h"
#include "sim/report/files.h"
#include "sim/scenario/tree.h"

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

static bool is_one_of(const char *const *names, const char *name)
{
    while (*names != NULL && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

// Columns of names, and of published values, whose precision is in their text.
static const char *const columns_of_texts[] = {
    "series", "component", "name", "unit", "id",    "what",    "use",    "published",
    "part",   "detail",    "node", "kind", "point", "details", "status", NULL};

// Keys of YAML files, likewise: a hash of sixteen digits is none.
static const char *const keys_of_texts[] = {"hash", "node", "program", NULL};

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
            field_write(out, table_field(table, row, i), is_one_of(columns_of_texts, table->fields[i]));
        }
        fputc(']', out);
    }
    fputs("]}", out);
}

static void tree_write(FILE *out, const struct scn_tree *tree, bool numbers)
{
    bool mapping = tree->kind == SCN_TREE_MAPPING;
    if (tree->kind == SCN_TREE_SCALAR) {
        bool is_text = !numbers || tree->quoted || (tree->key != NULL && is_one_of(keys_of_texts, tree->key));
        field_write(out, tree->text, is_text);
        return;
    }
    fputc(mapping ? '{' : '[', out);
    for (const struct scn_tree *entry = tree->first; entry != NULL; entry = entry->next) {
        fputs(entry != tree->first ? "," : "", out);
        if (mapping) {
            json_text_write(out, entry->key);
            fputc(':', out);
        }
        tree_write(out, entry, numbers);
    }
    fputc(mapping ? '}' : ']', out);
}

enum sim_status json_yaml_write(FILE *out, const char *path, bool numbers, char *error, size_t error_size)
{
    struct scn_arena arena = {0};
    struct scn_mistakes mistakes = {.arena = &arena};
    const struct scn_file file = {.name = path};
    bool readable = true;
    enum sim_status status = access(path, F_OK) == 0 ? SIM_OK : SIM_ERR_NOT_FOUND;
    const struct scn_tree *root = status == SIM_OK ? scn_tree_read(&arena, &mistakes, &file, &readable) : NULL;
    if (status == SIM_OK && (root == NULL || mistakes.count != 0)) {
        snprintf(error, error_size, "%s: this is no YAML that tcasim has written", path);
        status = SIM_ERR_INVALID;
    } else if (status == SIM_OK) {
        tree_write(out, root, numbers);
    }
    scn_arena_fini(&arena);
    return status;
}

// A member of an object: its name is the file's.
static enum sim_status file_write(FILE *out, const char *path, const char *name, char *error, size_t error_size)
{
    const char *ending = strrchr(name, '.');
    struct table table;
    if (access(path, F_OK) != 0) {
        return SIM_OK;
    }
    bool is_table = strcmp(ending, ".csv") == 0;
    enum sim_status status = is_table ? table_read(path, &table, error, error_size) : SIM_OK;
    if (status != SIM_OK) {
        return status;
    }
    fprintf(out, ",\n\"%.*s\":", (int)(ending - name), name);
    if (!is_table) {
        return json_yaml_write(out, path, true, error, error_size);
    }
    json_table_write(out, &table, NULL);
    table_free(&table);
    return SIM_OK;
}

enum sim_status json_results_print(FILE *out, const char *scenario, const char *directory, const char *const *files,
                                   char *error, size_t error_size)
{
    enum sim_status status = SIM_OK;
    fputs("{\"scenario\":", out);
    json_text_write(out, scenario);
    fputs(",\"results\":", out);
    json_text_write(out, directory);
    for (; *files != NULL && status == SIM_OK; files++) {
        char path[PATH_MAX];
        status = files_path(directory, *files, path, sizeof path);
        status = status == SIM_OK ? file_write(out, path, *files, error, error_size) : status;
    }
    fputs("}\n", out);
    return status;
}
