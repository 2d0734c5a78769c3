// The axes of one panel: the part of the plane that it shows, its tics, and the corner for the legend that covers the
// fewest points. Private to the room.
#pragma once

#include "sim/report/results.h"

#define PLOT_KEY_INSIDE_MAX 8  // lines; a longer legend is beside the panel
#define PLOT_KEY_MAX        84 // lines of six columns; a panel of more has no legend

// Wong's palette: distinct for colour-blind readers and in print. Its yellow is left out: too pale on white. Behind
// PLOT_COLOURS of it come some of Tol's, up to PLOT_COLOURS_MORE.
enum { PLOT_COLOURS = 7, PLOT_COLOURS_MORE = 12 };
extern const char *const plot_colours[PLOT_COLOURS_MORE];

struct plot_frame {
    double x_low, x_high, y_low, y_high; // ends of the axes
    unsigned curve_count;
    const char *key; // the legend's position in gnuplot's words, such as "top left"
};

// highest: a published value above all rows that must be visible; 0 for none.
struct plot_frame plot_frame_make(const report_t *report, const struct scn_panel *panel, double highest);

void plot_axes_write(const report_t *report, const struct scn_panel *panel, const struct plot_frame *frame, FILE *out);

// False for rows beyond the panel's x_max.
bool plot_row_shown(const report_t *report, const struct scn_panel *panel, const struct report_point *point);

// Writes a single-quoted gnuplot string.
void plot_string_write(FILE *out, const char *text);
