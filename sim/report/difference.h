// Two directories of results beside each other: keys of the scenario, rows of data.csv, counters.
//
// A number differs where it is farther from the first than a given percentage of it; a row or counter that only one of
// the two has differs always. Keys are shown and do not count: they are what a run was given, not what it gave.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/kernel/status.h"

typedef struct difference difference_t;

// SIM_ERR_INVALID: the reason is in error. To be destroyed after SIM_OK. The names of the directories must live on.
enum sim_status difference_create(const char *first, const char *second, double within_percent,
                                  difference_t **difference_out, char *error, size_t error_size);
void difference_destroy(difference_t *difference);

// How many rows, columns of rows, and counters differ.
size_t difference_count(const difference_t *difference);

// Tables for people; lines_max: of each, 0 for all.
void difference_print(const difference_t *difference, size_t lines_max, FILE *out);

// Writes keys.csv, rows.csv, counters.csv and, where there are rows, plot.gp and plot.svg into the directory.
enum sim_status difference_write(const difference_t *difference, const char *directory, char *error, size_t error_size);
