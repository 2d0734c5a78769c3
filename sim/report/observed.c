#include "sim/report/observed.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/expect.h"
#include "sim/report/lines.h"
#include "sim/report/value.h"
#include "sim/scenario/names.h"

enum { TAIL_LINES = 10, NEAR_NAMES = 5 };

void report_expect_path(const struct scn_scenario *scenario, const char *name, char path[PATH_MAX])
{
    const char *directory = name[0] == '/' || scenario->directory == NULL ? "" : scenario->directory;
    snprintf(path, PATH_MAX, "%s%s", directory, name);
}

__attribute__((format(printf, 2, 3))) static void message_set(struct observed *observed, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (vasprintf(&observed->message, format, args) < 0) {
        sim_panic("report", "out of memory for an expectation");
    }
    va_end(args);
}

// Opens a stream for the details; the message owns the text.
static FILE *detail_open(struct observed *observed, size_t *size)
{
    FILE *out = open_memstream(&observed->detail, size);
    if (out == NULL) {
        sim_panic("report", "out of memory for an expectation");
    }
    return out;
}

static void number_add(struct observed *observed, double value, char *where)
{
    struct observed_number *grown = realloc(observed->numbers, (observed->count + 1) * sizeof *grown);
    if (grown == NULL) {
        sim_panic("report", "out of memory for %zu numbers", observed->count + 1);
    }
    observed->numbers = grown;
    observed->numbers[observed->count++] = (struct observed_number){value, where};
}

// --- series ---------------------------------------------------------------------------------------------------------

static void series_take(const report_t *report, const struct scn_check *expect, struct observed *observed)
{
    struct report_value value = report_value_take(report, expect);
    if (value.found) {
        number_add(observed, value.value, NULL);
    } else if (value.unmeasured != NULL) {
        message_set(observed, "nothing was measured in '%s' at %" PRIu64 " B", value.unmeasured->series,
                    value.unmeasured->bytes);
    } else {
        message_set(observed, "no row of the results matches");
    }
}

// --- output of programs ---------------------------------------------------------------------------------------------

// NULL: the program did not run; the message is set.
static const struct report_output *output_of(const report_t *report, const struct scn_check *expect,
                                             struct observed *observed)
{
    uint32_t count, index = scn_outside_find(report->scenario, expect->observed.program, &count);
    if (index < SCN_OUTSIDES_MAX && report->outputs[index].bytes != NULL) {
        return &report->outputs[index];
    }
    message_set(observed, "'%s' did not run", expect->observed.program);
    return NULL;
}

static void printed_end_add(struct observed *observed, struct lines_text printed)
{
    size_t size;
    FILE *out = detail_open(observed, &size);
    if (printed.length == 0) {
        fputs("It printed nothing.\n", out);
    } else {
        fputs("The end of what it printed:\n", out);
        lines_tail_write(out, printed, TAIL_LINES, "  ");
    }
    (void)fclose(out);
}

static char *where_make(size_t number, struct lines_text line)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        sim_panic("report", "out of memory for an expectation");
    }
    fprintf(out, "line %zu: ", number);
    lines_shown_write(out, line);
    (void)fclose(out);
    return text;
}

// The text that the group matched must be a number and nothing else.
static bool number_read(struct lines_text line, const regmatch_t *group, double *value_out)
{
    char text[64], *end;
    if (group->rm_so < 0 || group->rm_eo - group->rm_so >= (regoff_t)sizeof text) {
        return false;
    }
    snprintf(text, sizeof text, "%.*s", (int)(group->rm_eo - group->rm_so), line.bytes + group->rm_so);
    *value_out = strtod(text, &end);
    return text[0] != '\0' && *end == '\0' && isfinite(*value_out);
}

// Takes the first match of each line.
static void line_take(struct observed *observed, const regex_t *match, size_t number, struct lines_text line)
{
    regmatch_t found[2] = {{.rm_so = 0, .rm_eo = (regoff_t)line.length}};
    double value;
    if (observed->message != NULL || regexec(match, line.bytes, 2, found, REG_STARTEND) != 0) {
        return;
    }
    char *where = where_make(number, line);
    if (number_read(line, &found[1], &value)) {
        number_add(observed, value, where);
        return;
    }
    message_set(observed, "the matched text is not a number, in %s", where);
    free(where);
}

static void match_take(const report_t *report, const struct scn_check *expect, struct observed *observed)
{
    const struct report_output *output = output_of(report, expect, observed);
    regex_t match;
    if (output == NULL) {
        return;
    }
    if (regcomp(&match, expect->observed.match, REG_EXTENDED) != 0) { // the scenario's check has refused this
        message_set(observed, "'%s' is not a regular expression", expect->observed.match);
        return;
    }
    struct lines_text printed = {output->bytes, output->length}, rest = printed, line;
    for (size_t number = 1; lines_next(&rest, &line); number++) {
        line_take(observed, &match, number, line);
    }
    regfree(&match);
    if (observed->count == 0 && observed->message == NULL) {
        message_set(observed, "no line that '%s' printed matches '%s'", expect->observed.program,
                    expect->observed.match);
        printed_end_add(observed, printed);
    }
}

