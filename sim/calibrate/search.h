// The search for the point of a grid with the least cost.
//
// A point is an index for each key. First every key alone is moved through its range, from the start. From the best of
// these points on, all neighbours at a stride are tried, in both directions of every key, and the point that continues
// the last move; the best one is next. Without a better one the strides are halved, down to 1. Points are given out in
// batches that may be evaluated in parallel; the order of their evaluation changes nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/calibrate/calibration.h"

#define SEARCH_SWEEP_VALUES 5u // of a key, at the beginning, its ends among them

struct search_point {
    uint32_t indices[CALIBRATION_KEYS_MAX];
};

typedef struct search search_t;

// points_max: the search ends after so many, perhaps before the least cost.
search_t *search_create(const struct calibration *calibration, const struct search_point *start, size_t points_max);
void search_destroy(search_t *search); // NULL is allowed

// The points of the next batch, none of them given before; false: the search has ended.
bool search_next(search_t *search, const struct search_point **points_out, size_t *count_out);
// The costs of that batch, in its order.
void search_take(search_t *search, const double *costs);

// All points so far, in the order in which they were given; the first is the start. The best: the earliest of those with
// the least cost.
size_t search_count(const search_t *search);
const struct search_point *search_point_at(const search_t *search, size_t i);
size_t search_best(const search_t *search);
bool search_is_complete(const search_t *search); // false: points_max ended it

// The points of the first sweep of a key, by their value. Returns their number, at most SEARCH_SWEEP_VALUES + 1.
size_t search_sweep(const search_t *search, size_t key, size_t numbers_out[SEARCH_SWEEP_VALUES + 1]);
