// What a point of a sweep measured, as it came: kept so that a sweep can go on where it was stopped, and merged into
// one report. Files in a directory of their own: <hash>.yaml, the scenario that was run, <hash>.txt, what programs
// printed, and <hash>.csv, a record a line, whose last one is "end".
#pragma once

#include "sim/report/report.h"

// <hash> of a point: of its nodes, cables and runs, of its seed, and of this program. Not of what is asked of results.
#define REPORT_POINT_NAME_MAX 65
enum sim_status report_point_name(const struct scn_scenario *point, char name[REPORT_POINT_NAME_MAX]);

bool report_point_exists(const char *directory, const char *name);
void report_point_remove(const char *directory, const char *name);

// report: of the point's scenario alone. Both files appear at once, the data last.
enum sim_status report_point_write(const report_t *report, const char *directory, const char *name, char *error,
                                   size_t error_size);

// Adds a point's data to the report of the whole sweep; number: of the point, from 1. SIM_ERR_INVALID: the file is not
// whole, and nothing was added.
enum sim_status report_point_add(report_t *sweep, const char *directory, const char *name, uint32_t number);
// A point that failed has no data.
void report_point_add_none(report_t *sweep);
