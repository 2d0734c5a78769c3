// The lines of a panel. A series is one line. It is several lines if it was measured for several sizes (x: descriptors)
// or for several numbers of descriptors (x: bytes), because one line would jump between them. With x: sweep a line runs
// over the values of the first swept key, and connects rows that are otherwise equal. Private to the room.
#pragma once

#include <limits.h>

#include "sim/report/results.h"

#define PLOT_NO_CURVE  UINT_MAX // the panel leaves the row out
#define PLOT_TITLE_MAX (SCN_NAME_MAX + 64)

struct plot_curve {
    size_t first; // the first and last of its rows
    size_t last;
    char title[PLOT_TITLE_MAX]; // for the legend
};

struct plot_curves {
    struct plot_curve *items; // in the order of their first rows
    unsigned count;
    unsigned *of_row; // which line each row of the report belongs to, or PLOT_NO_CURVE
};

void plot_curves_init(struct plot_curves *curves, const report_t *report, const struct scn_panel *panel);
void plot_curves_fini(struct plot_curves *curves);

// Do the panel's series: and at: take the row? The name of a series of a sweep also fits without its value.
bool plot_row_chosen(const report_t *report, const struct scn_panel *panel, const struct report_point *point);
// Is the panel's x axis the swept value?
bool plot_is_over_sweep(const report_t *report, const struct scn_panel *panel);
// Where the row is on the panel's x axis: over a sweep, the number of the first key's value.
double plot_x(const report_t *report, const struct scn_panel *panel, const struct report_point *point);
