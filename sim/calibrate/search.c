#include "sim/calibrate/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MAX (CALIBRATION_KEYS_MAX * SEARCH_SWEEP_VALUES + 1)

struct search {
    const struct calibration *calibration;
    struct search_point *points;
    double *costs;
    size_t count, points_max, swept; // swept: points of the first sweep
    struct search_point batch[BATCH_MAX];
    size_t batch_count;
    size_t base, before; // the point from which the strides go, and the one before the last move
    uint32_t strides[CALIBRATION_KEYS_MAX];
    bool complete;
};

search_t *search_create(const struct calibration *calibration, const struct search_point *start, size_t points_max)
{
    search_t *search = calloc(1, sizeof *search);
    if (search == NULL) {
        return NULL;
    }
    search->calibration = calibration;
    search->points_max = points_max < 1 ? 1 : points_max;
    search->points = calloc(search->points_max, sizeof *search->points);
    search->costs = calloc(search->points_max, sizeof *search->costs);
    if (search->points == NULL || search->costs == NULL) {
        search_destroy(search);
        return NULL;
    }
    search->batch[0] = *start;
    search->batch_count = 1;
    return search;
}

void search_destroy(search_t *search)
{
    if (search != NULL) {
        free(search->points);
        free(search->costs);
        free(search);
    }
}

// --- points ---------------------------------------------------------------------------------------------------------

static bool is_same(const struct search *search, const struct search_point *a, const struct search_point *b)
{
    return memcmp(a->indices, b->indices, search->calibration->key_count * sizeof a->indices[0]) == 0;
}

// SIZE_MAX: it has not been evaluated.
static size_t number_of(const struct search *search, const struct search_point *point)
{
    for (size_t i = 0; i < search->count; i++) {
        if (is_same(search, &search->points[i], point)) {
            return i;
        }
    }
    return SIZE_MAX;
}

static void batch_add(struct search *search, const struct search_point *point)
{
    bool given = number_of(search, point) != SIZE_MAX;
    for (size_t i = 0; i < search->batch_count && !given; i++) {
        given = is_same(search, &search->batch[i], point);
    }
    if (!given) {
        search->batch[search->batch_count++] = *point;
    }
}

static uint32_t last_of(const struct search *search, size_t key)
{
    return search->calibration->keys[key].value_count - 1;
}

// The point with a key moved by so many values, or to the end of its range.
static struct search_point moved(const struct search *search, const struct search_point *from, size_t key, int64_t by)
{
    struct search_point point = *from;
    int64_t index = (int64_t)point.indices[key] + by, last = last_of(search, key);
    point.indices[key] = (uint32_t)(index < 0 ? 0 : index > last ? last : index);
    return point;
}

static uint32_t sweep_index(const struct search *search, size_t key, uint32_t i)
{
    return (uint32_t)((uint64_t)last_of(search, key) * i / (SEARCH_SWEEP_VALUES - 1));
}

// --- batches --------------------------------------------------------------------------------------------------------

static void sweep_make(struct search *search)
{
    for (size_t key = 0; key < search->calibration->key_count; key++) {
        for (uint32_t i = 0; i < SEARCH_SWEEP_VALUES; i++) {
            struct search_point point = search->batch[0];
            point.indices[key] = sweep_index(search, key, i);
            batch_add(search, &point);
        }
        search->strides[key] = last_of(search, key) / (2 * (SEARCH_SWEEP_VALUES - 1));
        search->strides[key] += search->strides[key] == 0 ? 1 : 0;
    }
}

static void neighbours_make(struct search *search)
{
    const struct search_point *base = &search->points[search->base], *before = &search->points[search->before];
    struct search_point onward = *base;
    for (size_t key = 0; key < search->calibration->key_count; key++) {
        const struct search_point up = moved(search, base, key, search->strides[key]);
        const struct search_point down = moved(search, base, key, -(int64_t)search->strides[key]);
        batch_add(search, &down);
        batch_add(search, &up);
        onward = moved(search, &onward, key, (int64_t)base->indices[key] - before->indices[key]);
    }
    batch_add(search, &onward);
}

// false: they were all 1.
static bool strides_halve(struct search *search)
{
    bool halved = false;
    for (size_t key = 0; key < search->calibration->key_count; key++) {
        if (search->strides[key] > 1) {
            search->strides[key] /= 2;
            halved = true;
        }
    }
    return halved;
}

bool search_next(search_t *search, const struct search_point **points_out, size_t *count_out)
{
    if (search->count == 0) {
        sweep_make(search);
    } else {
        search->batch_count = 0;
        neighbours_make(search);
        while (search->batch_count == 0 && strides_halve(search)) {
            neighbours_make(search);
        }
        search->complete = search->batch_count == 0;
    }
    size_t left = search->points_max - search->count;
    search->batch_count = search->batch_count < left ? search->batch_count : left;
    *points_out = search->batch;
    *count_out = search->batch_count;
    return search->batch_count > 0;
}

void search_take(search_t *search, const double *costs)
{
    size_t base = search->base;
    bool first = search->count == 0;
    for (size_t i = 0; i < search->batch_count; i++) {
        search->points[search->count] = search->batch[i];
        search->costs[search->count++] = costs[i];
    }
    search->swept = first ? search->count : search->swept;
    search->base = search_best(search);
    search->before = first ? search->base : base; // the sweep is no move
    if (!first && search->base == base) {
        (void)strides_halve(search);
    }
}

// --- what was found -------------------------------------------------------------------------------------------------

size_t search_count(const search_t *search)
{
    return search->count;
}

const struct search_point *search_point_at(const search_t *search, size_t i)
{
    return &search->points[i];
}

size_t search_best(const search_t *search)
{
    size_t best = 0;
    for (size_t i = 1; i < search->count; i++) {
        if (search->costs[i] < search->costs[best]) {
            best = i;
        }
    }
    return best;
}

bool search_is_complete(const search_t *search)
{
    return search->complete;
}

static bool is_on_axis(const struct search *search, const struct search_point *point, size_t key)
{
    const struct search_point there =
        moved(search, &search->points[0], key, (int64_t)point->indices[key] - search->points[0].indices[key]);
    return is_same(search, &there, point);
}

size_t search_sweep(const search_t *search, size_t key, size_t numbers_out[SEARCH_SWEEP_VALUES + 1])
{
    size_t count = 0;
    for (uint32_t index = 0; index <= last_of(search, key); index++) {
        for (size_t i = 0; i < search->swept; i++) {
            if (search->points[i].indices[key] == index && is_on_axis(search, &search->points[i], key)) {
                numbers_out[count++] = i;
            }
        }
    }
    return count;
}
