#include "sim/report/plot_axis.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/report/plot_curve.h"

const char *const plot_colours[PLOT_COLOURS_MORE] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00",
                                                     "#444444", "#882255", "#117733", "#999933", "#332288", "#AA4499"};

#define TICS_MAX   11
#define KEY_WIDTH  0.48 // fractions of the frame for the legend
#define KEY_LINE   0.066
#define KEY_MARGIN 0.04

void plot_string_write(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputc('\'', out);
        }
        fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
    fputc('\'', out);
}

bool plot_row_shown(const report_t *report, const struct scn_panel *panel, const struct report_point *point)
{
    return plot_row_chosen(report, panel, point) &&
           (panel->x_max == 0 || plot_x(report, panel, point) <= (double)panel->x_max);
}

// --- the frame -----------------------------------------------------------------------------------------------------

struct extent {
    double low, high;
};

// The extent of one column over the panel's rows; for a logarithmic axis only of values above 0.
static struct extent extent_of(const report_t *report, const struct scn_panel *panel, const char *name, bool log)
{
    const struct report_column *column = report_column_find(name);
    struct extent extent = {INFINITY, 0.0};
    for (size_t i = 0; i < report->point_count; i++) {
        double value = report_column_value(column, &report->points[i]);
        if (plot_row_shown(report, panel, &report->points[i]) && (!log || value > 0.0)) {
            extent.low = fmin(extent.low, value);
            extent.high = fmax(extent.high, value);
        }
    }
    if (extent.high <= 0.0) {
        return (struct extent){1.0, 1.0};
    }
    return extent;
}

static double fraction_of(double value, double low, double high, bool log)
{
    if (log) {
        return value <= 0.0 ? 0.0 : log2(value / low) / log2(high / low);
    }
    return (value - low) / (high - low);
}

// How many rows a legend in that corner would cover.
static unsigned rows_under(const report_t *report, const struct scn_panel *panel, const struct plot_frame *frame,
                           bool right, bool bottom)
{
    const struct report_column *y_column = report_column_find(panel->y);
    double height = KEY_LINE * (frame->curve_count + 1) + KEY_MARGIN;
    unsigned count = 0;
    for (size_t i = 0; i < report->point_count; i++) {
        const struct report_point *point = &report->points[i];
        if (!plot_row_shown(report, panel, point)) {
            continue;
        }
        bool log = panel->x_log && !plot_is_over_sweep(report, panel);
        double x = fraction_of(plot_x(report, panel, point), frame->x_low, frame->x_high, log);
        double y = fraction_of(report_column_value(y_column, point), frame->y_low, frame->y_high, panel->y_log);
        x = right ? 1.0 - x : x;
        y = bottom ? y : 1.0 - y;
        count += x < KEY_WIDTH && y < height;
    }
    return count;
}

static void key_position_choose(const report_t *report, const struct scn_panel *panel, struct plot_frame *frame)
{
    static const struct {
        const char *name;
        bool right, bottom;
    } corners[] = {{"top left", false, false},
                   {"bottom right", true, true},
                   {"top right", true, false},
                   {"bottom left", false, true}};
    unsigned fewest = UINT32_MAX;
    if (frame->curve_count > PLOT_KEY_INSIDE_MAX) {
        frame->key = frame->curve_count > PLOT_KEY_MAX ? "off" : "outside right top";
        return;
    }
    for (size_t i = 0; i < sizeof corners / sizeof corners[0]; i++) {
        unsigned count = rows_under(report, panel, frame, corners[i].right, corners[i].bottom);
        if (count < fewest) {
            fewest = count;
            frame->key = corners[i].name;
        }
    }
    if (fewest > 0 && !panel->y_log) {
        // Every corner covers rows: extend the axis, so that the legend has room above them.
        frame->y_high /= 1.0 - fmin(0.7, KEY_LINE * (frame->curve_count + 1) + KEY_MARGIN);
        frame->key = "top left";
    }
}

