// A panel for each key: the error of every row over the key's range, the others at the start. Rows that decide are
// solid, the others dashed; dots are the simulated points. A vertical line is the key's best value.
#include <math.h>
#include <string.h>

#include "sim/kernel/text.h"
#include "sim/report/calibration.h"
#include "sim/report/plot_axis.h"

enum {
    PANEL_WIDTH = 460,
    PANEL_HEIGHT = 420,
    TITLE_HEIGHT = 50,
    KEY_WIDTH = 500,
    ROWS_MAX = 12,
    COLUMNS_MAX = 3,
    TITLE_MAX = 50
};

// Rows that can be shown: those with an error at the start. Rows that decide come first.
static size_t rows_choose(const struct calibration_results *results, size_t chosen[ROWS_MAX])
{
    size_t count = 0;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < results->row_count && count < ROWS_MAX; i++) {
            bool number = isfinite(calibration_error(&results->rows[i], results->values[i]));
            if (number && results->rows[i].decides == (pass == 0)) {
                chosen[count++] = i;
            }
        }
    }
    return count;
}

// The largest unit that the least value of the key reaches, and its name for the axis.
static double axis_unit(const struct calibration_key *key, const char **name_out)
{
    static const struct {
        enum calibration_unit unit;
        double size, from;
        const char *name;
    } units[] = {{CALIBRATION_TIME, 1e6, 1e6, "us"},    {CALIBRATION_TIME, 1e3, 0, "ns"},
                 {CALIBRATION_SIZE, 1024, 1024, "KiB"}, {CALIBRATION_SIZE, 1, 0, "bytes"},
                 {CALIBRATION_RATE, 1, 0, "MB/s"},      {CALIBRATION_FREQUENCY, 1, 0, "MHz"},
                 {CALIBRATION_NUMBER, 1, 0, "count"}};
    size_t i = 0;
    while (units[i].unit != key->unit || units[i].from > (double)key->from) {
        i++;
    }
    *name_out = units[i].name;
    return units[i].size;
}

static void data_write(const struct calibration_results *results, size_t key, const size_t *rows, size_t row_count,
                       FILE *out)
{
    size_t numbers[SEARCH_SWEEP_VALUES + 1];
    size_t count = search_sweep(results->search, key, numbers);
    const char *name;
    double unit = axis_unit(&results->calibration->keys[key], &name);
    fprintf(out, "$key%zu << END\n", key);
    for (size_t i = 0; i < count; i++) {
        uint32_t index = search_point_at(results->search, numbers[i])->indices[key];
        fprintf(out, "%.9g", (double)calibration_value(&results->calibration->keys[key], index) / unit);
        for (size_t k = 0; k < row_count; k++) {
            double value = results->values[numbers[i] * results->row_count + rows[k]];
            double percent = calibration_error(&results->rows[rows[k]], value);
            if (isfinite(percent)) {
                fprintf(out, " %.6f", percent);
            } else {
                fputs(" NaN", out);
            }
        }
        fputc('\n', out);
    }
    fputs("END\n", out);
}

static void header_write(unsigned columns, unsigned lines, FILE *out)
{
    fprintf(out,
            "# The error of every row over the range of every key. Run it in this directory: gnuplot plot.gp\n"
            "if (!exists('image')) image = 'plot.svg'\n\n"
            "set terminal svg size %u,%u noenhanced font 'Helvetica,14' linewidth 1.2 background rgb '#ffffff'\n"
            "set output image\nset datafile missing NaN\nset border 3 linecolor '#404040'\n"
            "set tics nomirror out scale 0.6\nset grid linetype 1 linewidth 0.6 linecolor '#dddddd'\n"
            "set ylabel 'Error [%%]'\nset offsets graph 0.03, graph 0.03, graph 0.08, graph 0.08\n\n",
            columns * PANEL_WIDTH + KEY_WIDTH, lines * PANEL_HEIGHT + TITLE_HEIGHT);
}

