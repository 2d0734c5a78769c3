#include "sim/report/prediction.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/files.h"
#include "sim/report/grid.h"
#include "sim/report/lines.h"
#include "sim/report/manifest.h"
#include "sim/report/reference.h"
#include "sim/report/results.h"
#include "sim/report/table.h"

#define HASH_LINE "# SHA-256 of all below this line: "
#define PART_LINE "## "

static const char *const parts[] = {"data.csv", "compare.csv", "interval.csv", "resolved.yaml", "manifest.yaml"};
enum { PARTS = sizeof parts / sizeof parts[0] };

// --- writing --------------------------------------------------------------------------------------------------------

static bool part_copy(const char *directory, const char *name, bool needed, FILE *out, char *error, size_t error_size)
{
    char path[PATH_MAX], *text = NULL;
    size_t length = 0;
    if (files_path(directory, name, path, sizeof path) != SIM_OK || lines_file_read(path, &text, &length) != SIM_OK) {
        snprintf(error, error_size, "%s/%s cannot be read: %s", directory, name, strerror(errno));
        return !needed;
    }
    fprintf(out, PART_LINE "%s\n", name);
    fwrite(text, 1, length, out);
    fputs(length > 0 && text[length - 1] != '\n' ? "\n" : "", out);
    free(text);
    return true;
}

// The text below the line with the hash; to be freed. NULL: error says why.
static char *body_make(const char *directory, char *error, size_t error_size)
{
    char *body = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&body, &size);
    bool made = out != NULL;
    for (unsigned i = 0; i < PARTS && made; i++) {
        bool needed = strcmp(parts[i], "data.csv") == 0 || strcmp(parts[i], "manifest.yaml") == 0;
        made = part_copy(directory, parts[i], needed, out, error, error_size);
    }
    if (out == NULL || fclose(out) != 0) {
        snprintf(error, error_size, "out of memory for a prediction");
        made = false;
    }
    if (!made) {
        free(body);
        body = NULL;
    }
    return body;
}

struct text_file {
    const char *body, *hash;
};

static void text_write(void *ctx, FILE *out)
{
    const struct text_file *file = ctx;
    fprintf(out,
            PREDICTION_HEAD ", made before it was measured. Publish this file, or its hash.\n"
                            "# `tcasim compare THIS_FILE MEASURED.csv` checks the hash, and compares.\n" HASH_LINE
                            "%s\n%s",
            file->hash, file->body);
}

enum sim_status prediction_write(const char *directory, const char *path, char *hash, size_t hash_size, char *error,
                                 size_t error_size)
{
    char own[REPORT_HASH_MAX];
    char *body = body_make(directory, error, error_size);
    if (body == NULL) {
        return SIM_ERR_INVALID;
    }
    report_hash_text(body, own);
    snprintf(hash, hash_size, "%s", own);
    struct text_file file = {body, own};
    enum sim_status status = files_one_write(path, text_write, &file, error, error_size);
    free(body);
    return status;
}

// --- reading --------------------------------------------------------------------------------------------------------

bool prediction_is(const char *path)
{
    char *text = NULL;
    size_t length = 0;
    bool is =
        lines_file_read(path, &text, &length) == SIM_OK && strncmp(text, PREDICTION_HEAD, strlen(PREDICTION_HEAD)) == 0;
    free(text);
    return is;
}

// The text below the line with the hash, which it must have. NULL: error says why.
static const char *body_of(const char *path, const char *text, size_t length, char *error, size_t error_size)
{
    char hash[REPORT_HASH_MAX];
    const char *line = strstr(text, "\n" HASH_LINE), *body = line != NULL ? strchr(line + 1, '\n') : NULL;
    if (body == NULL || strlen(text) != length) {
        snprintf(error, error_size, "%s is no prediction: it has no line '%s'", path, HASH_LINE);
        return NULL;
    }
    const char *given = line + 1 + strlen(HASH_LINE);
    report_hash_text(++body, hash);
    if (strncmp(given, hash, strlen(hash)) != 0 || given[strlen(hash)] != '\n') {
        snprintf(error, error_size, "%s was changed: below its hash is what has the hash %s", path, hash);
        return NULL;
    }
    return body;
}

// A copy of a part; to be freed. NULL: there is none.
static char *part_of(const char *body, const char *name)
{
    char head[64];
    snprintf(head, sizeof head, PART_LINE "%s\n", name);
    const char *at = strncmp(body, head, strlen(head)) == 0 ? body : strstr(body, head);
    if (at == NULL) {
        return NULL;
    }
    at += strlen(head);
    const char *end = strstr(at, "\n" PART_LINE);
    return strndup(at, end != NULL ? (size_t)(end + 1 - at) : strlen(at));
}

