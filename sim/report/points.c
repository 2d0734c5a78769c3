#include "sim/report/points.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/kernel/regular_file.h"
#include "sim/report/files.h"
#include "sim/report/manifest.h"
#include "sim/report/records.h"
#include "sim/report/results.h"

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

// The program that a point's file names; "" if it names none.
static void program_read(const char *path, char program[REPORT_HASH_MAX])
{
    FILE *file = sim_regular_open(path);
    program[0] = '\0';
    if (file != NULL) {
        _Static_assert(REPORT_HASH_MAX == 65, "the width of the field");
        if (fscanf(file, "# program %64[0-9a-f]", program) != 1) {
            program[0] = '\0';
        }
        fclose(file);
    }
}

bool report_point_exists(const char *directory, const char *name)
{
    char data[PATH_MAX], scenario[PATH_MAX];
    path_make(directory, name, ".csv", data);
    path_make(directory, name, ".yaml", scenario);
    char program[REPORT_HASH_MAX];
    program_read(scenario, program);
    FILE *records = program[0] != '\0' ? sim_regular_open(data) : NULL;
    bool whole = records != NULL && report_records_are_whole(records);
    if (records != NULL) {
        fclose(records);
    }
    return whole;
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

static void records_write(void *ctx, FILE *out)
{
    report_records_write(ctx, out);
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
        status = files_one_write(path, records_write, (void *)report, error, error_size);
    }
    free(text);
    return status;
}

// --- merging --------------------------------------------------------------------------------------------------------

enum sim_status report_point_add(report_t *sweep, const char *directory, const char *name, uint32_t number)
{
    char path[PATH_MAX];
    path_make(directory, name, ".csv", path);
    FILE *records = sim_regular_open(path);
    enum sim_status status = records != NULL ? report_records_add(sweep, records, number) : SIM_ERR_INVALID;
    if (records != NULL) {
        fclose(records);
    }
    if (status == SIM_OK) {
        report_add_hash(sweep, name);
    }
    return status;
}

void report_point_add_none(report_t *sweep)
{
    report_add_hash(sweep, "");
}
