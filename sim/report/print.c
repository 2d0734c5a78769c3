// Prints the report to the terminal.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/bands.h"
#include "sim/report/compare.h"
#include "sim/report/grid.h"

#define WIDTH_MAX 110 // a table wider than this, or than the terminal, gets short heads and a legend

// Of a table of curves.
#define LEGEND_MAX 8 // lines of names above a table

struct key {
    uint64_t bytes, descriptors;
    uint64_t ranks; // 0: the series does not vary them
};

static struct key key_of(const report_t *report, const struct report_point *point)
{
    struct key key = {point->bytes, point->descriptors, 0};
    for (const struct report_point *row = report_series_next(report, point->series, NULL); row != NULL;
         row = report_series_next(report, point->series, row)) {
        key.ranks = row->ranks != point->ranks ? point->ranks : key.ranks;
    }
    return key;
}

static int key_compare(const void *left, const void *right)
{
    const struct key *a = left;
    const struct key *b = right;
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? -1 : 1;
    }
    if (a->descriptors != b->descriptors) {
        return a->descriptors < b->descriptors ? -1 : 1;
    }
    return a->ranks == b->ranks ? 0 : a->ranks < b->ranks ? -1 : 1;
}

// All different (bytes, descriptors, ranks) of the results with this column, sorted.
static struct key *keys_make(const report_t *report, const struct report_column *column, size_t *count_out)
{
    size_t all = 0;
    struct key *keys = calloc(report->point_count, sizeof *keys);
    if (keys == NULL) {
        sim_panic("report", "out of memory for a table");
    }
    for (size_t i = 0; i < report->point_count; i++) {
        if (report_column_has(column, &report->points[i])) {
            keys[all++] = key_of(report, &report->points[i]);
        }
    }
    qsort(keys, all, sizeof *keys, key_compare);
    size_t count = 0;
    for (size_t i = 0; i < all; i++) {
        if (count == 0 || key_compare(&keys[count - 1], &keys[i]) != 0) {
            keys[count++] = keys[i];
        }
    }
    *count_out = count;
    return keys;
}

static bool many_descriptors(const report_t *report)
{
    for (size_t i = 0; i < report->point_count; i++) {
        if (report->points[i].descriptors != 1) {
            return true;
        }
    }
    return false;
}

static bool many_ranks(const struct key *keys, size_t count)
{
    bool many = false;
    for (size_t i = 0; i < count; i++) {
        many = many || keys[i].ranks != 0;
    }
    return many;
}

static size_t series_count(const report_t *report)
{
    size_t count = 0;
    for (const struct report_point *first = report_series_first(report, NULL); first != NULL;
         first = report_series_first(report, first)) {
        count++;
    }
    return count;
}

static void head_add(const report_t *report, grid_t *grid, bool descriptors, bool ranks, bool legend)
{
    grid_cell_add(grid, "bytes");
    if (descriptors) {
        grid_cell_add(grid, "descriptors");
    }
    if (ranks) {
        grid_cell_add(grid, "ranks");
    }
    unsigned number = 1;
    for (const struct report_point *first = report_series_first(report, NULL); first != NULL;
         first = report_series_first(report, first)) {
        if (legend) {
            grid_cell_add(grid, "(%u)", number++);
        } else {
            grid_cell_add(grid, "%s", first->series);
        }
    }
}

static void cell_add(const report_t *report, grid_t *grid, const struct report_column *column, const char *series,
                     const struct key *key)
{
    const struct report_point *point = report_series_next(report, series, NULL);
    while (point != NULL) {
        const struct key own = key_of(report, point);
        if (key_compare(&own, key) == 0) {
            break;
        }
        point = report_series_next(report, series, point);
    }
    if (point == NULL || !report_column_has(column, point)) {
        grid_cell_add(grid, "%s", "");
    } else if (column->fraction) {
        grid_cell_add(grid, "%.3f", report_column_value(column, point));
    } else {
        grid_cell_add(grid, "%" PRIu64, column->micro(point) / REPORT_MICRO);
    }
}

