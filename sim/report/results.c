#include "sim/report/results.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/bands.h"
#include "sim/report/grow.h"

// numerator / divisor, rounded half up; 0 if nothing was measured (report_column_has distinguishes the two).
static uint64_t quotient(unsigned __int128 numerator, uint64_t divisor)
{
    if (divisor == 0) {
        return 0;
    }
    return (uint64_t)((numerator + divisor / 2) / divisor);
}

// A picosecond is a millionth of a microsecond, the unit of the column.
static uint64_t latency(const struct report_point *point)
{
    return quotient(point->total_ps, point->operations);
}

// 1 byte/ps is 1000 GB/s.
static uint64_t bandwidth(const struct report_point *point)
{
    unsigned __int128 moved = (unsigned __int128)point->bytes * point->operations;
    return quotient(moved * 1000 * REPORT_MICRO, point->total_ps);
}

static uint64_t bytes(const struct report_point *point)
{
    return point->bytes * REPORT_MICRO;
}

static uint64_t descriptors(const struct report_point *point)
{
    return point->descriptors * REPORT_MICRO;
}

static uint64_t operations(const struct report_point *point)
{
    return point->operations * REPORT_MICRO;
}

static uint64_t min_latency(const struct report_point *point)
{
    return point->min_ps;
}

static uint64_t max_latency(const struct report_point *point)
{
    return point->max_ps;
}

static uint64_t ranks(const struct report_point *point)
{
    return point->ranks * REPORT_MICRO;
}

// In MB of 2^20 B.
static uint64_t memory(const struct report_point *point)
{
    return quotient((unsigned __int128)point->memory_bytes * REPORT_MICRO, UINT64_C(1) << 20);
}

static uint64_t interval_low(const struct report_point *point)
{
    return point->low_ps;
}

static uint64_t interval_high(const struct report_point *point)
{
    return point->high_ps;
}

static uint64_t sweep(const struct report_point *point)
{
    return point->sweep * REPORT_MICRO;
}

const struct report_column report_columns[REPORT_COLUMN_COUNT] = {
    {"bytes", "Size [bytes]", REPORT_KIND_BYTES, .micro = bytes},
    {"latency_us", "Latency [µs]", REPORT_KIND_TIME, .fraction = true, .timed = true, .micro = latency},
    {"bandwidth_GBps", "Bandwidth [GB/s]", REPORT_KIND_RATE, .fraction = true, .timed = true, .micro = bandwidth},
    {"descriptors", "Descriptors", REPORT_KIND_COUNT, .micro = descriptors},
    {"operations", "Operations", REPORT_KIND_COUNT, .micro = operations},
    {"min_latency_us", "Shortest latency [µs]", REPORT_KIND_TIME, .fraction = true, .timed = true,
     .micro = min_latency},
    {"max_latency_us", "Longest latency [µs]", REPORT_KIND_TIME, .fraction = true, .timed = true, .micro = max_latency},
    {"ranks", "Ranks", REPORT_KIND_COUNT, .optional = true, .micro = ranks},
    {"memory_MB", "Memory [MB]", REPORT_KIND_MEMORY, .fraction = true, .optional = true, .micro = memory},
    {"interval_low_us", "Lower end of the interval of the latency [µs]", REPORT_KIND_TIME, .fraction = true,
     .optional = true, .micro = interval_low},
    {"interval_high_us", "Upper end of the interval of the latency [µs]", REPORT_KIND_TIME, .fraction = true,
     .optional = true, .micro = interval_high},
    {REPORT_COLUMN_SWEEP, "Swept value", REPORT_KIND_COUNT, .micro = sweep},
};

const struct report_column *report_column_find(const char *name)
{
    for (unsigned i = 0; i < REPORT_COLUMN_COUNT; i++) {
        if (strcmp(report_columns[i].name, name) == 0) {
            return &report_columns[i];
        }
    }
    return NULL;
}

bool report_column_is_result(const char *name)
{
    static const char *const identities[] = {"bytes", "descriptors", "ranks"};
    bool identity = false;
    for (size_t i = 0; i < sizeof identities / sizeof identities[0]; i++) {
        identity = identity || strcmp(name, identities[i]) == 0;
    }
    return !identity && report_column_find(name) != NULL;
}

bool report_column_shown(const report_t *report, const struct report_column *column)
{
    bool shown = !column->optional;
    for (size_t i = 0; i < report->point_count && !shown; i++) {
        shown = report_column_has(column, &report->points[i]);
    }
    return shown && (report->scenario->sweep != NULL || strcmp(column->name, REPORT_COLUMN_SWEEP) != 0);
}

