#include "sim/report/expect.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/baseline.h"
#include "sim/report/observed.h"
#include "sim/scenario/units.h"

// A tolerance of 10^-12: 2.04 is not within 2 % of 2 in binary fractions.
#define ROUNDING 1e-12

enum { DETAILS_MAX = 20 };

struct judging {
    const report_t *report;
    unsigned flags;
    struct report_outcomes *outcomes;
};

static void *grow(void *array, size_t count, size_t size)
{
    void *grown = realloc(array, (count + 1) * size);
    if (grown == NULL) {
        sim_panic("report", "out of memory for expectations");
    }
    return grown;
}

__attribute__((format(printf, 1, 2))) static char *text_make(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) {
        sim_panic("report", "out of memory for expectations");
    }
    va_end(args);
    return text;
}

// --- one number -----------------------------------------------------------------------------------------------------

// Returns a text such as "1.3 is not at most 1.1"; NULL: the value is within the bounds.
static char *bounds_judge(const struct scn_check *expect, double value)
{
    double min, max;
    scn_check_bounds(expect, &min, &max);
    if (value >= min && value <= max) {
        return NULL;
    }
    if (min == max) {
        return text_make("%.9g is not %.9g", value, min);
    }
    if (isinf(min)) {
        return text_make("%.9g is not at most %.9g", value, max);
    }
    if (isinf(max)) {
        return text_make("%.9g is not at least %.9g", value, min);
    }
    return text_make("%.9g is not within %.9g .. %.9g", value, min, max);
}

static char *recorded_judge(const struct scn_check *expect, double value, double recorded)
{
    const struct scn_observed *observed = &expect->observed;
    char percent[SCN_QUANTITY_MAX], difference[64] = "";
    double allowed = fabs(recorded) * (observed->within_percent / 100 + ROUNDING);
    if (value == recorded || (observed->within_percent > 0 && fabs(value - recorded) <= allowed)) {
        return NULL;
    }
    if (recorded != 0) {
        snprintf(difference, sizeof difference, ": %+.2f %%", (value - recorded) / fabs(recorded) * 100);
    }
    if (observed->within_percent == 0) {
        return text_make("%.9g is not %.9g, as in %s%s", value, recorded, observed->of, difference);
    }
    scn_real_format(observed->within_percent, percent);
    return text_make("%.9g is not within %s %% of %.9g in %s%s", value, percent, recorded, observed->of, difference);
}

// --- all numbers of an expectation ----------------------------------------------------------------------------------

// The counters of a sum must equal those of another one. Counters are shown with all their digits.
static char *sum_judge(const struct scn_check *expect, const struct observed_number *number)
{
    if (number->value == number->wanted) {
        return NULL;
    }
    return text_make("%.15g is not %.15g (%s is not %s)", number->value, number->wanted, expect->observed.counter,
                     expect->observed.equals);
}

static char *number_judge(const struct scn_check *expect, const struct observed_number *number, const double *recorded)
{
    char *text = isnan(number->wanted) ? bounds_judge(expect, number->value) : sum_judge(expect, number), *whole = NULL;
    if (text == NULL && recorded != NULL) {
        text = recorded_judge(expect, number->value, *recorded);
    }
    if (text == NULL || number->where == NULL) {
        return text;
    }
    whole = text_make("%s, in %s", text, number->where);
    free(text);
    return whole;
}

static void verdict_add(struct report_outcome *outcome, const char *series, bool holds)
{
    outcome->verdicts = grow(outcome->verdicts, outcome->verdict_count, sizeof *outcome->verdicts);
    outcome->verdicts[outcome->verdict_count++] =
        (struct report_verdict){series != NULL ? text_make("%s", series) : NULL, holds};
}

