#include "sim/report/measured.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/regular_file.h"
#include "sim/report/files.h"
#include "sim/report/results.h"

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL) {
        sim_panic("report", "out of memory for %zu numbers", count);
    }
    return memory;
}

static int order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

// Compares all identifying fields except the number of the copy.
static int identity_compare(const struct measured_number *a, const struct measured_number *b)
{
    int result = strcmp(a->series, b->series);
    result = result != 0 ? result : strcmp(a->component, b->component);
    result = result != 0 ? result : order_of(a->bytes, b->bytes);
    result = result != 0 ? result : order_of(a->descriptors, b->descriptors);
    result = result != 0 ? result : order_of(a->ranks, b->ranks);
    return result != 0 ? result : strcmp(a->name, b->name);
}

int measured_compare(const struct measured_number *a, const struct measured_number *b)
{
    int result = identity_compare(a, b);
    return result != 0 ? result : order_of(a->copy, b->copy);
}

static int copies_compare(const void *left, const void *right)
{
    const struct measured_number *a = *(const struct measured_number *const *)left;
    const struct measured_number *b = *(const struct measured_number *const *)right;
    int result = identity_compare(a, b);
    return result != 0 ? result : order_of(a->order, b->order);
}

// Numbers with the same identity are counted in the order of the file.
static void copies_number(struct measured_numbers *numbers)
{
    struct measured_number **sorted = allocate(numbers->count, sizeof(void *));
    for (size_t i = 0; i < numbers->count; i++) {
        sorted[i] = &numbers->items[i];
    }
    qsort(sorted, numbers->count, sizeof *sorted, copies_compare);
    for (size_t i = 1; i < numbers->count; i++) {
        sorted[i]->copy = identity_compare(sorted[i - 1], sorted[i]) == 0 ? sorted[i - 1]->copy + 1 : 0;
    }
    free(sorted);
}

// --- fields ---------------------------------------------------------------------------------------------------------

struct reading {
    const char *path;
    const struct table *table;
    char *error;
    size_t error_size;
};

static bool number_read(const struct reading *reading, size_t row, size_t column, long double *value_out)
{
    const char *text = table_field(reading->table, row, column);
    char *end = NULL;
    *value_out = strtold(text, &end);
    if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0' || *end != '\0' || !isfinite(*value_out)) {
        snprintf(reading->error, reading->error_size, "%s: row %zu: %s: '%.80s' is not a number", reading->path,
                 row + 1, reading->table->fields[column], text);
        return false;
    }
    return true;
}

static bool whole_read(const struct reading *reading, size_t row, size_t column, uint64_t *value_out)
{
    long double value;
    if (!number_read(reading, row, column, &value)) {
        return false;
    }
    bool whole = value >= 0 && value < 18446744073709551616.0L && value == floorl(value);
    if (!whole) {
        snprintf(reading->error, reading->error_size, "%s: row %zu: %s: '%.80s' is not a whole number", reading->path,
                 row + 1, reading->table->fields[column], table_field(reading->table, row, column));
    }
    *value_out = whole ? (uint64_t)value : 0;
    return whole;
}

static bool columns_need(const struct reading *reading, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (table_column(reading->table, names[i]) == reading->table->columns) {
            snprintf(reading->error, reading->error_size, "%s:1: there is no column '%s'", reading->path, names[i]);
            return false;
        }
    }
    return true;
}

// --- data.csv -------------------------------------------------------------------------------------------------------

// Swept values are in the names of series. A run without --interval has no intervals.
static bool is_measured(const char *name)
{
    return report_column_is_result(name) && strncmp(name, "interval_", strlen("interval_")) != 0;
}

static bool row_read(const struct reading *reading, size_t row, struct measured_numbers *numbers)
{
    const struct table *table = reading->table;
    struct measured_number number = {.series = table_field(table, row, table_column(table, "series")), .component = ""};
    size_t ranks = table_column(table, "ranks");
    if (!whole_read(reading, row, table_column(table, "bytes"), &number.bytes) ||
        !whole_read(reading, row, table_column(table, "descriptors"), &number.descriptors) ||
        (ranks < table->columns && table_field(table, row, ranks)[0] != '\0' &&
         !whole_read(reading, row, ranks, &number.ranks))) {
        return false;
    }
    for (size_t column = 0; column < table->columns; column++) {
        number.name = table->fields[column];
        number.text = table_field(table, row, column);
        if (!is_measured(number.name) || number.text[0] == '\0') {
            continue; // an empty field was not measured
        }
        if (!number_read(reading, row, column, &number.value)) {
            return false;
        }
        number.order = numbers->count;
        numbers->items[numbers->count++] = number;
    }
    return true;
}

