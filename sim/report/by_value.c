// Of a sweep, a folder for each point, named by its value: its rows, its counters, its scenario, as if it were no sweep.
#include "sim/report/by_value.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/kernel/text.h"
#include "sim/report/files.h"
#include "sim/report/lines.h"
#include "sim/report/points.h"
#include "sim/report/results.h"
#include "sim/report/write.h"

enum { NAME_BYTES = 200 };

#define FOLDER "values"

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

// "DMA, 125 MHz" of the point 125 MHz is "DMA". NULL: no series of the point. To be freed.
static char *bare_series(const char *series, const char *curve)
{
    size_t length = strlen(series), more = strlen(curve);
    if (more == 0) {
        return strdup(series);
    }
    bool ends = length > more + 2 && strcmp(series + length - more, curve) == 0 &&
                memcmp(series + length - more - 2, ", ", 2) == 0;
    return ends ? strndup(series, length - more - 2) : NULL;
}

// Other points of the sweep have series of the same names: which counters are whose is not known.
static bool shares_series(const struct scn_sweep *sweep, uint32_t point)
{
    bool shares = false;
    for (uint32_t i = 0; i < sweep->point_count; i++) {
        shares = shares || (i != point && strcmp(sweep->points[i].curve, sweep->points[point].curve) == 0);
    }
    return shares;
}

// Rows and counters of the point, with texts of their own.
static report_t *part_make(const report_t *report, struct scn_scenario *scenario, uint32_t point)
{
    const struct scn_sweep *sweep = report->scenario->sweep;
    const char *curve = sweep->points[point].curve;
    report_t *part = NULL;
    if (report_part_create(scenario, &part) != SIM_OK) {
        return NULL;
    }
    for (size_t i = 0; i < report->point_count; i++) {
        struct report_point row = report->points[i];
        char *series = row.sweep == point + 1 ? bare_series(row.series, curve) : NULL;
        if (series != NULL) {
            row.series = series;
            row.sweep = 0;
            report_add_point(part, &row);
        }
        free(series);
    }
    for (size_t i = 0; i < report->counter_count && !shares_series(sweep, point); i++) {
        const struct report_counter *counter = &report->counters[i];
        char *series = bare_series(counter->series, curve);
        if (series != NULL) {
            report_add_counter(part, series, counter->component, counter->name, counter->unit, counter->value);
        }
        free(series);
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
        return SIM_ERR_RANGE;
    }
    enum sim_status status = lines_file_read(from, &resolved.text, &resolved.length);
    if (status == SIM_OK) {
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

// --- earlier folders ------------------------------------------------------------------------------------------------

// Of an earlier sweep with other values. Files that are none of ours, and their folders, stay.
static void old_remove(const char *directory)
{
    static const char *const names[] = {"data.csv", "counters.csv", "resolved.yaml"};
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof folder, "%s/" FOLDER, directory);
    DIR *all = opendir(folder);
    for (const struct dirent *entry = all != NULL ? readdir(all) : NULL; entry != NULL; entry = readdir(all)) {
        char path[PATH_MAX];
        bool own = entry->d_name[0] != '.';
        for (size_t i = 0; own && i < sizeof names / sizeof names[0]; i++) {
            if (snprintf(path, sizeof path, "%s/%s/%s", folder, entry->d_name, names[i]) < (int)sizeof path) {
                (void)unlink(path);
            }
        }
        if (own && snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path) {
            (void)rmdir(path);
        }
    }
    if (all != NULL) {
        (void)closedir(all);
    }
}

enum sim_status report_by_value_write(const report_t *report, const char *directory, char *error, size_t error_size)
{
    struct scn_scenario *scenario = malloc(sizeof *scenario);
    if (scenario == NULL) {
        (void)snprintf(error, error_size, "no memory for the points of the sweep");
        return SIM_ERR_NO_MEMORY;
    }
    *scenario = *report->scenario;
    scenario->sweep = NULL;
    enum sim_status status = SIM_OK;
    old_remove(directory);
    for (uint32_t i = 0; i < report->hash_count && status == SIM_OK; i++) {
        if (report->hashes[i][0] != '\0') {
            status = point_write(report, scenario, directory, i, error, error_size);
        }
    }
    free(scenario);
    return status;
}
