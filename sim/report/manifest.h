// manifest.yaml: what the results were made from. Private to the room.
#pragma once

#include "sim/report/files.h"
#include "sim/report/results.h"

// Requires that resolved.yaml and data.csv of the set are written. gnuplot_version: NULL if nothing was drawn.
void report_manifest_write(const report_t *report, struct files *files, const char *scenario_path,
                           const char *gnuplot_version);

// SHA-256 in hexadecimal; "" if the file cannot be read.
#define REPORT_HASH_MAX 65
void report_hash_text(const char *text, char hash[REPORT_HASH_MAX]);
void report_hash_file(const char *path, char hash[REPORT_HASH_MAX]);
