// Intervals of a report: as data, and as files and text. Private to the room.
#pragma once

#include <stdio.h>

#include "sim/report/manifest.h"
#include "sim/report/results.h"

#define BAND_KEYS_MAX 3

struct report_band {
    double low, high; // 5 and 95 % of the draws are below; in the unit of the column or of the published value
    // Rows of a sweep: the same of the ratio to the row of the first swept value, each in the same draw; NAN: there is none.
    double over_low, over_high;
    struct {
        const char *key;
        double square; // of the correlation of ranks with the key's, 0 to 1
    } widest[BAND_KEYS_MAX];
    unsigned key_count;
};

struct report_bands {
    size_t draws;
    char table_hash[REPORT_HASH_MAX]; // of the table of draws
    char **keys;                      // the names in widest point to these
    size_t key_count;
    struct report_band *points;   // of latencies, by the report's points
    struct report_band *compares; // by its expanded comparisons
    size_t compare_count;
};

void report_bands_free(struct report_bands *bands); // NULL is allowed

// Does the interval leave open whether the row differs from that of the sweep's first point? No: it has another value, or
// the same one in nearly all draws.
bool report_band_is_open(const struct report_band *band);

// Is a published value, or what rounds to it, in the interval of its comparison? false: it is not, or there is none.
bool report_band_holds(const struct report_band *band, const struct report_reference *reference);

// interval.csv.
void report_bands_write(const report_t *report, FILE *out);
// Which keys widen the comparisons.
void report_bands_print(const report_t *report, FILE *out);