static grid_t *curves_make(const report_t *report, const struct report_column *column, bool legend)
{
    bool descriptors = many_descriptors(report);
    size_t count;
    struct key *keys = keys_make(report, column, &count);
    bool ranks = many_ranks(keys, count);
    grid_t *grid = grid_create(1 + descriptors + ranks + series_count(report));
    head_add(report, grid, descriptors, ranks, legend);
    for (size_t i = 0; i < count; i++) {
        char label[REPORT_LABEL_MAX];
        report_bytes_label(keys[i].bytes, label);
        grid_cell_add(grid, "%s", label);
        if (descriptors) {
            grid_cell_add(grid, "%" PRIu64, keys[i].descriptors);
        }
        if (ranks && keys[i].ranks == 0) {
            grid_cell_add(grid, "%s", "");
        } else if (ranks) {
            grid_cell_add(grid, "%" PRIu64, keys[i].ranks);
        }
        for (const struct report_point *first = report_series_first(report, NULL); first != NULL;
             first = report_series_first(report, first)) {
            cell_add(report, grid, column, first->series, &keys[i]);
        }
    }
    free(keys);
    return grid;
}

// Many series of one row each: one line for each series.
static grid_t *lines_make(const report_t *report, const struct report_column *column)
{
    grid_t *grid = grid_create(2);
    grid_column_left(grid, 0);
    grid_cell_add(grid, "series");
    grid_cell_add(grid, "%s", column->name);
    for (size_t i = 0; i < report->point_count; i++) {
        const struct report_point *point = &report->points[i];
        grid_cell_add(grid, "%s", point->series);
        const struct key key = key_of(report, point);
        cell_add(report, grid, column, point->series, &key);
    }
    return grid;
}

static void curves_print(const report_t *report, const char *column_name, FILE *out)
{
    const struct report_column *column = report_column_find(column_name);
    fprintf(out, "\n%s\n", column->axis);
    grid_t *grid = curves_make(report, column, false);
    size_t series = series_count(report);
    size_t columns = sim_terminal_columns(out), most = columns > 0 ? columns : WIDTH_MAX;
    if (grid_width(grid) > most && series > LEGEND_MAX && report->point_count == series) {
        grid_destroy(grid);
        grid = lines_make(report, column);
    } else if (grid_width(grid) > most) {
        grid_destroy(grid);
        grid = curves_make(report, column, true);
        unsigned number = 1;
        for (const struct report_point *first = report_series_first(report, NULL); first != NULL;
             first = report_series_first(report, first)) {
            fprintf(out, "  (%u) %s\n", number++, first->series);
        }
    }
    grid_print(grid, out);
    grid_destroy(grid);
}

static bool any_has(const report_t *report, const struct report_column *column)
{
    bool has = false;
    for (size_t i = 0; i < report->point_count && !has; i++) {
        has = report_column_has(column, &report->points[i]);
    }
    return has;
}

// Prints the columns of the figure once each; without a figure, latency, bandwidth and memory.
static void all_curves_print(const report_t *report, FILE *out)
{
    const struct scn_scenario *scenario = report->scenario;
    static const char *const usual[] = {"latency_us", "bandwidth_GBps", "memory_MB"};
    for (unsigned i = 0; scenario->panel_count == 0 && i < sizeof usual / sizeof *usual; i++) {
        if (any_has(report, report_column_find(usual[i]))) {
            curves_print(report, usual[i], out);
        }
    }
    for (uint32_t i = 0; i < scenario->panel_count; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < i; k++) {
            seen = seen || strcmp(scenario->panels[k].y, scenario->panels[i].y) == 0;
        }
        if (!seen) {
            curves_print(report, scenario->panels[i].y, out);
        }
    }
}

static enum sim_colour mark_colour(const char *mark)
{
    return strcmp(mark, "ok") == 0     ? SIM_COLOUR_GREEN
           : strcmp(mark, "near") == 0 ? SIM_COLOUR_YELLOW
           : strcmp(mark, "off") == 0  ? SIM_COLOUR_RED
                                       : SIM_COLOUR_PLAIN;
}

