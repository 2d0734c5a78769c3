#include "sim/report/breakdown.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/report/breakdown_internal.h"
#include "sim/report/csv.h"
#include "sim/report/events.h"
#include "sim/report/files.h"
#include "sim/report/plot.h"

const char *const breakdown_part_names[PARTS] = {
    [PART_LIBRARY] = "library",
    [PART_STORES] = "stores",
    [PART_DESCRIPTOR] = "descriptor",
    [PART_PCIE] = "PCIe",
    [PART_BOARD] = "board",
#define DEVICE(id, ID, name, kind_doc, key_doc) [PART_##ID] = (name),
#include "sim/scenario/devices.def"
    [PART_CABLE] = "cable",
    [PART_MEMORY] = "memory",
    [PART_GPU] = "GPU",
    [PART_POLLING] = "polling",
    [PART_REMOTE_LIBRARY] = "remote library",
    [PART_OTHER] = "other",
};

enum sim_status breakdown_create(breakdown_t **breakdown_out)
{
    *breakdown_out = calloc(1, sizeof **breakdown_out);
    return *breakdown_out != NULL ? SIM_OK : SIM_ERR_NO_MEMORY;
}

void breakdown_destroy(breakdown_t *breakdown)
{
    if (breakdown != NULL) {
        free(breakdown->series);
        free(breakdown->rows);
        free(breakdown);
    }
}

// --- rows ----------------------------------------------------------------------------------------------------------

static enum breakdown_part part_find(const char *name)
{
    for (enum breakdown_part part = 0; part < PARTS; part++) {
        if (name != NULL && strcmp(breakdown_part_names[part], name) == 0) {
            return part;
        }
    }
    return PART_OTHER;
}

// opened: the part that a mark before this piece assigned to all that follows, or NULL.
static struct breakdown_row row_make(const struct breakdown_case *of, const struct sim_piece *piece, const char *opened,
                                     uint64_t zero_ps)
{
    struct breakdown_row row = {.begin_ps = piece->begin_ps - zero_ps, .end_ps = piece->end_ps - zero_ps};
    const char *part = piece->work != NULL ? piece->work->part : "other";
    row.part = part_find(opened != NULL ? opened : part);
    if (opened != NULL && strcmp(opened, part) != 0) {
        snprintf(row.detail, sizeof row.detail, "%s: %s", part, piece->work != NULL ? piece->work->what : "no label");
    } else {
        snprintf(row.detail, sizeof row.detail, "%s", piece->work != NULL ? piece->work->what : "no label");
    }
    snprintf(row.component, sizeof row.component, "%s", piece->component != NULL ? piece->component : "");
    events_node_find(row.component, row.node, sizeof row.node);
    if (row.part == PART_LIBRARY && strcmp(row.node, of->node) != 0) {
        row.part = PART_REMOTE_LIBRARY;
    }
    return row;
}

static bool rows_join(const struct breakdown_row *a, const struct breakdown_row *b)
{
    return a->series == b->series && a->part == b->part && strcmp(a->detail, b->detail) == 0 &&
           strcmp(a->component, b->component) == 0;
}

static void row_add(breakdown_t *breakdown, const struct breakdown_row *row)
{
    if (breakdown->row_count > 0 && rows_join(&breakdown->rows[breakdown->row_count - 1], row)) {
        breakdown->rows[breakdown->row_count - 1].end_ps = row->end_ps;
    } else {
        breakdown->rows[breakdown->row_count++] = *row;
    }
}

static enum sim_status rows_add(breakdown_t *breakdown, const struct breakdown_case *of, const struct sim_piece *pieces,
                                size_t count)
{
    struct breakdown_row *rows = realloc(breakdown->rows, (breakdown->row_count + count + 1) * sizeof *rows);
    if (rows == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    breakdown->rows = rows;
    struct breakdown_series *series = &breakdown->series[breakdown->series_count - 1];
    const char *opened = NULL;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].work != NULL && pieces[i].work->is_mark) {
            opened = pieces[i].work->part;
            continue;
        }
        struct breakdown_row row = row_make(of, &pieces[i], opened, pieces[0].begin_ps);
        row.series = breakdown->series_count - 1;
        if (row.end_ps > row.begin_ps) {
            series->parts_ps[row.part] += row.end_ps - row.begin_ps;
            row_add(breakdown, &row);
        }
    }
    return SIM_OK;
}

