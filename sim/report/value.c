#include "sim/report/value.h"

#include <math.h>
#include <string.h>

struct unit {
    const char *name;
    enum report_kind kind;
    double scale;
};

// The papers count sizes in units of 1024 and rates in units of 1000. The exception is MB/s, which is perftest's
// (akimoto2012): 2^20 bytes per second.
static const struct unit units[] = {
    {"us", REPORT_KIND_TIME, 1.0},
    {"ns", REPORT_KIND_TIME, 1000.0},
    {"GB/s", REPORT_KIND_RATE, 1.0},
    {"MB/s", REPORT_KIND_RATE, 1e9 / 1048576.0},
    {"B", REPORT_KIND_BYTES, 1.0},
    {"KB", REPORT_KIND_BYTES, 1.0 / 1024.0},
    {"MB", REPORT_KIND_BYTES, 1.0 / 1048576.0},
    {"MB", REPORT_KIND_MEMORY, 1.0},
    {"KB", REPORT_KIND_MEMORY, 1024.0},
};

static bool selects(const struct scn_value *value, const struct report_point *point)
{
    return point->bytes >= value->bytes_min && point->bytes <= value->bytes_max &&
           point->descriptors >= value->descriptors_min && point->descriptors <= value->descriptors_max &&
           (value->ranks == 0 || point->ranks == value->ranks);
}

static const struct report_point *next_row(const report_t *report, const struct scn_value *value,
                                           const struct report_point *previous)
{
    const struct report_point *point = report_series_next(report, value->series, previous);
    while (point != NULL && !selects(value, point)) {
        point = report_series_next(report, value->series, point);
    }
    return point;
}

// The row of `over` by which a row is divided: it has the same bytes and descriptors. If `over` selects other numbers
// of descriptors, it has the same bytes.
static const struct report_point *partner(const report_t *report, const struct scn_value *over,
                                          const struct report_point *point)
{
    bool any_descriptors = point->descriptors < over->descriptors_min || point->descriptors > over->descriptors_max;
    for (const struct report_point *row = next_row(report, over, NULL); row != NULL;
         row = next_row(report, over, row)) {
        if (row->bytes == point->bytes && (any_descriptors || row->descriptors == point->descriptors)) {
            return row;
        }
    }
    return NULL;
}

// The number of one row, divided by its partner's if the check is per row. False: the row does not take part.
static bool row_value(const report_t *report, const struct scn_check *check, const struct report_point *point,
                      double *value_out)
{
    double value = report_column_value(report_column_find(check->value.column), point);
    if (check->per_row && check->over.given) {
        const struct report_point *row = partner(report, &check->over, point);
        double over = row == NULL ? 0.0 : report_column_value(report_column_find(check->over.column), row);
        if (over == 0.0) {
            return false;
        }
        value = check->difference ? value - over : value / over;
    }
    *value_out = value;
    return true;
}

// The first of the selected rows in which nothing was measured, or NULL.
static const struct report_point *unmeasured_find(const report_t *report, const struct scn_value *value)
{
    const struct report_column *column = value->given ? report_column_find(value->column) : NULL;
    const struct report_point *row = column != NULL ? next_row(report, value, NULL) : NULL;
    while (row != NULL && report_column_has(column, row)) {
        row = next_row(report, value, row);
    }
    return row;
}

static struct report_value reduce(const report_t *report, const struct scn_check *check)
{
    struct report_value result = {0};
    double sum = 0.0;
    unsigned count = 0;
    for (const struct report_point *row = next_row(report, &check->value, NULL); row != NULL;
         row = next_row(report, &check->value, row)) {
        double value;
        if (!row_value(report, check, row, &value)) {
            continue;
        }
        bool better = false;
        switch (check->value.take) {
        case SCN_TAKE_MIN:
            better = value < result.value;
            break;
        case SCN_TAKE_MAX:
            better = value > result.value;
            break;
        case SCN_TAKE_LAST:
        case SCN_TAKE_MEAN:
            better = true;
            break;
        }
        if (!result.found || better) {
            result = (struct report_value){true, value, row, NULL};
        }
        sum += value;
        count++;
    }
    if (result.found && check->value.take == SCN_TAKE_MEAN) {
        result = (struct report_value){true, sum / count, count == 1 ? result.row : NULL, NULL};
    }
    return result;
}

static double over_value(const report_t *report, const struct scn_check *check)
{
    if (!check->over.given || check->per_row) {
        return check->difference ? 0.0 : 1.0;
    }
    struct scn_check over = {.value = check->over};
    struct report_value result = reduce(report, &over);
    return result.found ? result.value : NAN;
}

bool report_value_is_bytes(const struct scn_check *check)
{
    return check->first_reaching > 0.0 || check->last_reaching > 0.0;
}

static struct report_value reaching(const report_t *report, const struct scn_check *check, double over)
{
    bool first = check->first_reaching > 0.0;
    double ratio = first ? check->first_reaching : check->last_reaching;
    struct report_value result = {0};
    for (const struct report_point *row = next_row(report, &check->value, NULL); row != NULL;
         row = next_row(report, &check->value, row)) {
        double value;
        bool reached = row_value(report, check, row, &value) && value / over >= ratio;
        if (reached && (!result.found || (row->bytes < result.row->bytes) == first)) {
            result = (struct report_value){true, (double)row->bytes, row, NULL};
        }
    }
    return result;
}

struct report_value report_value_take(const report_t *report, const struct scn_check *check)
{
    const struct report_point *unmeasured = unmeasured_find(report, &check->value);
    unmeasured = unmeasured != NULL ? unmeasured : unmeasured_find(report, &check->over);
    if (unmeasured != NULL) {
        return (struct report_value){.unmeasured = unmeasured};
    }
    double over = over_value(report, check);
    if (isnan(over) || (over == 0.0 && !check->difference)) {
        return (struct report_value){0};
    }
    if (report_value_is_bytes(check)) {
        return reaching(report, check, over);
    }
    struct report_value result = reduce(report, check);
    result.value = check->difference ? result.value - over : result.value / over;
    return result;
}

bool report_value_scale(const struct scn_check *check, const char *unit, double *scale_out)
{
    enum report_kind kind = report_column_find(check->value.column)->kind;
    if (report_value_is_bytes(check)) {
        kind = REPORT_KIND_BYTES;
    } else if (check->over.given && !check->difference) {
        kind = REPORT_KIND_COUNT;
    }
    bool known = false; // the unit belongs to another kind
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(units[i].name, unit) == 0 && units[i].kind == kind) {
            *scale_out = units[i].scale;
            return true;
        }
        known = known || strcmp(units[i].name, unit) == 0;
    }
    // "ratio", "hops", "-": pure numbers. Any number may be compared with an order ("-").
    *scale_out = 1.0;
    return !known && (kind == REPORT_KIND_COUNT || strcmp(unit, "-") == 0);
}
