// Expectations about counters: sums over the counters of a series, and the names that a wrong one probably means.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/observed.h"
#include "sim/scenario/names.h"
#include "sim/scenario/sum.h"

enum { NEAR_NAMES = 5, NAME_MAX_BYTES = 2 * SCN_TEXT_MAX };

static void counter_name(const struct report_counter *counter, char name[NAME_MAX_BYTES])
{
    snprintf(name, NAME_MAX_BYTES, "%s.%s", counter->component, counter->name);
}

// Adds the existing names, the nearest first; only of one series, because the others have the same names.
static void near_names_add(const report_t *report, const char *wanted, struct observed *observed)
{
    const char *series = report->programs != NULL    ? report->programs
                         : report->counter_count > 0 ? report->counters[0].series
                                                     : "";
    size_t size, last = 0, count = report->counter_count;
    FILE *out = observed_detail_open(observed, &size);
    fputs(count > 0 ? "Similar names:\n" : "There are no counters.\n", out);
    for (unsigned i = 0; i < NEAR_NAMES; i++) {
        size_t best = SIZE_MAX;
        char name[NAME_MAX_BYTES];
        for (size_t k = 0; k < count; k++) {
            counter_name(&report->counters[k], name);
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
        counter_name(&report->counters[(best - 1) % count], name);
        fprintf(out, "  %s\n", name);
        last = best;
    }
    (void)fclose(out);
}

static bool time_add(const report_t *report, const char *series, double *value)
{
    for (size_t i = 0; i < report->run_count; i++) {
        if (strcmp(report->runs[i].series, series) == 0) {
            *value = (double)report->runs[i].simulated_ps;
            return true;
        }
    }
    return false;
}

// Adds up the counters of the series that the term names. False: there are none.
static bool term_add(const report_t *report, const char *series, const struct scn_term *term, double *sum)
{
    double value = term->is_number ? term->number : 0;
    bool found = term->is_number;
    for (size_t i = 0; i < report->counter_count && !term->is_number; i++) {
        const struct report_counter *counter = &report->counters[i];
        char name[NAME_MAX_BYTES];
        counter_name(counter, name);
        if (strcmp(counter->series, series) == 0 && scn_term_matches(term, name)) {
            value += (double)counter->value;
            found = true;
        }
    }
    if (strcmp(term->name, SCN_TERM_TIME) == 0) {
        found = time_add(report, series, &value);
    }
    value *= term->is_number ? 1 : term->number;
    *sum += term->minus ? -value : value;
    return found;
}

// False: a counter does not exist, and the message is set.
static bool sum_make(const report_t *report, const char *series, const char *text, double *sum_out,
                     struct observed *observed)
{
    struct scn_term term;
    *sum_out = 0;
    while (scn_sum_next(&text, &term)) {
        if (!term_add(report, series, &term, sum_out)) {
            observed_message_set(observed, "no component has a counter '%s'", term.name);
            near_names_add(report, term.name, observed);
            return false;
        }
    }
    return true;
}

// In a sweep a series is called "SERIES, VALUE" in the counters.
static bool is_asked(const report_t *report, const struct scn_check *expect, const char *series)
{
    const char *asked = expect->observed.series;
    size_t length = strlen(asked);
    if (report->programs != NULL) {
        return strcmp(series, report->programs) == 0;
    }
    return length == 0 || strcmp(series, asked) == 0 ||
           (report->scenario->sweep != NULL && strncmp(series, asked, length) == 0 &&
            strncmp(series + length, ", ", 2) == 0);
}

static bool series_take(const report_t *report, const struct scn_check *expect, const char *series,
                        struct observed *observed)
{
    struct observed_number number = {.wanted = NAN, .series = series};
    const char *equals = expect->observed.equals;
    struct scn_term term;
    const char *cursor = equals;
    bool sum = scn_sum_next(&cursor, &term) && (!term.is_number || *cursor != '\0');
    if (!sum_make(report, series, expect->observed.counter, &number.value, observed) ||
        (sum && !sum_make(report, series, equals, &number.wanted, observed))) {
        return false;
    }
    bool of_programs = report->programs != NULL;
    if (!of_programs && asprintf(&number.where, "series '%s'", series) < 0) {
        sim_panic("report", "out of memory for an expectation");
    }
    observed_number_add(observed, number);
    return true;
}

void observed_counters_take(const report_t *report, const struct scn_check *expect, struct observed *observed)
{
    const char *previous = "";
    bool asked = false, found = true;
    for (size_t i = 0; i < report->counter_count && found; i++) { // those of a series stand together
        const char *series = report->counters[i].series;
        if (strcmp(series, previous) != 0 && is_asked(report, expect, series)) {
            asked = true;
            found = series_take(report, expect, series, observed);
        }
        previous = series;
    }
    if (!asked && expect->observed.series[0] != '\0') {
        observed_message_set(observed, "there are no counters of a series '%s'", expect->observed.series);
    } else if (!asked) {
        observed_message_set(observed, "no component has a counter '%s'", expect->observed.counter);
        near_names_add(report, expect->observed.counter, observed);
    }
}
