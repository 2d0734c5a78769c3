// Both runs in one picture: a panel for each measured column with the curves of both runs, and below it the difference
// of the second run from the first. Curves of a series share a colour; those of the first run are dashed and hollow.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/difference_internal.h"
#include "sim/report/plot_axis.h"
#include "sim/report/results.h"

enum {
    SERIES_MAX = 10, // in a picture: those with the largest differences
    PANEL_WIDTH = 620,
    PANELS_HEIGHT = 680,
    KEY_LETTER_WIDTH = 9,
    KEY_SAMPLE_WIDTH = 100,
    KEY_LETTERS_MAX = 48,
    WIDE = 50 // the axis is logarithmic if the largest latency is at least this many times the smallest
};

static const char *const columns[] = {"latency_us", "bandwidth_GBps", "memory_MB"};
#define COLUMNS (sizeof columns / sizeof columns[0])
// Filled and hollow points of the same shape, in gnuplot's numbering.
static const unsigned filled[] = {7, 5, 9, 11, 13}, hollow[] = {6, 4, 8, 10, 12};

// What the x axis shows: the first of these that has several values in a series.
enum axis { AXIS_BYTES, AXIS_DESCRIPTORS, AXIS_RANKS, AXIS_SERIES };

struct series {
    const char *name;
    double largest; // largest difference, in per cent
    size_t order;
};

struct picture {
    const struct difference *difference;
    struct series *series;
    size_t count, shown;
    bool present[COLUMNS];
    unsigned panels;
    enum axis axis;
    double x_low, x_high; // of the values shown
};

// The columns of a data block.
enum part { PART_FIRST, PART_SECOND, PART_PERCENT };

// --- selection ------------------------------------------------------------------------------------------------------

static int largest_first(const void *left, const void *right)
{
    const struct series *a = left, *b = right;
    return a->largest != b->largest ? (a->largest < b->largest ? 1 : -1)
                                    : (a->order > b->order) - (a->order < b->order);
}

static int in_order(const void *left, const void *right)
{
    const struct series *a = left, *b = right;
    return (a->order > b->order) - (a->order < b->order);
}

static size_t column_of(const struct difference_item *item)
{
    size_t column = 0;
    while (column < COLUMNS && strcmp(difference_number(item)->name, columns[column]) != 0) {
        column++;
    }
    return column;
}

// Sorts by series, and within a series by position in the file (the pointers are into one array).
static int items_compare(const void *left, const void *right)
{
    const struct difference_item *a = *(const struct difference_item *const *)left;
    const struct difference_item *b = *(const struct difference_item *const *)right;
    int result = strcmp(difference_number(a)->series, difference_number(b)->series);
    return result != 0 ? result : (a > b) - (a < b);
}

static void series_find(struct picture *picture)
{
    const struct difference_items *items = &picture->difference->data;
    const struct difference_item **sorted = calloc(items->count + 1, sizeof(void *));
    size_t count = 0;
    picture->series = calloc(items->count + 1, sizeof *picture->series);
    if (sorted == NULL || picture->series == NULL) {
        sim_panic("report", "out of memory for a picture");
    }
    for (size_t i = 0; i < items->count; i++) {
        if (column_of(&items->items[i]) < COLUMNS) {
            sorted[count++] = &items->items[i];
        }
    }
    qsort(sorted, count, sizeof *sorted, items_compare);
    for (size_t i = 0; i < count; i++) {
        const char *name = difference_number(sorted[i])->series;
        if (picture->count == 0 || strcmp(picture->series[picture->count - 1].name, name) != 0) {
            picture->series[picture->count++] =
                (struct series){.name = name, .order = (size_t)(sorted[i] - items->items)};
        }
        struct series *series = &picture->series[picture->count - 1];
        series->largest = fmax(series->largest, isnan(sorted[i]->percent) ? INFINITY : fabs(sorted[i]->percent));
    }
    free(sorted);
}

static uint64_t axis_value(const struct measured_number *number, enum axis axis)
{
    return axis == AXIS_BYTES ? number->bytes : axis == AXIS_DESCRIPTORS ? number->descriptors : number->ranks;
}

static bool varies(const struct picture *picture, enum axis axis)
{
    const struct difference_items *items = &picture->difference->data;
    for (size_t i = 0; i < picture->shown; i++) {
        const struct measured_number *before = NULL;
        for (size_t k = 0; k < items->count; k++) {
            const struct measured_number *number = difference_number(&items->items[k]);
            if (column_of(&items->items[k]) == COLUMNS || strcmp(number->series, picture->series[i].name) != 0) {
                continue;
            }
            if (before != NULL && axis_value(before, axis) != axis_value(number, axis)) {
                return true;
            }
            before = number;
        }
    }
    return false;
}

