// The files of a part of a report. Private to the room.
#pragma once

#include "sim/report/report.h"

// Writes data.csv and counters.csv, without counters only the first.
enum sim_status report_part_write(const report_t *part, const char *directory, char *error, size_t error_size);
