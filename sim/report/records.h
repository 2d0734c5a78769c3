// Unprocessed measurements as text, a record a line, the last one "end": what a process that measured a point of a sweep,
// or a series, leaves to the one that merges them.
#pragma once

#include <stdio.h>

#include "sim/report/report.h"

// How its series ran, their points, counters and faults.
void report_records_write(const report_t *report, FILE *out);

// Reads records from the beginning of the file and adds them to the report. point: of the report's sweep, from 1, whose
// series get its name; 0: of no sweep. SIM_ERR_INVALID: the file is incomplete, and nothing was added.
enum sim_status report_records_add(report_t *report, FILE *records, uint32_t point);
bool report_records_are_whole(FILE *records);
