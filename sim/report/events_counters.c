#include "sim/report/events_counters.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/grow.h"

enum { NAME_BYTES = 160 };

struct counter {
    char name[NAME_BYTES];
    const char *unit;
    uint32_t lane; // of the first change: a counter belongs to its process
    int64_t value;
};

struct change {
    uint64_t at_ps;
    size_t counter, order;
    int64_t by;
};

struct read { // that was requested and has not completed
    uint32_t lane;
    uint64_t requester, tag, left;
};

struct sends { // of a queue pair: the wr_ids of its requests, from `first` on
    size_t counter;
    uint64_t *wr_ids;
    size_t first, count, room;
};

struct counting {
    const events_t *events;
    struct counter *counters;
    struct change *changes;
    struct read *reads;
    struct sends *queues;
    size_t counter_count, change_count, read_count, queue_count;
    size_t counter_room, change_room, read_room, queue_room;
    bool lacks_memory;
};

struct events_counted events_counted_of(const struct sim_trace_record *record, uint32_t lane)
{
    struct events_counted counted = {.point = record->point->name,
                                     .bytes = SIM_TRACE_ABSENT,
                                     .requester = SIM_TRACE_ABSENT,
                                     .tag = SIM_TRACE_ABSENT,
                                     .qp = SIM_TRACE_ABSENT,
                                     .wr_id = SIM_TRACE_ABSENT,
                                     .lane = lane};
    const struct {
        const char *name;
        uint64_t *value;
        const char **text;
    } fields[] = {{"length_bytes", &counted.bytes, NULL},
                  {"requester", &counted.requester, NULL},
                  {"tag", &counted.tag, NULL},
                  {"qp", &counted.qp, NULL},
                  {"wr_id", &counted.wr_id, NULL},
                  {"took_ps", &counted.took_ps, NULL},
                  {"kind", NULL, &counted.kind},
                  {"opcode", NULL, &counted.opcode}};
    for (unsigned i = 0; i < record->point->field_count; i++) {
        const struct sim_trace_field *field = &record->point->fields[i];
        bool is_name = field->form == SIM_TRACE_NAME;
        for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++) {
            if (strcmp(fields[k].name, field->name) != 0 || record->values[i] == SIM_TRACE_ABSENT) {
                continue;
            }
            if (fields[k].text != NULL && is_name) {
                *fields[k].text = field->names[record->values[i]];
            } else if (fields[k].value != NULL && !is_name) {
                *fields[k].value = record->values[i];
            }
        }
    }
    return counted;
}

// --- counters and their changes -------------------------------------------------------------------------------------

// A new element of an array, zeroed. NULL: there is no memory.
static void *added(struct counting *counting, void *array, size_t *count, size_t *room, size_t bytes)
{
    void *elements;
    if (!grow_array(array, *count, room, bytes)) {
        counting->lacks_memory = true;
        return NULL;
    }
    memcpy(&elements, array, sizeof elements); // the pointer has a type of its own
    void *element = (char *)elements + (*count)++ * bytes;
    memset(element, 0, bytes);
    return element;
}

static size_t counter_find(struct counting *counting, uint32_t lane, const char *name, const char *unit)
{
    for (size_t i = 0; i < counting->counter_count; i++) {
        if (strcmp(counting->counters[i].name, name) == 0 && counting->counters[i].lane == lane) {
            return i;
        }
    }
    struct counter *counter = added(counting, &counting->counters, &counting->counter_count, &counting->counter_room,
                                    sizeof *counting->counters);
    if (counter == NULL) {
        return 0;
    }
    snprintf(counter->name, sizeof counter->name, "%s", name);
    counter->unit = unit;
    counter->lane = lane;
    return counting->counter_count - 1;
}

static void change_add(struct counting *counting, size_t counter, uint64_t at_ps, int64_t by)
{
    size_t order = counting->change_count;
    struct change *change =
        added(counting, &counting->changes, &counting->change_count, &counting->change_room, sizeof *counting->changes);
    if (change != NULL) {
        *change = (struct change){at_ps, counter, order, by};
    }
}

// --- what is counted ------------------------------------------------------------------------------------------------

static void flight_count(struct counting *counting, const struct events_counted *record)
{
    char name[NAME_BYTES];
    if (record->end_ps == record->begin_ps ||
        (strcmp(record->point, "tlp_sent") != 0 && strcmp(record->point, "ib_sent") != 0)) {
        return;
    }
    snprintf(name, sizeof name, "%s in flight", events_lane_component(counting->events, record->lane));
    size_t counter = counter_find(counting, record->lane, name, "packets");
    change_add(counting, counter, record->begin_ps, 1);
    change_add(counting, counter, record->end_ps, -1);
    if (record->bytes != SIM_TRACE_ABSENT && record->kind != NULL && strcmp(record->kind, "MRd") != 0) {
        snprintf(name, sizeof name, "%s data in flight", events_lane_component(counting->events, record->lane));
        counter = counter_find(counting, record->lane, name, "bytes");
        change_add(counting, counter, record->begin_ps, (int64_t)record->bytes);
        change_add(counting, counter, record->end_ps, -(int64_t)record->bytes);
    }
}

