// Checks a scenario before the run against the tables known here. Checks after the run are in expect.c.
#include "sim/report/results.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/printed.h"
#include "sim/report/value.h"
#include "sim/scenario/sum.h"

struct checking {
    const struct scn_scenario *scenario;
    scn_complain_fn complain;
    void *complain_ctx;
};

__attribute__((format(printf, 4, 5))) static void complain(struct checking *checking, unsigned line, unsigned column,
                                                           const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    checking->complain(checking->complain_ctx, line, column, text);
}

// "'<what>': 'x' is not ... (there are: ...)". A name may be missing if the scenario has other mistakes.
static bool column_check(struct checking *checking, unsigned line, unsigned column, const char *what, const char *name)
{
    const struct report_column *found = report_column_find(name);
    bool sweep = checking->scenario->sweep != NULL;
    if (found != NULL && (sweep || strcmp(found->name, REPORT_COLUMN_SWEEP) != 0)) {
        return true;
    }
    char list[256] = "";
    size_t length = 0;
    for (size_t i = 0; i < REPORT_COLUMN_COUNT - (sweep ? 0u : 1u); i++) {
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%s", i == 0 ? "" : ", ", report_columns[i].name);
    }
    if (name[0] != '\0') {
        complain(checking, line, column, "'%s': '%s' is not a numeric column of data.csv (there are: %s)", what, name,
                 list);
    }
    return false;
}

static bool value_check(struct checking *checking, const struct scn_check *check, const struct scn_value *value)
{
    return column_check(checking, check->line, check->column, check->id, value->column);
}

static void check_check(struct checking *checking, const struct scn_check *check,
                        const struct report_reference *reference)
{
    bool known = value_check(checking, check, &check->value);
    if (check->over.given) {
        known = value_check(checking, check, &check->over) && known;
    }
    if (!known) {
        return;
    }
    const struct report_column *column = report_column_find(check->value.column);
    if (check->over.given && report_column_find(check->over.column)->kind != column->kind) {
        complain(checking, check->line, check->column, "'%s': %s cannot be %s %s", check->id, column->name,
                 check->difference ? "compared with" : "divided by", check->over.column);
        return;
    }
    double scale;
    if (reference != NULL && !report_value_scale(check, reference->unit, &scale)) {
        complain(checking, check->line, check->column, "'%s' is published in %s, which does not fit %s", check->id,
                 reference->unit,
                 report_value_is_bytes(check)              ? "a number of bytes"
                 : check->over.given && !check->difference ? "a ratio"
                                                           : column->name);
    }
}

static void printed_names(char *text, size_t size)
{
    const char *name;
    text[0] = '\0';
    for (unsigned i = 0; (name = report_printed_column_name(i)) != NULL; i++) {
        size_t length = strlen(text);
        snprintf(text + length, size - length, "%s%s", i > 0 ? ", " : "", name);
    }
}

static void printed_check(struct checking *checking)
{
    for (uint32_t i = 0; i < checking->scenario->outside_count; i++) {
        const struct scn_results *results = &checking->scenario->outsides[i].results;
        struct report_printed_line line;
        char wrong[SCN_NAME_MAX], names[SCN_TEXT_MAX];
        if (results->columns[0] == '\0' || report_printed_columns(results->columns, &line, wrong) == SIM_OK) {
            continue;
        }
        if (wrong[0] != '\0') {
            printed_names(names, sizeof names);
            complain(checking, 0, 0, "results '%s': columns: '%s' is no column (there are: %s)", results->series, wrong,
                     names);
        } else {
            complain(checking, 0, 0,
                     "results '%s': columns: needs latency_us, bandwidth_GBps or memory_bytes, and at most %d words",
                     results->series, REPORT_PRINTED_COLUMNS_MAX);
        }
    }
}

// A pattern that no series can have leaves an empty panel.
static void panel_series_check(struct checking *checking, const struct scn_panel *panel)
{
    const struct scn_sweep *sweep = checking->scenario->sweep;
    bool fits = panel->series[0] == '\0';
    const char *series;
    for (uint32_t i = 0; !fits && (series = scn_series(checking->scenario, i)) != NULL; i++) {
        fits = scn_pattern_fits(panel->series, series);
        for (uint32_t k = 0; !fits && sweep != NULL && k < sweep->point_count; k++) {
            char name[2 * SCN_NAME_MAX];
            (void)snprintf(name, sizeof name, "%s, %s", series, sweep->points[k].curve);
            fits = scn_pattern_fits(panel->series, name);
        }
    }
    if (!fits) {
        complain(checking, panel->line, panel->column, "'%s': series: '%s' matches no measured series", panel->title,
                 panel->series);
    }
}

static void panels_check(struct checking *checking)
{
    for (uint32_t i = 0; i < checking->scenario->panel_count; i++) {
        const struct scn_panel *panel = &checking->scenario->panels[i];
        (void)column_check(checking, panel->line, panel->column, panel->title, panel->x);
        (void)column_check(checking, panel->line, panel->column, panel->title, panel->y);
        panel_series_check(checking, panel);
    }
}

void report_check_scenario(const struct scn_scenario *scenario, const char *reference_csv, scn_complain_fn complain_fn,
                           void *complain_ctx)
{
    struct checking checking = {scenario, complain_fn, complain_ctx};
    struct report_references references = {0};
    enum sim_status status = report_references_read(&references, reference_csv);
    if (status != SIM_OK) {
        complain(&checking, 0, 0, "the published values in %s cannot be used: %s", reference_csv,
                 sim_status_text(status));
        return;
    }
    for (uint32_t i = 0; i < scenario->expect_count; i++) {
        if (scn_check_subject(&scenario->expects[i]) != SCN_SUBJECT_SERIES) {
            continue; // its subject has no column
        }
        check_check(&checking, &scenario->expects[i], NULL);
    }
    for (uint32_t i = 0; i < scenario->compare_count; i++) {
        const struct scn_check *compare = &scenario->compares[i];
        const struct report_reference *reference = report_references_find(&references, compare->id);
        if (reference == NULL && compare->id[0] != '\0') {
            complain(&checking, compare->line, compare->column, "'%s' is not in the table of published values",
                     compare->id);
        }
        check_check(&checking, compare, reference);
    }
    panels_check(&checking);
    printed_check(&checking);
    report_references_free(&references);
}
