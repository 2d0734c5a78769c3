#include "sim/report/interval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/bands.h"
#include "sim/report/compare.h"

#define OUTSIDE 20 // one of so many draws is below, and one above
// Of a key that is named, times the number of draws: of a hundred keys that move nothing, one or two have 9 by chance.
#define LEAST 12

struct report_interval {
    report_t *report;
    const char *const *keys;
    size_t key_count, draws, room;
    size_t point_count, compare_count;
    double *values;   // of keys, by draw
    double *points;   // latencies in us, by row and draw
    double *compares; // by comparison and draw
};

static void *take(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL) {
        sim_panic("report", "no memory for the draws of an interval");
    }
    return memory;
}

// The comparisons of a report in their order, in the published unit.
static double *compared(const report_t *report, size_t *count_out)
{
    uint32_t count = 0;
    struct scn_check *checks =
        report_checks_make(report, report->scenario->compares, report->scenario->compare_count, &count);
    double *values = take(count, sizeof *values);
    for (uint32_t i = 0; i < count; i++) {
        struct report_comparison comparison;
        bool found = report_comparison_make(report, &checks[i], &comparison) && comparison.taken.found;
        values[i] = found ? comparison.simulated : NAN;
    }
    free(checks);
    *count_out = count;
    return values;
}

report_interval_t *report_interval_create(report_t *report, const char *const *keys, size_t key_count, size_t draws)
{
    report_interval_t *interval = take(1, sizeof *interval);
    *interval = (report_interval_t){
        .report = report, .keys = keys, .key_count = key_count, .room = draws, .point_count = report->point_count};
    free(compared(report, &interval->compare_count));
    interval->values = take(key_count * draws, sizeof(double));
    interval->points = take(interval->point_count * draws, sizeof(double));
    interval->compares = take(interval->compare_count * draws, sizeof(double));
    return interval;
}

void report_interval_destroy(report_interval_t *interval)
{
    if (interval != NULL) {
        free(interval->values);
        free(interval->points);
        free(interval->compares);
        free(interval);
    }
}

static double latency_of(const struct report_point *point)
{
    return report_column_value(report_column_find("latency_us"), point);
}

static bool has_the_rows(const report_interval_t *interval, const report_t *draw)
{
    bool same = draw->point_count == interval->point_count;
    for (size_t i = 0; i < interval->point_count && same; i++) {
        const struct report_point *own = &interval->report->points[i], *other = &draw->points[i];
        same = strcmp(own->series, other->series) == 0 && own->bytes == other->bytes &&
               own->descriptors == other->descriptors && own->ranks == other->ranks;
    }
    return same;
}

bool report_interval_add(report_interval_t *interval, const report_t *draw, const double *values)
{
    size_t number = interval->draws, count;
    double *simulated = compared(draw, &count);
    bool fits = number < interval->room && count == interval->compare_count && has_the_rows(interval, draw);
    for (size_t i = 0; i < interval->key_count && fits; i++) {
        interval->values[i * interval->room + number] = values[i];
    }
    for (size_t i = 0; i < interval->point_count && fits; i++) {
        interval->points[i * interval->room + number] = latency_of(&draw->points[i]);
    }
    for (size_t i = 0; i < interval->compare_count && fits; i++) {
        interval->compares[i * interval->room + number] = simulated[i];
    }
    free(simulated);
    interval->draws += fits;
    return fits;
}

// --- statistics -----------------------------------------------------------------------------------------------------

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

// Sorts the values, of which there is one or more.
static void ends_find(double *values, size_t count, double *low, double *high)
{
    qsort(values, count, sizeof *values, compare_numbers);
    *low = values[count / OUTSIDE];
    *high = values[count - 1 - count / OUTSIDE];
}

// The mean rank of each value, from 0.
static void ranks_make(const double *values, size_t count, double *ranks)
{
    for (size_t i = 0; i < count; i++) {
        size_t below = 0, equal = 0;
        for (size_t k = 0; k < count; k++) {
            below += values[k] < values[i];
            equal += values[k] == values[i];
        }
        ranks[i] = (double)below + (double)(equal - 1) / 2;
    }
}

// The square of the correlation; 0 if one of them does not vary.
static double square_of(const double *left, const double *right, size_t count)
{
    double a = 0, b = 0, aa = 0, bb = 0, ab = 0, n = (double)count;
    for (size_t i = 0; i < count; i++) {
        a += left[i];
        b += right[i];
        aa += left[i] * left[i];
        bb += right[i] * right[i];
        ab += left[i] * right[i];
    }
    double spread = (aa * n - a * a) * (bb * n - b * b), both = ab * n - a * b;
    return spread > 0 ? both * both / spread : 0;
}