static void key_entries_write(const struct calibration_results *results, const size_t *rows, size_t row_count,
                              FILE *out)
{
    for (size_t k = 0; k < row_count; k++) {
        const struct calibration_row *row = &results->rows[rows[k]];
        char title[TITLE_MAX + 16];
        snprintf(title, sizeof title, "%s %.*s%s", row->reference->id, (int)sim_text_fit(row->what, TITLE_MAX),
                 row->what, strlen(row->what) > TITLE_MAX ? "..." : "");
        fprintf(out, ", \\\n     keyentry with linespoints linecolor rgb '%s' dashtype %s pointtype %u title ",
                plot_colours[k % PLOT_COLOURS_MORE], row->decides ? "solid" : "'-'", row->decides ? 7u : 6u);
        plot_string_write(out, title);
    }
    fputs(", \\\n     keyentry with lines linecolor rgb '#909090' dashtype '.' title 'best value'\n", out);
}

static void panel_write(const struct calibration_results *results, size_t key, const size_t *rows, size_t row_count,
                        FILE *out)
{
    const struct calibration_key *one = &results->calibration->keys[key];
    const char *unit_name;
    double unit = axis_unit(one, &unit_name);
    uint32_t best = search_point_at(results->search, search_best(results->search))->indices[key];
    char label[128];
    snprintf(label, sizeof label, "%.90s [%s]", one->name, unit_name);
    fputs("set xlabel ", out);
    plot_string_write(out, label);
    fprintf(
        out,
        "\nunset arrow\nset arrow from %.9g, graph 0 to %.9g, graph 1 nohead linecolor rgb '#909090' dashtype '.'\n",
        (double)calibration_value(one, best) / unit, (double)calibration_value(one, best) / unit);
    fputs("plot 0 with lines linecolor rgb '#404040' linewidth 0.8 notitle", out);
    for (size_t k = 0; k < row_count; k++) {
        bool decides = results->rows[rows[k]].decides;
        fprintf(out,
                ", \\\n     $key%zu using 1:%zu with linespoints linecolor rgb '%s' dashtype %s pointtype %u pointsize "
                "0.5 notitle",
                key, k + 2, plot_colours[k % PLOT_COLOURS_MORE], decides ? "solid" : "'-'", decides ? 7u : 6u);
    }
    if (key == 0) {
        key_entries_write(results, rows, row_count, out);
    }
    fputc('\n', out);
}

void calibration_plot_write(const struct calibration_results *results, FILE *out)
{
    size_t rows[ROWS_MAX], row_count = rows_choose(results, rows), keys = results->calibration->key_count;
    unsigned columns = keys < COLUMNS_MAX ? (unsigned)keys : COLUMNS_MAX;
    unsigned lines = ((unsigned)keys + columns - 1) / columns;
    double width = columns * PANEL_WIDTH + KEY_WIDTH, height = lines * PANEL_HEIGHT + TITLE_HEIGHT;
    header_write(columns, lines, out);
    for (size_t key = 0; key < keys; key++) {
        data_write(results, key, rows, row_count, out);
    }
    fputs("\nset multiplot title ", out);
    plot_string_write(out, results->calibration->title[0] != '\0' ? results->calibration->title : "Calibration");
    fputs(" font ',18'\n", out);
    for (size_t key = 0; key < keys; key++) {
        unsigned column = (unsigned)key % columns, line = (unsigned)key / columns;
        double left = column * PANEL_WIDTH, top = TITLE_HEIGHT + line * PANEL_HEIGHT;
        fprintf(out,
                "\nset lmargin at screen %.5f\nset rmargin at screen %.5f\n"
                "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
                (left + 75) / width, (left + PANEL_WIDTH - 20) / width, 1 - (top + 10) / height,
                1 - (top + PANEL_HEIGHT - 85) / height);
        fprintf(out,
                key == 0 ? "set key at screen %.5f, screen %.5f left top Left reverse samplen 2.4 spacing 1.1\n"
                         : "unset key\n",
                columns * PANEL_WIDTH / width, 1 - 60 / height);
        panel_write(results, key, rows, row_count, out);
    }
    fputs("\nunset multiplot\nset output\n", out);
}
