// What the results would be with other values within the ranges of the presets: for each row of data.csv and each
// comparison the values that 5 and 95 % of the draws are below, and the keys that move it most.
//
// Leaves out: where the draws come from (sim/cli/interval.h), and how likely each value of a range is: all are alike.
#pragma once

#include "sim/report/report.h"

typedef struct report_interval report_interval_t;

// keys: names of what is drawn; they must exist until report_interval_destroy. draws: at most so many are added.
report_interval_t *report_interval_create(report_t *report, const char *const *keys, size_t key_count, size_t draws);
void report_interval_destroy(report_interval_t *interval); // NULL is allowed

// Adds the results of a draw of the report's scenario. values: of each key, on any scale that rises with it. false: it has
// other rows than the report, and is left out.
bool report_interval_add(report_interval_t *interval, const report_t *draw, const double *values);

// Gives the report its intervals: two columns of data.csv, three of compare.csv, interval.csv. table_hash: SHA-256 of the
// table of draws, for the manifest.
void report_interval_end(report_interval_t *interval, const char *table_hash);
