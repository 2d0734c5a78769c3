#include "sim/report/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/csv.h"

enum field { ID, PAPER, WHERE, PLATFORM, WHAT, CONFIG, VALUE, UNIT, KIND, USE, DOUBT, FIELD_COUNT };

static enum sim_status text_read(const char *path, char **text_out)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return SIM_ERR_IO;
    }
    char *text = NULL;
    size_t size = 0;
    // The table contains no NUL byte: one getdelim reads the whole file.
    bool complete = getdelim(&text, &size, '\0', file) > 0 && ferror(file) == 0;
    fclose(file);
    if (!complete) {
        free(text);
        return SIM_ERR_IO;
    }
    *text_out = text;
    return SIM_OK;
}

static enum sim_status row_add(struct report_references *references, char *const *fields)
{
    struct report_reference *rows = realloc(references->rows, (references->count + 1) * sizeof *rows);
    if (rows == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    references->rows = rows;
    rows[references->count++] = (struct report_reference){
        .id = fields[ID],
        .paper = fields[PAPER],
        .where = fields[WHERE],
        .what = fields[WHAT],
        .config = fields[CONFIG],
        .value = fields[VALUE],
        .unit = fields[UNIT],
        .use = fields[USE],
        .doubt = fields[DOUBT],
        .published = report_published_parse(fields[VALUE]),
    };
    return SIM_OK;
}

enum sim_status report_references_read(struct report_references *references, const char *path)
{
    struct report_references read = {0};
    enum sim_status status = text_read(path, &read.text);
    if (status != SIM_OK) {
        return status;
    }
    char *cursor = read.text;
    char *fields[FIELD_COUNT] = {NULL};
    size_t count = csv_record_read(&cursor, fields, FIELD_COUNT);
    if (count != FIELD_COUNT || strcmp(fields[ID], "id") != 0 || strcmp(fields[VALUE], "value") != 0) {
        status = SIM_ERR_INVALID;
    }
    while (status == SIM_OK) {
        count = csv_record_read(&cursor, fields, FIELD_COUNT);
        if (count == 0) {
            break;
        }
        status = count == FIELD_COUNT ? row_add(&read, fields) : SIM_ERR_INVALID;
    }
    if (status != SIM_OK) {
        report_references_free(&read);
        return status;
    }
    *references = read;
    return SIM_OK;
}

void report_references_free(struct report_references *references)
{
    free(references->rows);
    free(references->text);
    *references = (struct report_references){0};
}

const struct report_reference *report_references_find(const struct report_references *references, const char *id)
{
    for (size_t i = 0; i < references->count; i++) {
        if (strcmp(references->rows[i].id, id) == 0) {
            return &references->rows[i];
        }
    }
    return NULL;
}

// Reads a plain decimal number at *cursor: no sign, no exponent, no "inf".
static bool number_read(const char **cursor, double *number_out)
{
    size_t length = strspn(*cursor, "0123456789.");
    if (length == 0) {
        return false;
    }
    char *end;
    double number = strtod(*cursor, &end);
    if (end != *cursor + length) {
        return false;
    }
    *cursor = end;
    *number_out = number;
    return true;
}

struct report_published report_published_parse(const char *text)
{
    const struct report_published none = {REPORT_PUBLISHED_TEXT, -INFINITY, INFINITY};
    const char *cursor = text;
    char bound = '\0';
    if (*cursor == '<' || *cursor == '>') {
        bound = *cursor++;
        cursor += *cursor == '=';
    }
    double low;
    double high;
    if (!number_read(&cursor, &low)) {
        return none;
    }
    high = low;
    bool range = *cursor == '-' && bound == '\0';
    if (range) {
        cursor++;
        if (!number_read(&cursor, &high) || high < low) {
            return none;
        }
    }
    if (*cursor != '\0') {
        return none;
    }
    if (bound == '<') {
        return (struct report_published){REPORT_PUBLISHED_BELOW, -INFINITY, high};
    }
    if (bound == '>') {
        return (struct report_published){REPORT_PUBLISHED_ABOVE, low, INFINITY};
    }
    return (struct report_published){range ? REPORT_PUBLISHED_RANGE : REPORT_PUBLISHED_NUMBER, low, high};
}

double report_rounding_of(const char *number)
{
    const char *point = strchr(number, '.');
    return 0.5 * pow(10, point != NULL ? -(double)strspn(point + 1, "0123456789") : 0);
}

bool report_published_error(const struct report_published *published, double simulated, double *percent_out)
{
    if (published->kind == REPORT_PUBLISHED_TEXT) {
        return false;
    }
    double nearest = simulated;
    if (simulated < published->low) {
        nearest = published->low;
    } else if (simulated > published->high) {
        nearest = published->high;
    }
    if (nearest == simulated) {
        *percent_out = 0.0;
        return true;
    }
    if (nearest == 0.0) {
        return false;
    }
    *percent_out = (simulated - nearest) / nearest * 100.0;
    return true;
}
