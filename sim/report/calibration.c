#include "sim/report/calibration.h"

#include <math.h>
#include <string.h>

#include "sim/kernel/text.h"
#include "sim/report/grid.h"

#define UNMOVED_PERCENT 0.05  // a row whose value changes by less over a key's range does not depend on it
#define ALIKE           0.995 // cosine of the angle between two keys' effects on the rows that decide

double calibration_error(const struct calibration_row *row, double simulated)
{
    double percent;
    return isfinite(simulated) && report_published_error(&row->reference->published, simulated, &percent) ? percent
                                                                                                          : NAN;
}

static double value_at(const struct calibration_results *results, size_t point, size_t row)
{
    return results->values[point * results->row_count + row];
}

double calibration_sensitivity(const struct calibration_results *results, size_t row, size_t key)
{
    size_t numbers[SEARCH_SWEEP_VALUES + 1];
    size_t count = search_sweep(results->search, key, numbers);
    double first = value_at(results, numbers[0], row), last = value_at(results, numbers[count - 1], row);
    return (last - first) / value_at(results, 0, row) * 100.0;
}

// --- tables ---------------------------------------------------------------------------------------------------------

static void percent_cell(grid_t *grid, double percent)
{
    if (isfinite(percent)) {
        grid_cell_add(grid, "%+.1f %%", fabs(percent) < 0.05 ? 0.0 : percent);
    } else {
        grid_cell_add(grid, "-");
    }
}

// A value within a published range or bound has no error.
static void error_cell(grid_t *grid, const struct calibration_row *row, double simulated)
{
    double error = calibration_error(row, simulated);
    if (error == 0 && row->reference->published.kind != REPORT_PUBLISHED_NUMBER) {
        grid_cell_add(grid, "inside");
    } else {
        percent_cell(grid, error);
    }
}

static void keys_print(const struct calibration_results *results, FILE *out)
{
    grid_t *grid = grid_create(5);
    static const char *const heads[] = {"key", "from", "to", "start", "best"};
    for (size_t i = 0; i < 5; i++) {
        grid_cell_add(grid, "%s", heads[i]);
    }
    grid_column_left(grid, 0);
    const struct search_point *start = search_point_at(results->search, 0);
    const struct search_point *best = search_point_at(results->search, search_best(results->search));
    for (size_t i = 0; i < results->calibration->key_count; i++) {
        const struct calibration_key *key = &results->calibration->keys[i];
        const uint32_t indices[] = {0, key->value_count - 1, start->indices[i], best->indices[i]};
        grid_cell_add(grid, "%s", key->name);
        for (size_t k = 0; k < 4; k++) {
            char text[CALIBRATION_VALUE_MAX];
            calibration_value_format(key, indices[k], text);
            grid_cell_add(grid, "%s", text);
        }
    }
    grid_print(grid, out);
    grid_destroy(grid);
}

static void rows_print(const struct calibration_results *results, FILE *out)
{
    size_t columns = results->check_fidelity != NULL ? 8 : 6, best = search_best(results->search);
    grid_t *grid = grid_create(columns);
    static const char *const heads[] = {"row", "what", "use", "published", "start", "best"};
    for (size_t i = 0; i < 6; i++) {
        grid_cell_add(grid, "%s", heads[i]);
    }
    if (columns == 8) {
        grid_cell_add(grid, "start, %s", results->check_fidelity);
        grid_cell_add(grid, "best, %s", results->check_fidelity);
    }
    for (size_t column = 0; column < 3; column++) {
        grid_column_left(grid, column);
    }
    for (size_t i = 0; i < results->row_count; i++) {
        const struct calibration_row *row = &results->rows[i];
        grid_cell_add(grid, "%s", row->reference->id);
        grid_cell_add(grid, "%.*s", (int)sim_text_fit(row->what, 48), row->what);
        grid_cell_add(grid, "%s", row->decides ? "decides" : row->reference->use);
        grid_cell_add(grid, "%s %s", row->reference->value, row->reference->unit);
        error_cell(grid, row, value_at(results, 0, i));
        error_cell(grid, row, value_at(results, best, i));
        for (size_t k = 0; k < 2 && columns == 8; k++) {
            error_cell(grid, row, results->checked[k][i]);
        }
    }
    grid_print(grid, out);
    grid_destroy(grid);
}

