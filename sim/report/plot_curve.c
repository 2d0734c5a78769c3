#include "sim/report/plot_curve.h"
#include "sim/scenario/sum.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// The rows with one name.
struct family {
    char name[SCN_NAME_MAX];
    const struct report_point *first;
    bool sizes, descriptors; // these vary among the rows
};

struct grouping {
    const report_t *report;
    const struct scn_panel *panel;
    struct family *families;
    size_t family_count;
    size_t *of_row;
};

bool plot_is_over_sweep(const report_t *report, const struct scn_panel *panel)
{
    return report->scenario->sweep != NULL && strcmp(panel->x, REPORT_COLUMN_SWEEP) == 0;
}

double plot_x(const report_t *report, const struct scn_panel *panel, const struct report_point *point)
{
    const struct scn_sweep *sweep = report->scenario->sweep;
    if (plot_is_over_sweep(report, panel)) {
        return (point->sweep - 1) / sweep->axis_stride % sweep->axis_count + 1.0;
    }
    return report_column_value(report_column_find(panel->x), point);
}

static void *array_make(size_t count, size_t size)
{
    void *array = calloc(count + 1, size);
    if (array == NULL) {
        sim_panic("report", "out of memory for a plot");
    }
    return array;
}

// bytes is the sum over all descriptors.
static bool same_size(const struct report_point *a, const struct report_point *b)
{
    return a->bytes * b->descriptors == b->bytes * a->descriptors;
}

bool plot_row_chosen(const report_t *report, const struct scn_panel *panel, const struct report_point *point)
{
    char bare[SCN_NAME_MAX];
    bool chosen = scn_pattern_fits(panel->series, point->series);
    if (!chosen && report->scenario->sweep != NULL) {
        snprintf(bare, sizeof bare, "%s", point->series);
        scn_sweep_series_cut(report->scenario->sweep, point->sweep, bare);
        chosen = scn_pattern_fits(panel->series, bare);
    }
    return (panel->series[0] == '\0' || chosen) && (panel->at == 0 || point->bytes == panel->at);
}

static size_t family_find(struct grouping *grouping, const struct report_point *point)
{
    char name[SCN_NAME_MAX];
    snprintf(name, sizeof name, "%s", point->series);
    if (plot_is_over_sweep(grouping->report, grouping->panel)) {
        scn_sweep_series_group(grouping->report->scenario->sweep, point->sweep, name);
    }
    size_t i = 0;
    while (i < grouping->family_count && strcmp(grouping->families[i].name, name) != 0) {
        i++;
    }
    if (i == grouping->family_count) {
        grouping->families[i].first = point;
        memcpy(grouping->families[i].name, name, sizeof name);
        grouping->family_count++;
    }
    return i;
}

static void families_make(struct grouping *grouping)
{
    const report_t *report = grouping->report;
    for (size_t row = 0; row < report->point_count; row++) {
        const struct report_point *point = &report->points[row];
        if (!plot_row_chosen(report, grouping->panel, point)) {
            continue;
        }
        grouping->of_row[row] = family_find(grouping, point);
        struct family *family = &grouping->families[grouping->of_row[row]];
        family->sizes = family->sizes || !same_size(point, family->first);
        family->descriptors = family->descriptors || point->descriptors != family->first->descriptors;
    }
}

static bool belongs(const struct grouping *grouping, size_t first, size_t row)
{
    const struct report_point *a = &grouping->report->points[first], *b = &grouping->report->points[row];
    if (grouping->of_row[first] != grouping->of_row[row]) {
        return false;
    }
    if (plot_is_over_sweep(grouping->report, grouping->panel)) {
        return a->bytes == b->bytes && a->descriptors == b->descriptors;
    }
    if (strcmp(grouping->panel->x, "descriptors") == 0) {
        return same_size(a, b);
    }
    bool split = strcmp(grouping->panel->x, "bytes") == 0 && grouping->families[grouping->of_row[first]].sizes;
    return !split || a->descriptors == b->descriptors;
}

static void title_make(const struct grouping *grouping, struct plot_curve *curve)
{
    const struct report_point *point = &grouping->report->points[curve->first];
    const struct family *family = &grouping->families[grouping->of_row[curve->first]];
    bool sweep = plot_is_over_sweep(grouping->report, grouping->panel);
    bool over_bytes = strcmp(grouping->panel->x, "bytes") == 0;
    bool over_descriptors = strcmp(grouping->panel->x, "descriptors") == 0;
    int length = snprintf(curve->title, PLOT_TITLE_MAX, "%s", family->name);
    if ((sweep || over_descriptors) && family->sizes && point->descriptors > 0) {
        char label[REPORT_LABEL_MAX];
        report_bytes_label(point->bytes / point->descriptors, label);
        size_t digits = strspn(label, "0123456789.");
        length += snprintf(curve->title + length, PLOT_TITLE_MAX - (size_t)length, ", %.*s %s%s", (int)digits, label,
                           label + digits, label[digits] != '\0' ? "iB" : "B");
    }
    if (family->descriptors && (sweep || (over_bytes && family->sizes))) {
        snprintf(curve->title + length, PLOT_TITLE_MAX - (size_t)length, ", %" PRIu64 " descriptor%s",
                 point->descriptors, point->descriptors == 1 ? "" : "s");
    }
}

void plot_curves_init(struct plot_curves *curves, const report_t *report, const struct scn_panel *panel)
{
    struct grouping grouping = {.report = report, .panel = panel};
    grouping.families = array_make(report->point_count, sizeof *grouping.families);
    grouping.of_row = array_make(report->point_count, sizeof *grouping.of_row);
    *curves = (struct plot_curves){0};
    curves->items = array_make(report->point_count, sizeof *curves->items);
    curves->of_row = array_make(report->point_count, sizeof *curves->of_row);
    families_make(&grouping);
    for (size_t row = 0; row < report->point_count; row++) {
        unsigned i = 0;
        if (!plot_row_chosen(report, panel, &report->points[row])) {
            curves->of_row[row] = PLOT_NO_CURVE;
            continue;
        }
        while (i < curves->count && !belongs(&grouping, curves->items[i].first, row)) {
            i++;
        }
        if (i == curves->count) {
            curves->items[i].first = row;
            title_make(&grouping, &curves->items[i]);
            curves->count++;
        }
        curves->items[i].last = row;
        curves->of_row[row] = i;
    }
    free(grouping.families);
    free(grouping.of_row);
}

void plot_curves_fini(struct plot_curves *curves)
{
    free(curves->items);
    free(curves->of_row);
}
