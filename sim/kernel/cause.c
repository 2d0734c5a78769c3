// Records of causes, and the evaluation of paths.
#include "sim/kernel/cause.h"

#include <stdlib.h>

#include "sim/kernel/internal.h"

struct record {
    uint64_t end_ps;
    const char *component;
    const struct sim_work *work;
    sim_cause_t from;
    uint32_t number; // of the record of a trace that is here, or that a search from here has found; 0: none
};

struct reading {
    const struct sim_thread *thread;
    uint64_t at_ps;
    sim_cause_t cause;
};

struct sim_causes {
    struct record *records; // by number; the first is the origin
    uint32_t count, capacity;
    struct reading *readings;
    size_t reading_count, reading_capacity;
    uint64_t bytes_max;
    bool full;
    bool is_ring;
    struct record origin; // stands for records that were overwritten
};

// The record of a number. In a ring, overwritten records are replaced by the origin.
static struct record *record_at(struct sim_causes *causes, sim_cause_t cause)
{
    if (!causes->is_ring) {
        return &causes->records[cause];
    }
    bool kept = cause != 0 && causes->count - cause <= causes->capacity;
    return kept ? &causes->records[cause & (causes->capacity - 1)] : &causes->origin;
}

static void *grown(void *array, size_t count, size_t bytes)
{
    void *larger = realloc(array, count * bytes);
    if (larger == NULL) {
        sim_panic("kernel", "no memory to record %zu causes", count);
    }
    return larger;
}

void sim_causes_record(sim_t *sim, uint64_t bytes_max)
{
    if (sim->causes != NULL) {
        return;
    }
    sim->causes = calloc(1, sizeof *sim->causes);
    if (sim->causes == NULL) {
        sim_panic("kernel", "no memory to record causes");
    }
    sim->causes->bytes_max = bytes_max != 0 ? bytes_max : UINT64_MAX;
    (void)sim_cause_add(sim, 0, sim->now_ps, NULL, NULL);
}

void sim_causes_record_last(sim_t *sim, uint32_t count)
{
    if (sim->causes != NULL) {
        return;
    }
    sim->causes = calloc(1, sizeof *sim->causes);
    if (sim->causes == NULL) {
        sim_panic("kernel", "no memory to record causes");
    }
    *sim->causes = (struct sim_causes){
        .records = grown(NULL, count, sizeof(struct record)), .capacity = count, .count = 1, .is_ring = true};
}

void sim_causes_fini(sim_t *sim)
{
    if (sim->causes != NULL) {
        free(sim->causes->records);
        free(sim->causes->readings);
        free(sim->causes);
        sim->causes = NULL;
    }
}

bool sim_causes_recorded(const sim_t *sim)
{
    return sim->causes != NULL;
}

bool sim_causes_full(const sim_t *sim)
{
    return sim->causes != NULL && sim->causes->full;
}

// false: nothing is recorded any more until the run has ended.
static bool has_room(sim_t *sim, size_t bytes)
{
    struct sim_causes *causes = sim->causes;
    uint64_t used =
        (uint64_t)causes->count * sizeof *causes->records + (uint64_t)causes->reading_count * sizeof *causes->readings;
    if (!causes->full && causes->count != 0 && used + bytes > causes->bytes_max) {
        causes->full = true;
        sim_stop(sim);
    }
    return !causes->full;
}

sim_cause_t sim_cause_add(sim_t *sim, sim_cause_t from, uint64_t end_ps, const char *component,
                          const struct sim_work *work)
{
    struct sim_causes *causes = sim->causes;
    if (causes->is_ring) {
        sim_cause_t cause = causes->count;
        causes->count = cause == UINT32_MAX ? 1 : cause + 1;
        causes->records[cause & (causes->capacity - 1)] = (struct record){end_ps, component, work, from, 0};
        return cause;
    }
    if (!has_room(sim, sizeof *causes->records)) {
        return from;
    }
    if (causes->count == causes->capacity) {
        if (causes->capacity > UINT32_MAX / 2) {
            sim_panic("kernel", "more causes than can be numbered");
        }
        causes->capacity = causes->capacity == 0 ? 1u << 16 : causes->capacity * 2;
        causes->records = grown(causes->records, causes->capacity, sizeof *causes->records);
    }
    causes->records[causes->count] = (struct record){end_ps, component, work, from, 0};
    return causes->count++;
}

// --- while the simulation runs -------------------------------------------------------------------------------------

sim_cause_t sim_cause_now(const sim_t *sim)
{
    return sim->cause;
}

void sim_cause_label(sim_t *sim, const char *component, const struct sim_work *work)
{
    if (sim->cause != 0) {
        struct record *record = record_at(sim->causes, sim->cause);
        record->component = component;
        record->work = work;
    }
}

void sim_cause_follow(sim_t *sim, sim_cause_t from, const char *component, const struct sim_work *work)
{
    if (sim->causes == NULL) {
        return;
    }
    while (record_at(sim->causes, from)->end_ps > sim->now_ps) { // the expected future did not happen
        from = record_at(sim->causes, from)->from;
    }
    sim->cause = sim_cause_add(sim, from, sim->now_ps, component, work);
}

