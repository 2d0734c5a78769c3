// manifest.yaml: from what the results were made. Private to the room.
#pragma once

#include "sim/report/files.h"
#include "sim/report/results.h"

// resolved.yaml and data.csv of the set have been written. gnuplot_version: NULL when nothing was drawn.
void report_manifest_write(const report_t *report, struct files *files, const char *scenario_path,
                           const char *gnuplot_version);
