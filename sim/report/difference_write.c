// Writes a difference as files.
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <unistd.h>

#include "sim/report/csv.h"
#include "sim/report/difference_internal.h"
#include "sim/report/plot.h"

static void keys_write(const difference_t *difference, FILE *out)
{
    fputs("key,first,second\n", out);
    for (size_t i = 0; i < difference->key_count; i++) {
        const struct difference_key *key = &difference->keys[i];
        csv_text_write(out, key->path);
        fputc(',', out);
        csv_text_write(out, key->first != NULL ? key->first : "");
        fputc(',', out);
        csv_text_write(out, key->second != NULL ? key->second : "");
        fputc('\n', out);
    }
}

// The columns that both kinds of numbers have.
static void change_write(const struct difference_item *item, FILE *out)
{
    bool both = item->first != NULL && item->second != NULL;
    fprintf(out, ",%s,%s,", item->first != NULL ? item->first->text : "",
            item->second != NULL ? item->second->text : "");
    if (both) {
        fprintf(out, "%.18Lg,", item->change);
    } else {
        fputc(',', out);
    }
    if (both && isfinite(item->percent)) {
        fprintf(out, "%.6f", item->percent);
    }
    fprintf(out, ",%s\n", difference_state_name(item->state));
}

static void rows_write(const difference_t *difference, FILE *out)
{
    fputs("series,bytes,descriptors,ranks,column,first,second,difference,percent,state\n", out);
    for (size_t i = 0; i < difference->data.count; i++) {
        const struct difference_item *item = &difference->data.items[i];
        const struct measured_number *number = difference_number(item);
        csv_text_write(out, number->series);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", number->bytes, number->descriptors, number->ranks);
        csv_text_write(out, number->name);
        change_write(item, out);
    }
}

static void counters_write(const difference_t *difference, FILE *out)
{
    fputs("series,component,name,first,second,difference,percent,state\n", out);
    for (size_t i = 0; i < difference->counters.count; i++) {
        const struct difference_item *item = &difference->counters.items[i];
        const struct measured_number *number = difference_number(item);
        csv_text_write(out, number->series);
        fputc(',', out);
        csv_text_write(out, number->component);
        fputc(',', out);
        csv_text_write(out, number->name);
        change_write(item, out);
    }
}

static void plot_write(const difference_t *difference, FILE *out)
{
    (void)difference_plot_write(difference, out);
}

static void file_write(const difference_t *difference, struct files *files, const char *name,
                       void (*write)(const difference_t *difference, FILE *out))
{
    FILE *out = files_open(files, name);
    if (out != NULL) {
        write(difference, out);
        files_close(files, out, name);
    }
}

enum sim_status difference_write(const difference_t *difference, const char *directory, char *error, size_t error_size)
{
    struct files files;
    files_init(&files, directory, error, error_size);
    file_write(difference, &files, "keys.csv", keys_write);
    file_write(difference, &files, "rows.csv", rows_write);
    file_write(difference, &files, "counters.csv", counters_write);
    bool drawn = difference_plot_write(difference, NULL);
    if (drawn) {
        file_write(difference, &files, "plot.gp", plot_write);
        report_plot_draw(&files, "plot.gp", "plot.svg");
    }
    enum sim_status status = files_commit(&files);
    static const char *const pictures[] = {"plot.gp", "plot.svg"};
    for (size_t i = 0; i < 2 && status == SIM_OK && !drawn; i++) { // removes those of an earlier difference
        char path[PATH_MAX];
        if (files_path(directory, pictures[i], path, sizeof path) == SIM_OK) {
            (void)unlink(path);
        }
    }
    return status;
}
