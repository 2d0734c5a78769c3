#include "sim/report/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/compare.h"
#include "sim/report/plot_axis.h"
#include "sim/report/plot_curve.h"
#include "sim/report/value.h"

#define PANEL_WIDTH      680
#define KEY_LETTER_WIDTH 8   // in a legend beside a panel
#define KEY_SAMPLE_WIDTH 110 // and the gap to the next column
#define KEY_ROWS         14  // of a column of the legend
#define PANEL_HEIGHT     520
#define TITLE_HEIGHT     44

// Filled and hollow circle, square, triangle, ... in gnuplot's numbering.
static const unsigned point_types[] = {7, 5, 9, 11, 13, 6, 4, 8, 10, 12};

// --- published points ----------------------------------------------------------------------------------------------

// Finds the published value of one comparison. False: the panel does not show it.
static bool published_find(const report_t *report, const struct scn_panel *panel, const struct scn_check *check,
                           struct report_comparison *comparison)
{
    return strcmp(check->value.column, panel->y) == 0 && report_comparison_point(report, check, comparison) &&
           plot_row_shown(report, panel, comparison->taken.row);
}

// The ends of a published value in the column's unit. A bound has one end, used for both.
static void published_ends(const struct report_comparison *comparison, double *low_out, double *high_out)
{
    const struct report_published *published = &comparison->reference->published;
    *low_out = (isinf(published->low) ? published->high : published->low) / comparison->scale;
    *high_out = (isinf(published->high) ? published->low : published->high) / comparison->scale;
}

// A published value in a panel.
struct mark {
    double x, low, high;
    unsigned linetype; // of its curve
    enum report_published_kind kind;
    const char *id;
};

// What the published values of a panel need.
struct shown {
    double highest; // 0: none
    bool ranges;    // some values have two ends
    bool y_log;
};

static double mark_y(const struct mark *mark)
{
    return (mark->low + mark->high) / 2;
}

// Would the labels of the two marks overlap?
static bool marks_meet(const struct mark *a, const struct mark *b, const struct shown *shown)
{
    double ya = mark_y(a), yb = mark_y(b);
    bool near = shown->y_log ? fmax(ya, yb) < 1.2 * fmin(ya, yb) : fabs(ya - yb) < 0.06 * shown->highest;
    return a->x == b->x && near;
}

// Marks that meet share one label at the highest of them, with all their ids; a bound's id has its sign before it.
static void label_write(const struct mark *marks, uint32_t count, uint32_t index, const struct shown *shown, FILE *out)
{
    const struct mark *mark = &marks[index];
    for (uint32_t i = 0; i < count; i++) {
        double above = mark_y(&marks[i]) - mark_y(mark);
        if (marks_meet(mark, &marks[i], shown) && (above > 0.0 || (above == 0.0 && i < index))) {
            return;
        }
    }
    const char *between = "";
    for (uint32_t i = 0; i < count; i++) {
        if (i == index || marks_meet(mark, &marks[i], shown)) {
            enum report_published_kind kind = marks[i].kind;
            const char *sign = kind == REPORT_PUBLISHED_BELOW ? "≤" : kind == REPORT_PUBLISHED_ABOVE ? "≥" : "";
            fprintf(out, "%s%s%s", between, sign, marks[i].id);
            between = " ";
        }
    }
}

static uint32_t marks_find(const report_t *report, const struct scn_panel *panel, const struct scn_check *compares,
                           uint32_t count, const struct plot_curves *curves, struct mark *marks, struct shown *shown)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct report_comparison comparison;
        if (!published_find(report, panel, &compares[i], &comparison)) {
            continue;
        }
        struct mark *mark = &marks[found++];
        *mark = (struct mark){.x = plot_x(report, panel, comparison.taken.row),
                              .linetype = curves->of_row[comparison.taken.row - report->points] + 1,
                              .kind = comparison.reference->published.kind,
                              .id = comparison.reference->id};
        published_ends(&comparison, &mark->low, &mark->high);
        shown->highest = fmax(shown->highest, mark->high);
        shown->ranges = shown->ranges || mark->high > mark->low;
    }
    return found;
}

