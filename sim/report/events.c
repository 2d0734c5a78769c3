#include "sim/report/events.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/text.h"
#include "sim/report/grow.h"

enum { PS_PER_US = 1000000 };

struct slice {
    uint64_t begin_ps, end_ps;
    uint32_t lane, row, order;
    char *name, *category, *args;
};

// A flow's begin, step or end, or a counter's value.
struct point {
    uint64_t at_ps, id_or_value;
    uint32_t lane, row_of, order; // row_of: the slice on whose row it is
    char phase;                   // 's', 't', 'f', 'C'
    char *name;                   // of a counter
    const char *unit;
};

struct lane {
    char *process, *component;
    uint32_t pid, first_tid, rows;
};

struct events {
    struct slice *slices;
    struct point *points;
    struct lane *lanes;
    size_t slice_count, slice_room, point_count, point_room, lane_count, lane_room;
    uint64_t flows;
    bool lacks_memory;
};

enum sim_status events_create(events_t **events_out)
{
    *events_out = calloc(1, sizeof **events_out);
    return *events_out != NULL ? SIM_OK : SIM_ERR_NO_MEMORY;
}

void events_destroy(events_t *events)
{
    if (events == NULL) {
        return;
    }
    for (size_t i = 0; i < events->slice_count; i++) {
        free(events->slices[i].name);
        free(events->slices[i].category);
        free(events->slices[i].args);
    }
    for (size_t i = 0; i < events->point_count; i++) {
        free(events->points[i].name);
    }
    for (size_t i = 0; i < events->lane_count; i++) {
        free(events->lanes[i].process);
        free(events->lanes[i].component);
    }
    free(events->slices);
    free(events->points);
    free(events->lanes);
    free(events);
}

// Room for one more element. false: there is no memory.
static bool has_room(events_t *events, void *array, size_t count, size_t *room, size_t bytes)
{
    bool has = grow_array(array, count, room, bytes);
    events->lacks_memory = events->lacks_memory || !has;
    return has;
}

static char *copy(events_t *events, const char *text)
{
    char *copied = text != NULL ? strdup(text) : NULL;
    events->lacks_memory = events->lacks_memory || (text != NULL && copied == NULL);
    return copied;
}

uint32_t events_lane(events_t *events, const char *process, const char *component)
{
    uint32_t pid = 0, most = 0;
    for (uint32_t i = 0; i < events->lane_count; i++) {
        const struct lane *lane = &events->lanes[i];
        bool same = strcmp(lane->process, process) == 0;
        if (same && strcmp(lane->component, component) == 0) {
            return i;
        }
        pid = same ? lane->pid : pid;
        most = lane->pid > most ? lane->pid : most;
    }
    pid = pid != 0 ? pid : most + 1;
    char *names[2] = {copy(events, process), copy(events, component)};
    if (names[0] == NULL || names[1] == NULL ||
        !has_room(events, &events->lanes, events->lane_count, &events->lane_room, sizeof *events->lanes)) {
        free(names[0]);
        free(names[1]);
        return 0;
    }
    events->lanes[events->lane_count] = (struct lane){names[0], names[1], pid, 0, 0};
    return (uint32_t)events->lane_count++;
}

const char *events_lane_component(const events_t *events, uint32_t lane)
{
    return lane < events->lane_count ? events->lanes[lane].component : "";
}

events_slice_t events_slice_add(events_t *events, const struct events_slice *slice)
{
    if (!has_room(events, &events->slices, events->slice_count, &events->slice_room, sizeof *events->slices)) {
        return 0;
    }
    uint32_t number = (uint32_t)events->slice_count++;
    events->slices[number] = (struct slice){.begin_ps = slice->begin_ps,
                                            .end_ps = slice->end_ps,
                                            .lane = slice->lane,
                                            .order = number,
                                            .name = copy(events, slice->name),
                                            .category = copy(events, slice->category),
                                            .args = copy(events, slice->args)};
    return number;
}

static void point_add(events_t *events, const struct point *point)
{
    if (has_room(events, &events->points, events->point_count, &events->point_room, sizeof *events->points)) {
        events->points[events->point_count] = *point;
        events->points[events->point_count].order = (uint32_t)events->point_count;
        events->point_count++;
    }
}

static void flow_point_add(events_t *events, char phase, events_slice_t slice, uint64_t at_ps)
{
    point_add(events, &(struct point){.at_ps = at_ps,
                                      .id_or_value = events->flows,
                                      .lane = events->slices[slice].lane,
                                      .row_of = slice,
                                      .phase = phase});
}

