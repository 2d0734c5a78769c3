// Writes all files of a report into its directory.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/kernel/status.h"
#include "sim/report/bands.h"
#include "sim/report/by_value.h"
#include "sim/report/compare.h"
#include "sim/report/csv.h"
#include "sim/report/figure.h"
#include "sim/report/files.h"
#include "sim/report/manifest.h"
#include "sim/report/plot.h"
#include "sim/report/write.h"

// "nodes.*.board.clock=125 MHz" has the column "nodes.*.board.clock".
static void swept_write(const report_t *report, uint32_t number, FILE *out)
{
    const struct scn_sweep *sweep = report->scenario->sweep;
    const struct scn_sweep_point *point = &sweep->points[number > 0 ? number - 1 : 0];
    for (size_t i = 0; i < point->set_count; i++) {
        const char *equals = strchr(point->sets[i], '=');
        char *path = strndup(point->sets[i], (size_t)(equals - point->sets[i]));
        if (path == NULL) {
            sim_panic("report", "no memory for a path");
        }
        fputc(',', out);
        csv_text_write(out, number > 0 ? equals + 1 : path);
        free(path);
    }
}

static void data_write(const report_t *report, FILE *out)
{
    bool sweep = report->scenario->sweep != NULL;
    bool shown[REPORT_COLUMN_COUNT];
    fputs("series", out);
    for (size_t i = 0; i < REPORT_COLUMN_COUNT; i++) {
        shown[i] = report_column_shown(report, &report_columns[i]);
        if (shown[i]) {
            fprintf(out, ",%s", report_columns[i].name);
        }
    }
    if (sweep) {
        swept_write(report, 0, out);
    }
    fputc('\n', out);
    for (size_t row = 0; row < report->point_count; row++) {
        const struct report_point *point = &report->points[row];
        csv_text_write(out, point->series);
        for (size_t i = 0; i < REPORT_COLUMN_COUNT; i++) {
            uint64_t micro = report_columns[i].micro(point);
            if (!shown[i]) {
                continue;
            }
            fputc(',', out);
            if (!report_column_has(&report_columns[i], point)) {
                continue;
            }
            if (report_columns[i].fraction) {
                csv_micro_write(out, micro);
            } else {
                fprintf(out, "%" PRIu64, micro / REPORT_MICRO);
            }
        }
        if (sweep) {
            swept_write(report, point->sweep, out);
        }
        fputc('\n', out);
    }
}

static void counters_write(const report_t *report, FILE *out)
{
    fputs("series,component,name,unit,value\n", out);
    for (size_t i = 0; i < report->counter_count; i++) {
        const struct report_counter *counter = &report->counters[i];
        const char *const texts[] = {counter->series, counter->component, counter->name, counter->unit};
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
            csv_text_write(out, texts[k]);
            fputc(',', out);
        }
        fprintf(out, "%" PRIu64 "\n", counter->value);
    }
}

void report_texts_write(const report_t *report, FILE *out)
{
    for (size_t i = 0; i < report->text_count; i++) {
        const char *text = report->texts[i].text;
        size_t length = strlen(text);
        fprintf(out, "%s==> %s <==\n%s%s", i > 0 ? "\n" : "", report->texts[i].program, text,
                length > 0 && text[length - 1] != '\n' ? "\n" : "");
    }
}

// band: NULL without intervals.
static void comparison_write(const struct report_comparison *comparison, const struct report_band *band, FILE *out)
{
    csv_text_write(out, comparison->reference->id);
    fputc(',', out);
    csv_text_write(out, comparison->what);
    fputc(',', out);
    if (comparison->taken.found) {
        fprintf(out, "%.6f", comparison->simulated);
    }
    fputc(',', out);
    csv_text_write(out, comparison->reference->value);
    fputc(',', out);
    csv_text_write(out, comparison->reference->unit);
    fputc(',', out);
    if (comparison->has_error) {
        fprintf(out, "%.2f", comparison->error_percent);
    }
    fputc(',', out);
    csv_text_write(out, comparison->reference->use);
    fputc(',', out);
    csv_text_write(out, comparison->reference->doubt);
    if (band != NULL && isfinite(band->low)) {
        fprintf(out, ",%.6f,%.6f,%s", band->low, band->high,
                comparison->reference->published.kind == REPORT_PUBLISHED_TEXT ? ""
                : report_band_holds(band, comparison->reference)               ? "yes"
                                                                               : "no");
    } else if (band != NULL) {
        fputs(",,,", out);
    }
    fputc('\n', out);
}

