// Prints a difference to the terminal.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/difference_internal.h"
#include "sim/report/grid.h"
#include "sim/report/lines.h"
#include "sim/report/results.h"

struct printing {
    const struct difference *difference;
    FILE *out;
    size_t lines_max; // of a table; 0: any number
};

static void heads_add(grid_t *grid, const char *const *heads, size_t count, size_t left)
{
    for (size_t i = 0; i < count; i++) {
        if (i < left) {
            grid_column_left(grid, i);
        }
        grid_cell_add(grid, "%s", heads[i]);
    }
}

// Texts come from files and are not trusted.
static void text_add(grid_t *grid, const char *text)
{
    char *shown = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&shown, &size);
    if (out == NULL) {
        sim_panic("report", "out of memory for a table");
    }
    lines_shown_write(out, (struct lines_text){text, strlen(text)});
    (void)fclose(out);
    grid_cell_add(grid, "%s", shown);
    free(shown);
}

static void percent_add(grid_t *grid, double percent)
{
    if (isnan(percent)) {
        grid_cell_add(grid, "%s", "");
    } else if (isinf(percent)) {
        grid_cell_add(grid, "%s", percent > 0 ? "+inf %" : "-inf %");
    } else {
        grid_cell_add(grid, "%+.3f %%", percent);
    }
}

static bool is_room(const struct printing *printing, size_t shown)
{
    return printing->lines_max == 0 || shown < printing->lines_max;
}

static void grid_end(const struct printing *printing, grid_t *grid, size_t all, size_t shown)
{
    grid_print(grid, printing->out);
    grid_destroy(grid);
    if (all > shown) {
        fprintf(printing->out, "... and %zu more; --out DIR writes all of them\n", all - shown);
    }
}

// --- keys -----------------------------------------------------------------------------------------------------------

static void keys_print(const struct printing *printing)
{
    static const char *const heads[] = {"key", "first", "second"};
    const struct difference *difference = printing->difference;
    bool first = difference->sides[0].resolved, second = difference->sides[1].resolved;
    if (!first || !second) {
        fprintf(printing->out,
                "\nThe scenarios are not compared: %s no resolved.yaml (of a sweep, each of values/ has one)\n",
                !first && !second ? "both have"
                : !first          ? "the first has"
                                  : "the second has");
        return;
    }
    if (difference->key_count == 0) {
        fputs("\nThe scenarios are the same.\n", printing->out);
        return;
    }
    fprintf(printing->out, "\nKeys of the scenario that differ: %zu\n", difference->key_count);
    grid_t *grid = grid_create(3);
    size_t shown = 0;
    heads_add(grid, heads, 3, 3);
    for (; shown < difference->key_count && is_room(printing, shown); shown++) {
        const struct difference_key *key = &difference->keys[shown];
        text_add(grid, key->path);
        text_add(grid, key->first != NULL ? key->first : "(none)");
        text_add(grid, key->second != NULL ? key->second : "(none)");
    }
    grid_end(printing, grid, difference->key_count, shown);
}

// --- curves ---------------------------------------------------------------------------------------------------------

struct curve {
    size_t rows, differing, alone; // rows in both; those of them that differ; rows in one directory only
    const struct difference_item *first, *largest;
};

// Sorts by series and column, and within a curve by position in the file (the pointers are into one array).
static int curves_compare(const void *left, const void *right)
{
    const struct difference_item *a = *(const struct difference_item *const *)left;
    const struct difference_item *b = *(const struct difference_item *const *)right;
    int result = strcmp(difference_number(a)->series, difference_number(b)->series);
    result = result != 0 ? result : strcmp(difference_number(a)->name, difference_number(b)->name);
    return result != 0 ? result : (a > b) - (a < b);
}

static int first_compare(const void *left, const void *right)
{
    const struct curve *a = left, *b = right;
    return (a->first > b->first) - (a->first < b->first);
}

static void item_note(struct curve *curve, const struct difference_item *item)
{
    if (item->first == NULL || item->second == NULL) {
        curve->alone++;
        return;
    }
    curve->rows++;
    curve->differing += item->change != 0;
    if (curve->largest == NULL || fabs(item->percent) > fabs(curve->largest->percent)) {
        curve->largest = item;
    }
}

// In the order of their first rows; to be freed.
static struct curve *curves_make(const struct difference_items *items, size_t *count_out)
{
    const struct difference_item **sorted = calloc(items->count + 1, sizeof(void *));
    struct curve *curves = calloc(items->count + 1, sizeof *curves);
    size_t count = 0;
    if (sorted == NULL || curves == NULL) {
        sim_panic("report", "out of memory for a table");
    }
    for (size_t i = 0; i < items->count; i++) {
        sorted[i] = &items->items[i];
    }
    qsort(sorted, items->count, sizeof *sorted, curves_compare);
    for (size_t i = 0; i < items->count; i++) {
        const struct measured_number *own = difference_number(sorted[i]);
        const struct measured_number *before = count > 0 ? difference_number(curves[count - 1].first) : NULL;
        if (before == NULL || strcmp(before->series, own->series) != 0 || strcmp(before->name, own->name) != 0) {
            curves[count++].first = sorted[i];
        }
        item_note(&curves[count - 1], sorted[i]);
    }
    qsort(curves, count, sizeof *curves, first_compare);
    free(sorted);
    *count_out = count;
    return curves;
}

