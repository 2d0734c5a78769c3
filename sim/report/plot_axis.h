// The axes of one panel: which part of the plane it shows, its tics, and the corner that the legend leaves the curves
// alone in. Private to the room.
#pragma once

#include "sim/report/results.h"

#define PLOT_KEY_INSIDE_MAX 8 // lines; a longer legend stands beside the panel

struct plot_frame {
    double x_low, x_high, y_low, y_high; // ends of the axes
    unsigned curve_count;
    const char *key; // "top left", ... in gnuplot's words
};

// highest: also to be shown above all rows, as a published value; 0 for none.
struct plot_frame plot_frame_make(const report_t *report, const struct scn_panel *panel, double highest);

void plot_axes_write(const report_t *report, const struct scn_panel *panel, const struct plot_frame *frame, FILE *out);

// False for rows beyond the panel's x_max.
bool plot_row_shown(const struct scn_panel *panel, const struct report_point *point);

// A single-quoted gnuplot string.
void plot_string_write(FILE *out, const char *text);