static void sensitivity_print(const struct calibration_results *results, FILE *out)
{
    size_t keys = results->calibration->key_count;
    grid_t *grid = grid_create(keys + 2);
    grid_cell_add(grid, "row");
    grid_cell_add(grid, "what");
    grid_column_left(grid, 0);
    grid_column_left(grid, 1);
    for (size_t key = 0; key < keys; key++) {
        grid_cell_add(grid, "%s", results->calibration->keys[key].name);
    }
    for (size_t i = 0; i < results->row_count; i++) {
        grid_cell_add(grid, "%s", results->rows[i].reference->id);
        grid_cell_add(grid, "%.*s", (int)sim_text_fit(results->rows[i].what, 48), results->rows[i].what);
        for (size_t key = 0; key < keys; key++) {
            percent_cell(grid, calibration_sensitivity(results, i, key));
        }
    }
    grid_print(grid, out);
    grid_destroy(grid);
}

// --- what the rows cannot decide ------------------------------------------------------------------------------------

static double product(const struct calibration_results *results, size_t a, size_t b)
{
    double sum = 0;
    for (size_t i = 0; i < results->row_count; i++) {
        double x = calibration_sensitivity(results, i, a), y = calibration_sensitivity(results, i, b);
        sum += results->rows[i].decides && isfinite(x) && isfinite(y) ? x * y : 0;
    }
    return sum;
}

static bool moves_nothing(const struct calibration_results *results, size_t key)
{
    return sqrt(product(results, key, key)) < UNMOVED_PERCENT;
}

static void limits_print(const struct calibration_results *results, FILE *out)
{
    const struct calibration *calibration = results->calibration;
    const struct search_point *best = search_point_at(results->search, search_best(results->search));
    for (size_t a = 0; a < calibration->key_count; a++) {
        const char *name = calibration->keys[a].name;
        if (moves_nothing(results, a)) {
            fprintf(out, "No row that decides depends on %s: its value is the start's.\n", name);
            continue;
        }
        if (best->indices[a] == 0 || best->indices[a] == calibration->keys[a].value_count - 1) {
            fprintf(out, "The best %s is an end of its range.\n", name);
        }
        for (size_t b = a + 1; b < calibration->key_count; b++) {
            double cosine = product(results, a, b) / sqrt(product(results, a, a) * product(results, b, b));
            if (!moves_nothing(results, b) && fabs(cosine) > ALIKE) {
                fprintf(out,
                        "%s and %s move the rows that decide in the same way: only both together are determined.\n",
                        name, calibration->keys[b].name);
            }
        }
    }
    if (!search_is_complete(results->search)) {
        fputs("The search ended at its largest number of points; a better point may exist.\n", out);
    }
}

static void settings_print(const struct calibration_results *results, FILE *out)
{
    const struct search_point *best = search_point_at(results->search, search_best(results->search));
    fputs("\nThe best point:", out);
    for (size_t i = 0; i < results->calibration->key_count; i++) {
        const struct calibration_key *key = &results->calibration->keys[i];
        char text[CALIBRATION_VALUE_MAX];
        calibration_value_format(key, best->indices[i], text);
        for (size_t k = 0; k < key->path_count; k++) {
            fprintf(out, " \\\n  --set '%s=%s'", key->paths[k], text);
        }
    }
    fputc('\n', out);
}

void calibration_print(const struct calibration_results *results, FILE *out)
{
    if (results->calibration->title[0] != '\0') {
        fprintf(out, "%s\n", results->calibration->title);
    }
    fprintf(out, "%zu point%s on %s\n\n", search_count(results->search), search_count(results->search) == 1 ? "" : "s",
            results->fidelity);
    keys_print(results, out);
    fputs("\nErrors of the rows against their publications:\n", out);
    rows_print(results, out);
    fputs("\nChange of a row over the whole range of a key, the others at the start:\n", out);
    sensitivity_print(results, out);
    settings_print(results, out);
    limits_print(results, out);
}