// The message is the first number that does not hold. If several do not hold, each is a detail.
static void numbers_judge(const struct scn_check *expect, const struct observed *observed, const double *recorded,
                          struct report_outcome *outcome)
{
    size_t size = 0, failed = 0;
    FILE *out = open_memstream(&outcome->detail, &size);
    if (out == NULL) {
        sim_panic("report", "out of memory for expectations");
    }
    for (size_t i = 0; i < observed->count; i++) {
        char *text = number_judge(expect, &observed->numbers[i], recorded != NULL ? &recorded[i] : NULL);
        verdict_add(outcome, observed->numbers[i].series, text == NULL);
        failed += text != NULL;
        if (text != NULL && failed <= DETAILS_MAX) {
            fprintf(out, "%s\n", text);
        }
        if (text != NULL && outcome->message == NULL) {
            outcome->message = text;
        } else {
            free(text);
        }
    }
    if (failed > DETAILS_MAX) {
        fprintf(out, "... and %zu more\n", failed - DETAILS_MAX);
    }
    (void)fclose(out);
    if (failed <= 1) {
        free(outcome->detail);
        outcome->detail = NULL;
    }
}

static void record_add(struct report_outcomes *outcomes, const char *path, const char *name,
                       const struct observed *observed)
{
    outcomes->records = grow(outcomes->records, outcomes->record_count, sizeof *outcomes->records);
    struct report_record *record = &outcomes->records[outcomes->record_count++];
    *record = (struct report_record){text_make("%s", path), text_make("%s", name),
                                     grow(NULL, observed->count, sizeof(double)), observed->count};
    for (size_t i = 0; i < observed->count; i++) {
        record->numbers[i] = observed->numbers[i].value;
    }
}

// Finds as many recorded numbers as were observed. False: the outcome contains the reason.
static bool recorded_find(const struct judging *judging, const struct scn_check *expect,
                          const struct observed *observed, struct baseline *baseline, const double **recorded_out,
                          struct report_outcome *outcome)
{
    char path[PATH_MAX], error[PATH_MAX + SCN_TEXT_MAX];
    report_expect_path(judging->report->scenario, expect->observed.of, path);
    enum sim_status status = baseline_read(path, baseline, error, sizeof error);
    const struct baseline_entry *entry =
        status == SIM_OK ? baseline_find(baseline, judging->report->scenario->name, outcome->name) : NULL;
    if (status == SIM_ERR_NOT_FOUND) {
        outcome->message =
            text_make("there is no baseline file %s; the same command with --update-baseline makes it", path);
    } else if (status != SIM_OK) {
        outcome->message = text_make("the baseline file cannot be used: %s", error);
    } else if (entry == NULL) {
        outcome->message =
            text_make("%s has no numbers for it; the same command with --update-baseline records them", path);
    } else if (entry->count != observed->count) {
        outcome->message = text_make("%zu number%s, but %zu in %s", observed->count,
                                     observed->count == 1 ? " was found" : "s were found", entry->count, path);
    } else {
        *recorded_out = entry->numbers;
    }
    return outcome->message == NULL;
}

static void observed_judge(const struct judging *judging, const struct scn_check *expect,
                           const struct observed *observed, struct report_outcome *outcome)
{
    struct baseline baseline = {0};
    const double *recorded = NULL;
    bool of = expect->observed.of[0] != '\0', record = of && (judging->flags & REPORT_EXPECT_RECORD) != 0;
    if (of && !record && !recorded_find(judging, expect, observed, &baseline, &recorded, outcome)) {
        baseline_free(&baseline);
        return;
    }
    numbers_judge(expect, observed, recorded, outcome);
    baseline_free(&baseline);
    if (record && observed->count > BASELINE_NUMBERS_MAX) {
        outcome->message =
            text_make("%zu numbers are more than a baseline file takes (%d)", observed->count, BASELINE_NUMBERS_MAX);
    } else if (record && outcome->message == NULL) {
        char path[PATH_MAX];
        report_expect_path(judging->report->scenario, expect->observed.of, path);
        record_add(judging->outcomes, path, outcome->name, observed);
    }
}

// In a sweep, `what` also names the swept value.
static char *name_make(const report_t *report, const struct scn_check *expect)
{
    char label[SCN_TEXT_MAX + SCN_NAME_MAX];
    bool sweep = report->scenario->sweep != NULL && expect->what[0] != '\0';
    scn_check_label(expect, label, sizeof label);
    return text_make("%s", sweep ? expect->what : label);
}

