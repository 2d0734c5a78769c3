// Writes a folder for each point of a sweep: its rows, its counters and its scenario, as if it had been run alone.
#include "sim/report/by_value.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/kernel/text.h"
#include "sim/report/csv.h"
#include "sim/report/files.h"
#include "sim/report/lines.h"
#include "sim/report/points.h"
#include "sim/report/results.h"
#include "sim/report/table.h"
#include "sim/report/write.h"

enum { NAME_BYTES = 200 };

#define FOLDER "values"
#define INDEX  FOLDER "/index.csv"

// --- names ----------------------------------------------------------------------------------------------------------

// The label as a name of a folder.
static void name_make(const char *label, char name[NAME_BYTES + 1])
{
    size_t length = sim_text_fit(label, NAME_BYTES);
    memcpy(name, label, length);
    name[length] = '\0';
    for (size_t i = 0; i < length; i++) {
        bool kept = name[i] != '/' && (unsigned char)name[i] >= ' ' && name[i] != 0x7f;
        name[i] = kept ? name[i] : '-';
    }
    if (name[0] == '.') {
        name[0] = '_';
    }
}

// Labels that differ may give the same name: then the number of the point is added.
static void folder_make(const struct scn_sweep *sweep, uint32_t point, char name[NAME_BYTES + 16])
{
    name_make(sweep->points[point].label, name);
    for (uint32_t i = 0; i < point; i++) {
        char other[NAME_BYTES + 1];
        name_make(sweep->points[i].label, other);
        if (strcmp(name, other) == 0) {
            size_t length = strlen(name);
            (void)snprintf(name + length, 16, " (%u)", point + 1);
            return;
        }
    }
}

// --- the files of a point -------------------------------------------------------------------------------------------

// Rows and counters of the point, under the series' own names.
static report_t *part_make(const report_t *report, struct scn_scenario *scenario, uint32_t point)
{
    const struct scn_sweep *sweep = report->scenario->sweep;
    size_t label = strlen(", ") + strlen(sweep->points[point].label);
    report_t *part = NULL;
    if (report_part_create(scenario, &part) != SIM_OK) {
        return NULL;
    }
    for (size_t i = 0; i < report->point_count; i++) {
        struct report_point row = report->points[i];
        char series[SCN_NAME_MAX];
        if (row.sweep == point + 1) {
            (void)snprintf(series, sizeof series, "%s", row.series);
            scn_sweep_series_cut(sweep, row.sweep, series);
            row.series = series;
            row.sweep = 0;
            report_add_point(part, &row);
        }
    }
    for (size_t i = 0; i < report->counter_count; i++) {
        const struct report_counter *counter = &report->counters[i];
        size_t length = counter->sweep == point + 1 ? strlen(counter->series) : 0;
        if (length >= label) {
            char series[2 * SCN_NAME_MAX];
            (void)snprintf(series, sizeof series, "%.*s", (int)(length - label), counter->series);
            report_add_counter(part, series, counter->component, counter->name, counter->unit, counter->value);
        }
    }
    return part;
}

struct resolved {
    char *text; // as the measurement of the point has written it: a line about the program, and no title
    size_t length;
    const char *title, *label;
};

static void resolved_write(void *ctx, FILE *out)
{
    static const char untitled[] = "\ntitle: \"\"\n";
    const struct resolved *resolved = ctx;
    const char *from = strchr(resolved->text, '\n'), *title = strstr(resolved->text, untitled);
    if (from == NULL || title == NULL) {
        (void)fwrite(resolved->text, 1, resolved->length, out);
        return;
    }
    (void)fwrite(from + 1, 1, (size_t)(title - from), out);
    char both[2 * SCN_TEXT_MAX];
    (void)snprintf(both, sizeof both, "%s, %s", resolved->title, resolved->label);
    fputs("title: ", out);
    sim_text_quote(out, both);
    fputs(title + sizeof untitled - 2, out);
}

// The scenario of the point, from the file that its measurement has written.
static enum sim_status scenario_copy(const report_t *report, uint32_t point, const char *directory, const char *folder,
                                     char *error, size_t error_size)
{
    char from[PATH_MAX], to[PATH_MAX];
    const char *hash = report->hashes[point];
    struct resolved resolved = {.title = report->scenario->title,
                                .label = report->scenario->sweep->points[point].label};
    if (snprintf(from, sizeof from, "%s/points/%s.yaml", directory, hash) >= (int)sizeof from ||
        files_path(folder, "resolved.yaml", to, sizeof to) != SIM_OK) {
        (void)snprintf(error, error_size, "%s: the name is too long", folder);
        return SIM_ERR_RANGE;
    }
    enum sim_status status = lines_file_read(from, &resolved.text, &resolved.length);
    if (status != SIM_OK) {
        (void)snprintf(error, error_size, "%s cannot be read: %s", from, sim_status_text(status));
    } else {
        status = files_one_write(to, resolved_write, &resolved, error, error_size);
    }
    free(resolved.text);
    return status;
}

