#include "sim/report/table.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/csv.h"
#include "sim/report/lines.h"

// The line of a quote that is not closed: it would turn the rest of the file into one field.
static size_t line_of_open_quote(const char *text)
{
    size_t line = 1, opened = 0;
    bool open = false;
    for (; *text != '\0'; text++) {
        opened = *text == '"' && !open ? line : opened;
        open = *text == '"' ? !open : open;
        line += *text == '\n';
    }
    return open ? opened : 0;
}

static size_t lines_between(const char *from, const char *to)
{
    size_t lines = 0;
    for (; from < to; from++) {
        lines += *from == '\n';
    }
    return lines;
}

static bool head_check(const struct table *table, const char *path, char *error, size_t error_size)
{
    for (size_t i = 0; i < table->columns; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(table->fields[i], table->fields[k]) == 0) {
                snprintf(error, error_size, "%s:1: two columns are called '%.80s'", path, table->fields[i]);
                return false;
            }
        }
    }
    return true;
}

// The text is split in its buffer; the line of each record is found in a copy.
static bool records_read(struct table *table, const char *path, const char *copy, char *error, size_t error_size)
{
    char *cursor = table->bytes, *fields[TABLE_COLUMNS_MAX];
    size_t room = 0, line = 1;
    for (const char *begin = cursor; *cursor != '\0'; begin = cursor) {
        size_t count = csv_record_read(&cursor, fields, TABLE_COLUMNS_MAX);
        bool head = table->rows == 0;
        if (count > TABLE_COLUMNS_MAX || (!head && count != table->columns)) {
            snprintf(error, error_size, "%s:%zu: %zu fields, expected %zu", path, line, count,
                     head ? (size_t)TABLE_COLUMNS_MAX : table->columns);
            return false;
        }
        table->columns = count;
        if (room < (table->rows + 1) * count) {
            room = 2 * room + count;
            char **grown = realloc(table->fields, room * sizeof *grown);
            if (grown == NULL) {
                sim_panic("report", "out of memory for %s", path);
            }
            table->fields = grown;
        }
        memcpy(table->fields + table->rows++ * count, fields, count * sizeof *fields);
        line += lines_between(copy + (begin - table->bytes), copy + (cursor - table->bytes));
        if (head && !head_check(table, path, error, error_size)) {
            return false;
        }
    }
    if (table->rows == 0) {
        snprintf(error, error_size, "%s: the file is empty", path);
    }
    return table->rows > 0;
}

enum sim_status table_parse(const char *path, char *text, size_t length, struct table *table_out, char *error,
                            size_t error_size)
{
    struct table table = {.bytes = text};
    enum sim_status status = SIM_ERR_INVALID;
    char *copy = strdup(text);
    if (copy == NULL) {
        sim_panic("report", "out of memory for %s", path);
    }
    size_t quote = line_of_open_quote(copy);
    if (strlen(text) != length) {
        snprintf(error, error_size, "%s:%zu: a zero byte: this is no table", path,
                 lines_between(copy, copy + strlen(copy)) + 1);
    } else if (quote > 0) {
        snprintf(error, error_size, "%s:%zu: a quote that is not closed", path, quote);
    } else if (records_read(&table, path, copy, error, error_size)) {
        status = SIM_OK;
    }
    free(copy);
    if (status == SIM_OK) {
        *table_out = table;
    } else {
        table_free(&table);
    }
    return status;
}

enum sim_status table_read(const char *path, struct table *table_out, char *error, size_t error_size)
{
    char *text = NULL;
    size_t length = 0;
    if (lines_file_read(path, &text, &length) != SIM_OK) {
        snprintf(error, error_size, "%s cannot be read: %s", path, strerror(errno));
        return errno == ENOENT ? SIM_ERR_NOT_FOUND : SIM_ERR_IO;
    }
    return table_parse(path, text, length, table_out, error, error_size);
}

void table_free(struct table *table)
{
    free(table->bytes);
    free(table->fields);
    *table = (struct table){0};
}

size_t table_column(const struct table *table, const char *name)
{
    size_t column = 0;
    while (column < table->columns && strcmp(table->fields[column], name) != 0) {
        column++;
    }
    return column;
}

const char *table_field(const struct table *table, size_t row, size_t column)
{
    return table->fields[(row + 1) * table->columns + column];
}
