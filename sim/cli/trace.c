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

static void head_write(FILE *file, bool causes)
{
    fputs("series,time_ps,component,point", file);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        fprintf(file, ",%s", columns[i]);
    }
    fputs(causes ? ",details,number,cause\n" : ",details\n", file);
}

static bool is_json(const char *path)
{
    size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

bool cli_trace_open(struct cli_trace *trace, const char *path, const struct cli_list *only, bool causes)
{
    *trace = (struct cli_trace){.path = path, .only = only, .series = "", .causes = causes || is_json(path)};
    if (is_json(path) && events_trace_create(&trace->events) != SIM_OK) {
        cli_error("out of memory");
        events_trace_destroy(trace->events);
        return false;
    }
    if (asprintf(&trace->temporary, "%s.%ld.tmp", path, (long)getpid()) < 0) {
        cli_error("out of memory");
        events_trace_destroy(trace->events);
        return false;
    }
    trace->file = fopen(trace->temporary, "w");
    if (trace->file == NULL) {
        cli_error("cannot write %s: %s", path, strerror(errno));
        free(trace->temporary);
        events_trace_destroy(trace->events);
        return false;
    }
    cli_interrupt_file_set(INTERRUPT_SLOT, trace->temporary);
    if (trace->events == NULL) {
        head_write(trace->file, causes);
    }
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

// --- causes among the records that are written -----------------------------------------------------------------------

#define NOT_KNOWN UINT32_MAX

static uint32_t written_of(const struct cli_trace *trace, uint32_t number)
{
    return number < trace->written_room && trace->written[number] != NOT_KNOWN ? trace->written[number] : number;
}

// Notes which record stands for this one in causes.
static void written_note(struct cli_trace *trace, uint32_t number, uint32_t written)
{
    if (number >= trace->written_room) {
        size_t room = 2 * (size_t)number + 1024;
        uint32_t *larger = realloc(trace->written, room * sizeof *larger);
        if (larger == NULL) {
            return; // the cause will be a record that is not in the file
        }
        memset(larger + trace->written_room, 0xff, (room - trace->written_room) * sizeof *larger);
        trace->written = larger;
        trace->written_room = room;
    }
    trace->written[number] = written;
}

// The cause of a record among those that are written.
static uint32_t cause_find(struct cli_trace *trace, const struct sim_trace_record *record, bool wanted)
{
    bool all = trace->only == NULL || trace->only->count == 0;
    if (all || record->number == 0) {
        return record->cause;
    }
    for (size_t i = 0; trace->written_series != trace->series && i < trace->written_room; i++) {
        trace->written[i] = NOT_KNOWN; // numbers begin again
    }
    trace->written_series = trace->series;
    uint32_t cause = record->cause != 0 ? written_of(trace, record->cause) : 0;
    written_note(trace, record->number, wanted ? record->number : cause);
    return cause;
}

static void number_write(FILE *file, uint32_t number)
{
    fputc(',', file);
    if (number != 0) {
        fprintf(file, "%" PRIu32, number);
    }
}

static void line_write(struct cli_trace *trace, const struct sim_trace_record *record, uint32_t cause)
{
    const struct sim_trace_point *point = record->point;
    csv_text_write(trace->file, trace->series);
    fprintf(trace->file, ",%" PRIu64 ",%s,%s", record->time_ps, record->component, point->name);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        fputc(',', trace->file);
        for (unsigned k = 0; k < point->field_count; k++) {
            if (strcmp(point->fields[k].name, columns[i]) == 0) {
                value_write(trace->file, &point->fields[k], record->values[k]);
            }
        }
    }
    fputc(',', trace->file);
    if (has_details(point)) {
        details_write(trace->file, point, record->values);
    }
    if (trace->causes) {
        number_write(trace->file, record->number);
        number_write(trace->file, cause);
    }
    fputc('\n', trace->file);
}

void cli_trace_write(struct cli_trace *trace, const struct sim_trace_record *record)
{
    bool wanted = is_wanted(trace, record->component, record->point->name);
    uint32_t cause = cause_find(trace, record, wanted);
    trace->any = trace->any || wanted;
    if (wanted && trace->events != NULL) {
        events_trace_add(trace->events, trace->series, record, cause);
    } else if (wanted) {
        line_write(trace, record, cause);
    }
}

bool cli_trace_close(struct cli_trace *trace, bool keep)
{
    if (keep && !trace->any && trace->only != NULL && trace->only->count > 0) {
        cli_error(
            "--trace-only: nothing matched; a pattern must match whole names of components (node0.hca, '*.verbs') or "
            "of trace points");
    }
    bool enough = !keep || trace->events == NULL || events_trace_write(trace->events, trace->file) == SIM_OK;
    bool written = ferror(trace->file) == 0 && enough;
    written = fclose(trace->file) == 0 && written;
    written = written && (!keep || rename(trace->temporary, trace->path) == 0);
    if (!written) {
        cli_error("cannot write %s: %s", trace->path, enough ? strerror(errno) : "out of memory");
    }
    if (!keep || !written) {
        (void)unlink(trace->temporary);
    }
    cli_interrupt_file_set(INTERRUPT_SLOT, NULL);
    free(trace->temporary);
    free(trace->written);
    events_trace_destroy(trace->events);
    return written;
}