// Prints what has to be held against what was published: whoever changes a file can change its hash as well.
static void head_print(const char *path, const char *body, FILE *out)
{
    char hash[REPORT_HASH_MAX];
    const char *draws = strstr(body, "\ninterval:\n  draws: ");
    report_hash_text(body, hash);
    fprintf(out, "%s: SHA-256 %s, to be compared with the published one; %d draws\n\n", path, hash,
            draws != NULL ? atoi(draws + strlen("\ninterval:\n  draws: ")) : 0);
}

static enum sim_status data_read(const char *path, struct table *data, FILE *out, char *error, size_t error_size)
{
    char *text = NULL;
    size_t length = 0;
    if (lines_file_read(path, &text, &length) != SIM_OK) {
        snprintf(error, error_size, "%s cannot be read: %s", path, strerror(errno));
        return SIM_ERR_IO;
    }
    const char *body = body_of(path, text, length, error, error_size);
    char *part = body != NULL ? part_of(body, "data.csv") : NULL;
    if (part != NULL) {
        head_print(path, body, out);
    }
    if (body != NULL && part == NULL) {
        snprintf(error, error_size, "%s has no data.csv", path);
    }
    free(text);
    return part != NULL ? table_parse(path, part, strlen(part), data, error, error_size) : SIM_ERR_INVALID;
}

// --- comparing ------------------------------------------------------------------------------------------------------

struct comparing {
    const char *path; // of the measurements
    struct table data, measured;
    size_t value;   // column of the measurements
    bool bandwidth; // it is a bandwidth, in GB/s
    char *error;
    size_t error_size;
};

static bool columns_check(struct comparing *comparing)
{
    const struct table *measured = &comparing->measured, *data = &comparing->data;
    comparing->value = table_column(measured, "latency_us");
    if (comparing->value == measured->columns) {
        comparing->value = table_column(measured, "bandwidth_GBps");
        comparing->bandwidth = true;
    }
    if (comparing->value == measured->columns) {
        snprintf(comparing->error, comparing->error_size, "%s: no column is called latency_us or bandwidth_GBps",
                 comparing->path);
        return false;
    }
    if (!comparing->bandwidth && table_column(measured, "bandwidth_GBps") < measured->columns) {
        snprintf(comparing->error, comparing->error_size, "%s: expected latency_us or bandwidth_GBps, not both",
                 comparing->path);
        return false;
    }
    if (measured->rows < 2) {
        snprintf(comparing->error, comparing->error_size, "%s: there is no measurement", comparing->path);
        return false;
    }
    for (size_t i = 0; i < measured->columns; i++) {
        const char *name = measured->fields[i];
        if (!report_column_is_result(name) && table_column(data, name) == data->columns) {
            snprintf(comparing->error, comparing->error_size, "%s: the prediction has no column '%.80s'",
                     comparing->path, name);
            return false;
        }
    }
    if (table_column(data, "interval_low_us") == data->columns) {
        snprintf(comparing->error, comparing->error_size, "the prediction has no intervals");
        return false;
    }
    return true;
}

static bool same_row(const struct comparing *comparing, size_t row, size_t predicted)
{
    const struct table *measured = &comparing->measured, *data = &comparing->data;
    bool same = true;
    for (size_t i = 0; i < measured->columns && same; i++) {
        const char *name = measured->fields[i];
        same = report_column_is_result(name) ||
               strcmp(table_field(measured, row, i), table_field(data, predicted, table_column(data, name))) == 0;
    }
    return same;
}

// false: none or several rows of the prediction.
static bool row_find(const struct comparing *comparing, size_t row, size_t *predicted_out)
{
    size_t found = 0;
    for (size_t i = 0; i + 1 < comparing->data.rows; i++) {
        if (same_row(comparing, row, i)) {
            *predicted_out = i;
            found++;
        }
    }
    if (found != 1) {
        snprintf(comparing->error, comparing->error_size, "%s: measurement %zu is %s of the prediction",
                 comparing->path, row + 1, found == 0 ? "no row" : "several rows");
    }
    return found == 1;
}

static double number_of(const struct table *table, size_t row, const char *column)
{
    const char *text = table_field(table, row, table_column(table, column));
    char *end = NULL;
    double value = strtod(text, &end);
    return end != text && *end == '\0' ? value : NAN;
}