static bool is_of_series(const struct picture *picture, const struct difference_item *item, size_t column,
                         size_t series)
{
    return column_of(item) == column && strcmp(difference_number(item)->series, picture->series[series].name) == 0;
}

// gnuplot must not be asked to draw a curve without points.
static bool has_part(const struct picture *picture, size_t column, size_t series, enum part part)
{
    const struct difference_items *items = &picture->difference->data;
    bool has = false;
    for (size_t i = 0; i < items->count && !has; i++) {
        const struct difference_item *item = &items->items[i];
        bool there = part == PART_FIRST    ? item->first != NULL
                     : part == PART_SECOND ? item->second != NULL
                                           : isfinite(item->percent);
        has = there && is_of_series(picture, item, column, series);
    }
    return has;
}

static double x_of(const struct picture *picture, const struct difference_item *item, size_t series)
{
    return picture->axis == AXIS_SERIES ? (double)(series + 1)
                                        : (double)axis_value(difference_number(item), picture->axis);
}

// Finds the columns that the shown series have, and the ends of the x axis.
static void shown_find(struct picture *picture)
{
    const struct difference_items *items = &picture->difference->data;
    picture->x_low = INFINITY;
    for (size_t i = 0; i < items->count; i++) {
        for (size_t k = 0; k < picture->shown; k++) {
            size_t column = column_of(&items->items[i]);
            if (column < COLUMNS && is_of_series(picture, &items->items[i], column, k)) {
                double x = x_of(picture, &items->items[i], k);
                picture->present[column] = true;
                picture->x_low = fmin(picture->x_low, x);
                picture->x_high = fmax(picture->x_high, x);
            }
        }
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        picture->panels += picture->present[i];
    }
}

static void picture_init(struct picture *picture, const struct difference *difference)
{
    *picture = (struct picture){.difference = difference};
    series_find(picture);
    qsort(picture->series, picture->count, sizeof *picture->series, largest_first);
    picture->shown = picture->count < SERIES_MAX ? picture->count : SERIES_MAX;
    qsort(picture->series, picture->shown, sizeof *picture->series, in_order);
    while (picture->axis < AXIS_SERIES && !varies(picture, picture->axis)) {
        picture->axis++;
    }
    shown_find(picture);
}

// --- data -----------------------------------------------------------------------------------------------------------

struct row {
    double x;
    const struct difference_item *item;
};

static int rows_compare(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return a->x != b->x ? (a->x > b->x ? 1 : -1) : (a->item > b->item) - (a->item < b->item);
}

static void value_write(FILE *out, const struct measured_number *number)
{
    fprintf(out, " %s", number != NULL ? number->text : "NaN");
}

static void block_write(const struct picture *picture, size_t column, size_t series, FILE *out)
{
    const struct difference_items *items = &picture->difference->data;
    struct row *rows = calloc(items->count + 1, sizeof *rows);
    size_t count = 0;
    if (rows == NULL) {
        sim_panic("report", "out of memory for a picture");
    }
    for (size_t i = 0; i < items->count; i++) {
        if (is_of_series(picture, &items->items[i], column, series)) {
            rows[count++] = (struct row){x_of(picture, &items->items[i], series), &items->items[i]};
        }
    }
    qsort(rows, count, sizeof *rows, rows_compare);
    fprintf(out, "$c%zu_%zu << END\n", column, series);
    for (size_t i = 0; i < count; i++) {
        const struct difference_item *item = rows[i].item;
        fprintf(out, "%.17g", rows[i].x);
        value_write(out, item->first);
        value_write(out, item->second);
        if (isfinite(item->percent)) {
            fprintf(out, " %.6f\n", item->percent);
        } else {
            fputs(" NaN\n", out);
        }
    }
    fputs(count == 0 ? "NaN NaN NaN NaN\nEND\n" : "END\n", out);
    free(rows);
}

// --- panels ---------------------------------------------------------------------------------------------------------

static unsigned key_width(const struct picture *picture)
{
    size_t longest = 0;
    for (size_t i = 0; i < picture->shown; i++) {
        size_t length = strlen(picture->series[i].name);
        longest = length > longest ? length : longest;
    }
    for (unsigned i = 0; i < 2; i++) {
        size_t length = strlen(picture->difference->names[i]) + strlen("second: ");
        longest = length > longest ? length : longest;
    }
    longest = longest < KEY_LETTERS_MAX ? longest : KEY_LETTERS_MAX;
    return (unsigned)longest * KEY_LETTER_WIDTH + KEY_SAMPLE_WIDTH;
}

// A long name is shortened: of a path the end is kept, of a series the beginning.
static void title_write(FILE *out, const char *lead, const char *name, bool path)
{
    char title[4 * KEY_LETTERS_MAX];
    size_t length = strlen(name), room = KEY_LETTERS_MAX - strlen(lead);
    if (length <= room) {
        snprintf(title, sizeof title, "%s%s", lead, name);
    } else if (path) {
        snprintf(title, sizeof title, "%s...%s", lead, name + length - room + 3);
    } else {
        snprintf(title, sizeof title, "%s%.*s...", lead, (int)room - 3, name);
    }
    fputs(" title ", out);
    plot_string_write(out, title);
}

