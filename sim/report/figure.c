// figure.yaml: what the scenario says of its figure, and which compared rows are points of it, for the page.
#include "sim/report/figure.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "sim/kernel/text.h"
#include "sim/report/compare.h"
#include "sim/report/files.h"

static void text_entry(FILE *out, const char *key, const char *text)
{
    fprintf(out, "%s: ", key);
    sim_text_quote(out, text);
}

static void panels_write(const struct scn_scenario *scenario, FILE *out)
{
    fprintf(out, "panels:%s\n", scenario->panel_count == 0 ? " []" : "");
    for (uint32_t i = 0; i < scenario->panel_count; i++) {
        const struct scn_panel *panel = &scenario->panels[i];
        text_entry(out, "  - {title", panel->title);
        fprintf(out, ", x: %s, y: %s, x_log: %s, y_log: %s, x_max: %" PRIu64 ", at: %" PRIu64, panel->x, panel->y,
                panel->x_log ? "true" : "false", panel->y_log ? "true" : "false", panel->x_max, panel->at);
        text_entry(out, ", series", panel->series);
        fputs("}\n", out);
    }
}

static void end_write(FILE *out, const char *key, double value)
{
    if (isfinite(value)) {
        fprintf(out, ", %s: %.9g", key, value);
    }
}

static bool point_write(const report_t *report, const struct scn_check *check, bool first, FILE *out)
{
    struct report_comparison comparison;
    if (!report_comparison_point(report, check, &comparison)) {
        return false;
    }
    const struct report_published *published = &comparison.reference->published;
    fprintf(out, "%s  - {id: %s, row: %zu, column: %s", first ? "\n" : "", comparison.reference->id,
            (size_t)(comparison.taken.row - report->points), check->value.column);
    end_write(out, "low", published->low / comparison.scale);
    end_write(out, "high", published->high / comparison.scale);
    text_entry(out, ", what", comparison.what);
    fputs("}\n", out);
    return true;
}

static void texts_write(FILE *out, const char *key, const struct scn_sweep *sweep, uint32_t count, uint32_t stride,
                        const char *(*text)(const struct scn_sweep_point *point))
{
    fprintf(out, "  %s: [", key);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? ", " : "", out);
        sim_text_quote(out, text(&sweep->points[i * stride]));
    }
    fputs("]\n", out);
}

static const char *axis_text(const struct scn_sweep_point *point)
{
    return point->axis;
}

static const char *others_text(const struct scn_sweep_point *point)
{
    return point->others;
}

static const char *curve_text(const struct scn_sweep_point *point)
{
    return point->curve;
}

// The axis of panels over the sweep: the place of point N is (N - 1) / stride in values, again and again.
static void sweep_write(const struct scn_sweep *sweep, FILE *out)
{
    fputs("sweep:\n", out);
    text_entry(out, "  axis", sweep->axis_title);
    fprintf(out, "\n  stride: %" PRIu32 "\n", sweep->axis_stride);
    texts_write(out, "values", sweep, sweep->axis_count, sweep->axis_stride, axis_text);
    fputs("# of each point: its values that are not on the axis, and what it adds to the names of series\n", out);
    texts_write(out, "others", sweep, sweep->point_count, 1, others_text);
    texts_write(out, "curves", sweep, sweep->point_count, 1, curve_text);
}

void report_figure_write(const report_t *report, FILE *out)
{
    uint32_t count = 0;
    struct scn_check *compares =
        report_checks_make(report, report->scenario->compares, report->scenario->compare_count, &count);
    bool any = false;
    char title[REPORT_TITLE_MAX];
    report_title_make(report, title);
    text_entry(out, "title", title);
    fputc('\n', out);
    panels_write(report->scenario, out);
    if (report->scenario->sweep != NULL) {
        sweep_write(report->scenario->sweep, out);
    }
    fputs("# compared rows that are points: the row of data.csv, and the published range in the unit of the column\n",
          out);
    fputs("points:", out);
    for (uint32_t i = 0; i < count; i++) {
        any = point_write(report, &compares[i], !any, out) || any;
    }
    fputs(any ? "" : " []\n", out);
    free(compares);
}
