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
    fputs("# compared rows that are points: the row of data.csv, and the published range in the unit of the column\n",
          out);
    fputs("points:", out);
    for (uint32_t i = 0; i < count; i++) {
        any = point_write(report, &compares[i], !any, out) || any;
    }
    fputs(any ? "" : " []\n", out);
    free(compares);
}