static void curve_add(grid_t *grid, const struct curve *curve)
{
    const struct measured_number *number = difference_number(curve->first);
    char label[REPORT_LABEL_MAX] = "";
    text_add(grid, number->series);
    text_add(grid, number->name);
    grid_cell_add(grid, "%zu", curve->rows);
    grid_cell_add(grid, "%zu", curve->differing);
    grid_cell_add(grid, "%zu", curve->alone);
    percent_add(grid, curve->differing > 0 ? curve->largest->percent : NAN);
    if (curve->differing > 0) {
        report_bytes_label(curve->largest->first->bytes, label);
    }
    grid_cell_add(grid, "%s", label);
}

static void curves_print(const struct printing *printing)
{
    static const char *const heads[] = {"series", "column", "rows", "differ", "in one only", "largest", "at bytes"};
    const struct difference_items *items = &printing->difference->data;
    size_t count, shown = 0;
    if (items->count == 0) {
        fputs("\nNeither has a row in data.csv.\n", printing->out);
        return;
    }
    fputs("\nCurves\n", printing->out);
    grid_t *grid = grid_create(7);
    heads_add(grid, heads, 7, 2);
    struct curve *curves = curves_make(items, &count);
    for (; shown < count && is_room(printing, shown); shown++) {
        curve_add(grid, &curves[shown]);
    }
    free(curves);
    grid_end(printing, grid, count, shown);
}

// --- numbers --------------------------------------------------------------------------------------------------------

static void identity_add(grid_t *grid, const struct measured_number *number, bool counter)
{
    char label[REPORT_LABEL_MAX];
    text_add(grid, number->series);
    if (counter) {
        text_add(grid, number->component);
    } else {
        report_bytes_label(number->bytes, label);
        grid_cell_add(grid, "%s%s", label, number->copy > 0 ? " (again)" : "");
        grid_cell_add(grid, "%" PRIu64, number->descriptors);
        snprintf(label, sizeof label, "%" PRIu64, number->ranks);
        grid_cell_add(grid, "%s", number->ranks > 0 ? label : "");
    }
    text_add(grid, number->name);
}

// Prints the numbers that differ by more than the tolerance or are in one directory only.
static void items_print(const struct printing *printing, const struct difference_items *items, bool counters)
{
    static const char *const data_heads[] = {"series", "bytes",  "descriptors", "ranks",   "column",
                                             "first",  "second", "difference",  "relative"};
    static const char *const counter_heads[] = {"series", "component",  "counter", "first",
                                                "second", "difference", "relative"};
    size_t all = 0, shown = 0, columns = counters ? 7 : 9;
    grid_t *grid = grid_create(columns);
    heads_add(grid, counters ? counter_heads : data_heads, columns, counters ? 3 : 1);
    for (size_t i = 0; i < items->count; i++) {
        const struct difference_item *item = &items->items[i];
        if (!difference_counts(item) || !is_room(printing, all++)) {
            continue;
        }
        identity_add(grid, difference_number(item), counters);
        grid_cell_add(grid, "%s", item->first != NULL ? item->first->text : "(none)");
        grid_cell_add(grid, "%s", item->second != NULL ? item->second->text : "(none)");
        if (item->first != NULL && item->second != NULL) {
            grid_cell_add(grid, "%+.10Lg", item->change);
        } else {
            grid_cell_add(grid, "%s", "");
        }
        percent_add(grid, item->percent);
        shown++;
    }
    if (all > 0) {
        fprintf(printing->out, "\n%s that differ: %zu of %zu\n", counters ? "Counters" : "Numbers in rows", all,
                items->count);
        grid_end(printing, grid, all, shown);
    } else {
        grid_destroy(grid);
    }
}

void difference_print(const difference_t *difference, size_t lines_max, FILE *out)
{
    const struct printing printing = {difference, out, lines_max};
    fprintf(out, "first:  %s\nsecond: %s\n", difference->names[0], difference->names[1]);
    keys_print(&printing);
    curves_print(&printing);
    items_print(&printing, &difference->data, false);
    items_print(&printing, &difference->counters, true);
    size_t count = difference_count(difference), all = difference->data.count + difference->counters.count;
    if (count == 0) {
        fprintf(out, "\n%zu numbers, %s\n", all,
                difference->within_percent > 0 ? "none differs by more than was allowed" : "all are equal");
    } else if (difference->within_percent > 0) {
        fprintf(out, "\n%zu of %zu numbers differ by more than %.9g %%\n", count, all, difference->within_percent);
    } else {
        fprintf(out, "\n%zu of %zu numbers differ\n", count, all);
    }
}