static void output_take(const report_t *report, const struct scn_check *expect, struct observed *observed)
{
    const struct report_output *output = output_of(report, expect, observed);
    char path[PATH_MAX];
    struct lines_text expected = {0};
    char *bytes = NULL;
    if (output == NULL) {
        return;
    }
    report_expect_path(report->scenario, expect->observed.equals, path);
    if (lines_file_read(path, &bytes, &expected.length) != SIM_OK) {
        message_set(observed, "%s cannot be read: %s", path, strerror(errno));
        return;
    }
    expected.bytes = bytes;
    struct lines_text printed = {output->bytes, output->length};
    if (expected.length != printed.length || memcmp(expected.bytes, printed.bytes, printed.length) != 0) {
        size_t size;
        message_set(observed, "what '%s' printed is not %s", expect->observed.program, expect->observed.equals);
        FILE *out = detail_open(observed, &size);
        fprintf(out, "--- %s\n+++ what %s printed\n", expect->observed.equals, expect->observed.program);
        lines_difference_write(out, expected, printed);
        (void)fclose(out);
    }
    free(bytes);
}

// --- counters -------------------------------------------------------------------------------------------------------

static void counter_name(const struct report_counter *counter, char *name, size_t size)
{
    snprintf(name, size, "%s.%s", counter->component, counter->name);
}

static bool is_of_programs(const report_t *report, const struct report_counter *counter)
{
    return report->programs != NULL && strcmp(counter->series, report->programs) == 0;
}

// Adds the existing names, the nearest first; only of one series, because the others have the same names.
static void near_names_add(const report_t *report, const char *wanted, struct observed *observed)
{
    const char *series = report->programs != NULL    ? report->programs
                         : report->counter_count > 0 ? report->counters[0].series
                                                     : "";
    size_t size, last = 0, count = report->counter_count;
    FILE *out = detail_open(observed, &size);
    fputs(count > 0 ? "Similar names:\n" : "There are no counters.\n", out);
    for (unsigned i = 0; i < NEAR_NAMES; i++) {
        size_t best = SIZE_MAX;
        char name[2 * SCN_TEXT_MAX];
        for (size_t k = 0; k < count; k++) {
            counter_name(&report->counters[k], name, sizeof name);
            size_t distance = scn_names_distance(wanted, name);
            if (distance == SIZE_MAX || strcmp(report->counters[k].series, series) != 0) {
                continue;
            }
            distance = distance * count + k + 1; // every name has its own distance
            best = distance > last && distance < best ? distance : best;
        }
        if (best == SIZE_MAX) {
            break;
        }
        counter_name(&report->counters[(best - 1) % count], name, sizeof name);
        fprintf(out, "  %s\n", name);
        last = best;
    }
    (void)fclose(out);
}

static void counter_take(const report_t *report, const struct scn_check *expect, struct observed *observed)
{
    const char *wanted = expect->observed.counter;
    for (size_t i = 0; i < report->counter_count; i++) {
        const struct report_counter *counter = &report->counters[i];
        char name[2 * SCN_TEXT_MAX], *where = NULL;
        counter_name(counter, name, sizeof name);
        bool of_programs = is_of_programs(report, counter);
        if ((report->programs != NULL && !of_programs) || strcmp(name, wanted) != 0) {
            continue;
        }
        if (!of_programs && asprintf(&where, "series '%s'", counter->series) < 0) {
            sim_panic("report", "out of memory for an expectation");
        }
        number_add(observed, (double)counter->value, where);
    }
    if (observed->count == 0) {
        message_set(observed, "no component has a counter '%s'", wanted);
        near_names_add(report, wanted, observed);
    }
}

// --- all ------------------------------------------------------------------------------------------------------------

void observed_take(const report_t *report, const struct scn_check *expect, struct observed *observed_out)
{
    *observed_out = (struct observed){0};
    switch (scn_check_subject(expect)) {
    case SCN_SUBJECT_SERIES:
        series_take(report, expect, observed_out);
        break;
    case SCN_SUBJECT_MATCH:
        match_take(report, expect, observed_out);
        break;
    case SCN_SUBJECT_OUTPUT:
        output_take(report, expect, observed_out);
        break;
    case SCN_SUBJECT_COUNTER:
        counter_take(report, expect, observed_out);
        break;
    }
}

void observed_free(struct observed *observed)
{
    for (size_t i = 0; i < observed->count; i++) {
        free(observed->numbers[i].where);
    }
    free(observed->numbers);
    free(observed->message);
    free(observed->detail);
}
