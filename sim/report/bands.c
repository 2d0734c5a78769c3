#include "sim/report/bands.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/compare.h"
#include "sim/report/csv.h"

void report_bands_free(struct report_bands *bands)
{
    if (bands != NULL) {
        for (size_t i = 0; i < bands->key_count; i++) {
            free(bands->keys[i]);
        }
        free(bands->keys);
        free(bands->points);
        free(bands->compares);
        free(bands);
    }
}

bool report_band_holds(const struct report_band *band, const struct report_reference *reference)
{
    const struct report_published *published = &reference->published;
    double rounding = published->kind == REPORT_PUBLISHED_NUMBER ? report_rounding_of(reference->value) : 0;
    return published->kind != REPORT_PUBLISHED_TEXT && isfinite(band->low) && band->low <= published->high + rounding &&
           published->low - rounding <= band->high;
}

bool report_band_is_open(const struct report_band *band)
{
    return isfinite(band->over_low) && band->over_low <= 1 && band->over_high >= 1 && band->over_low < band->over_high;
}

static void widest_write(const struct report_band *band, FILE *out)
{
    for (unsigned i = 0; i < BAND_KEYS_MAX; i++) {
        fputc(',', out);
        if (i < band->key_count) {
            csv_text_write(out, band->widest[i].key);
            fprintf(out, ",%.3f", band->widest[i].square);
        } else {
            fputc(',', out);
        }
    }
    fputc('\n', out);
}

void report_bands_write(const report_t *report, FILE *out)
{
    fputs("series,bytes,descriptors,sweep,interval_low_us,interval_high_us,over_first_low,over_first_high,key_1,r2_1,"
          "key_2,r2_2,key_3,r2_3\n",
          out);
    for (size_t i = 0; i < report->point_count; i++) {
        const struct report_point *point = &report->points[i];
        const struct report_band *band = &report->bands->points[i];
        if (isfinite(band->low)) {
            csv_text_write(out, point->series);
            fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%.6f,%.6f", point->bytes, point->descriptors,
                    point->sweep, band->low, band->high);
            if (isfinite(band->over_low)) {
                fprintf(out, ",%.6f,%.6f", band->over_low, band->over_high);
            } else {
                fputs(",,", out);
            }
            widest_write(band, out);
        }
    }
}

#define OPEN_MAX_PRINTED 10

// Of a sweep: which rows cannot be told from those of the first value.
static void open_print(const report_t *report, FILE *out)
{
    size_t all = 0, open = 0, same = 0;
    for (size_t i = 0; i < report->point_count; i++) {
        all += isfinite(report->bands->points[i].over_low);
        open += report_band_is_open(&report->bands->points[i]);
        same += report->bands->points[i].over_low == 1 && report->bands->points[i].over_high == 1;
    }
    if (all == 0) {
        return;
    }
    fprintf(
        out,
        "Latencies against those of the first point, in the same draw: of %zu, %zu are the same in nearly all draws,"
        " and %zu are not told apart by the interval%s\n",
        all, same, open, open > 0 ? ":" : ".");
    for (size_t i = 0, printed = 0; i < report->point_count && printed < OPEN_MAX_PRINTED; i++) {
        const struct report_band *band = &report->bands->points[i];
        if (report_band_is_open(band)) {
            char bytes[REPORT_LABEL_MAX];
            report_bytes_label(report->points[i].bytes, bytes);
            fprintf(out, "  %s, %s: %.3f to %.3f times\n", report->points[i].series, bytes, band->over_low,
                    band->over_high);
            printed++;
        }
    }
    if (open > OPEN_MAX_PRINTED) {
        fprintf(out, "  and %zu more (interval.csv)\n", open - OPEN_MAX_PRINTED);
    }
}

void report_bands_print(const report_t *report, FILE *out)
{
    uint32_t count = 0;
    struct scn_check *compares =
        report_checks_make(report, report->scenario->compares, report->scenario->compare_count, &count);
    fprintf(
        out,
        "\nIntervals: 5 to 95 %% of %zu draws from the ranges of the presets (docs/accuracy.md). Behind a row: the keys"
        " that move it\nmost, with the square of the correlation of ranks.\n",
        report->bands->draws);
    for (uint32_t i = 0; i < count && i < report->bands->compare_count; i++) {
        const struct report_band *band = &report->bands->compares[i];
        struct report_comparison comparison;
        if (band->key_count == 0 || !report_comparison_make(report, &compares[i], &comparison)) {
            continue;
        }
        fprintf(out, "%s, %s: ", comparison.reference->id, comparison.what);
        for (unsigned k = 0; k < band->key_count; k++) {
            fprintf(out, "%s%s %.2f", k > 0 ? ", " : "", band->widest[k].key, band->widest[k].square);
        }
        fputc('\n', out);
    }
    free(compares);
    open_print(report, out);
}