sim_cause_t sim_cause_extend(sim_t *sim, sim_cause_t from, uint64_t to_ps, const char *component,
                             const struct sim_work *work)
{
    if (sim->causes == NULL || record_at(sim->causes, from)->end_ps >= to_ps) {
        return from;
    }
    return sim_cause_add(sim, from, to_ps, component, work);
}

void sim_cause_arrive(sim_t *sim, sim_cause_t cause)
{
    if (sim->causes == NULL) {
        return;
    }
    const struct record record = *record_at(sim->causes, cause);
    if (record.end_ps == sim->now_ps) {
        sim->cause = cause;
    } else { // earlier or later than expected
        sim_cause_follow(sim, cause, record.component, record.work);
    }
}

void sim_cause_mark(sim_t *sim, const char *component, const struct sim_work *mark)
{
    sim_cause_follow(sim, sim->cause, component, mark);
}

// --- records of a trace ----------------------------------------------------------------------------------------------

void sim_cause_number(sim_t *sim, sim_cause_t cause, uint32_t number)
{
    struct record *record = record_at(sim->causes, cause);
    if (cause != 0 && record != &sim->causes->origin) {
        record->number = number;
    }
}

// A search leaves its result on its way, so that the next one from there on is short.
uint32_t sim_cause_numbered(sim_t *sim, sim_cause_t cause)
{
    struct sim_causes *causes = sim->causes;
    sim_cause_t at = cause;
    while (at != 0 && record_at(causes, at)->number == 0) {
        at = record_at(causes, at)->from;
    }
    uint32_t number = at != 0 ? record_at(causes, at)->number : 0;
    for (sim_cause_t passed = cause; number != 0 && passed != at; passed = record_at(causes, passed)->from) {
        record_at(causes, passed)->number = number;
    }
    return number;
}

void sim_cause_clock_read(sim_t *sim)
{
    struct sim_causes *causes = sim->causes;
    if (causes == NULL || causes->is_ring || !has_room(sim, sizeof *causes->readings)) {
        return;
    }
    if (causes->reading_count == causes->reading_capacity) {
        causes->reading_capacity = causes->reading_capacity == 0 ? 64 : causes->reading_capacity * 2;
        causes->readings = grown(causes->readings, causes->reading_capacity, sizeof *causes->readings);
    }
    causes->readings[causes->reading_count++] = (struct reading){sim->current, sim->now_ps, sim->cause};
}

// --- evaluation ----------------------------------------------------------------------------------------------------

// Finds the last two readings of the calling thread that are total_ps apart.
static bool measured(const sim_t *sim, uint64_t total_ps, struct reading *begin_out, struct reading *end_out)
{
    const struct reading *readings = sim->causes->readings;
    for (size_t end = sim->causes->reading_count; end-- > 0;) {
        for (size_t begin = end; begin-- > 0 && readings[end].thread == sim->current;) {
            uint64_t span_ps = readings[end].at_ps - readings[begin].at_ps;
            if (readings[begin].thread == sim->current && span_ps == total_ps) {
                *begin_out = readings[begin];
                *end_out = readings[end];
                return true;
            }
            if (span_ps > total_ps) {
                break;
            }
        }
    }
    return false;
}

// Starts with the first piece that ends after from_ps.
static void path_take(struct sim_causes *causes, sim_cause_t end, uint64_t from_ps, struct sim_piece **pieces_out,
                      size_t *count_out)
{
    size_t count = 0;
    for (sim_cause_t cause = end; cause != 0 && record_at(causes, cause)->end_ps > from_ps;
         cause = record_at(causes, cause)->from) {
        count++;
    }
    struct sim_piece *pieces = grown(NULL, count + 1, sizeof *pieces);
    size_t index = count;
    for (sim_cause_t cause = end; index > 0; cause = record_at(causes, cause)->from) {
        const struct record *record = record_at(causes, cause);
        uint64_t began_ps = record_at(causes, record->from)->end_ps;
        pieces[--index] = (struct sim_piece){record->component, record->work, began_ps > from_ps ? began_ps : from_ps,
                                             record->end_ps};
    }
    *pieces_out = pieces;
    *count_out = count;
}

bool sim_cause_path(sim_t *sim, uint64_t total_ps, struct sim_piece **pieces_out, size_t *count_out)
{
    struct reading begin, end;
    if (sim->causes == NULL || sim->causes->full || !measured(sim, total_ps, &begin, &end)) {
        return false;
    }
    path_take(sim->causes, end.cause, begin.at_ps, pieces_out, count_out);
    return true;
}

bool sim_cause_path_since(sim_t *sim, uint64_t from_ps, struct sim_piece **pieces_out, size_t *count_out)
{
    struct sim_causes *causes = sim->causes;
    if (causes == NULL || causes->full) {
        return false;
    }
    sim_cause_t first = sim->cause;
    while (first != 0 && record_at(causes, first)->end_ps > from_ps &&
           record_at(causes, record_at(causes, first)->from)->end_ps > from_ps) {
        first = record_at(causes, first)->from;
    }
    // A record whose cause was overwritten began at an unknown time.
    sim_cause_t before = record_at(causes, first)->from;
    if (causes->is_ring && before != 0 && record_at(causes, before) == &causes->origin) {
        return false;
    }
    path_take(causes, sim->cause, from_ps, pieces_out, count_out);
    return true;
}