static void comparisons_write(const report_t *report, FILE *out)
{
    const struct report_bands *bands = report->bands;
    fprintf(out, "id,what,simulated,published,unit,error_percent,use,doubt%s\n",
            bands != NULL ? ",interval_low,interval_high,inside" : "");
    uint32_t count = 0;
    struct scn_check *compares =
        report_checks_make(report, report->scenario->compares, report->scenario->compare_count, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct report_comparison comparison;
        if (report_comparison_make(report, &compares[i], &comparison)) {
            comparison_write(&comparison, bands != NULL && i < bands->compare_count ? &bands->compares[i] : NULL, out);
        }
    }
    free(compares);
}

static void resolved_write(const report_t *report, struct files *files)
{
    FILE *out = files_open(files, "resolved.yaml");
    if (out == NULL) {
        return;
    }
    enum sim_status status = scn_write_resolved(report->scenario, out);
    files_close(files, out, "resolved.yaml");
    if (status != SIM_OK) {
        files_fail(files, status, "cannot write %s/resolved.yaml: %s", files->directory, sim_status_text(status));
    }
}

static void file_write(const report_t *report, struct files *files, const char *name,
                       void (*write)(const report_t *report, FILE *out))
{
    FILE *out = files_open(files, name);
    if (out != NULL) {
        write(report, out);
        files_close(files, out, name);
    }
}

// What an earlier run wrote and this one does not could be mistaken for one of these results.
static void old_remove(const char *directory, const char *name)
{
    char path[PATH_MAX];
    if (files_path(directory, name, path, sizeof path) == SIM_OK) {
        (void)unlink(path);
    }
}

enum sim_status report_directory_create(const char *directory, char *error, size_t error_size)
{
    struct files files;
    files_init(&files, directory, error, error_size);
    return files.status;
}

enum sim_status report_part_write(const report_t *part, const char *directory, char *error, size_t error_size)
{
    struct files files;
    files_init(&files, directory, error, error_size);
    file_write(part, &files, "data.csv", data_write);
    if (part->counter_count > 0) {
        file_write(part, &files, "counters.csv", counters_write);
    }
    return files_commit(&files);
}

enum sim_status report_write(const report_t *report, const char *directory, const char *scenario_path, char *error,
                             size_t error_size)
{
    struct files files;
    files_init(&files, directory, error, error_size);
    file_write(report, &files, "data.csv", data_write);
    file_write(report, &files, "counters.csv", counters_write);
    file_write(report, &files, "compare.csv", comparisons_write);
    file_write(report, &files, "figure.yaml", report_figure_write);
    if (report->bands != NULL) {
        file_write(report, &files, "interval.csv", report_bands_write);
    }
    if (report->text_count > 0) {
        file_write(report, &files, "programs.txt", report_texts_write);
    }
    if (report->scenario->sweep == NULL) {
        resolved_write(report, &files); // a sweep has one for each point
    }
    char gnuplot[64];
    bool drawn = report->scenario->panel_count > 0 && report->point_count > 0;
    if (drawn) {
        file_write(report, &files, "plot.gp", report_plot_write);
        report_plot_draw(&files, "plot.gp", "plot.svg");
        report_plot_version(&files, gnuplot, sizeof gnuplot);
    }
    report_manifest_write(report, &files, scenario_path, drawn ? gnuplot : NULL);
    enum sim_status status = files_commit(&files);
    if (status == SIM_OK && !drawn) {
        old_remove(directory, "plot.gp");
        old_remove(directory, "plot.svg");
    }
    if (status == SIM_OK && report->bands == NULL) {
        old_remove(directory, "interval.csv");
    }
    if (status == SIM_OK) {
        status = report_by_value_write(report, directory, error, error_size);
    }
    return status;
}
