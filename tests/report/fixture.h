// A small scenario with two series, its results, and a scratch directory.
#pragma once

#include <stddef.h>

#include "sim/report/results.h"

#define FIXTURE_REFERENCE TCASIM_SOURCE_DIR "/results/reference/papers.csv"

struct fixture {
    struct scn_scenario *scenario;
    report_t *report;
    char directory[128]; // exists, empty
    char input[160];     // a file in it that is used as the scenario's
};

// Two series, "pio" and "dma, \"fast\"", without measurements.
void fixture_create(struct fixture *fixture);
void fixture_destroy(struct fixture *fixture);

// Adds a row of operations that took latency_ps each.
void fixture_row_add(struct fixture *fixture, const char *series, uint64_t bytes, uint64_t descriptors,
                     uint64_t latency_ps);
// 8, 64, 4096 B of both series: pio 1, 2, 4 us; dma 2, 2, 3 us.
void fixture_rows_add(struct fixture *fixture);

// A check that selects all rows of a series.
struct scn_value fixture_value(const char *series, const char *column, enum scn_take take);
struct scn_check *fixture_compare_add(struct fixture *fixture, const char *id, struct scn_value value);
struct scn_check *fixture_expect_add(struct fixture *fixture, const char *name, struct scn_value value, double min,
                                     double max);
void fixture_panel_add(struct fixture *fixture, const char *x, const char *y);

// Reads directory/name completely; the caller frees. NULL if there is no such file.
char *fixture_read(const struct fixture *fixture, const char *directory, const char *name);

// The output of a printing function, to be freed by the caller.
char *fixture_printed(const report_t *report, void (*print)(const report_t *report, FILE *out));