static enum sim_status point_write(const report_t *report, struct scn_scenario *scenario, const char *directory,
                                   uint32_t point, char *error, size_t error_size)
{
    char name[NAME_BYTES + 16], folder[PATH_MAX];
    folder_make(report->scenario->sweep, point, name);
    if (snprintf(folder, sizeof folder, "%s/" FOLDER "/%s", directory, name) >= (int)sizeof folder) {
        (void)snprintf(error, error_size, "%s/" FOLDER ": the name is too long", directory);
        return SIM_ERR_RANGE;
    }
    report_t *part = part_make(report, scenario, point);
    if (part == NULL) {
        (void)snprintf(error, error_size, "no memory for a point of the sweep");
        return SIM_ERR_NO_MEMORY;
    }
    enum sim_status status = report_part_write(part, folder, error, error_size);
    if (status == SIM_OK) {
        status = scenario_copy(report, point, directory, folder, error, error_size);
    }
    report_destroy(part);
    return status;
}

// --- the list of folders --------------------------------------------------------------------------------------------

static void index_write(void *ctx, FILE *out)
{
    const report_t *report = ctx;
    fputs("value,folder\n", out);
    for (uint32_t i = 0; i < report->hash_count; i++) {
        if (report->hashes[i][0] != '\0') {
            char name[NAME_BYTES + 16];
            folder_make(report->scenario->sweep, i, name);
            csv_text_write(out, report->scenario->sweep->points[i].label);
            fputc(',', out);
            csv_text_write(out, name);
            fputc('\n', out);
        }
    }
}

static void folder_remove(const char *directory, const char *name)
{
    static const char *const names[] = {"data.csv", "counters.csv", "resolved.yaml"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (snprintf(path, sizeof path, "%s/" FOLDER "/%s/%s", directory, name, names[i]) < (int)sizeof path) {
            (void)unlink(path);
        }
    }
    if (snprintf(path, sizeof path, "%s/" FOLDER "/%s", directory, name) < (int)sizeof path) {
        (void)rmdir(path); // unless the user has put something into it
    }
}

// The folders that the list of an earlier sweep names, and the list. Other folders stay.
static void old_remove(const char *directory)
{
    char path[PATH_MAX], error[PATH_MAX + 64];
    struct table table;
    if (snprintf(path, sizeof path, "%s/" INDEX, directory) >= (int)sizeof path ||
        table_read(path, &table, error, sizeof error) != SIM_OK) {
        return;
    }
    size_t column = table_column(&table, "folder");
    for (size_t row = 0; column < table.columns && row + 1 < table.rows; row++) {
        const char *name = table_field(&table, row, column);
        if (name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL) {
            folder_remove(directory, name);
        }
    }
    table_free(&table);
    (void)unlink(path);
    if (snprintf(path, sizeof path, "%s/" FOLDER, directory) < (int)sizeof path) {
        (void)rmdir(path);
    }
}

static enum sim_status points_write(const report_t *report, struct scn_scenario *scenario, const char *directory,
                                    char *error, size_t error_size)
{
    char path[PATH_MAX];
    enum sim_status status = SIM_OK;
    bool any = false;
    for (uint32_t i = 0; i < report->hash_count && status == SIM_OK; i++) {
        if (report->hashes[i][0] != '\0') {
            status = point_write(report, scenario, directory, i, error, error_size);
            any = true;
        }
    }
    if (status == SIM_OK && any && snprintf(path, sizeof path, "%s/" INDEX, directory) < (int)sizeof path) {
        status = files_one_write(path, index_write, (void *)(uintptr_t)report, error, error_size);
    }
    return status;
}

enum sim_status report_by_value_write(const report_t *report, const char *directory, char *error, size_t error_size)
{
    old_remove(directory);
    if (report->scenario->sweep == NULL) {
        return SIM_OK;
    }
    struct scn_scenario *scenario = malloc(sizeof *scenario);
    if (scenario == NULL) {
        (void)snprintf(error, error_size, "no memory for the points of the sweep");
        return SIM_ERR_NO_MEMORY;
    }
    *scenario = *report->scenario;
    scenario->sweep = NULL;
    enum sim_status status = points_write(report, scenario, directory, error, error_size);
    free(scenario);
    return status;
}