// An arrow leaves a slice that is over when the other begins at its end, otherwise where the other begins; it enters a
// slice that began before, such as a wait, where the first begins.
void events_flow_add(events_t *events, events_slice_t from, events_slice_t to)
{
    if (from >= events->slice_count || to >= events->slice_count ||
        events->slices[from].begin_ps > events->slices[to].end_ps) {
        return;
    }
    const struct slice *cause = &events->slices[from], *effect = &events->slices[to];
    uint64_t leaves_ps = effect->begin_ps > cause->begin_ps ? effect->begin_ps : cause->begin_ps;
    leaves_ps = leaves_ps < cause->end_ps ? leaves_ps : cause->end_ps;
    events->flows++;
    flow_point_add(events, 's', from, leaves_ps);
    flow_point_add(events, 'f', to, leaves_ps > effect->begin_ps ? leaves_ps : effect->begin_ps);
}

void events_chain_add(events_t *events, events_slice_t first, uint32_t count)
{
    if (count < 2 || first + count > events->slice_count) {
        return;
    }
    events->flows++;
    for (uint32_t i = 0; i < count; i++) {
        flow_point_add(events,
                       i == 0           ? 's'
                       : i + 1 == count ? 'f'
                                        : 't',
                       first + i, events->slices[first + i].begin_ps);
    }
}

void events_counter_add(events_t *events, uint32_t lane, uint64_t at_ps, const char *name, const char *unit,
                        uint64_t value)
{
    point_add(events, &(struct point){.at_ps = at_ps,
                                      .id_or_value = value,
                                      .lane = lane,
                                      .phase = 'C',
                                      .name = copy(events, name),
                                      .unit = unit});
}

void events_node_find(const char *component, char *node, size_t room)
{
    const char *rest = component + strcspn(component, "."), *last = strrchr(component, '.');
    const char *dash = strchr(rest, '-');
    const char *begin = dash != NULL && strcmp(last, ".1") == 0 ? dash + 1 : component;
    snprintf(node, room, "%.*s", (int)strcspn(begin, "."), begin);
}

// --- the file -------------------------------------------------------------------------------------------------------