// Keys that one row sets alike, such as both directions of a port, count once.
static void widest_add(struct report_band *band, const char *key, double square)
{
    unsigned at = band->key_count;
    bool again = false;
    for (unsigned i = 0; i < band->key_count; i++) {
        again = again || fabs(band->widest[i].square - square) < 1e-9;
    }
    while (at > 0 && band->widest[at - 1].square < square) {
        at--;
    }
    if (again || at == BAND_KEYS_MAX) {
        return;
    }
    unsigned last = band->key_count < BAND_KEYS_MAX ? band->key_count++ : BAND_KEYS_MAX - 1;
    memmove(&band->widest[at + 1], &band->widest[at], (last - at) * sizeof band->widest[0]);
    band->widest[at].key = key;
    band->widest[at].square = square;
}

// values: of the draws; ranks: of the keys, by draw.
static void band_make(const report_interval_t *interval, const struct report_bands *bands, const double *values,
                      const double *ranks, struct report_band *band)
{
    size_t count = interval->draws;
    double *sorted = take(count, sizeof *sorted), *own = take(count, sizeof *own);
    bool whole = count > 0;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = values[i];
        whole = whole && isfinite(values[i]);
    }
    *band = (struct report_band){.low = NAN, .high = NAN, .over_low = NAN, .over_high = NAN};
    if (whole) {
        ends_find(sorted, count, &band->low, &band->high);
        ranks_make(values, count, own);
        for (size_t i = 0; i < interval->key_count && band->high > band->low; i++) {
            double square = square_of(own, ranks + i * count, count);
            if (square * (double)count > LEAST) {
                widest_add(band, bands->keys[i], square);
            }
        }
    }
    free(sorted);
    free(own);
}

// The row of the first swept value that differs from this one in nothing else; point_count: there is none.
static size_t first_row(const report_t *report, size_t row)
{
    const struct report_point *point = &report->points[row];
    char own[SCN_NAME_MAX], other[SCN_NAME_MAX];
    size_t i = report->scenario->sweep == NULL || point->sweep < 2 ? report->point_count : 0;
    snprintf(own, sizeof own, "%s", point->series);
    if (i == 0) {
        scn_sweep_series_cut(report->scenario->sweep, point->sweep, own);
    }
    for (; i < report->point_count; i++) {
        const struct report_point *first = &report->points[i];
        if (first->sweep != 1 || first->bytes != point->bytes || first->descriptors != point->descriptors ||
            first->ranks != point->ranks) {
            continue;
        }
        snprintf(other, sizeof other, "%s", first->series);
        scn_sweep_series_cut(report->scenario->sweep, 1, other);
        if (strcmp(own, other) == 0) {
            break;
        }
    }
    return i;
}

static void over_make(const report_interval_t *interval, size_t row, struct report_band *band)
{
    size_t first = first_row(interval->report, row), count = interval->draws;
    double *ratios = take(count, sizeof *ratios);
    bool whole = first < interval->point_count && count > 0;
    for (size_t i = 0; i < count && whole; i++) {
        ratios[i] = interval->points[row * interval->room + i] / interval->points[first * interval->room + i];
        whole = isfinite(ratios[i]);
    }
    if (whole) {
        ends_find(ratios, count, &band->over_low, &band->over_high);
    }
    free(ratios);
}

void report_interval_end(report_interval_t *interval, const char *table_hash)
{
    report_t *report = interval->report;
    struct report_bands *bands = take(1, sizeof *bands);
    double *ranks = take(interval->key_count * interval->draws, sizeof *ranks);
    for (size_t i = 0; i < interval->key_count; i++) {
        ranks_make(interval->values + i * interval->room, interval->draws, ranks + i * interval->draws);
    }
    *bands = (struct report_bands){.draws = interval->draws,
                                   .keys = take(interval->key_count, sizeof *bands->keys),
                                   .key_count = interval->key_count,
                                   .points = take(interval->point_count, sizeof *bands->points),
                                   .compares = take(interval->compare_count, sizeof *bands->compares),
                                   .compare_count = interval->compare_count};
    for (size_t i = 0; i < interval->key_count; i++) {
        bands->keys[i] = strdup(interval->keys[i]);
        if (bands->keys[i] == NULL) {
            sim_panic("report", "no memory for the draws of an interval");
        }
    }
    for (size_t i = 0; i < interval->point_count; i++) {
        struct report_band *band = &bands->points[i];
        band_make(interval, bands, interval->points + i * interval->room, ranks, band);
        over_make(interval, i, band);
        report->points[i].low_ps = isfinite(band->low) ? (uint64_t)(band->low * 1e6 + 0.5) : 0;
        report->points[i].high_ps = isfinite(band->high) ? (uint64_t)(band->high * 1e6 + 0.5) : 0;
    }
    for (size_t i = 0; i < interval->compare_count; i++) {
        band_make(interval, bands, interval->compares + i * interval->room, ranks, &bands->compares[i]);
    }
    snprintf(bands->table_hash, sizeof bands->table_hash, "%s", table_hash);
    free(ranks);
    report_bands_free(report->bands);
    report->bands = bands;
}
