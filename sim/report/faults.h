// Prints the faults of a scenario. Private to the room.
#pragma once

#include "sim/report/results.h"

// The faults of one series, as an entry of its run.
void report_faults_manifest_write(const report_t *report, const char *series, FILE *out);
