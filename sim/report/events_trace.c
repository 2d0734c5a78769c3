#include "sim/report/events_trace.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/text.h"
#include "sim/report/events_counters.h"
#include "sim/report/grow.h"

// Pairs of trace points, of which the second ends what the first began.
static const struct {
    const char *begin, *end;
} pairs[] = {{"tlp_sent", "tlp_received"}, {"ib_sent", "ib_received"}, {"work_begins", "work_ends"}};

struct taken {
    struct events_counted counted;
    uint32_t number, cause, series; // of series: that of simulations with numbers of their own
    uint32_t before;                // the number of the record before it on its lane; 0: none
    uint64_t begin_ps, end_ps;
    char *name, *args;
    events_slice_t slice;
};

struct events_trace {
    struct taken *records;
    size_t count, room;
    char *last_series;
    uint32_t series;
    events_t *events;
    uint32_t *last; // by lane: the number of its last record
    size_t last_room;
    bool lacks_memory;
};

enum sim_status events_trace_create(events_trace_t **trace_out)
{
    events_trace_t *trace = calloc(1, sizeof *trace);
    *trace_out = trace;
    return trace != NULL ? events_create(&trace->events) : SIM_ERR_NO_MEMORY;
}

void events_trace_destroy(events_trace_t *trace)
{
    for (size_t i = 0; trace != NULL && i < trace->count; i++) {
        free(trace->records[i].name);
        free(trace->records[i].args);
    }
    if (trace != NULL) {
        events_destroy(trace->events);
        free(trace->records);
        free(trace->last_series);
        free(trace->last);
    }
    free(trace);
}

// --- records --------------------------------------------------------------------------------------------------------

static void value_write(FILE *out, const struct sim_trace_field *field, uint64_t value)
{
    switch (field->form) {
    case SIM_TRACE_DECIMAL:
        fprintf(out, "%" PRIu64, value);
        break;
    case SIM_TRACE_HEX: // beyond 2^53 a number of JSON is not exact
        fprintf(out, "\"0x%" PRIx64 "\"", value);
        break;
    case SIM_TRACE_NAME:
        sim_text_quote(out, field->names[value]);
        break;
    }
}

// The rest of the arguments, after number and cause.
static char *args_make(const struct sim_trace_record *record)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) {
        return NULL;
    }
    for (unsigned i = 0; i < record->point->field_count; i++) {
        if (record->values[i] != SIM_TRACE_ABSENT) {
            fprintf(out, ",\"%s\":", record->point->fields[i].name);
            value_write(out, &record->point->fields[i], record->values[i]);
        }
    }
    fputc('}', out);
    (void)fclose(out);
    return text;
}

// "tlp_sent MRd", "ibv_post_send SEND", "doorbell".
static char *name_make(const struct sim_trace_record *record)
{
    const char *kind = NULL;
    for (unsigned i = 0; i < record->point->field_count && kind == NULL; i++) {
        const struct sim_trace_field *field = &record->point->fields[i];
        bool tells = strcmp(field->name, "kind") == 0 || strcmp(field->name, "opcode") == 0;
        tells = tells && field->form == SIM_TRACE_NAME && record->values[i] != SIM_TRACE_ABSENT;
        kind = tells ? field->names[record->values[i]] : NULL;
    }
    char *name = NULL;
    int length = asprintf(&name, "%s%s%s", record->point->name, kind != NULL ? " " : "", kind != NULL ? kind : "");
    return length < 0 ? NULL : name;
}

// Notes the record as the last one of its lane. Returns the number of the one before.
static uint32_t last_exchange(events_trace_t *trace, uint32_t lane, uint32_t number)
{
    if (lane >= trace->last_room) {
        size_t room = 2 * (size_t)lane + 64;
        uint32_t *larger = realloc(trace->last, room * sizeof *larger);
        if (larger == NULL) {
            trace->lacks_memory = true;
            return 0;
        }
        memset(larger + trace->last_room, 0, (room - trace->last_room) * sizeof *larger);
        trace->last = larger;
        trace->last_room = room;
    }
    uint32_t before = trace->last[lane];
    trace->last[lane] = number;
    return before;
}

void events_trace_add(events_trace_t *trace, const char *series, const struct sim_trace_record *record, uint32_t cause)
{
    bool has_room = grow_array(&trace->records, trace->count, &trace->room, sizeof *trace->records);
    trace->lacks_memory = trace->lacks_memory || !has_room;
    if (trace->last_series == NULL || strcmp(trace->last_series, series) != 0) {
        free(trace->last_series);
        trace->last_series = strdup(series);
        trace->series++;
    }
    if (trace->count == trace->room || trace->last_series == NULL) {
        trace->lacks_memory = true;
        return;
    }
    char node[64], process[192];
    events_node_find(record->component, node, sizeof node);
    snprintf(process, sizeof process, "%s: %s", series, node);
    struct taken *taken = &trace->records[trace->count++];
    *taken = (struct taken){.number = record->number,
                            .cause = cause,
                            .series = trace->series,
                            .end_ps = record->time_ps,
                            .name = name_make(record),
                            .args = args_make(record)};
    taken->counted = events_counted_of(record, events_lane(trace->events, process, record->component));
    taken->before = last_exchange(trace, taken->counted.lane, record->number);
    uint64_t took_ps = taken->counted.took_ps;
    taken->begin_ps = record->time_ps - (took_ps < record->time_ps ? took_ps : record->time_ps);
    trace->lacks_memory = trace->lacks_memory || taken->name == NULL || taken->args == NULL;
}

