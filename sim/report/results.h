// The contents of a report: the measured rows, the counters and how each series ran. Private to the room and its tests.
//
// Rows of one series stay together, in the order in which they were added; series are in the order of their first rows.
// Numbers are integers in millionths of the column's unit, rounded half up, so that every file has the same digits on
// every machine.
#pragma once

#include "sim/report/reference.h"
#include "sim/report/report.h"

#define REPORT_MICRO UINT64_C(1000000)

struct report_counter {
    char *series, *component, *name, *unit;
    uint64_t value;
    uint32_t sweep; // number of the point, from 1; 0: no sweep
};

struct report_text {
    char *program, *text;
};

// The exact output of a program of the scenario. bytes NULL: it did not run, or its output is not needed.
struct report_output {
    char *bytes;
    size_t length;
};

struct report_run {
    char *series;
    char *boards, *device; // empty: not described
    uint64_t simulated_ps, events, rtl_cycles;
};

struct report_failure {
    char *series, *text;
};

struct report_bands;

struct report {
    const struct scn_scenario *scenario;
    struct report_references references;
    struct report_point *points; // series is owned
    size_t point_count, point_room;
    struct report_counter *counters;
    size_t counter_count, counter_room;
    struct report_run *runs;
    size_t run_count, run_room;
    struct report_fault *faults; // texts are owned
    size_t fault_count, fault_room;
    struct report_failure *failures;
    size_t failure_count, failure_room;
    struct report_text *texts;
    size_t text_count, text_room;
    struct report_output outputs[SCN_OUTSIDES_MAX]; // by the program's number in the scenario
    char *programs;                                 // the series of their counters; NULL: no programs ran
    char **sets;
    size_t set_count, set_room;
    struct report_bands *bands; // NULL: no intervals
    char **hashes; // of the points of a sweep, in their order; "" for a point that failed
    size_t hash_count, hash_room;
};

// Lists the checks one by one. In a sweep, a check that names a series without a swept value becomes one for each
// value. To be freed.
struct scn_check *report_checks_make(const report_t *report, const struct scn_check *checks, uint32_t count,
                                     uint32_t *count_out);
// Writes programs.txt.
void report_texts_write(const report_t *report, FILE *out);
// A report of a part of another one's results, without published values.
enum sim_status report_part_create(const struct scn_scenario *scenario, report_t **part_out);
void report_add_hash(report_t *report, const char *hash);

enum report_kind { REPORT_KIND_TIME, REPORT_KIND_RATE, REPORT_KIND_BYTES, REPORT_KIND_MEMORY, REPORT_KIND_COUNT };

// A numeric column of data.csv.
struct report_column {
    const char *name;
    const char *axis; // label of a plot's axis
    enum report_kind kind;
    bool fraction; // shown with six decimals
    bool timed;    // of operations: empty if no operation was measured
    bool optional; // 0 means none; left out of data.csv if no row has it
    uint64_t (*micro)(const struct report_point *point);
};

// The number of the swept value, from 1; only in the data.csv of a sweep.
#define REPORT_COLUMN_SWEEP "sweep"
#define REPORT_COLUMN_COUNT 12
extern const struct report_column report_columns[REPORT_COLUMN_COUNT];

// NULL if no numeric column has that name.
const struct report_column *report_column_find(const char *name);
// Is it a numeric column that does not tell rows apart, as bytes and a swept value do?
bool report_column_is_result(const char *name);
// Is the column in data.csv?
bool report_column_shown(const report_t *report, const struct report_column *column);
// Its position there, from 1.
unsigned report_column_position(const report_t *report, const struct report_column *column);

// Does the point have a value there? A latency of no operations is not 0.
bool report_column_has(const struct report_column *column, const struct report_point *point);

// The scenario's title, or its name. Results of fidelity flow, which differ from those of the other two, say so.
#define REPORT_TITLE_MAX (SCN_TEXT_MAX + 32)
void report_title_make(const report_t *report, char title[REPORT_TITLE_MAX]);

// The value in the column's unit, as the nearest double of the number in data.csv; NaN if there is no value.
double report_column_value(const struct report_column *column, const struct report_point *point);

// The next row of the same series, NULL after the last; previous NULL: the first row of the series.
const struct report_point *report_series_next(const report_t *report, const char *series,
                                              const struct report_point *previous);
// The first row of the next series; previous NULL: the first row of all.
const struct report_point *report_series_first(const report_t *report, const struct report_point *previous);

// "8", "64", "1K", "1.5K", "4M"; K is 1024.
#define REPORT_LABEL_MAX 32
void report_bytes_label(uint64_t bytes, char label[REPORT_LABEL_MAX]);
