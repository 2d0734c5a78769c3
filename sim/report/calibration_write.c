// Writes a calibration as files.
#include <math.h>

#include "sim/report/calibration.h"
#include "sim/report/csv.h"
#include "sim/report/plot.h"

static void number_write(double value, FILE *out)
{
    if (isfinite(value)) {
        fprintf(out, ",%.6g", value);
    } else {
        fputc(',', out);
    }
}

static void keys_head_write(const struct calibration_results *results, FILE *out)
{
    for (size_t key = 0; key < results->calibration->key_count; key++) {
        fputc(',', out);
        csv_text_write(out, results->calibration->keys[key].name);
    }
}

// A column for each key with its value, and for each row with the simulated one.
static void points_write(const struct calibration_results *results, FILE *out)
{
    fputs("point", out);
    keys_head_write(results, out);
    for (size_t i = 0; i < results->row_count; i++) {
        char head[SCN_TEXT_MAX + 64];
        snprintf(head, sizeof head, "%s: %s", results->rows[i].reference->id, results->rows[i].what);
        fputc(',', out);
        csv_text_write(out, head);
    }
    fputc('\n', out);
    for (size_t point = 0; point < search_count(results->search); point++) {
        fprintf(out, "%zu", point + 1);
        for (size_t key = 0; key < results->calibration->key_count; key++) {
            char text[CALIBRATION_VALUE_MAX];
            calibration_value_format(&results->calibration->keys[key],
                                     search_point_at(results->search, point)->indices[key], text);
            fprintf(out, ",%s", text);
        }
        for (size_t i = 0; i < results->row_count; i++) {
            number_write(results->values[point * results->row_count + i], out);
        }
        fputc('\n', out);
    }
}

static void row_begin(const struct calibration_row *row, FILE *out)
{
    csv_text_write(out, row->reference->id);
    fputc(',', out);
    csv_text_write(out, row->what);
    fprintf(out, ",%s", row->reference->use);
}

static void rows_write(const struct calibration_results *results, FILE *out)
{
    size_t best = search_best(results->search);
    fputs("id,what,use,decides,published,unit,start,best,start_checked,best_checked\n", out);
    for (size_t i = 0; i < results->row_count; i++) {
        const struct calibration_row *row = &results->rows[i];
        row_begin(row, out);
        fprintf(out, ",%s,", row->decides ? "yes" : "no");
        csv_text_write(out, row->reference->value);
        fputc(',', out);
        csv_text_write(out, row->reference->unit);
        number_write(results->values[i], out);
        number_write(results->values[best * results->row_count + i], out);
        for (size_t k = 0; k < 2; k++) {
            number_write(results->check_fidelity != NULL ? results->checked[k][i] : NAN, out);
        }
        fputc('\n', out);
    }
}

static void sensitivity_write(const struct calibration_results *results, FILE *out)
{
    fputs("id,what,use", out);
    keys_head_write(results, out);
    fputc('\n', out);
    for (size_t i = 0; i < results->row_count; i++) {
        row_begin(&results->rows[i], out);
        for (size_t key = 0; key < results->calibration->key_count; key++) {
            number_write(calibration_sensitivity(results, i, key), out);
        }
        fputc('\n', out);
    }
}

enum sim_status calibration_write(const struct calibration_results *results, const char *directory, char *error,
                                  size_t error_size)
{
    static const struct {
        const char *name;
        void (*write)(const struct calibration_results *results, FILE *out);
    } parts[] = {{"points.csv", points_write},
                 {"rows.csv", rows_write},
                 {"sensitivity.csv", sensitivity_write},
                 {"plot.gp", calibration_plot_write}};
    struct files files;
    files_init(&files, directory, error, error_size);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        FILE *out = files_open(&files, parts[i].name);
        if (out != NULL) {
            parts[i].write(results, out);
            files_close(&files, out, parts[i].name);
        }
    }
    report_plot_draw(&files, "plot.gp", "plot.svg");
    return files_commit(&files);
}