static void header_write(const struct picture *picture, FILE *out)
{
    unsigned keys = key_width(picture), width = PANEL_WIDTH * picture->panels + keys;
    fprintf(out,
            "# Both runs in one picture; the numbers are below. Run it in this directory: gnuplot plot.gp\n"
            "if (!exists('image')) image = 'plot.svg'\n\n"
            "set terminal svg size %u,%u noenhanced font 'Helvetica,15' linewidth 1.2 background rgb '#ffffff'\n"
            "set output image\n"
            "set datafile missing NaN\n"
            "set border 3 linecolor '#404040'\n"
            "set tics nomirror out scale 0.6\n"
            "set grid linetype 1 linewidth 0.6 linecolor '#dddddd'\n",
            width, (unsigned)PANELS_HEIGHT);
    for (size_t i = 0; i < picture->shown; i++) {
        const char *colour = plot_colours[i % PLOT_COLOURS];
        const unsigned shape = (unsigned)(i / PLOT_COLOURS + i) % 5;
        fprintf(out,
                "set style line %zu linecolor rgb '%s' linewidth 1.3 dashtype '-' pointtype %u pointsize 0.9\n"
                "set style line %zu linecolor rgb '%s' linewidth 1.6 pointtype %u pointsize 0.6\n",
                2 * i + 1, colour, hollow[shape], 2 * i + 2, colour, filled[shape]);
    }
    fprintf(out, "set style line 100 linecolor rgb '#808080' linewidth 1.3 dashtype '-' pointtype 6 pointsize 0.9\n"
                 "set style line 101 linecolor rgb '#808080' linewidth 1.6 pointtype 7 pointsize 0.6\n"
                 "set style line 102 linecolor rgb '#909090' linewidth 1 dashtype '.'\n");
}

// Tics of sizes are powers of two; tics of series are their names. An upper panel has no labels.
static void x_axis_write(const struct picture *picture, bool upper, FILE *out)
{
    static const char *const labels[] = {"Size [bytes]", "Descriptors", "Ranks", ""};
    fprintf(out, "set xlabel '%s'\n", upper ? "" : labels[picture->axis]);
    if (picture->axis == AXIS_SERIES) {
        fprintf(out, "set xrange [0.5:%zu.5]\nset xtics rotate by -20 (", picture->shown);
        for (size_t i = 0; i < picture->shown; i++) {
            fputs(i > 0 ? ", " : "", out);
            plot_string_write(out, upper ? "" : picture->series[i].name);
            fprintf(out, " %zu", i + 1);
        }
        fputs(")\n", out);
        return;
    }
    bool log = picture->x_low > 0;
    fprintf(out, "set xrange [%.17g:%.17g]\nset xtics autofreq\nset format x '%s'\n%s", picture->x_low, picture->x_high,
            upper ? "" : "%g", log ? "set logscale x 2\n" : "");
    if (log && picture->axis == AXIS_BYTES) {
        fputs("set xtics (", out);
        for (unsigned power = 0; power < 50; power += 2) {
            char label[REPORT_LABEL_MAX];
            report_bytes_label(UINT64_C(1) << power, label);
            fprintf(out, "%s'%s' %" PRIu64, power > 0 ? ", " : "", upper ? "" : label, UINT64_C(1) << power);
        }
        fputs(")\n", out);
    }
}

static const char *style_of(const struct picture *picture)
{
    return picture->axis == AXIS_SERIES ? "points" : "linespoints";
}

// Returns the separator to write before the next curve.
static const char *curve_write(const struct picture *picture, const char *lead, size_t column, size_t series,
                               enum part part, FILE *out)
{
    if (!has_part(picture, column, series, part)) {
        return lead;
    }
    fprintf(out, "%s$c%zu_%zu using 1:%u with %s linestyle %zu notitle", lead, column, series, (unsigned)part + 2,
            style_of(picture), 2 * series + (part == PART_FIRST ? 1 : 2));
    return ", \\\n     ";
}

// One legend for all panels: the colour shows the series, the line style shows the run.
static void key_write(const struct picture *picture, FILE *out)
{
    for (size_t i = 0; i < picture->shown && picture->axis != AXIS_SERIES; i++) {
        fprintf(out, ", \\\n     keyentry with linespoints linestyle %zu", 2 * i + 2);
        title_write(out, "", picture->series[i].name, false);
    }
    for (unsigned i = 0; i < 2; i++) {
        fprintf(out, ", \\\n     keyentry with %s linestyle %u", style_of(picture), 100 + i);
        title_write(out, i == 0 ? "first: " : "second: ", picture->difference->names[i], true);
    }
}

