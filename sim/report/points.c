#include "sim/report/points.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/report/csv.h"
#include "sim/report/files.h"
#include "sim/report/manifest.h"
#include "sim/report/results.h"

#define FIELDS_MAX 15 // the fields of a fault, which has the most
#define ENDING     "\nend\n"

// --- the name -------------------------------------------------------------------------------------------------------

// The part of a scenario that determines the measurements: without titles, bounds and plots.
static struct scn_scenario *measured_part(const struct scn_scenario *point)
{
    struct scn_scenario *part = malloc(sizeof *part);
    if (part != NULL) {
        *part = *point;
        part->title[0] = '\0';
        part->expect_count = part->compare_count = part->panel_count = 0;
        part->sweep = NULL;
    }
    return part;
}

// program: the hash of this program's own file, so that results of another build are never reused.
static enum sim_status text_make(const struct scn_scenario *point, const char *program, char **text_out)
{
    size_t size = 0;
    struct scn_scenario *part = measured_part(point);
    FILE *out = part != NULL ? open_memstream(text_out, &size) : NULL;
    if (out == NULL) {
        free(part);
        return SIM_ERR_NO_MEMORY;
    }
    fprintf(out, "# program %s\n", program);
    enum sim_status status = scn_write_resolved(part, out);
    free(part);
    return fclose(out) == 0 ? status : SIM_ERR_NO_MEMORY;
}

static enum sim_status point_text(const struct scn_scenario *point, char **text_out)
{
    char program[REPORT_HASH_MAX];
    report_hash_file("/proc/self/exe", program);
    return program[0] != '\0' ? text_make(point, program, text_out) : SIM_ERR_IO;
}

enum sim_status report_point_name(const struct scn_scenario *point, char name[REPORT_POINT_NAME_MAX])
{
    char *text = NULL;
    enum sim_status status = point_text(point, &text);
    if (status == SIM_OK) {
        report_hash_text(text, name);
    }
    free(text);
    return status;
}

// --- the files ------------------------------------------------------------------------------------------------------

static void path_make(const char *directory, const char *name, const char *suffix, char path[PATH_MAX])
{
    char file[REPORT_POINT_NAME_MAX + 8];
    snprintf(file, sizeof file, "%s%s", name, suffix);
    (void)files_path(directory, file, path, PATH_MAX);
}

bool report_point_exists(const char *directory, const char *name)
{
    char data[PATH_MAX], scenario[PATH_MAX];
    path_make(directory, name, ".csv", data);
    path_make(directory, name, ".yaml", scenario);
    return access(data, R_OK) == 0 && access(scenario, R_OK) == 0;
}

// The program that a point's file names; "" if it names none.
static void program_read(const char *path, char program[REPORT_HASH_MAX])
{
    FILE *file = fopen(path, "r");
    program[0] = '\0';
    if (file != NULL) {
        _Static_assert(REPORT_HASH_MAX == 65, "the width of the field");
        if (fscanf(file, "# program %64[0-9a-f]", program) != 1) {
            program[0] = '\0';
        }
        fclose(file);
    }
}