static bool data_read(const struct reading *reading, struct measured_numbers *numbers)
{
    static const char *const needed[] = {"series", "bytes", "descriptors"};
    const struct table *table = reading->table;
    bool good = columns_need(reading, needed, sizeof needed / sizeof needed[0]);
    numbers->items = allocate(table->rows * table->columns, sizeof *numbers->items);
    for (size_t row = 0; good && row + 1 < table->rows; row++) {
        good = row_read(reading, row, numbers);
    }
    copies_number(numbers);
    return good;
}

static bool counters_read(const struct reading *reading, struct measured_numbers *numbers)
{
    static const char *const needed[] = {"series", "component", "name", "value"};
    const struct table *table = reading->table;
    bool good = columns_need(reading, needed, sizeof needed / sizeof needed[0]);
    numbers->items = allocate(table->rows, sizeof *numbers->items);
    for (size_t row = 0; good && row + 1 < table->rows; row++) {
        size_t value = table_column(table, "value");
        struct measured_number *number = &numbers->items[numbers->count];
        *number = (struct measured_number){.series = table_field(table, row, table_column(table, "series")),
                                           .component = table_field(table, row, table_column(table, "component")),
                                           .name = table_field(table, row, table_column(table, "name")),
                                           .text = table_field(table, row, value),
                                           .order = numbers->count};
        good = number_read(reading, row, value, &number->value);
        numbers->count++;
    }
    copies_number(numbers);
    return good;
}

// --- YAML -----------------------------------------------------------------------------------------------------------

// *tree_out NULL: the file does not exist or is empty. false: it cannot be read.
static bool yaml_read(const char *directory, const char *name, struct measured *measured,
                      const struct scn_tree **tree_out, bool *there_out, char *error, size_t error_size)
{
    char path[PATH_MAX];
    *tree_out = NULL;
    *there_out = false;
    if (files_path(directory, name, path, sizeof path) != SIM_OK) {
        snprintf(error, error_size, "%s: the name of the directory is too long", directory);
        return false;
    }
    FILE *there = sim_regular_open(path);
    if (there == NULL && errno == ENOENT) {
        return true;
    }
    if (there != NULL) {
        (void)fclose(there);
    }
    struct scn_mistakes mistakes = {.arena = &measured->arena};
    struct scn_file *file = scn_arena_alloc(&measured->arena, sizeof *file);
    *file = (struct scn_file){.name = scn_arena_format(&measured->arena, "%s", path)};
    bool readable;
    *tree_out = scn_tree_read(&measured->arena, &mistakes, file, &readable);
    *there_out = mistakes.count == 0;
    if (mistakes.count > 0) {
        struct scn_messages messages = {0};
        scn_mistakes_export(&mistakes, &messages);
        snprintf(error, error_size, "%s", messages.lines[0]);
        scn_messages_free(&messages);
    }
    return mistakes.count == 0;
}

static const char *path_of(struct measured *measured, const struct scn_tree *parent, const struct scn_tree *item,
                           const char *path, size_t index)
{
    const char *dot = path[0] != '\0' ? "." : "";
    return parent->kind == SCN_TREE_MAPPING ? scn_arena_format(&measured->arena, "%s%s%s", path, dot, item->key)
                                            : scn_arena_format(&measured->arena, "%s%s%zu", path, dot, index);
}

static void keys_add(struct measured *measured, struct measured_keys *keys, const struct scn_tree *tree,
                     const char *path)
{
    if (tree->kind == SCN_TREE_SCALAR) {
        struct measured_key *grown = realloc(keys->items, (keys->count + 1) * sizeof *grown);
        if (grown == NULL) {
            sim_panic("report", "out of memory for the keys of a scenario");
        }
        keys->items = grown;
        keys->items[keys->count++] = (struct measured_key){path, tree->text};
        return;
    }
    size_t index = 0;
    for (const struct scn_tree *item = tree->first; item != NULL; item = item->next, index++) {
        keys_add(measured, keys, item, path_of(measured, tree, item, path, index));
    }
}

// A sweep has no resolved.yaml.
static bool keys_read(const char *directory, struct measured *measured, char *error, size_t error_size)
{
    const struct scn_tree *tree;
    bool good = yaml_read(directory, "resolved.yaml", measured, &tree, &measured->resolved, error, error_size);
    if (tree != NULL) {
        keys_add(measured, &measured->keys, tree, "");
    }
    return good;
}