unsigned report_column_position(const report_t *report, const struct report_column *column)
{
    unsigned position = 2; // series is column 1
    for (const struct report_column *before = report_columns; before < column; before++) {
        position += report_column_shown(report, before);
    }
    return position;
}

bool report_column_has(const struct report_column *column, const struct report_point *point)
{
    return (!column->timed || point->operations > 0) && (!column->optional || column->micro(point) != 0);
}

void report_title_make(const report_t *report, char title[REPORT_TITLE_MAX])
{
    const struct scn_scenario *scenario = report->scenario;
    bool flow = false, swept = scn_sweep_gives(scenario->sweep, "fidelity"); // then the names of series say which
    for (uint32_t i = 0; i < scenario->node_count && !swept; i++) {
        const struct scn_board *board = &scenario->nodes[i].board;
        flow = flow || (board->given ? board->fidelity : scenario->fidelity) == SCN_FIDELITY_FLOW;
    }
    snprintf(title, REPORT_TITLE_MAX, "%s%s", scenario->title[0] != '\0' ? scenario->title : scenario->name,
             flow ? " (fidelity: flow)" : "");
}

double report_column_value(const struct report_column *column, const struct report_point *point)
{
    if (!report_column_has(column, point)) {
        return NAN;
    }
    return (double)column->micro(point) / (double)REPORT_MICRO;
}

const struct report_point *report_series_next(const report_t *report, const char *series,
                                              const struct report_point *previous)
{
    const struct report_point *end = report->points + report->point_count;
    const struct report_point *point = previous == NULL ? report->points : previous + 1;
    for (; point < end; point++) {
        if (strcmp(point->series, series) == 0) {
            return point;
        }
    }
    return NULL;
}

const struct report_point *report_series_first(const report_t *report, const struct report_point *previous)
{
    const struct report_point *end = report->points + report->point_count;
    const struct report_point *point = report->points;
    if (previous != NULL) {
        point = previous + 1;
        while (point < end && strcmp(point->series, previous->series) == 0) {
            point++;
        }
    }
    return point < end ? point : NULL;
}

void report_bytes_label(uint64_t bytes_in, char label[REPORT_LABEL_MAX])
{
    static const char units[] = {'K', 'M', 'G', 'T'};
    uint64_t unit_bytes = 1024;
    size_t unit = 0;
    if (bytes_in < unit_bytes) {
        snprintf(label, REPORT_LABEL_MAX, "%" PRIu64, bytes_in);
        return;
    }
    while (unit + 1 < sizeof units && bytes_in / unit_bytes >= 1024) {
        unit_bytes *= 1024;
        unit++;
    }
    if (bytes_in % unit_bytes == 0) {
        snprintf(label, REPORT_LABEL_MAX, "%" PRIu64 "%c", bytes_in / unit_bytes, units[unit]);
    } else {
        snprintf(label, REPORT_LABEL_MAX, "%.4g%c", (double)bytes_in / (double)unit_bytes, units[unit]);
    }
}

static void *grow(void *array, size_t count, size_t *room, size_t size)
{
    if (!grow_array(&array, count, room, size)) {
        sim_panic("report", "out of memory for %zu results", count);
    }
    return array;
}

static char *copy(const char *text)
{
    char *copied = strdup(text);
    if (copied == NULL) {
        sim_panic("report", "out of memory for a name");
    }
    return copied;
}

void report_add_point(report_t *report, const struct report_point *point)
{
    report->points = grow(report->points, report->point_count, &report->point_room, sizeof *report->points);
    size_t index = report->point_count;
    // After the last row of its series, so that the rows of a series stay together.
    for (size_t i = report->point_count; i > 0; i--) {
        if (strcmp(report->points[i - 1].series, point->series) == 0) {
            index = i;
            break;
        }
    }
    memmove(&report->points[index + 1], &report->points[index], (report->point_count - index) * sizeof *report->points);
    report->points[index] = *point;
    report->points[index].series = copy(point->series);
    report->point_count++;
}

size_t report_point_count(const report_t *report)
{
    return report->point_count;
}

void report_add_counter(report_t *report, const char *series, const char *component, const char *name, const char *unit,
                        uint64_t value)
{
    report->counters = grow(report->counters, report->counter_count, &report->counter_room, sizeof *report->counters);
    report->counters[report->counter_count++] =
        (struct report_counter){copy(series), copy(component), copy(name), copy(unit), value, 0};
}

void report_add_run(report_t *report, const char *series, uint64_t simulated_ps, uint64_t events, uint64_t rtl_cycles)
{
    report->runs = grow(report->runs, report->run_count, &report->run_room, sizeof *report->runs);
    report->runs[report->run_count++] = (struct report_run){.series = copy(series),
                                                            .boards = copy(""),
                                                            .device = copy(""),
                                                            .simulated_ps = simulated_ps,
                                                            .events = events,
                                                            .rtl_cycles = rtl_cycles};
}

