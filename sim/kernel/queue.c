// The queue of pending events. Each event knows its place, so that it can be moved and cancelled.
#include "sim/kernel/internal.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ARITY = 4, FIRST_CAPACITY = 256 };

static inline bool entry_before(const struct sim_queue_entry *a, const struct sim_queue_entry *b)
{
    return a->due_ps < b->due_ps || (a->due_ps == b->due_ps && a->sequence < b->sequence);
}

static inline void entry_place(struct sim_queue *queue, uint32_t index, struct sim_queue_entry entry)
{
    queue->entries[index] = entry;
    entry.event->heap_slot = index + 1;
}

// Moves the hole at index towards the root until entry fits.
static void sift_up(struct sim_queue *queue, uint32_t index, struct sim_queue_entry entry)
{
    while (index > 0) {
        uint32_t parent = (index - 1) / ARITY;
        if (!entry_before(&entry, &queue->entries[parent])) {
            break;
        }
        entry_place(queue, index, queue->entries[parent]);
        index = parent;
    }
    entry_place(queue, index, entry);
}

static void sift_down(struct sim_queue *queue, uint32_t index, struct sim_queue_entry entry)
{
    for (;;) {
        uint64_t first = (uint64_t)index * ARITY + 1;
        if (first >= queue->count) {
            break;
        }
        uint64_t end = first + ARITY < queue->count ? first + ARITY : queue->count;
        uint64_t least = first;
        for (uint64_t child = first + 1; child < end; child++) {
            if (entry_before(&queue->entries[child], &queue->entries[least])) {
                least = child;
            }
        }
        if (!entry_before(&queue->entries[least], &entry)) {
            break;
        }
        entry_place(queue, index, queue->entries[least]);
        index = (uint32_t)least;
    }
    entry_place(queue, index, entry);
}

static void settle(struct sim_queue *queue, uint32_t index, struct sim_queue_entry entry)
{
    if (index > 0 && entry_before(&entry, &queue->entries[(index - 1) / ARITY])) {
        sift_up(queue, index, entry);
    } else {
        sift_down(queue, index, entry);
    }
}

static void grow(struct sim_queue *queue)
{
    uint32_t capacity = queue->capacity == 0 ? FIRST_CAPACITY : queue->capacity * 2;
    struct sim_queue_entry *entries = realloc(queue->entries, capacity * sizeof *entries);
    if (entries == NULL) {
        sim_panic("kernel", "no memory for %u events", capacity);
    }
    queue->entries = entries;
    queue->capacity = capacity;
}

static void queue_remove(struct sim_queue *queue, sim_event_t *event)
{
    uint32_t index = event->heap_slot - 1;
    struct sim_queue_entry last = queue->entries[--queue->count];
    event->heap_slot = 0;
    if (index < queue->count) {
        settle(queue, index, last);
    }
}

sim_event_t *sim_queue_pop(struct sim_queue *queue)
{
    sim_event_t *event = queue->entries[0].event;
    struct sim_queue_entry last = queue->entries[--queue->count];
    event->heap_slot = 0;
    if (queue->count > 0) {
        sift_down(queue, 0, last);
    }
    return event;
}

void sim_queue_fini(struct sim_queue *queue)
{
    // The events are not touched: their owners may be gone.
    free(queue->entries);
}

void sim_event_init(sim_event_t *event, sim_event_fn fn, void *ctx)
{
    *event = (sim_event_t){.fn = fn, .ctx = ctx};
}

void sim_event_schedule_at(sim_t *sim, sim_event_t *event, uint64_t due_ps)
{
    if (due_ps < sim->now_ps) {
        sim_panic("kernel", "event scheduled at %" PRIu64 " ps, in the past", due_ps);
    }
    if (due_ps == SIM_NEVER_PS) {
        sim_panic("kernel", "event scheduled for never");
    }
    event->due_ps = due_ps;
    event->sequence = ++sim->sequence;
    struct sim_queue_entry entry = {due_ps, event->sequence, event};
    if (event->heap_slot != 0) {
        settle(&sim->queue, event->heap_slot - 1, entry);
        return;
    }
    if (sim->queue.count == sim->queue.capacity) {
        grow(&sim->queue);
    }
    sift_up(&sim->queue, sim->queue.count++, entry);
}

void sim_event_schedule(sim_t *sim, sim_event_t *event, uint64_t delay_ps)
{
    if (delay_ps >= SIM_NEVER_PS - sim->now_ps) {
        sim_panic("kernel", "event scheduled after %" PRIu64 " ps, beyond the end of time", delay_ps);
    }
    sim_event_schedule_at(sim, event, sim->now_ps + delay_ps);
}

void sim_event_cancel(sim_t *sim, sim_event_t *event)
{
    if (event->heap_slot != 0) {
        queue_remove(&sim->queue, event);
    }
}
