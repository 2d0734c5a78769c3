// A CSV file as a table of texts. Any file may be given: one that is not a table is refused with its line.
//
// Private to the room and its tests.
#pragma once

#include <stddef.h>

#include "sim/kernel/status.h"

#define TABLE_COLUMNS_MAX 64

struct table {
    char *bytes;   // the fields point into it
    char **fields; // row by row, the head first
    size_t columns, rows;
};

// Checks that the head names no column twice and that all rows have as many fields. SIM_ERR_NOT_FOUND: the file does
// not exist. For every other code, too, the reason is in error. To be freed after SIM_OK.
enum sim_status table_read(const char *path, struct table *table_out, char *error, size_t error_size);
// The same of a text that is the table's from now on, also after an error; path: what errors call it.
enum sim_status table_parse(const char *path, char *text, size_t length, struct table *table_out, char *error,
                            size_t error_size);
void table_free(struct table *table);

// The number of the column; table->columns: there is no such column.
size_t table_column(const struct table *table, const char *name);

// A field of a row (from 0, without the head).
const char *table_field(const struct table *table, size_t row, size_t column);