static enum sim_status series_add(breakdown_t *breakdown, const struct breakdown_case *of)
{
    struct breakdown_series *series =
        realloc(breakdown->series, (breakdown->series_count + 1) * sizeof *breakdown->series);
    if (series == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    breakdown->series = series;
    series += breakdown->series_count++;
    *series = (struct breakdown_series){.bytes = of->bytes, .operations = of->operations, .total_ps = of->total_ps};
    snprintf(series->name, sizeof series->name, "%s", of->series);
    return SIM_OK;
}

// Checks the series added last: each row begins where the previous one ends, and the parts add up to the total.
static enum sim_status sums_check(const breakdown_t *breakdown, char *error, size_t error_size)
{
    uint32_t index = breakdown->series_count - 1;
    const struct breakdown_series *series = &breakdown->series[index];
    uint64_t end_ps = 0, sum_ps = 0;
    for (size_t i = 0; i < breakdown->row_count; i++) {
        const struct breakdown_row *row = &breakdown->rows[i];
        if (row->series == index && row->begin_ps != end_ps) {
            snprintf(error, error_size,
                     "series '%s': a piece begins at %" PRIu64 " ps and the one before ends at %" PRIu64 " ps",
                     series->name, row->begin_ps, end_ps);
            return SIM_ERR_RANGE;
        }
        end_ps = row->series == index ? row->end_ps : end_ps;
    }
    for (enum breakdown_part part = 0; part < PARTS; part++) {
        sum_ps += series->parts_ps[part];
    }
    if (sum_ps != series->total_ps || end_ps != series->total_ps) {
        snprintf(error, error_size,
                 "series '%s': the pieces add up to %" PRIu64 " ps and the program measured %" PRIu64 " ps",
                 series->name, sum_ps, series->total_ps);
        return SIM_ERR_RANGE;
    }
    return SIM_OK;
}

enum sim_status breakdown_add(breakdown_t *breakdown, const struct breakdown_case *of, const struct sim_piece *pieces,
                              size_t count, char *error, size_t error_size)
{
    snprintf(error, error_size, "%s", sim_status_text(SIM_ERR_NO_MEMORY));
    enum sim_status status = series_add(breakdown, of);
    if (status == SIM_OK) {
        status = rows_add(breakdown, of, pieces, count);
    }
    return status == SIM_OK ? sums_check(breakdown, error, error_size) : status;
}

bool breakdown_part_used(const breakdown_t *breakdown, enum breakdown_part part)
{
    bool used = false;
    for (uint32_t i = 0; i < breakdown->series_count; i++) {
        used = used || breakdown->series[i].parts_ps[part] > 0;
    }
    return used;
}

// --- the table -----------------------------------------------------------------------------------------------------

static void ns_print(FILE *out, int width, uint64_t ps)
{
    fprintf(out, "%*" PRIu64 ".%03u", width - 4, ps / PS_PER_NS, (unsigned)(ps % PS_PER_NS));
}

static int column_width(const struct breakdown_series *series)
{
    int length = (int)strlen(series->name);
    return length > 11 ? length : 11;
}

void breakdown_print(const breakdown_t *breakdown, FILE *out)
{
    fprintf(out, "\n%-16s", "ns per operation");
    for (uint32_t i = 0; i < breakdown->series_count; i++) {
        fprintf(out, "  %*s", column_width(&breakdown->series[i]), breakdown->series[i].name);
    }
    fprintf(out, "\n%-16s", "bytes");
    for (uint32_t i = 0; i < breakdown->series_count; i++) {
        fprintf(out, "  %*" PRIu64, column_width(&breakdown->series[i]), breakdown->series[i].bytes);
    }
    for (enum breakdown_part part = 0; part < PARTS; part++) {
        if (!breakdown_part_used(breakdown, part)) {
            continue;
        }
        fprintf(out, "\n%-16s", breakdown_part_names[part]);
        for (uint32_t i = 0; i < breakdown->series_count; i++) {
            const struct breakdown_series *series = &breakdown->series[i];
            fputs("  ", out);
            ns_print(out, column_width(series), breakdown_each_ps(series, series->parts_ps[part]));
        }
    }
    fprintf(out, "\n%-16s", "latency");
    for (uint32_t i = 0; i < breakdown->series_count; i++) {
        const struct breakdown_series *series = &breakdown->series[i];
        fputs("  ", out);
        ns_print(out, column_width(series), breakdown_each_ps(series, series->total_ps));
    }
    fputc('\n', out);
}

// --- files ---------------------------------------------------------------------------------------------------------

static void csv_write(const breakdown_t *breakdown, FILE *out)
{
    fputs("series,bytes,operations,part,detail,component,node,begin_ps,end_ps,duration_ps\n", out);
    for (size_t i = 0; i < breakdown->row_count; i++) {
        const struct breakdown_row *row = &breakdown->rows[i];
        const struct breakdown_series *series = &breakdown->series[row->series];
        csv_text_write(out, series->name);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%s,", series->bytes, series->operations,
                breakdown_part_names[row->part]);
        csv_text_write(out, row->detail);
        fprintf(out, ",%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", row->component, row->node, row->begin_ps,
                row->end_ps, row->end_ps - row->begin_ps);
    }
}

enum sim_status breakdown_write(const breakdown_t *breakdown, const char *directory, const char *title, char *error,
                                size_t error_size)
{
    struct files files;
    files_init(&files, directory, error, error_size);
    FILE *out = files_open(&files, "breakdown.csv");
    if (out != NULL) {
        csv_write(breakdown, out);
        files_close(&files, out, "breakdown.csv");
    }
    out = files_open(&files, "breakdown.gp");
    if (out != NULL) {
        breakdown_plot_write(breakdown, title, out);
        files_close(&files, out, "breakdown.gp");
    }
    report_plot_draw(&files, "breakdown.gp", "breakdown.svg");
    return files_commit(&files);
}

void breakdown_remove(const char *directory)
{
    static const char *const names[] = {"breakdown.csv", "breakdown.gp", "breakdown.svg"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (files_path(directory, names[i], path, sizeof path) == SIM_OK) {
            (void)unlink(path);
        }
    }
}