struct plot_frame plot_frame_make(const report_t *report, const struct scn_panel *panel, double highest)
{
    struct extent x = extent_of(report, panel, panel->x, panel->x_log);
    struct extent y = extent_of(report, panel, panel->y, panel->y_log);
    y.high = fmax(y.high, highest);
    struct plot_frame frame;
    struct plot_curves curves;
    plot_curves_init(&curves, report, panel);
    frame.curve_count = curves.count + (report->scenario->sweep != NULL); // a sweep's legend has a title
    plot_curves_fini(&curves);
    if (plot_is_over_sweep(report, panel)) {
        frame.x_low = 0.7;
        frame.x_high = report->scenario->sweep->axis_count + 0.3;
    } else if (panel->x_log) { // a margin on both sides, so that no point lies on the frame
        frame.x_low = x.low / 1.25;
        frame.x_high = x.high * 1.25;
    } else {
        frame.x_low = 0.0;
        frame.x_high = x.high * 1.03;
    }
    frame.y_low = panel->y_log ? y.low / 2.0 : 0.0;
    frame.y_high = panel->y_log ? y.high * 2.0 : y.high * 1.1;
    key_position_choose(report, panel, &frame);
    return frame;
}

// --- tics ----------------------------------------------------------------------------------------------------------

static void tic_write(FILE *out, uint64_t bytes, bool first)
{
    char label[REPORT_LABEL_MAX];
    report_bytes_label(bytes, label);
    fprintf(out, "%s'%s' %" PRIu64, first ? "" : ", ", label, bytes);
}

// Tics at powers of two, few enough to be readable; 1K is one of them.
static void log_tics_write(FILE *out, double low, double high)
{
    unsigned first = (unsigned)fmax(0.0, ceil(log2(low)));
    unsigned last = (unsigned)fmin(62.0, floor(log2(high)));
    unsigned step = 1;
    while (last > first && (last - first) / step + 1 > TICS_MAX) {
        step++;
    }
    while (first % step != 10 % step) {
        first++;
    }
    fputs("set xtics (", out);
    for (unsigned power = first; power <= last; power += step) {
        tic_write(out, 1ULL << power, power == first);
    }
    fputs(")\n", out);
}

static void linear_tics_write(FILE *out, double high)
{
    uint64_t last = (uint64_t)high;
    uint64_t step = 1;
    while (last / step + 1 > TICS_MAX) {
        step *= 2;
    }
    fputs("set xtics (", out);
    for (uint64_t bytes = 0; bytes <= last; bytes += step) {
        tic_write(out, bytes, bytes == 0);
    }
    fputs(")\n", out);
}

static void sweep_tics_write(FILE *out, const struct scn_sweep *sweep)
{
    fputs("set xtics (", out);
    for (uint32_t i = 0; i < sweep->axis_count; i++) {
        fputs(i == 0 ? "" : ", ", out);
        plot_string_write(out, sweep->points[i * sweep->axis_stride].axis);
        fprintf(out, " %" PRIu32, i + 1);
    }
    fputs(")\n", out);
}

static void x_tics_write(const report_t *report, const struct scn_panel *panel, const struct plot_frame *frame,
                         FILE *out)
{
    enum report_kind kind = report_column_find(panel->x)->kind;
    if (plot_is_over_sweep(report, panel)) {
        sweep_tics_write(out, report->scenario->sweep);
    } else if ((kind == REPORT_KIND_BYTES || kind == REPORT_KIND_COUNT) && panel->x_log) {
        log_tics_write(out, frame->x_low, frame->x_high);
    } else if (kind == REPORT_KIND_BYTES) {
        linear_tics_write(out, frame->x_high);
    } else {
        fputs("set xtics auto\n", out);
    }
}

void plot_axes_write(const report_t *report, const struct scn_panel *panel, const struct plot_frame *frame, FILE *out)
{
    const struct report_column *x = report_column_find(panel->x);
    bool sweep = plot_is_over_sweep(report, panel);
    fputs("set xlabel ", out);
    plot_string_write(out, sweep ? report->scenario->sweep->axis_title : x->axis);
    fputs("\nset ylabel ", out);
    plot_string_write(out, report_column_find(panel->y)->axis);
    fprintf(out, "\n%s\n%s\n", panel->x_log && !sweep ? "set logscale x 2" : "unset logscale x",
            panel->y_log ? "set logscale y 10" : "unset logscale y");
    x_tics_write(report, panel, frame, out);
    // The legend's title explains the values after the names.
    const char *named = report->scenario->sweep == NULL ? NULL
                        : sweep                         ? report->scenario->sweep->others_title
                                                        : report->scenario->sweep->title;
    if (named != NULL && named[0] != '\0') {
        fputs("set key title ", out);
        plot_string_write(out, named);
        fputc('\n', out);
    } else if (named != NULL) {
        fputs("set key title\n", out);
    }
    fprintf(out, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\nset key %s\n", frame->x_low, frame->x_high,
            frame->y_low, frame->y_high, frame->key);
}
