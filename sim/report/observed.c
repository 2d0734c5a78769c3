#include "sim/report/observed.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/expect.h"
#include "sim/report/lines.h"
#include "sim/report/value.h"
#include "sim/scenario/pattern.h"

enum { TAIL_LINES = 10, NEAR_NAMES = 5 };

void report_expect_path(const struct scn_scenario *scenario, const char *name, char path[PATH_MAX])
{
    const char *directory = name[0] == '/' || scenario->directory == NULL ? "" : scenario->directory;
    snprintf(path, PATH_MAX, "%s%s", directory, name);
}

void observed_message_set(struct observed *observed, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (vasprintf(&observed->message, format, args) < 0) {
        sim_panic("report", "out of memory for an expectation");
    }
    va_end(args);
}

FILE *observed_detail_open(struct observed *observed, size_t *size)
{
    FILE *out = open_memstream(&observed->detail, size);
    if (out == NULL) {
        sim_panic("report", "out of memory for an expectation");
    }
    return out;
}

void observed_number_add(struct observed *observed, struct observed_number number)
{
    struct observed_number *grown = realloc(observed->numbers, (observed->count + 1) * sizeof *grown);
    if (grown == NULL) {
        sim_panic("report", "out of memory for %zu numbers", observed->count + 1);
    }
    observed->numbers = grown;
    observed->numbers[observed->count++] = number;
}

// --- series ---------------------------------------------------------------------------------------------------------

static void series_take(const report_t *report, const struct scn_check *expect, struct observed *observed)
{
    struct report_value value = report_value_take(report, expect);
    if (value.found) {
        observed_number_add(observed, (struct observed_number){value.value, NAN, NULL, expect->value.series});
    } else if (value.unmeasured != NULL) {
        observed_message_set(observed, "nothing was measured in '%s' at %" PRIu64 " B", value.unmeasured->series,
                             value.unmeasured->bytes);
    } else {
        observed_message_set(observed, "no row of the results matches");
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
    observed_message_set(observed, "'%s' did not run", expect->observed.program);
    return NULL;
}

static void printed_end_add(struct observed *observed, struct lines_text printed)
{
    size_t size;
    FILE *out = observed_detail_open(observed, &size);
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
        observed_number_add(observed, (struct observed_number){value, NAN, where, NULL});
        return;
    }
    observed_message_set(observed, "the matched text is not a number, in %s", where);
    free(where);
}

static void match_take(const report_t *report, const struct scn_check *expect, struct observed *observed)
{
    const struct report_output *output = output_of(report, expect, observed);
    regex_t match;
    char why[SCN_WHY_MAX];
    if (output == NULL) {
        return;
    }
    if (!scn_pattern_compile(expect->observed.match, &match, why)) { // the scenario's check has refused this
        observed_message_set(observed, "'%s': %s", expect->observed.match, why);
        return;
    }
    struct lines_text printed = {output->bytes, output->length}, rest = printed, line;
    for (size_t number = 1; lines_next(&rest, &line); number++) {
        line_take(observed, &match, number, line);
    }
    regfree(&match);
    if (observed->count == 0 && observed->message == NULL) {
        observed_message_set(observed, "no line that '%s' printed matches '%s'", expect->observed.program,
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
        observed_message_set(observed, "%s cannot be read: %s", path, strerror(errno));
        return;
    }
    expected.bytes = bytes;
    struct lines_text printed = {output->bytes, output->length};
    if (expected.length != printed.length || memcmp(expected.bytes, printed.bytes, printed.length) != 0) {
        size_t size;
        observed_message_set(observed, "what '%s' printed is not %s", expect->observed.program,
                             expect->observed.equals);
        FILE *out = observed_detail_open(observed, &size);
        fprintf(out, "--- %s\n+++ what %s printed\n", expect->observed.equals, expect->observed.program);
        lines_difference_write(out, expected, printed);
        (void)fclose(out);
    }
    free(bytes);
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
        observed_counters_take(report, expect, observed_out);
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
