#include "sim/cli/trace.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/interrupt.h"
#include "sim/report/csv.h"

#define INTERRUPT_SLOT 0

// Fields that most points have. Other fields share the column `details`, as name=value.
static const char *const columns[] = {"kind", "address", "length_bytes", "requester", "tag", "status"};
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])

static void head_write(FILE *file)
{
    fputs("series,time_ps,component,point", file);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        fprintf(file, ",%s", columns[i]);
    }
    fputs(",details\n", file);
}

bool cli_trace_open(struct cli_trace *trace, const char *path, const struct cli_list *only)
{
    *trace = (struct cli_trace){.path = path, .only = only, .series = ""};
    if (asprintf(&trace->temporary, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        cli_error("out of memory");
        return false;
    }
    trace->file = fopen(trace->temporary, "w");
    if (trace->file == NULL) {
        cli_error("cannot write %s: %s", path, strerror(errno));
        free(trace->temporary);
        return false;
    }
    cli_interrupt_file_set(INTERRUPT_SLOT, trace->temporary);
    head_write(trace->file);
    return true;
}

static bool is_wanted(const struct cli_trace *trace, const char *component, const char *point)
{
    for (size_t i = 0; trace->only != NULL && i < trace->only->count; i++) {
        const char *pattern = trace->only->items[i];
        if (fnmatch(pattern, component, 0) == 0 || fnmatch(pattern, point, 0) == 0) {
            return true;
        }
    }
    return trace->only == NULL || trace->only->count == 0;
}

static void value_write(FILE *file, const struct sim_trace_field *field, uint64_t value)
{
    if (value == SIM_TRACE_ABSENT) {
        return;
    }
    switch (field->form) {
    case SIM_TRACE_DECIMAL:
        fprintf(file, "%" PRIu64, value);
        break;
    case SIM_TRACE_HEX:
        fprintf(file, "0x%" PRIx64, value);
        break;
    case SIM_TRACE_NAME:
        fputs(field->names[value], file);
        break;
    }
}

static bool has_column(const struct sim_trace_field *field)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (strcmp(field->name, columns[i]) == 0) {
            return true;
        }
    }
    return false;
}

enum { DETAILS_BYTES = 4096 };

static void details_print(FILE *file, const struct sim_trace_point *point, const uint64_t *values)
{
    const char *between = "";
    for (unsigned k = 0; k < point->field_count; k++) {
        if (!has_column(&point->fields[k]) && values[k] != SIM_TRACE_ABSENT) {
            fprintf(file, "%s%s=", between, point->fields[k].name);
            value_write(file, &point->fields[k], values[k]);
            between = " ";
        }
    }
}

static void details_write(FILE *out, const struct sim_trace_point *point, const uint64_t *values)
{
    char text[DETAILS_BYTES] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    if (file != NULL) {
        details_print(file, point, values);
        (void)fclose(file);
        text[sizeof text - 1] = '\0';
        csv_text_write(out, text);
    }
}

static bool has_details(const struct sim_trace_point *point)
{
    bool has = false;
    for (unsigned k = 0; k < point->field_count && !has; k++) {
        has = !has_column(&point->fields[k]);
    }
    return has;
}

void cli_trace_write(void *ctx, uint64_t time_ps, const char *component, const struct sim_trace_point *point,
                     const uint64_t *values)
{
    struct cli_trace *trace = ctx;
    if (!is_wanted(trace, component, point->name)) {
        return;
    }
    trace->any = true;
    csv_text_write(trace->file, trace->series);
    fprintf(trace->file, ",%" PRIu64 ",%s,%s", time_ps, component, point->name);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        fputc(',', trace->file);
        for (unsigned k = 0; k < point->field_count; k++) {
            if (strcmp(point->fields[k].name, columns[i]) == 0) {
                value_write(trace->file, &point->fields[k], values[k]);
            }
        }
    }
    fputc(',', trace->file);
    if (has_details(point)) {
        details_write(trace->file, point, values);
    }
    fputc('\n', trace->file);
}

bool cli_trace_close(struct cli_trace *trace, bool keep)
{
    if (keep && !trace->any && trace->only != NULL && trace->only->count > 0) {
        cli_error(
            "--trace-only: nothing matched; a pattern must match whole names of components (node0.hca, '*.verbs') or "
            "of trace points");
    }
    bool written = ferror(trace->file) == 0;
    written = fclose(trace->file) == 0 && written;
    written = written && (!keep || rename(trace->temporary, trace->path) == 0);
    if (!written) {
        cli_error("cannot write %s: %s", trace->path, strerror(errno));
    }
    if (!keep || !written) {
        (void)unlink(trace->temporary);
    }
    cli_interrupt_file_set(INTERRUPT_SLOT, NULL);
    free(trace->temporary);
    return written;
}