static struct read *read_find(const struct counting *counting, const struct events_counted *record)
{
    for (size_t i = 0; i < counting->read_count; i++) {
        struct read *read = &counting->reads[i];
        if (read->lane == record->lane && read->requester == record->requester && read->tag == record->tag) {
            return read;
        }
    }
    return NULL;
}

// A request that is sent again counts once; a completion without data ends its read.
static void reads_count(struct counting *counting, const struct events_counted *record)
{
    bool asks = strcmp(record->point, "tlp_sent") == 0 && record->kind != NULL && strcmp(record->kind, "MRd") == 0;
    bool answers = strcmp(record->point, "tlp_received") == 0 && record->kind != NULL && record->kind[0] == 'C';
    struct read *read = asks || answers ? read_find(counting, record) : NULL;
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s reads outstanding", events_lane_component(counting->events, record->lane));
    if (asks && read == NULL) {
        read = added(counting, &counting->reads, &counting->read_count, &counting->read_room, sizeof *read);
        if (read != NULL) {
            *read = (struct read){record->lane, record->requester, record->tag, record->bytes};
            change_add(counting, counter_find(counting, record->lane, name, "bytes"), record->begin_ps,
                       (int64_t)record->bytes);
        }
    } else if (answers && read != NULL) {
        bool all = record->bytes == 0 || record->bytes == SIM_TRACE_ABSENT || record->bytes > read->left;
        uint64_t bytes = all ? read->left : record->bytes;
        change_add(counting, counter_find(counting, record->lane, name, "bytes"), record->begin_ps, -(int64_t)bytes);
        read->left -= bytes;
        if (read->left == 0) {
            *read = counting->reads[--counting->read_count];
        }
    }
}

static struct sends *sends_find(struct counting *counting, const struct events_counted *record)
{
    char name[NAME_BYTES];
    const char *component = events_lane_component(counting->events, record->lane);
    const char *thread = strstr(component, ".thread"); // another thread of the process may poll
    int length = thread != NULL ? (int)(thread - component) : (int)strlen(component);
    snprintf(name, sizeof name, "%.*s qp %" PRIu64 " sends", length, component, record->qp);
    for (size_t i = 0; i < counting->queue_count; i++) {
        if (strcmp(counting->counters[counting->queues[i].counter].name, name) == 0) {
            return &counting->queues[i];
        }
    }
    struct sends *sends =
        added(counting, &counting->queues, &counting->queue_count, &counting->queue_room, sizeof *sends);
    if (sends != NULL) {
        sends->counter = counter_find(counting, record->lane, name, "requests");
    }
    return sends;
}

// A completion also ends the requests before it, which asked for none.
static void sends_count(struct counting *counting, const struct events_counted *record)
{
    bool posts = strcmp(record->point, "ibv_post_send") == 0, polls = strcmp(record->point, "ibv_poll_cq") == 0;
    bool receives = record->opcode != NULL && strncmp(record->opcode, "RECV", 4) == 0;
    if ((!posts && !polls) || receives || record->qp == SIM_TRACE_ABSENT) {
        return;
    }
    struct sends *sends = sends_find(counting, record);
    if (sends != NULL && posts) {
        uint64_t *wr_id = added(counting, &sends->wr_ids, &sends->count, &sends->room, sizeof *wr_id);
        if (wr_id != NULL) {
            *wr_id = record->wr_id;
            change_add(counting, sends->counter, record->begin_ps, 1);
        }
    }
    for (size_t i = sends != NULL && polls ? sends->first : SIZE_MAX; i < (sends != NULL ? sends->count : 0); i++) {
        if (sends->wr_ids[i] == record->wr_id) {
            change_add(counting, sends->counter, record->end_ps, -(int64_t)(i + 1 - sends->first));
            sends->first = i + 1;
            break;
        }
    }
}

// --- the events -----------------------------------------------------------------------------------------------------

static int changes_compare(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->at_ps != y->at_ps) {
        return x->at_ps < y->at_ps ? -1 : 1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

static void changes_write(struct counting *counting, events_t *events)
{
    if (counting->change_count > 0) {
        qsort(counting->changes, counting->change_count, sizeof *counting->changes, changes_compare);
    }
    for (size_t i = 0; i < counting->change_count; i++) {
        const struct change *change = &counting->changes[i];
        struct counter *counter = &counting->counters[change->counter];
        counter->value += change->by;
        events_counter_add(events, counter->lane, change->at_ps, counter->name, counter->unit,
                           counter->value > 0 ? (uint64_t)counter->value : 0);
    }
}

bool events_counters_add(events_t *events, const struct events_counted *records, size_t count)
{
    struct counting counting = {.events = events};
    for (size_t i = 0; i < count && !counting.lacks_memory; i++) {
        flight_count(&counting, &records[i]);
        reads_count(&counting, &records[i]);
        sends_count(&counting, &records[i]);
    }
    if (!counting.lacks_memory) {
        changes_write(&counting, events);
    }
    for (size_t i = 0; i < counting.queue_count; i++) {
        free(counting.queues[i].wr_ids);
    }
    free(counting.counters);
    free(counting.changes);
    free(counting.reads);
    free(counting.queues);
    return !counting.lacks_memory;
}