static void expect_judge(const struct judging *judging, const struct scn_check *expect)
{
    struct report_outcomes *outcomes = judging->outcomes;
    outcomes->items = grow(outcomes->items, outcomes->count, sizeof *outcomes->items);
    struct report_outcome *outcome = &outcomes->items[outcomes->count++];
    *outcome = (struct report_outcome){
        .name = name_make(judging->report, expect), .line = expect->line, .column = expect->column};
    struct observed observed;
    observed_take(judging->report, expect, &observed);
    if (observed.message != NULL) {
        outcome->message = observed.message;
        outcome->detail = observed.detail;
        observed.message = observed.detail = NULL;
    } else if (observed.count > 0) {
        observed_judge(judging, expect, &observed, outcome);
    }
    outcomes->failed += outcome->message != NULL;
    if (outcome->verdict_count == 0) { // no number, or a whole output
        const char *series = expect->value.given ? expect->value.series : expect->observed.series;
        verdict_add(outcome, series[0] != '\0' ? series : NULL, outcome->message == NULL);
    }
    observed_free(&observed);
}

void report_outcomes_make(const report_t *report, unsigned flags, struct report_outcomes *outcomes_out)
{
    struct judging judging = {report, flags, outcomes_out};
    uint32_t count = 0;
    struct scn_check *expects =
        report_checks_make(report, report->scenario->expects, report->scenario->expect_count, &count);
    *outcomes_out = (struct report_outcomes){0};
    for (uint32_t i = 0; i < count; i++) {
        bool series = scn_check_subject(&expects[i]) == SCN_SUBJECT_SERIES;
        if (!series || (flags & REPORT_EXPECT_NO_SERIES) == 0) {
            expect_judge(&judging, &expects[i]);
        }
    }
    free(expects);
}

void report_outcomes_free(struct report_outcomes *outcomes)
{
    for (size_t i = 0; i < outcomes->count; i++) {
        for (size_t k = 0; k < outcomes->items[i].verdict_count; k++) {
            free(outcomes->items[i].verdicts[k].series);
        }
        free(outcomes->items[i].verdicts);
        free(outcomes->items[i].name);
        free(outcomes->items[i].message);
        free(outcomes->items[i].detail);
    }
    for (size_t i = 0; i < outcomes->record_count; i++) {
        free(outcomes->records[i].path);
        free(outcomes->records[i].name);
        free(outcomes->records[i].numbers);
    }
    free(outcomes->items);
    free(outcomes->records);
    *outcomes = (struct report_outcomes){0};
}

// --- printing and recording -----------------------------------------------------------------------------------------

void report_outcomes_print(const struct report_outcomes *outcomes, FILE *out)
{
    for (size_t i = 0; i < outcomes->count; i++) {
        const struct report_outcome *outcome = &outcomes->items[i];
        if (outcome->message == NULL) {
            continue;
        }
        fprintf(out, "expect '%s' does not hold: %s\n", outcome->name, outcome->message);
        for (const char *line = outcome->detail; line != NULL && *line != '\0';) {
            size_t length = strcspn(line, "\n");
            fprintf(out, "  %.*s\n", (int)length, line);
            line += length + (line[length] == '\n');
        }
    }
}

// Writes all records of one file at once.
static enum sim_status file_record(const struct report_outcomes *outcomes, size_t first, const char *scenario,
                                   FILE *log, char *error, size_t error_size)
{
    const char *path = outcomes->records[first].path;
    struct baseline_entry *entries = grow(NULL, outcomes->record_count, sizeof *entries);
    size_t count = 0;
    for (size_t i = first; i < outcomes->record_count; i++) {
        const struct report_record *record = &outcomes->records[i];
        if (strcmp(record->path, path) == 0) {
            entries[count++] =
                (struct baseline_entry){(char *)(uintptr_t)scenario, record->name, record->numbers, record->count};
        }
    }
    enum sim_status status = baseline_update(path, entries, count, log, error, error_size);
    free(entries);
    return status;
}

enum sim_status report_outcomes_record(const struct report_outcomes *outcomes, const char *scenario, FILE *log,
                                       char *error, size_t error_size)
{
    enum sim_status status = SIM_OK;
    for (size_t i = 0; i < outcomes->record_count && status == SIM_OK; i++) {
        bool done = false;
        for (size_t k = 0; k < i; k++) {
            done = done || strcmp(outcomes->records[k].path, outcomes->records[i].path) == 0;
        }
        if (!done) {
            status = file_record(outcomes, i, scenario, log, error, error_size);
        }
    }
    return status;
}
