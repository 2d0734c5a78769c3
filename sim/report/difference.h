// A comparison of two result directories: keys of the scenario, rows of data.csv, counters.
//
// A number differs if it is farther from the first one than the given percentage of the first. A row or counter that
// only one directory has always differs. Keys are shown and do not count: they are the input of a run, not its result.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/kernel/status.h"

typedef struct difference difference_t;

// SIM_ERR_INVALID: the reason is in error. To be destroyed after SIM_OK. The strings of the directories must live on.
enum sim_status difference_create(const char *first, const char *second, double within_percent,
                                  difference_t **difference_out, char *error, size_t error_size);
void difference_destroy(difference_t *difference);

// The number of rows, columns of rows, and counters that differ.
size_t difference_count(const difference_t *difference);

// Writes members of a JSON object:
//    "numbers"                 how many numbers were compared, with the equal counters
//    "resolved"                whether both have a resolved.yaml, whose "keys" are compared
//    "keys"                    [key, value, value], those that differ; null: there is none
//    "rows", "counters"        {"columns", "rows"}; of counters only those that are not equal
// The percentage is null if only one directory has the number, and a text if it is infinite.
void difference_json_write(const difference_t *difference, FILE *out);

// Prints tables. lines_max: lines of each table, 0 for all.
void difference_print(const difference_t *difference, size_t lines_max, FILE *out);

// Writes keys.csv, rows.csv, counters.csv and, if there are rows, plot.gp and plot.svg into the directory.
enum sim_status difference_write(const difference_t *difference, const char *directory, char *error, size_t error_size);