static struct shown published_write(const report_t *report, uint32_t index, FILE *out)
{
    const struct scn_panel *panel = &report->scenario->panels[index];
    struct shown shown = {.y_log = panel->y_log};
    uint32_t count = 0;
    struct scn_check *compares =
        report_checks_make(report, report->scenario->compares, report->scenario->compare_count, &count);
    struct mark *marks = calloc(count + 1, sizeof *marks);
    struct plot_curves curves;
    plot_curves_init(&curves, report, panel);
    uint32_t found = marks != NULL ? marks_find(report, panel, compares, count, &curves, marks, &shown) : 0;
    plot_curves_fini(&curves);
    if (found > 0) {
        fprintf(out, "\n# Published values in panel %" PRIu32 ": x, y, lower and upper end, curve, ids.\n", index + 1);
        fprintf(out, "$published_%" PRIu32 " << END\n", index + 1);
        for (uint32_t i = 0; i < found; i++) {
            const struct mark *mark = &marks[i];
            fprintf(out, "%.9g,%.9g,%.9g,%.9g,%u,", mark->x, mark_y(mark), mark->low, mark->high, mark->linetype);
            label_write(marks, found, i, &shown, out);
            fputc('\n', out);
        }
        fputs("END\n", out);
    }
    free(marks);
    free(compares);
    return shown;
}

// --- panels --------------------------------------------------------------------------------------------------------

// Consecutive rows are selected by the first and the last, others one by one.
static void rows_write(const struct plot_curves *curves, unsigned curve, const char *x, FILE *out)
{
    size_t first = curves->items[curve].first, last = curves->items[curve].last;
    size_t row = first;
    while (row <= last && curves->of_row[row] == curve) {
        row++;
    }
    if (row > last) {
        fprintf(out, "every ::%zu::%zu using %s", first, last, x[0] == '$' ? x + 1 : x);
        return;
    }
    fputs("using (strstrt(' ", out);
    for (row = first; row <= last; row++) {
        if (curves->of_row[row] == curve) {
            fprintf(out, "%zu ", row);
        }
    }
    fprintf(out, "', sprintf(' %%d ', $0)) ? %s : NaN)", x);
}

// The column, or plot_x of a sweep over several keys.
static void x_make(const report_t *report, const struct scn_panel *panel, char *x, size_t size)
{
    unsigned column = report_column_position(report, report_column_find(panel->x));
    const struct scn_sweep *sweep = report->scenario->sweep;
    if (plot_is_over_sweep(report, panel) && sweep->axis_count < sweep->point_count) {
        snprintf(x, size, "(int(($%u - 1) / %" PRIu32 ") %% %" PRIu32 " + 1)", column, sweep->axis_stride,
                 sweep->axis_count);
    } else {
        snprintf(x, size, "$%u", column);
    }
}

static unsigned position(const report_t *report, const char *column)
{
    return report_column_position(report, report_column_find(column));
}

// The intervals of a panel of latencies, or of bandwidths, which are longest where latencies are shortest.
static void bands_write(const report_t *report, const struct scn_panel *panel, const struct plot_curves *curves,
                        const char *x, FILE *out)
{
    bool latency = strcmp(panel->y, "latency_us") == 0, rate = strcmp(panel->y, "bandwidth_GBps") == 0;
    unsigned low = position(report, "interval_low_us"), high = position(report, "interval_high_us");
    for (unsigned i = 0; i < curves->count && report->bands != NULL && (latency || rate); i++) {
        fputs(", \\\n     data skip 1 ", out);
        rows_write(curves, i, x, out);
        if (latency) {
            fprintf(out, ":%u:%u", low, high);
        } else {
            unsigned of = position(report, panel->y), us = position(report, "latency_us");
            fprintf(out, ":($%u*$%u/$%u):($%u*$%u/$%u)", of, us, high, of, us, low);
        }
        fprintf(out, " with filledcurves linetype %u fillstyle transparent solid 0.2 noborder notitle", i + 1);
    }
}

static void curves_write(const report_t *report, const struct scn_panel *panel, FILE *out)
{
    char x[96];
    x_make(report, panel, x, sizeof x);
    unsigned y = position(report, panel->y);
    struct plot_curves curves;
    plot_curves_init(&curves, report, panel);
    for (unsigned i = 0; i < curves.count; i++) {
        fputs(i == 0 ? "plot data skip 1 " : ", \\\n     data skip 1 ", out);
        rows_write(&curves, i, x, out);
        fprintf(out, ":%u with linespoints linetype %u title ", y, i + 1);
        plot_string_write(out, curves.items[i].title);
    }
    fputs(curves.count == 0 ? "plot NaN" : "", out);
    bands_write(report, panel, &curves, x, out);
    plot_curves_fini(&curves);
}

