#include "sim/report/records.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/csv.h"
#include "sim/report/files.h"
#include "sim/report/results.h"

#define FIELDS_MAX 15 // the fields of a fault, which has the most
#define ENDING     "\nend\n"

// --- writing --------------------------------------------------------------------------------------------------------

static void texts_write(FILE *out, const char *kind, const char *const *texts, size_t count)
{
    fputs(kind, out);
    for (size_t i = 0; i < count; i++) {
        fputc(',', out);
        csv_text_write(out, texts[i]);
    }
}

static void fault_write(const struct report_fault *fault, FILE *out)
{
    const char *const texts[] = {fault->series, fault->what, fault->ends[0].name, fault->ends[1].name};
    texts_write(out, "fault", texts, 4);
    fprintf(out, ",%d,%" PRIu64 ",%" PRIu64, fault->happened, fault->at_ps, fault->after_start_ps);
    fprintf(out, ",%" PRIu64, fault->back_ps);
    for (unsigned side = 0; side < 2; side++) {
        const struct report_fault_end *end = &fault->ends[side];
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, end->sent, end->lost, end->dropped);
    }
    fputc('\n', out);
}

void report_records_write(const report_t *report, FILE *out)
{
    for (size_t i = 0; i < report->run_count; i++) {
        const struct report_run *run = &report->runs[i];
        const char *const texts[] = {run->series, run->boards, run->device};
        texts_write(out, "run", texts, 3);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", run->simulated_ps, run->events, run->rtl_cycles);
    }
    for (size_t i = 0; i < report->point_count; i++) {
        const struct report_point *point = &report->points[i];
        texts_write(out, "point", &point->series, 1);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, point->bytes, point->descriptors, point->operations);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, point->total_ps, point->min_ps, point->max_ps);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 "\n", point->ranks, point->memory_bytes);
    }
    for (size_t i = 0; i < report->counter_count; i++) {
        const struct report_counter *counter = &report->counters[i];
        const char *const texts[] = {counter->series, counter->component, counter->name, counter->unit};
        texts_write(out, "counter", texts, 4);
        fprintf(out, ",%" PRIu64 "\n", counter->value);
    }
    for (size_t i = 0; i < report->fault_count; i++) {
        fault_write(&report->faults[i], out);
    }
    fputs("end\n", out);
}

// --- reading --------------------------------------------------------------------------------------------------------

static uint64_t number(const char *field)
{
    return strtoull(field, NULL, 10);
}

static void fault_add(report_t *report, const char *series, char *const *fields)
{
    struct report_fault fault = {.series = series,
                                 .what = fields[2],
                                 .happened = number(fields[5]) != 0,
                                 .at_ps = number(fields[6]),
                                 .after_start_ps = number(fields[7]),
                                 .back_ps = number(fields[8])};
    for (unsigned side = 0; side < 2; side++) {
        char *const *counts = fields + 9 + 3 * side;
        fault.ends[side] =
            (struct report_fault_end){fields[3 + side], number(counts[0]), number(counts[1]), number(counts[2])};
    }
    report_add_fault(report, &fault);
}

// series: of runs, counters and faults; curve: of points. point: of a sweep, from 1; 0: none.
static void record_add(report_t *report, char *const *fields, const char *series, const char *curve, uint32_t point)
{
    if (strcmp(fields[0], "run") == 0) {
        report_add_run(report, series, number(fields[4]), number(fields[5]), number(fields[6]));
        report_describe_run(report, fields[2], fields[3]);
    } else if (strcmp(fields[0], "point") == 0) {
        const struct report_point measured = {.series = curve,
                                              .bytes = number(fields[2]),
                                              .descriptors = number(fields[3]),
                                              .operations = number(fields[4]),
                                              .total_ps = number(fields[5]),
                                              .min_ps = number(fields[6]),
                                              .max_ps = number(fields[7]),
                                              .ranks = number(fields[8]),
                                              .memory_bytes = number(fields[9]),
                                              .sweep = point};
        report_add_point(report, &measured);
    } else if (strcmp(fields[0], "counter") == 0) {
        report_add_counter(report, series, fields[2], fields[3], fields[4], number(fields[5]));
        report->counters[report->counter_count - 1].sweep = point;
    } else if (strcmp(fields[0], "fault") == 0) {
        fault_add(report, series, fields);
    }
}

static void record_add_named(report_t *report, char *const *fields, uint32_t point)
{
    char series[2 * SCN_NAME_MAX], curve[2 * SCN_NAME_MAX];
    const char *bare = fields[1];
    if (point == 0) {
        record_add(report, fields, bare, bare, point);
        return;
    }
    snprintf(series, sizeof series, "%s, %s", bare, report->scenario->sweep->points[point - 1].label);
    scn_sweep_series_make(report->scenario, bare, point - 1, curve, sizeof curve);
    record_add(report, fields, series, curve, point);
}

// A record that can be added, or the last one.
static bool is_known(char *const *fields, size_t count)
{
    static const struct {
        const char *name;
        size_t fields;
    } kinds[] = {{"run", 7}, {"point", 10}, {"counter", 6}, {"fault", FIELDS_MAX}, {"end", 1}};
    bool known = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        known = known || (strcmp(fields[0], kinds[i].name) == 0 && count == kinds[i].fields);
    }
    return known;
}

// Changes the text.
static bool is_whole(char *text)
{
    size_t length = strlen(text), ending = sizeof ENDING - 1, count;
    char *cursor = text, *fields[FIELDS_MAX];
    bool whole = length >= ending && strcmp(text + length - ending, ENDING) == 0;
    while (whole && (count = csv_record_read(&cursor, fields, FIELDS_MAX)) > 0) {
        whole = is_known(fields, count);
    }
    return whole;
}

// The text, which is the caller's; NULL: it is not whole.
static char *whole_read(FILE *records)
{
    char *text = files_text_read(records), *copy = text != NULL ? strdup(text) : NULL;
    bool whole = copy != NULL && is_whole(copy);
    free(copy);
    if (!whole) {
        free(text);
        text = NULL;
    }
    return text;
}

bool report_records_are_whole(FILE *records)
{
    char *text = whole_read(records);
    bool whole = text != NULL;
    free(text);
    return whole;
}

enum sim_status report_records_add(report_t *report, FILE *records, uint32_t point)
{
    char *text = whole_read(records), *cursor = text, *fields[FIELDS_MAX];
    if (text == NULL) {
        return SIM_ERR_INVALID;
    }
    while (csv_record_read(&cursor, fields, FIELDS_MAX) > 1) { // up to the end
        record_add_named(report, fields, point);
    }
    free(text);
    return SIM_OK;
}
