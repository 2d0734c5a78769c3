// The figure: a gnuplot script that a user can change and run again, and the picture it makes. Private to the room.
#pragma once

#include "sim/report/files.h"
#include "sim/report/results.h"

// Writes plot.gp, which reads data.csv beside it.
void report_plot_write(const report_t *report, FILE *out);

// Runs gnuplot on that script of the set, and data.csv if it reads that; the picture becomes `picture` of the set.
void report_plot_draw(struct files *files, const char *script, const char *picture);

// Reads the version of gnuplot from the set's plot.svg, "unknown" when it is not there.
void report_plot_version(const struct files *files, char *version, size_t size);
