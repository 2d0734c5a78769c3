// The unprocessed measurements of a point of a sweep. They are kept so that a sweep can continue where it was stopped,
// and merged into one report. Files in a directory of their own: <hash>.yaml, the scenario; <hash>.txt, what programs
// printed; and <hash>.csv, a record a line, the last one "end".
#pragma once

#include "sim/report/manifest.h"
#include "sim/report/report.h"

// <hash> of a point: of its nodes, cables, runs and seed, and of this program; not of what is asked of results.
#define REPORT_POINT_NAME_MAX 65
enum sim_status report_point_name(const struct scn_scenario *point, char name[REPORT_POINT_NAME_MAX]);

// A file that is not whole does not count.
bool report_point_exists(const char *directory, const char *name);
void report_point_remove(const char *directory, const char *name);
// Has the directory a point that another build of this program measured? Its hash goes into program.
bool report_points_foreign(const char *directory, char program[REPORT_HASH_MAX]);

// report: of this point only. Both files appear at once, the data last.
enum sim_status report_point_write(const report_t *report, const char *directory, const char *name, char *error,
                                   size_t error_size);

// Adds a point's data to the report of the whole sweep; number: of the point, from 1. SIM_ERR_INVALID: the file is
// incomplete, and nothing was added.
enum sim_status report_point_add(report_t *sweep, const char *directory, const char *name, uint32_t number);
// Adds a point that failed: it has no data.
void report_point_add_none(report_t *sweep);