static void curves_panel_write(const struct picture *picture, size_t column, bool first, FILE *out)
{
    const char *lead = "plot ";
    for (size_t i = 0; i < picture->shown; i++) {
        lead = curve_write(picture, lead, column, i, PART_FIRST, out);
        lead = curve_write(picture, lead, column, i, PART_SECOND, out);
    }
    if (first) {
        key_write(picture, out);
    }
    fputc('\n', out);
}

static double percent_largest(const struct picture *picture, size_t column)
{
    double largest = fmax(picture->difference->within_percent, 0.1);
    for (size_t i = 0; i < picture->difference->data.count; i++) {
        const struct difference_item *item = &picture->difference->data.items[i];
        if (column_of(item) == column && isfinite(item->percent)) {
            largest = fmax(largest, fabs(item->percent));
        }
    }
    return largest;
}

static void difference_panel_write(const struct picture *picture, size_t column, FILE *out)
{
    double within = picture->difference->within_percent, largest = 1.15 * percent_largest(picture, column);
    fprintf(out, "set ylabel 'Difference [%%]'\nset yrange [%.6g:%.6g]\n", -largest, largest);
    fputs("plot 0 with lines linestyle 102 notitle", out);
    if (within > 0) {
        fprintf(out, ", \\\n     %.9g with lines linestyle 100 notitle, %.9g with lines linestyle 100 notitle", within,
                -within);
    }
    for (size_t i = 0; i < picture->shown; i++) {
        (void)curve_write(picture, ", \\\n     ", column, i, PART_PERCENT, out);
    }
    fputc('\n', out);
}

// If the values span so much, a linear axis would flatten the small ones.
static bool is_wide(const struct picture *picture, size_t column)
{
    const struct difference_items *items = &picture->difference->data;
    long double low = INFINITY, high = 0;
    for (size_t i = 0; i < items->count; i++) {
        long double value = difference_number(&items->items[i])->value;
        if (column_of(&items->items[i]) == column) {
            low = fminl(low, value);
            high = fmaxl(high, value);
        }
    }
    return low > 0 && high > WIDE * low && column == 0;
}

static void column_write(const struct picture *picture, size_t column, unsigned panel, FILE *out)
{
    unsigned keys = key_width(picture);
    double all = PANEL_WIDTH * picture->panels + keys, left = PANEL_WIDTH * panel / all,
           right = PANEL_WIDTH * (panel + 1) / all;
    fprintf(out, "\nset lmargin at screen %.5f\nset rmargin at screen %.5f\n", left + 105 / all, right - 25 / all);
    fputs("set tmargin at screen 0.92\nset bmargin at screen 0.44\nset autoscale\nunset logscale\n", out);
    fprintf(out, "set ylabel '%s'\n", report_column_find(columns[column])->axis);
    fputs(is_wide(picture, column) ? "set logscale y\nset yrange [*:*]\n" : "set yrange [0:*]\n", out);
    if (panel == 0) {
        fprintf(out, "set key at screen %.5f,0.92 left top Left reverse samplen 2.4 spacing 1.2 noautotitle\n",
                PANEL_WIDTH * picture->panels / all);
    } else {
        fputs("unset key\n", out);
    }
    x_axis_write(picture, true, out);
    curves_panel_write(picture, column, panel == 0, out);
    fprintf(out, "set tmargin at screen 0.40\nset bmargin at screen %s\nunset logscale y\nunset key\n",
            picture->axis == AXIS_SERIES ? "0.22" : "0.12"); // names of series need more room than numbers
    x_axis_write(picture, false, out);
    difference_panel_write(picture, column, out);
}

bool difference_plot_write(const difference_t *difference, FILE *out)
{
    struct picture picture;
    picture_init(&picture, difference);
    bool any = picture.shown > 0;
    if (any && out != NULL) {
        char title[128];
        header_write(&picture, out);
        for (size_t column = 0; column < COLUMNS; column++) {
            for (size_t i = 0; i < picture.shown && picture.present[column]; i++) {
                block_write(&picture, column, i, out);
            }
        }
        if (picture.count > picture.shown) {
            snprintf(title, sizeof title, "%zu of %zu series, those that differ most", picture.shown, picture.count);
        } else {
            snprintf(title, sizeof title, "Two runs");
        }
        fputs("\nset multiplot title ", out);
        plot_string_write(out, title);
        fputs(" font ',18'\n", out);
        unsigned panel = 0;
        for (size_t column = 0; column < COLUMNS; column++) {
            if (picture.present[column]) {
                column_write(&picture, column, panel++, out);
            }
        }
        fputs("\nunset multiplot\nset output\n", out);
    }
    free(picture.series);
    return any;
}
