// The search, on costs that are formulas.
#include <math.h>
#include <stdlib.h>

#include "sim/calibrate/search.h"
#include "tests/shim/test.h"

typedef double (*cost_fn)(const struct search_point *point);

static struct calibration calibration_make(size_t keys, uint32_t values)
{
    struct calibration calibration = {.key_count = keys};
    for (size_t i = 0; i < keys; i++) {
        calibration.keys[i] = (struct calibration_key){.step = 1, .value_count = values};
    }
    return calibration;
}

// Runs it to its end. No point may come twice.
static void search_run(const struct calibration *calibration, const struct search_point *start, size_t max,
                       cost_fn cost, search_t **search_out)
{
    const struct search_point *points;
    size_t count;
    search_t *search = *search_out = search_create(calibration, start, max);
    ASSERT_NOT_NULL(search);
    while (search_next(search, &points, &count)) {
        double costs[256];
        ASSERT_LE(count, 256);
        for (size_t i = 0; i < count; i++) {
            costs[i] = cost(&points[i]);
        }
        search_take(search, costs);
    }
    for (size_t i = 0; i < search_count(search); i++) {
        for (size_t k = i + 1; k < search_count(search); k++) {
            bool same = true;
            for (size_t key = 0; key < calibration->key_count; key++) {
                same = same && search_point_at(search, i)->indices[key] == search_point_at(search, k)->indices[key];
            }
            EXPECT_FALSE(same);
        }
    }
}

static double bowl(const struct search_point *point)
{
    double x = point->indices[0], y = point->indices[1];
    return (x - 37) * (x - 37) + 3 * (y - 912) * (y - 912);
}

// A narrow valley along a diagonal: only steps in both keys at once go down.
static double valley(const struct search_point *point)
{
    double x = point->indices[0], y = point->indices[1];
    return 100 * (x + y - 600) * (x + y - 600) + (x - 440) * (x - 440);
}

static double slope(const struct search_point *point)
{
    return point->indices[0];
}

static double nowhere(const struct search_point *point)
{
    return point->indices[0] == 3 ? 1 : INFINITY;
}

static const struct search_point *best_of(const search_t *search)
{
    return search_point_at(search, search_best(search));
}

TEST(Search, FindsTheLeastCostExactly)
{
    const struct calibration calibration = calibration_make(2, 1000);
    const struct search_point starts[] = {{{0, 0}}, {{999, 999}}, {{37, 912}}, {{500, 3}}};
    for (size_t i = 0; i < 4; i++) {
        TEST_TRACE("start %zu", i);
        search_t *search;
        search_run(&calibration, &starts[i], 400, bowl, &search);
        EXPECT_EQ(best_of(search)->indices[0], 37);
        EXPECT_EQ(best_of(search)->indices[1], 912);
        EXPECT_TRUE(search_is_complete(search));
        EXPECT_LT(search_count(search), 150); // of a million
        search_destroy(search);
    }
}

TEST(Search, GoesDownAValleyBetweenTwoKeys)
{
    const struct calibration calibration = calibration_make(2, 1000);
    const struct search_point start = {{0, 0}};
    search_t *search;
    search_run(&calibration, &start, 2000, valley, &search);
    EXPECT_LE(abs((int)best_of(search)->indices[0] + (int)best_of(search)->indices[1] - 600), 1);
    search_destroy(search);
}

TEST(Search, StaysWithinTheRanges)
{
    const struct calibration calibration = calibration_make(1, 77);
    const struct search_point start = {{76}};
    search_t *search;
    search_run(&calibration, &start, 400, slope, &search);
    EXPECT_EQ(best_of(search)->indices[0], 0);
    for (size_t i = 0; i < search_count(search); i++) {
        EXPECT_LT(search_point_at(search, i)->indices[0], 77);
    }
    search_destroy(search);
}

TEST(Search, EndsAtItsLargestNumberOfPointsAndSaysSo)
{
    const struct calibration calibration = calibration_make(2, 1000);
    const struct search_point start = {{0, 0}};
    for (size_t max = 1; max < 30; max++) {
        TEST_TRACE("at most %zu", max);
        search_t *search;
        search_run(&calibration, &start, max, bowl, &search);
        EXPECT_EQ(search_count(search), max);
        EXPECT_FALSE(search_is_complete(search));
        search_destroy(search);
    }
}

TEST(Search, AKeyOfTwoValuesIsTriedInBoth)
{
    const struct calibration calibration = calibration_make(1, 2);
    const struct search_point start = {{1}};
    search_t *search;
    search_run(&calibration, &start, 400, slope, &search);
    EXPECT_EQ(search_count(search), 2);
    EXPECT_EQ(best_of(search)->indices[0], 0);
    EXPECT_TRUE(search_is_complete(search));
    search_destroy(search);
}

TEST(Search, PointsWithoutAValueAreLeftAside)
{
    const struct calibration calibration = calibration_make(1, 9);
    const struct search_point start = {{3}};
    search_t *search;
    search_run(&calibration, &start, 400, nowhere, &search);
    EXPECT_EQ(best_of(search)->indices[0], 3);
    EXPECT_TRUE(search_is_complete(search));
    search_destroy(search);
}

TEST(Search, TheSweepOfAKeyHasItsEndsAndTheStartInOrder)
{
    const struct calibration calibration = calibration_make(2, 101);
    const struct search_point start = {{33, 50}};
    static const uint32_t expected[2][6] = {{0, 25, 33, 50, 75, 100}, {0, 25, 50, 75, 100}};
    size_t numbers[SEARCH_SWEEP_VALUES + 1];
    search_t *search;
    search_run(&calibration, &start, 400, bowl, &search);
    for (size_t key = 0; key < 2; key++) {
        TEST_TRACE("key %zu", key);
        ASSERT_EQ(search_sweep(search, key, numbers), key == 0 ? 6 : 5);
        for (size_t i = 0; i < (key == 0 ? 6 : 5); i++) {
            EXPECT_EQ(search_point_at(search, numbers[i])->indices[key], expected[key][i]);
            EXPECT_EQ(search_point_at(search, numbers[i])->indices[1 - key], start.indices[1 - key]);
        }
    }
    search_destroy(search);
}