// --- the end --------------------------------------------------------------------------------------------------------

// Records by series and number. NULL: there is none.
struct index {
    size_t *first; // of each series; a series' numbers may have gaps
    struct taken **by_number;
};

static struct taken *find(const struct index *index, uint32_t series, uint32_t number)
{
    size_t first = index->first[series], count = index->first[series + 1] - first;
    return number != 0 && number < count ? index->by_number[first + number] : NULL;
}

static bool index_make(const events_trace_t *trace, struct index *index)
{
    index->first = calloc(trace->series + 2u, sizeof *index->first);
    for (size_t i = 0; index->first != NULL && i < trace->count; i++) {
        size_t *room = &index->first[trace->records[i].series + 1];
        *room = *room > trace->records[i].number ? *room : trace->records[i].number + 1u;
    }
    for (uint32_t i = 1; index->first != NULL && i < trace->series + 2u; i++) {
        index->first[i] += index->first[i - 1];
    }
    index->by_number =
        index->first != NULL ? calloc(index->first[trace->series + 1] + 1, sizeof *index->by_number) : NULL;
    for (size_t i = 0; index->by_number != NULL && i < trace->count; i++) {
        struct taken *taken = &trace->records[i];
        index->by_number[index->first[taken->series] + taken->number] = taken;
    }
    return index->by_number != NULL;
}

// What was sent lasts until it is received first.
static void pairs_join(events_trace_t *trace, const struct index *index)
{
    for (size_t i = 0; i < trace->count; i++) {
        const struct taken *end = &trace->records[i];
        struct taken *begin = find(index, end->series, end->cause);
        for (size_t k = 0; k < sizeof pairs / sizeof pairs[0] && begin != NULL; k++) {
            if (strcmp(begin->counted.point, pairs[k].begin) == 0 && strcmp(end->counted.point, pairs[k].end) == 0 &&
                begin->end_ps == begin->begin_ps) {
                begin->end_ps = end->begin_ps;
            }
        }
    }
}

// What a program stores between two calls has the number of the later call as its cause (sim/observe/trace.c), which begins
// after it: it follows from the call before.
static void causes_settle(events_trace_t *trace, const struct index *index)
{
    for (size_t i = 0; i < trace->count; i++) {
        struct taken *effect = &trace->records[i];
        const struct taken *cause = find(index, effect->series, effect->cause);
        while (cause != NULL && cause->begin_ps > effect->end_ps) {
            effect->cause = cause->before;
            cause = find(index, effect->series, effect->cause);
        }
    }
}

static void events_make(events_trace_t *trace, const struct index *index)
{
    for (size_t i = 0; i < trace->count; i++) {
        struct taken *taken = &trace->records[i];
        char *args = NULL;
        trace->lacks_memory |= asprintf(&args, "{\"number\":%" PRIu32 ",\"cause\":%" PRIu32 "%s", taken->number,
                                        taken->cause, taken->args) < 0;
        taken->slice = events_slice_add(trace->events, &(struct events_slice){.lane = taken->counted.lane,
                                                                              .begin_ps = taken->begin_ps,
                                                                              .end_ps = taken->end_ps,
                                                                              .name = taken->name,
                                                                              .category = taken->counted.point,
                                                                              .args = args});
        free(args);
    }
    for (size_t i = 0; i < trace->count; i++) {
        const struct taken *effect = &trace->records[i], *cause = find(index, effect->series, effect->cause);
        if (cause != NULL) {
            events_flow_add(trace->events, cause->slice, effect->slice);
        }
    }
}

static bool counters_make(events_trace_t *trace)
{
    struct events_counted *counted = calloc(trace->count + 1, sizeof *counted);
    for (size_t i = 0; counted != NULL && i < trace->count; i++) {
        counted[i] = trace->records[i].counted;
        counted[i].begin_ps = trace->records[i].begin_ps;
        counted[i].end_ps = trace->records[i].end_ps;
    }
    bool good = counted != NULL && events_counters_add(trace->events, counted, trace->count);
    free(counted);
    return good;
}

enum sim_status events_trace_write(events_trace_t *trace, FILE *out)
{
    struct index index = {0};
    bool good = !trace->lacks_memory && index_make(trace, &index);
    if (good) {
        causes_settle(trace, &index);
        pairs_join(trace, &index);
        events_make(trace, &index);
        good = !trace->lacks_memory && counters_make(trace);
    }
    free(index.first);
    free(index.by_number);
    return good ? events_write(trace->events, out) : SIM_ERR_NO_MEMORY;
}
