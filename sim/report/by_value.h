// A folder for each point of a sweep, named by its value (values/125 MHz/): data.csv, counters.csv and resolved.yaml as a
// run of the point alone would have written them. values/index.csv lists the folders. Private to the room.
#pragma once

#include "sim/report/report.h"

// Folders that an earlier list names are removed, also if the scenario has no sweep any more. Points that failed have
// none.
enum sim_status report_by_value_write(const report_t *report, const char *directory, char *error, size_t error_size);
