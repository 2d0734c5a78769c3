// manifest.yaml: from what the results were made. Private to the room.
#pragma once

#include "sim/report/files.h"
#include "sim/report/results.h"

// resolved.yaml and data.csv of the set have been written. gnuplot_version: NULL when nothing was drawn.
void report_manifest_write(const report_t *report, struct files *files, const char *scenario_path,
                           const char *gnuplot_version);

// SHA-256 in hexadecimal; of a file that cannot be read "".
#define REPORT_HASH_MAX 65
void report_hash_text(const char *text, char hash[REPORT_HASH_MAX]);
void report_hash_file(const char *path, char hash[REPORT_HASH_MAX]);