static void counter_add(struct measured_numbers *numbers, struct measured_number number)
{
    struct measured_number *grown = realloc(numbers->items, (numbers->count + 1) * sizeof *grown);
    if (grown == NULL) {
        sim_panic("report", "out of memory for %zu numbers", numbers->count);
    }
    number.order = numbers->count;
    numbers->items = grown;
    numbers->items[numbers->count++] = number;
}

// Adds the numbers among the scalars of the tree. path: of the tree.
static void exec_add(struct measured *measured, struct measured_numbers *numbers, const struct scn_tree *tree,
                     const char *path)
{
    size_t index = 0;
    for (const struct scn_tree *item = tree->first; item != NULL; item = item->next, index++) {
        bool of_machine = path[0] == '\0' && tree->kind == SCN_TREE_MAPPING && strcmp(item->key, "machine") == 0;
        if (item->kind != SCN_TREE_SCALAR && of_machine) {
            continue;
        }
        if (item->kind != SCN_TREE_SCALAR) {
            exec_add(measured, numbers, item, path_of(measured, tree, item, path, index));
            continue;
        }
        char *end;
        long double value = strtold(item->text, &end);
        bool is_number = item->text[0] != '\0' && item->text[strspn(item->text, "-.0123456789")] == '\0' &&
                         *end == '\0' && isfinite(value);
        if (is_number && tree->kind == SCN_TREE_MAPPING && strcmp(item->key, "hash") != 0) {
            counter_add(numbers, (struct measured_number){.series = "exec",
                                                          .component = path[0] != '\0' ? path : "run",
                                                          .name = item->key,
                                                          .text = item->text,
                                                          .value = value});
        }
    }
}

static bool exec_read(const char *directory, struct measured *measured, char *error, size_t error_size)
{
    const struct scn_tree *tree;
    bool there;
    bool good = yaml_read(directory, "exec.yaml", measured, &tree, &there, error, error_size);
    struct measured_numbers numbers = {0};
    for (const struct scn_tree *item = tree != NULL ? tree->first : NULL; item != NULL; item = item->next) {
        if (item->kind == SCN_TREE_SCALAR && strcmp(item->key, "hash") == 0) {
            measured->hash = item->text;
        } else if (strcmp(item->key, "machine") == 0) {
            keys_add(measured, &measured->machine, item, "machine");
        }
    }
    if (tree != NULL) {
        exec_add(measured, &numbers, tree, "");
    }
    for (size_t i = 0; i < measured->counters.count; i++) {
        counter_add(&numbers, measured->counters.items[i]);
    }
    free(measured->counters.items);
    measured->counters = numbers;
    copies_number(&measured->counters);
    return good;
}

// --- all of it ------------------------------------------------------------------------------------------------------

static bool file_read(const char *directory, const char *name, struct table *table, struct measured_numbers *numbers,
                      bool (*read)(const struct reading *reading, struct measured_numbers *numbers), char *error,
                      size_t error_size)
{
    char path[PATH_MAX];
    (void)files_path(directory, name, path, sizeof path); // a path that is cut is not found
    enum sim_status status = table_read(path, table, error, error_size);
    if (status == SIM_ERR_NOT_FOUND) {
        snprintf(error, error_size, "%s has no %s: expected a directory that `tcasim run` or `tcasim exec --out` wrote",
                 directory, name);
    }
    const struct reading reading = {path, table, error, error_size};
    return status == SIM_OK && read(&reading, numbers);
}

enum sim_status measured_read(const char *directory, struct measured *measured_out, char *error, size_t error_size)
{
    struct measured measured = {0};
    if (!file_read(directory, "data.csv", &measured.data_table, &measured.data, data_read, error, error_size) ||
        !file_read(directory, "counters.csv", &measured.counter_table, &measured.counters, counters_read, error,
                   error_size) ||
        !exec_read(directory, &measured, error, error_size) || !keys_read(directory, &measured, error, error_size)) {
        measured_free(&measured);
        return SIM_ERR_INVALID;
    }
    *measured_out = measured;
    return SIM_OK;
}

void measured_free(struct measured *measured)
{
    table_free(&measured->data_table);
    table_free(&measured->counter_table);
    free(measured->data.items);
    free(measured->counters.items);
    free(measured->keys.items);
    free(measured->machine.items);
    scn_arena_fini(&measured->arena);
    *measured = (struct measured){0};
}
