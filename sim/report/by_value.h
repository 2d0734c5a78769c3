// Of a sweep, a folder for each point, named by its value (values/125 MHz/): data.csv, counters.csv and resolved.yaml as a
// run of the point alone would have written them. Private to the room.
//
// Leaves out: counters of points that share their series, because they differ only in `bytes`.
#pragma once

#include "sim/report/report.h"

// Folders of an earlier sweep are removed. Points that failed have none.
enum sim_status report_by_value_write(const report_t *report, const char *directory, char *error, size_t error_size);
