// The far level of the queue: a 4-ary heap by (due_ps, order). Each event has its index in the heap, so that it can be
// removed.
#include "sim/kernel/internal.h"

#include <stdlib.h>

enum { ARITY = 4, FIRST_CAPACITY = 256 };

static inline bool entry_before(const struct sim_far_entry *a, const struct sim_far_entry *b)
{
    return sim_queue_before(a->key, b->key);
}

static inline void entry_put(struct sim_far *far, uint32_t index, struct sim_far_entry entry)
{
    far->entries[index] = entry;
    entry.event->slot = index + 1;
}

// Moves the hole at index towards the root until entry fits.
static void sift_up(struct sim_far *far, uint32_t index, struct sim_far_entry entry)
{
    while (index > 0) {
        uint32_t parent = (index - 1) / ARITY;
        if (!entry_before(&entry, &far->entries[parent])) {
            break;
        }
        entry_put(far, index, far->entries[parent]);
        index = parent;
    }
    entry_put(far, index, entry);
}

static void sift_down(struct sim_far *far, uint32_t index, struct sim_far_entry entry)
{
    for (;;) {
        uint64_t first = (uint64_t)index * ARITY + 1;
        if (first >= far->count) {
            break;
        }
        uint64_t end = first + ARITY < far->count ? first + ARITY : far->count;
        uint64_t least = first;
        for (uint64_t child = first + 1; child < end; child++) {
            if (entry_before(&far->entries[child], &far->entries[least])) {
                least = child;
            }
        }
        if (!entry_before(&far->entries[least], &entry)) {
            break;
        }
        entry_put(far, index, far->entries[least]);
        index = (uint32_t)least;
    }
    entry_put(far, index, entry);
}

static void settle(struct sim_far *far, uint32_t index, struct sim_far_entry entry)
{
    if (index > 0 && entry_before(&entry, &far->entries[(index - 1) / ARITY])) {
        sift_up(far, index, entry);
    } else {
        sift_down(far, index, entry);
    }
}

static void grow(struct sim_far *far)
{
    uint32_t capacity = far->capacity == 0 ? FIRST_CAPACITY : far->capacity * 2;
    struct sim_far_entry *entries = realloc(far->entries, capacity * sizeof *entries);
    if (entries == NULL) {
        sim_panic("kernel", "no memory for %u events", capacity);
    }
    far->entries = entries;
    far->capacity = capacity;
}

void sim_far_add(struct sim_far *far, sim_event_t *event)
{
    if (far->count == far->capacity) {
        grow(far);
    }
    const struct sim_far_entry entry = {sim_queue_key_of(event), event};
    sift_up(far, far->count++, entry);
}

void sim_far_remove(struct sim_far *far, sim_event_t *event)
{
    uint32_t index = event->slot - 1;
    struct sim_far_entry last = far->entries[--far->count];
    if (index < far->count) {
        settle(far, index, last);
    }
}

void sim_far_fini(struct sim_far *far)
{
    // The events are not accessed: their owners may no longer exist.
    free(far->entries);
}