static void panel_write(const report_t *report, uint32_t index, struct shown shown, FILE *out)
{
    const struct scn_panel *panel = &report->scenario->panels[index];
    struct plot_frame frame = plot_frame_make(report, panel, shown.highest);
    fputs("\nset title ", out);
    plot_string_write(out, panel->title);
    fputc('\n', out);
    plot_axes_write(report, panel, &frame, out);
    curves_write(report, panel, out);
    if (shown.ranges) {
        fprintf(out,
                ", \\\n     $published_%" PRIu32 " using 1:($4 > $3 ? $2 : NaN):3:4:5 with yerrorbars pointtype 2 "
                "pointsize 1.1 linewidth 1.9 linecolor variable",
                index + 1);
    }
    if (shown.highest > 0.0) {
        fprintf(out,
                ", \\\n     $published_%" PRIu32
                " using 1:2:5 with points pointtype 2 pointsize 1.1 linewidth 1.9 linecolor "
                "variable, \\\n     NaN with points linestyle 100 title 'published'"
                ", \\\n     $published_%" PRIu32
                " using 1:2:6 with labels center offset 0,0.9 font ',12' textcolor '#000000'",
                index + 1, index + 1);
    }
    fputc('\n', out);
}

static unsigned curves_max(const report_t *report)
{
    unsigned most = 0;
    for (uint32_t i = 0; i < report->scenario->panel_count; i++) {
        struct plot_curves curves;
        plot_curves_init(&curves, report, &report->scenario->panels[i]);
        most = curves.count > most ? curves.count : most;
        plot_curves_fini(&curves);
    }
    return most;
}

// The width of legends beside their panels, in pixels.
static uint32_t keys_width(const report_t *report)
{
    size_t widest = 0, sweep = report->scenario->sweep != NULL; // a sweep's legend has a title
    for (uint32_t i = 0; i < report->scenario->panel_count; i++) {
        struct plot_curves curves;
        size_t longest = 0;
        plot_curves_init(&curves, report, &report->scenario->panels[i]);
        for (unsigned k = 0; k < curves.count && curves.count + sweep > PLOT_KEY_INSIDE_MAX; k++) {
            size_t length = strlen(curves.items[k].title);
            longest = length > longest ? length : longest;
        }
        size_t columns = curves.count <= PLOT_KEY_MAX ? (curves.count + KEY_ROWS - 1) / KEY_ROWS : 0;
        size_t width = longest > 0 ? columns * (longest * KEY_LETTER_WIDTH + KEY_SAMPLE_WIDTH) : 0;
        widest = width > widest ? width : widest;
        plot_curves_fini(&curves);
    }
    return (uint32_t)widest;
}

static void header_write(const report_t *report, uint32_t columns, uint32_t rows, FILE *out)
{
    fprintf(out,
            "# Draws plot.svg from data.csv; run it in this directory: gnuplot plot.gp\n"
            "if (!exists('data')) data = 'data.csv'\n"
            "if (!exists('image')) image = 'plot.svg'\n\n"
            "set terminal svg size %u,%u noenhanced font 'Helvetica,15' linewidth 1.2 background rgb '#ffffff'\n"
            "set output image\n"
            "set datafile separator ','\n"
            "set datafile missing NaN\n"
            "set border 3 linecolor '#404040'\n"
            "set tics nomirror out scale 0.6\n"
            "set format y '%%g'\n"
            "set grid linetype 1 linewidth 0.6 linecolor '#dddddd'\n"
            "set key Left reverse samplen 2.2 spacing 1.15 noautotitle\n",
            (PANEL_WIDTH + keys_width(report)) * columns, PANEL_HEIGHT * rows + TITLE_HEIGHT);
    const unsigned styles = sizeof point_types / sizeof point_types[0];
    const unsigned most = curves_max(report);
    for (unsigned i = 0; i < most; i++) {
        fprintf(out, "set linetype %u linecolor rgb '%s' linewidth 1.6 pointtype %u pointsize 0.7\n", i + 1,
                plot_colours[i % PLOT_COLOURS], point_types[i % styles]);
    }
    fputs("set style line 100 linecolor rgb '#000000' linewidth 1.9 pointtype 2 pointsize 1.1\n", out);
}

void report_plot_write(const report_t *report, FILE *out)
{
    const struct scn_scenario *scenario = report->scenario;
    uint32_t columns = scenario->panel_count > 1 ? 2 : 1;
    uint32_t rows = (scenario->panel_count + columns - 1) / columns;
    header_write(report, columns, rows, out);
    struct shown shown[SCN_PANELS_MAX];
    for (uint32_t i = 0; i < SCN_PANELS_MAX; i++) {
        shown[i] = i < scenario->panel_count ? published_write(report, i, out) : (struct shown){0};
    }
    fprintf(out, "\nset multiplot layout %" PRIu32 ",%" PRIu32 " title ", rows, columns);
    char title[REPORT_TITLE_MAX];
    report_title_make(report, title);
    plot_string_write(out, title);
    fputs(" font ',18'\n", out);
    for (uint32_t i = 0; i < scenario->panel_count; i++) {
        panel_write(report, i, shown[i], out);
    }
    fputs("\nunset multiplot\nset output\n", out);
}
