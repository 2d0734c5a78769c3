// Splits the time of an operation: the pieces of its critical path as CSV, as a table by part, as stacked bars and
// as a timeline.
//
// The input is each piece as the simulation recorded it (sim/kernel/cause.h); neighbours of the same kind become one
// row. Nothing is rounded, and no row exists only to make a sum come out.
#pragma once

#include <stdio.h>

#include "sim/kernel/cause.h"

typedef struct breakdown breakdown_t;

struct breakdown_case {
    const char *series, *node; // the node that measured
    uint64_t bytes, operations, total_ps;
};

enum sim_status breakdown_create(breakdown_t **breakdown_out);
void breakdown_destroy(breakdown_t *breakdown);

// Texts are copied. SIM_ERR_RANGE: the pieces do not follow one another, or do not add up to the total; the reason is
// in error.
enum sim_status breakdown_add(breakdown_t *breakdown, const struct breakdown_case *of, const struct sim_piece *pieces,
                              size_t count, char *error, size_t error_size);

// Nanoseconds of one operation by part, one column for each series.
void breakdown_print(const breakdown_t *breakdown, FILE *out);
// Writes breakdown.csv, breakdown.gp and breakdown.svg (by gnuplot) into the directory and creates it. title: of the
// plot.
enum sim_status breakdown_write(const breakdown_t *breakdown, const char *directory, const char *title, char *error,
                                size_t error_size);
// Removes the files of an earlier run from the directory, which could be mistaken for this run's.
void breakdown_remove(const char *directory);
// The rows as trace events for chrome://tracing and Perfetto (events.h), with a flow along each path.
enum sim_status breakdown_timeline_write(const breakdown_t *breakdown, const char *path, char *error,
                                         size_t error_size);
