// A CSV file as a table of texts. The file may come from anywhere: what is not a table is refused with its line.
//
// Private to the room and its tests.
#pragma once

#include <stddef.h>

#include "sim/kernel/status.h"

#define TABLE_COLUMNS_MAX 64

struct table {
    char *bytes;   // that the fields point into
    char **fields; // row by row, the head first
    size_t columns, rows;
};

// The head has no name twice, and all rows have as many fields. SIM_ERR_NOT_FOUND: there is no such file; the reason is
// in error with every other code as well. To be freed after SIM_OK.
enum sim_status table_read(const char *path, struct table *table_out, char *error, size_t error_size);
void table_free(struct table *table);

// The number of the column; table->columns: it has none of that name.
size_t table_column(const struct table *table, const char *name);

// A field of a row (from 0, behind the head).
const char *table_field(const struct table *table, size_t row, size_t column);