// Its interval, and whether the published value is inside.
static void band_add(grid_t *grid, const struct report_comparison *comparison, const struct report_band *band)
{
    const struct report_reference *reference = comparison->reference;
    bool judged = isfinite(band->low) && reference->published.kind != REPORT_PUBLISHED_TEXT;
    bool holds = report_band_holds(band, reference);
    if (isfinite(band->low)) {
        grid_cell_add(grid, "%.3f-%.3f", band->low, band->high);
    } else {
        grid_cell_add(grid, "%s", "");
    }
    grid_cell_add(grid, "%s", !judged ? "" : holds ? "inside" : "outside");
    grid_cell_colour(grid, !judged ? SIM_COLOUR_PLAIN : holds ? SIM_COLOUR_GREEN : SIM_COLOUR_RED);
}

// band: NULL without intervals.
static void comparison_add(grid_t *grid, const struct report_comparison *comparison, const struct report_band *band)
{
    const struct report_reference *reference = comparison->reference;
    grid_cell_add(grid, "%s", reference->id);
    grid_cell_add(grid, "%s", comparison->what);
    if (comparison->taken.found) {
        grid_cell_add(grid, "%.3f", comparison->simulated);
    } else {
        grid_cell_add(grid, "%s", comparison->taken.unmeasured != NULL ? "nothing measured" : "none");
    }
    grid_cell_add(grid, "%s", reference->value);
    grid_cell_add(grid, "%s", reference->unit);
    if (comparison->has_error) {
        grid_cell_add(grid, "%+.1f %%", comparison->error_percent);
    } else {
        grid_cell_add(grid, "%s", "");
    }
    grid_cell_add(grid, "%s", report_comparison_mark(comparison));
    grid_cell_colour(grid, mark_colour(report_comparison_mark(comparison)));
    grid_cell_add(grid, "%s", reference->use);
    if (band != NULL) {
        band_add(grid, comparison, band);
    }
}

// What speaks against published values that are compared, each once.
static void doubts_print(const report_t *report, const struct scn_check *compares, uint32_t count, FILE *out)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct report_reference *reference = report_references_find(&report->references, compares[i].id);
        bool first = reference != NULL && reference->doubt[0] != '\0';
        for (uint32_t k = 0; k < i && first; k++) {
            first = strcmp(compares[k].id, compares[i].id) != 0;
        }
        if (first) {
            fprintf(out, "%s: %s.\n", reference->id, reference->doubt);
        }
    }
}

static void comparisons_print(const report_t *report, FILE *out)
{
    static const char *const heads[] = {"id",    "what", "simulated", "published", "unit",
                                        "error", "",     "use",       "5-95 %",    ""};
    static const bool left[] = {true, true, false, false, true, false, true, true, false, true};
    const struct report_bands *bands = report->bands;
    const size_t columns = sizeof heads / sizeof heads[0] - (bands == NULL ? 2 : 0);
    grid_t *grid = grid_create(columns);
    for (size_t i = 0; i < columns; i++) {
        grid_cell_add(grid, "%s", heads[i]);
        if (left[i]) {
            grid_column_left(grid, i);
        }
    }
    uint32_t count = 0;
    struct scn_check *compares =
        report_checks_make(report, report->scenario->compares, report->scenario->compare_count, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct report_comparison comparison;
        if (report_comparison_make(report, &compares[i], &comparison)) {
            comparison_add(grid, &comparison, bands != NULL && i < bands->compare_count ? &bands->compares[i] : NULL);
        }
    }
    fputs("\nSimulated against published\n", out);
    grid_print(grid, out);
    grid_destroy(grid);
    fputs("ok: within 5 % of the published value; near: within 15 %; off: farther. Inside a published range or bound\n"
          "(2-8, <1, >3) the error is +0.0 %; outside it is the distance to the nearest end.\n",
          out);
    doubts_print(report, compares, count, out);
    free(compares);
}

void report_print(const report_t *report, FILE *out)
{
    const struct scn_scenario *scenario = report->scenario;
    char title[REPORT_TITLE_MAX];
    report_title_make(report, title);
    fprintf(out, "%s\n", title);
    if (scenario->sweep != NULL) {
        fprintf(out, "After each name: %s\n", scenario->sweep->title);
    }
    if (report->point_count > 0) {
        all_curves_print(report, out);
    } else if (scn_series(scenario, 0) != NULL) {
        fputs("\nNothing was measured.\n", out);
    }
    if (scenario->compare_count > 0) {
        comparisons_print(report, out);
    }
    if (report->bands != NULL) {
        report_bands_print(report, out);
    }
    report_faults_print(report, out);
}
