#include "fixture.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/shim/test.h"

static void series_add(struct scn_scenario *scenario, const char *series)
{
    struct scn_run *run = &scenario->runs[scenario->run_count++];
    snprintf(run->series, sizeof run->series, "%s", series);
}

void fixture_create(struct fixture *fixture)
{
    *fixture = (struct fixture){.scenario = calloc(1, sizeof *fixture->scenario)};
    snprintf(fixture->scenario->name, sizeof fixture->scenario->name, "example");
    snprintf(fixture->scenario->title, sizeof fixture->scenario->title, "An example's title");
    series_add(fixture->scenario, "pio");
    series_add(fixture->scenario, "dma, \"fast\"");
    if (report_create(fixture->scenario, FIXTURE_REFERENCE, &fixture->report) != SIM_OK) {
        FAIL("the report cannot be created from %s", FIXTURE_REFERENCE);
    }
    snprintf(fixture->directory, sizeof fixture->directory, "/tmp/tcasim-report-XXXXXX");
    if (mkdtemp(fixture->directory) == NULL) {
        FAIL("no scratch directory");
    }
    snprintf(fixture->input, sizeof fixture->input, "%s/input.yaml", fixture->directory);
    FILE *input = fopen(fixture->input, "w");
    fputs("abc", input);
    fclose(input);
}

static void tree_remove(const char *path)
{
    DIR *directory = opendir(path);
    if (directory != NULL) {
        for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
                char inner[512];
                snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
                tree_remove(inner);
            }
        }
        closedir(directory);
    }
    (void)remove(path);
}

void fixture_destroy(struct fixture *fixture)
{
    tree_remove(fixture->directory);
    report_destroy(fixture->report);
    free(fixture->scenario);
}

void fixture_row_add(struct fixture *fixture, const char *series, uint64_t bytes, uint64_t descriptors,
                     uint64_t latency_ps)
{
    const struct report_point point = {.series = series,
                                       .bytes = bytes,
                                       .descriptors = descriptors,
                                       .operations = 10,
                                       .total_ps = 10 * latency_ps,
                                       .min_ps = latency_ps - 1,
                                       .max_ps = latency_ps + 1};
    report_add_point(fixture->report, &point);
}

void fixture_rows_add(struct fixture *fixture)
{
    fixture_row_add(fixture, "pio", 8, 1, 1000000);
    fixture_row_add(fixture, "pio", 64, 1, 2000000);
    fixture_row_add(fixture, "pio", 4096, 1, 4000000);
    fixture_row_add(fixture, "dma, \"fast\"", 8, 1, 2000000);
    fixture_row_add(fixture, "dma, \"fast\"", 64, 1, 2000000);
    fixture_row_add(fixture, "dma, \"fast\"", 4096, 1, 3000000);
}

struct scn_value fixture_value(const char *series, const char *column, enum scn_take take)
{
    struct scn_value value = {
        .given = true, .take = take, .bytes_max = UINT64_MAX, .descriptors_max = UINT64_MAX};
    snprintf(value.series, sizeof value.series, "%s", series);
    snprintf(value.column, sizeof value.column, "%s", column);
    return value;
}

struct scn_check *fixture_compare_add(struct fixture *fixture, const char *id, struct scn_value value)
{
    struct scn_check *check = &fixture->scenario->compares[fixture->scenario->compare_count++];
    *check = (struct scn_check){.value = value, .line = 7, .column = 5};
    snprintf(check->id, sizeof check->id, "%s", id);
    return check;
}

struct scn_check *fixture_expect_add(struct fixture *fixture, const char *name, struct scn_value value, double min,
                                     double max)
{
    struct scn_check *check = &fixture->scenario->expects[fixture->scenario->expect_count++];
    *check = (struct scn_check){.value = value, .min = min, .max = max, .line = 3, .column = 5};
    snprintf(check->id, sizeof check->id, "%s", name);
    return check;
}

void fixture_panel_add(struct fixture *fixture, const char *x, const char *y)
{
    struct scn_panel *panel = &fixture->scenario->panels[fixture->scenario->panel_count++];
    snprintf(panel->title, sizeof panel->title, "%s's panel", y);
    snprintf(panel->x, sizeof panel->x, "%s", x);
    snprintf(panel->y, sizeof panel->y, "%s", y);
    panel->x_log = true;
}

char *fixture_read(const struct fixture *fixture, const char *directory, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", fixture->directory, directory, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return NULL;
    }
    char *text = NULL;
    size_t size = 0;
    (void)getdelim(&text, &size, '\0', file);
    fclose(file);
    return text;
}

char *fixture_printed(const report_t *report, void (*print)(const report_t *report, FILE *out))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    print(report, out);
    fclose(out);
    return text;
}