// A bandwidth is bytes over the latency, so the interval of one is that of the other.
static void predicted_read(const struct comparing *comparing, size_t row, double *value, double *low, double *high)
{
    const struct table *data = &comparing->data;
    *value = number_of(data, row, "latency_us");
    *low = number_of(data, row, "interval_low_us");
    *high = number_of(data, row, "interval_high_us");
    if (comparing->bandwidth) {
        double bandwidth = number_of(data, row, "bandwidth_GBps"), product = bandwidth * *value, most = product / *low;
        *low = product / *high;
        *high = most;
        *value = bandwidth;
    }
}

static void row_print(const struct comparing *comparing, size_t row, size_t predicted, grid_t *grid,
                      struct prediction_count *count)
{
    double value, low, high;
    double measured = number_of(&comparing->measured, row, comparing->bandwidth ? "bandwidth_GBps" : "latency_us");
    for (size_t i = 0; i < comparing->measured.columns; i++) {
        if (!report_column_is_result(comparing->measured.fields[i])) {
            grid_cell_add(grid, "%s", table_field(&comparing->measured, row, i));
        }
    }
    predicted_read(comparing, predicted, &value, &low, &high);
    double rounding = report_rounding_of(table_field(&comparing->measured, row, comparing->value));
    bool inside = low - rounding <= measured && measured <= high + rounding;
    grid_cell_add(grid, "%s", table_field(&comparing->measured, row, comparing->value));
    grid_cell_add(grid, "%.5g", value);
    grid_cell_add(grid, "%.5g", low);
    grid_cell_add(grid, "%.5g", high);
    grid_cell_add(grid, "%s", inside ? "yes" : "no");
    grid_cell_colour(grid, inside ? SIM_COLOUR_GREEN : SIM_COLOUR_RED);
    count->measured++;
    count->inside += inside;
}

static grid_t *grid_make(const struct comparing *comparing)
{
    static const char *const heads[] = {"measured", "predicted", "low", "high", "inside"};
    const struct table *measured = &comparing->measured;
    size_t own = 0, added = 0;
    for (size_t i = 0; i < measured->columns; i++) {
        own += !report_column_is_result(measured->fields[i]);
    }
    grid_t *grid = grid_create(own + sizeof heads / sizeof heads[0]);
    for (size_t i = 0; i < measured->columns; i++) {
        if (!report_column_is_result(measured->fields[i])) {
            grid_column_left(grid, added++);
            grid_cell_add(grid, "%s", measured->fields[i]);
        }
    }
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        grid_cell_add(grid, "%s", heads[i]);
    }
    return grid;
}

static bool numbers_check(const struct comparing *comparing, size_t row, size_t predicted)
{
    bool measured = isfinite(number_of(&comparing->measured, row, comparing->measured.fields[comparing->value]));
    bool low = isfinite(number_of(&comparing->data, predicted, "interval_low_us"));
    if (!measured || !low) {
        snprintf(comparing->error, comparing->error_size, "%s: measurement %zu %s", comparing->path, row + 1,
                 !measured ? "has no number" : "is of a row that has no interval");
    }
    return measured && low;
}

static enum sim_status tables_compare(struct comparing *comparing, FILE *out, struct prediction_count *count)
{
    if (!columns_check(comparing)) {
        return SIM_ERR_INVALID;
    }
    bool right = true;
    grid_t *grid = grid_make(comparing);
    for (size_t i = 0; i + 1 < comparing->measured.rows && right; i++) {
        size_t predicted = 0;
        right = row_find(comparing, i, &predicted) && numbers_check(comparing, i, predicted);
        if (right) {
            row_print(comparing, i, predicted, grid, count);
        }
    }
    if (right) {
        grid_print(grid, out);
        fprintf(out, "%s; %zu of %zu are inside their intervals.\n", comparing->bandwidth ? "GB/s" : "us",
                count->inside, count->measured);
    }
    grid_destroy(grid);
    return right ? SIM_OK : SIM_ERR_INVALID;
}

enum sim_status prediction_compare(const char *path, const char *measured, FILE *out,
                                   struct prediction_count *count_out, char *error, size_t error_size)
{
    struct comparing comparing = {.path = measured, .error = error, .error_size = error_size};
    struct prediction_count count = {0};
    enum sim_status status = data_read(path, &comparing.data, out, error, error_size);
    if (status != SIM_OK) {
        return status;
    }
    status = table_read(measured, &comparing.measured, error, error_size);
    if (status == SIM_OK) {
        status = tables_compare(&comparing, out, &count);
        table_free(&comparing.measured);
    }
    table_free(&comparing.data);
    *count_out = count;
    return status;
}