bool report_points_foreign(const char *directory, char program[REPORT_HASH_MAX])
{
    char own[REPORT_HASH_MAX], path[PATH_MAX];
    bool foreign = false;
    report_hash_file("/proc/self/exe", own);
    DIR *entries = opendir(directory);
    for (struct dirent *entry = entries != NULL ? readdir(entries) : NULL; entry != NULL && !foreign;
         entry = readdir(entries)) {
        size_t length = strspn(entry->d_name, "0123456789abcdef");
        if (length == REPORT_POINT_NAME_MAX - 1 && strcmp(entry->d_name + length, ".yaml") == 0 &&
            files_path(directory, entry->d_name, path, sizeof path) == SIM_OK) {
            program_read(path, program);
            foreign = program[0] != '\0' && strcmp(program, own) != 0;
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
    return foreign;
}

void report_point_remove(const char *directory, const char *name)
{
    char path[PATH_MAX];
    path_make(directory, name, ".csv", path);
    (void)unlink(path);
    path_make(directory, name, ".yaml", path);
    (void)unlink(path);
    path_make(directory, name, ".txt", path);
    (void)unlink(path);
}

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

static void data_write(void *ctx, FILE *out)
{
    const report_t *report = ctx;
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

static void printed_write(void *ctx, FILE *out)
{
    report_texts_write(ctx, out);
}

static void text_write(void *ctx, FILE *out)
{
    fputs(ctx, out);
}

enum sim_status report_point_write(const report_t *report, const char *directory, const char *name, char *error,
                                   size_t error_size)
{
    char *text = NULL;
    enum sim_status status = report_directory_create(directory, error, error_size);
    if (status != SIM_OK) {
        return status;
    }
    char path[PATH_MAX];
    status = point_text(report->scenario, &text);
    if (status != SIM_OK) {
        snprintf(error, error_size, "cannot write to %s: %s", directory, sim_status_text(status));
        return status;
    }
    path_make(directory, name, ".yaml", path);
    status = files_one_write(path, text_write, text, error, error_size);
    if (status == SIM_OK && report->text_count > 0) {
        path_make(directory, name, ".txt", path);
        status = files_one_write(path, printed_write, (void *)report, error, error_size);
    }
    if (status == SIM_OK) {
        path_make(directory, name, ".csv", path);
        status = files_one_write(path, data_write, (void *)report, error, error_size);
    }
    free(text);
    return status;
}

// --- merging --------------------------------------------------------------------------------------------------------

static char *file_read(const char *directory, const char *name)
{
    char path[PATH_MAX];
    path_make(directory, name, ".csv", path);
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    if (file != NULL && getdelim(&text, &size, '\0', file) < 0) {
        free(text);
        text = NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

static uint64_t number(const char *field)
{
    return strtoull(field, NULL, 10);
}

static void fault_add(report_t *sweep, const char *series, char *const *fields)
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
    report_add_fault(sweep, &fault);
}

static void record_add(report_t *sweep, char *const *fields, size_t count, uint32_t number_of_point)
{
    char series[2 * SCN_NAME_MAX], curve[2 * SCN_NAME_MAX];
    const char *bare = count > 1 ? fields[1] : "";
    snprintf(series, sizeof series, "%s, %s", bare, sweep->scenario->sweep->points[number_of_point - 1].label);
    scn_sweep_series_make(sweep->scenario, bare, number_of_point - 1, curve, sizeof curve);
    if (strcmp(fields[0], "run") == 0 && count == 7) {
        report_add_run(sweep, series, number(fields[4]), number(fields[5]), number(fields[6]));
        report_describe_run(sweep, fields[2], fields[3]);
    } else if (strcmp(fields[0], "point") == 0 && count == 10) {
        const struct report_point point = {.series = curve,
                                           .bytes = number(fields[2]),
                                           .descriptors = number(fields[3]),
                                           .operations = number(fields[4]),
                                           .total_ps = number(fields[5]),
                                           .min_ps = number(fields[6]),
                                           .max_ps = number(fields[7]),
                                           .ranks = number(fields[8]),
                                           .memory_bytes = number(fields[9]),
                                           .sweep = number_of_point};
        report_add_point(sweep, &point);
    } else if (strcmp(fields[0], "counter") == 0 && count == 6) {
        report_add_counter(sweep, series, fields[2], fields[3], fields[4], number(fields[5]));
        sweep->counters[sweep->counter_count - 1].sweep = number_of_point;
    } else if (strcmp(fields[0], "fault") == 0 && count == FIELDS_MAX) {
        fault_add(sweep, series, fields);
    }
}

static bool is_whole(const char *text)
{
    size_t length = strlen(text), ending = sizeof ENDING - 1;
    return length >= ending && strcmp(text + length - ending, ENDING) == 0;
}

enum sim_status report_point_add(report_t *sweep, const char *directory, const char *name, uint32_t number_of_point)
{
    char *text = file_read(directory, name);
    if (text == NULL || !is_whole(text)) {
        free(text);
        return SIM_ERR_INVALID;
    }
    char *cursor = text, *fields[FIELDS_MAX];
    for (size_t count = csv_record_read(&cursor, fields, FIELDS_MAX); count > 0;
         count = csv_record_read(&cursor, fields, FIELDS_MAX)) {
        record_add(sweep, fields, count, number_of_point);
    }
    report_add_hash(sweep, name);
    free(text);
    return SIM_OK;
}

void report_point_add_none(report_t *sweep)
{
    report_add_hash(sweep, "");
}