// Longer slices first, because shorter ones may be within them.
static int slices_compare(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    if (x->begin_ps != y->begin_ps) {
        return x->begin_ps < y->begin_ps ? -1 : 1;
    }
    if (x->end_ps != y->end_ps) {
        return x->end_ps > y->end_ps ? -1 : 1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

static int points_compare(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    if (x->at_ps != y->at_ps) {
        return x->at_ps < y->at_ps ? -1 : 1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

// Gives each slice, in the order of time, the first row of its lane that is free. Then gives rows their tids.
static bool rows_assign(events_t *events)
{
    uint64_t **free_ps = calloc(events->lane_count + 1, sizeof *free_ps);
    bool good = free_ps != NULL;
    for (size_t i = 0; i < events->slice_count && good; i++) {
        struct slice *slice = &events->slices[i];
        struct lane *lane = &events->lanes[slice->lane];
        uint64_t **of = &free_ps[slice->lane];
        uint32_t row = 0;
        while (row < lane->rows && (*of)[row] > slice->begin_ps) {
            row++;
        }
        if (row == lane->rows) {
            uint64_t *more = realloc(*of, (row + 1) * sizeof *more);
            good = more != NULL;
            *of = good ? more : *of;
            lane->rows += good;
        }
        if (good) {
            (*of)[row] = slice->end_ps;
            slice->row = row;
        }
    }
    for (size_t i = 0, tid = 1; i < events->lane_count; i++) {
        events->lanes[i].rows += events->lanes[i].rows == 0;
        events->lanes[i].first_tid = (uint32_t)tid;
        tid += events->lanes[i].rows;
        free(free_ps != NULL ? free_ps[i] : NULL);
    }
    free(free_ps);
    return good;
}

static void name_write(FILE *out, const char *what, uint32_t pid, uint32_t tid, const char *name, uint32_t row)
{
    fprintf(out,
            "{\"ph\":\"M\",\"ts\":0,\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"args\":{\"name\":", what,
            pid, tid);
    if (row == 0) {
        sim_text_quote(out, name);
    } else {
        char numbered[160];
        snprintf(numbered, sizeof numbered, "%s (%" PRIu32 ")", name, row + 1);
        sim_text_quote(out, numbered);
    }
    fputs("}},\n", out);
}

static void sort_write(FILE *out, const char *what, uint32_t pid, uint32_t tid, uint32_t index)
{
    fprintf(out,
            "{\"ph\":\"M\",\"ts\":0,\"name\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
            ",\"args\":{\"sort_index\":%" PRIu32 "}},\n",
            what, pid, tid, index);
}

static void names_write(const events_t *events, FILE *out)
{
    for (size_t i = 0; i < events->lane_count; i++) {
        const struct lane *lane = &events->lanes[i];
        bool is_first = true;
        for (size_t k = 0; k < i; k++) {
            is_first = is_first && events->lanes[k].pid != lane->pid;
        }
        if (is_first) {
            name_write(out, "process_name", lane->pid, lane->first_tid, lane->process, 0);
            sort_write(out, "process_sort_index", lane->pid, lane->first_tid, lane->pid);
        }
        for (uint32_t row = 0; row < lane->rows; row++) {
            name_write(out, "thread_name", lane->pid, lane->first_tid + row, lane->component, row);
            sort_write(out, "thread_sort_index", lane->pid, lane->first_tid + row, lane->first_tid + row);
        }
    }
}

static void head_write(const events_t *events, FILE *out, char phase, uint64_t at_ps, uint32_t lane, uint32_t row)
{
    fprintf(out, "{\"ph\":\"%c\",\"ts\":%" PRIu64 ".%06u,\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, phase,
            at_ps / PS_PER_US, (unsigned)(at_ps % PS_PER_US), events->lanes[lane].pid,
            events->lanes[lane].first_tid + row);
}

static void slice_write(const events_t *events, FILE *out, const struct slice *slice)
{
    uint64_t took_ps = slice->end_ps - slice->begin_ps;
    head_write(events, out, 'X', slice->begin_ps, slice->lane, slice->row);
    fprintf(out, ",\"dur\":%" PRIu64 ".%06u,\"name\":", took_ps / PS_PER_US, (unsigned)(took_ps % PS_PER_US));
    sim_text_quote(out, slice->name);
    fputs(",\"cat\":", out);
    sim_text_quote(out, slice->category);
    if (slice->args != NULL) {
        fprintf(out, ",\"args\":%s", slice->args);
    }
}

// rows: of the slices, by their numbers.
static void point_write(const events_t *events, FILE *out, const struct point *point, const uint32_t *rows)
{
    head_write(events, out, point->phase, point->at_ps, point->lane, point->phase == 'C' ? 0 : rows[point->row_of]);
    if (point->phase == 'C') {
        fputs(",\"name\":", out);
        sim_text_quote(out, point->name);
        fprintf(out, ",\"args\":{\"%s\":%" PRIu64 "}", point->unit, point->id_or_value);
    } else {
        fprintf(out, ",\"name\":\"cause\",\"cat\":\"cause\",\"id\":%" PRIu64 "%s", point->id_or_value,
                point->phase == 'f' ? ",\"bp\":\"e\"" : "");
    }
}

static void all_write(const events_t *events, FILE *out, const uint32_t *rows)
{
    size_t slice = 0, point = 0;
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", out);
    names_write(events, out);
    while (slice < events->slice_count || point < events->point_count) {
        bool last = slice + point + 1 == events->slice_count + events->point_count;
        if (point == events->point_count ||
            (slice < events->slice_count && events->slices[slice].begin_ps <= events->points[point].at_ps)) {
            slice_write(events, out, &events->slices[slice++]);
        } else {
            point_write(events, out, &events->points[point++], rows);
        }
        fputs(last ? "}\n" : "},\n", out);
    }
    fputs("]}\n", out);
}

enum sim_status events_write(events_t *events, FILE *out)
{
    uint32_t *rows = calloc(events->slice_count + 1, sizeof *rows);
    if (rows == NULL || events->lacks_memory) {
        free(rows);
        return SIM_ERR_NO_MEMORY;
    }
    if (events->slice_count > 0) { // qsort takes no null pointer
        qsort(events->slices, events->slice_count, sizeof *events->slices, slices_compare);
    }
    if (events->point_count > 0) {
        qsort(events->points, events->point_count, sizeof *events->points, points_compare);
    }
    bool good = rows_assign(events);
    for (size_t i = 0; i < events->slice_count; i++) {
        rows[events->slices[i].order] = events->slices[i].row;
    }
    if (good && events->slice_count + events->point_count > 0) {
        all_write(events, out, rows);
    } else if (good) {
        fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[]}\n", out);
    }
    free(rows);
    return good ? SIM_OK : SIM_ERR_NO_MEMORY;
}
