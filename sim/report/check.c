// The checks of a scenario: before the run against the tables known here, after it against the results.
#include "sim/report/results.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/value.h"

struct checking {
    const struct scn_scenario *scenario;
    const char *path;
    struct scn_messages *messages;
};

__attribute__((format(printf, 4, 5))) static void complain(struct checking *checking, unsigned line,
                                                           unsigned column, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct scn_messages *messages = checking->messages;
    char **lines = realloc(messages->lines, (messages->count + 1) * sizeof *lines);
    char *message = NULL;
    if (lines == NULL || asprintf(&message, "%s:%u:%u: %s", checking->path, line, column, text) < 0) {
        sim_panic("report", "out of memory for a message");
    }
    messages->lines = lines;
    lines[messages->count++] = message;
}

static bool series_exists(const struct scn_scenario *scenario, const char *series)
{
    for (uint32_t i = 0; i < scenario->run_count; i++) {
        if (strcmp(scenario->runs[i].series, series) == 0) {
            return true;
        }
    }
    return false;
}

static bool value_check(struct checking *checking, const struct scn_check *check, const struct scn_value *value)
{
    bool known = true;
    if (report_column_find(value->column, NULL) == NULL) {
        complain(checking, check->line, check->column, "'%s': '%s' is not a numeric column of data.csv", check->id,
                 value->column);
        known = false;
    }
    if (!series_exists(checking->scenario, value->series)) {
        complain(checking, check->line, check->column, "'%s': no series is named '%s'", check->id, value->series);
        known = false;
    }
    return known;
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
    const struct report_column *column = report_column_find(check->value.column, NULL);
    if (check->over.given && report_column_find(check->over.column, NULL)->kind != column->kind) {
        complain(checking, check->line, check->column, "'%s': %s cannot be divided by %s", check->id, column->name,
                 check->over.column);
        return;
    }
    double scale;
    if (reference != NULL && !report_value_scale(check, reference->unit, &scale)) {
        complain(checking, check->line, check->column, "'%s' is published in %s, which does not fit %s", check->id,
                 reference->unit,
                 check->first_reaching > 0.0 ? "a number of bytes" : check->over.given ? "a ratio" : column->name);
    }
}

static void panels_check(struct checking *checking)
{
    for (uint32_t i = 0; i < checking->scenario->panel_count; i++) {
        const struct scn_panel *panel = &checking->scenario->panels[i];
        const char *const names[] = {panel->x, panel->y};
        for (size_t k = 0; k < 2; k++) {
            if (report_column_find(names[k], NULL) == NULL) {
                complain(checking, 1, 1, "panel %u: '%s' is not a numeric column of data.csv", i + 1, names[k]);
            }
        }
    }
}

void report_check_scenario(const struct scn_scenario *scenario, const char *reference_csv, const char *path,
                           struct scn_messages *messages)
{
    struct checking checking = {scenario, path, messages};
    struct report_references references = {0};
    enum sim_status status = report_references_read(&references, reference_csv);
    if (status != SIM_OK) {
        complain(&checking, 1, 1, "the published values in %s cannot be used: %s", reference_csv,
                 sim_status_text(status));
        return;
    }
    for (uint32_t i = 0; i < scenario->expect_count; i++) {
        check_check(&checking, &scenario->expects[i], NULL);
    }
    for (uint32_t i = 0; i < scenario->compare_count; i++) {
        const struct scn_check *compare = &scenario->compares[i];
        const struct report_reference *reference = report_references_find(&references, compare->id);
        if (reference == NULL) {
            complain(&checking, compare->line, compare->column, "'%s' is not in the table of published values",
                     compare->id);
        }
        check_check(&checking, compare, reference);
    }
    panels_check(&checking);
    report_references_free(&references);
}

static void bounds_print(const struct scn_check *expect, FILE *out)
{
    if (isinf(expect->min)) {
        fprintf(out, "at most %.9g", expect->max);
    } else if (isinf(expect->max)) {
        fprintf(out, "at least %.9g", expect->min);
    } else {
        fprintf(out, "within %.9g .. %.9g", expect->min, expect->max);
    }
}

unsigned report_expect(const report_t *report, FILE *out)
{
    unsigned failed = 0;
    for (uint32_t i = 0; i < report->scenario->expect_count; i++) {
        const struct scn_check *expect = &report->scenario->expects[i];
        struct report_value value = report_value_take(report, expect);
        if (value.found && value.value >= expect->min && value.value <= expect->max) {
            continue;
        }
        failed++;
        const char *name = expect->id[0] != '\0' ? expect->id : expect->what;
        fprintf(out, "expect '%s' does not hold: ", name);
        if (value.found) {
            fprintf(out, "%.9g is not ", value.value);
            bounds_print(expect, out);
        } else {
            fputs("no row of the results fits it", out);
        }
        fputc('\n', out);
    }
    return failed;
}