void report_describe_run(report_t *report, const char *boards, const char *device)
{
    struct report_run *run = &report->runs[report->run_count - 1];
    free(run->boards);
    free(run->device);
    run->boards = copy(boards);
    run->device = copy(device);
}

void report_add_failure(report_t *report, const char *series, const char *text)
{
    report->failures = grow(report->failures, report->failure_count, &report->failure_room, sizeof *report->failures);
    report->failures[report->failure_count++] = (struct report_failure){copy(series), copy(text)};
}

void report_add_fault(report_t *report, const struct report_fault *fault)
{
    report->faults = grow(report->faults, report->fault_count, &report->fault_room, sizeof *report->faults);
    struct report_fault *added = &report->faults[report->fault_count++];
    *added = *fault;
    added->series = copy(fault->series);
    added->what = copy(fault->what);
    added->ends[0].name = copy(fault->ends[0].name);
    added->ends[1].name = copy(fault->ends[1].name);
}

void report_add_text(report_t *report, const char *program, const char *text)
{
    report->texts = grow(report->texts, report->text_count, &report->text_room, sizeof *report->texts);
    report->texts[report->text_count++] = (struct report_text){copy(program), copy(text)};
}

void report_add_output(report_t *report, uint32_t program, const char *bytes, size_t length)
{
    struct report_output *output = &report->outputs[program];
    free(output->bytes);
    *output = (struct report_output){malloc(length + 1), length};
    if (output->bytes == NULL) {
        sim_panic("report", "out of memory for %zu bytes of output", length);
    }
    memcpy(output->bytes, bytes, length);
    output->bytes[length] = '\0';
}

void report_set_programs(report_t *report, const char *series)
{
    free(report->programs);
    report->programs = copy(series);
}

void report_add_hash(report_t *report, const char *hash)
{
    report->hashes = grow(report->hashes, report->hash_count, &report->hash_room, sizeof *report->hashes);
    report->hashes[report->hash_count++] = copy(hash);
}

void report_add_set(report_t *report, const char *set)
{
    report->sets = grow(report->sets, report->set_count, &report->set_room, sizeof *report->sets);
    report->sets[report->set_count++] = copy(set);
}

enum sim_status report_part_create(const struct scn_scenario *scenario, report_t **part_out)
{
    report_t *report = calloc(1, sizeof *report);
    if (report == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    report->scenario = scenario;
    *part_out = report;
    return SIM_OK;
}

enum sim_status report_create(const struct scn_scenario *scenario, const char *reference_csv, report_t **report_out)
{
    report_t *report = NULL;
    if (report_part_create(scenario, &report) != SIM_OK) {
        return SIM_ERR_NO_MEMORY;
    }
    enum sim_status status = report_references_read(&report->references, reference_csv);
    if (status != SIM_OK) {
        free(report);
        return status;
    }
    *report_out = report;
    return SIM_OK;
}

void report_destroy(report_t *report)
{
    if (report == NULL) {
        return;
    }
    report_bands_free(report->bands);
    for (size_t i = 0; i < report->point_count; i++) {
        free((char *)report->points[i].series);
    }
    for (size_t i = 0; i < report->counter_count; i++) {
        free(report->counters[i].series);
        free(report->counters[i].component);
        free(report->counters[i].name);
        free(report->counters[i].unit);
    }
    for (size_t i = 0; i < report->run_count; i++) {
        free(report->runs[i].series);
        free(report->runs[i].boards);
        free(report->runs[i].device);
    }
    for (size_t i = 0; i < report->failure_count; i++) {
        free(report->failures[i].series);
        free(report->failures[i].text);
    }
    free(report->failures);
    for (size_t i = 0; i < report->fault_count; i++) {
        free((char *)report->faults[i].series);
        free((char *)report->faults[i].what);
        free((char *)report->faults[i].ends[0].name);
        free((char *)report->faults[i].ends[1].name);
    }
    free(report->faults);
    for (size_t i = 0; i < report->text_count; i++) {
        free(report->texts[i].program);
        free(report->texts[i].text);
    }
    free(report->texts);
    for (size_t i = 0; i < SCN_OUTSIDES_MAX; i++) {
        free(report->outputs[i].bytes);
    }
    free(report->programs);
    for (size_t i = 0; i < report->set_count; i++) {
        free(report->sets[i]);
    }
    free(report->sets);
    for (size_t i = 0; i < report->hash_count; i++) {
        free(report->hashes[i]);
    }
    free(report->hashes);
    free(report->points);
    free(report->counters);
    free(report->runs);
    report_references_free(&report->references);
    free(report);
}
