// The figure: a gnuplot script that a user can change and run again, and its picture. Private to the room.
#pragma once

#include "sim/report/files.h"
#include "sim/report/results.h"

// Writes plot.gp, which reads data.csv from the same directory.
void report_plot_write(const report_t *report, FILE *out);

// Runs gnuplot on that script of the set, and on data.csv if the script reads it; `picture` joins the set.
void report_plot_draw(struct files *files, const char *script, const char *picture);

// Reads gnuplot's version from the set's plot.svg; "unknown" if the file does not exist.
void report_plot_version(const struct files *files, char *version, size_t size);
