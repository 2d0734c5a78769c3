// The near level of the queue: a ring of buckets, each a sorted list of the events due within one stretch of time.
//
// The ring covers SIM_NEAR_BUCKETS stretches from now on and holds no event before now, so the index of a bucket in the
// ring identifies its stretch. In a header so that queue.c, the only file that includes it, can inline all of it.
#pragma once

#include "sim/kernel/internal.h"

enum { STEPS_MAX = 32, WORD_BITS = 64 };

static inline uint32_t bucket_of(uint64_t due_ps)
{
    return (uint32_t)(due_ps >> SIM_NEAR_SHIFT) % SIM_NEAR_BUCKETS;
}

static inline void last_set(struct sim_near_bucket *bucket, sim_event_t *event)
{
    bucket->last = event;
    bucket->key = sim_queue_key_of(event);
}

// Finds the last event of the bucket before `event`, or NULL; false: the search takes too many steps.
static inline bool predecessor_find(const struct sim_near_bucket *bucket, const sim_event_t *event,
                                    sim_event_t **found_out)
{
    sim_event_t *other = bucket->last;
    for (unsigned steps = 0; other != NULL && sim_queue_before(sim_queue_key_of(event), sim_queue_key_of(other));
         steps++) {
        if (steps == STEPS_MAX) {
            return false;
        }
        other = other->earlier;
    }
    *found_out = other;
    return true;
}

// false: the event is due too late, or there are too many others.
static inline bool near_add(struct sim_near *near, sim_event_t *event, uint64_t now_ps)
{
    if ((event->due_ps >> SIM_NEAR_SHIFT) - (now_ps >> SIM_NEAR_SHIFT) >= SIM_NEAR_BUCKETS) {
        return false;
    }
    uint32_t index = bucket_of(event->due_ps);
    struct sim_near_bucket *bucket = &near->buckets[index];
    near->filled[index / WORD_BITS] |= 1ull << index % WORD_BITS;
    near->filled_words |= 1ull << index / WORD_BITS;
    // The event scheduled last is usually due last; the key of an empty bucket is before all others.
    if (sim_queue_before(bucket->key, sim_queue_key_of(event))) {
        event->earlier = bucket->last;
        event->later = NULL;
        *(bucket->last != NULL ? &bucket->last->later : &bucket->first) = event;
        last_set(bucket, event);
        return true;
    }
    sim_event_t *earlier;
    if (!predecessor_find(bucket, event, &earlier)) {
        return false;
    }
    event->earlier = earlier;
    event->later = earlier != NULL ? earlier->later : bucket->first;
    *(earlier != NULL ? &earlier->later : &bucket->first) = event;
    event->later->earlier = event;
    return true;
}

static inline void bucket_emptied(struct sim_near *near, uint32_t index)
{
    uint32_t word = index / WORD_BITS;
    near->buckets[index].last = NULL;
    near->buckets[index].key = (struct sim_queue_key){0};
    near->filled[word] &= ~(1ull << index % WORD_BITS);
    near->filled_words &= ~((uint64_t)(near->filled[word] == 0) << word);
}

static inline void near_remove(struct sim_near *near, sim_event_t *event)
{
    uint32_t index = bucket_of(event->due_ps);
    struct sim_near_bucket *bucket = &near->buckets[index];
    *(event->earlier != NULL ? &event->earlier->later : &bucket->first) = event->later;
    if (event->later != NULL) {
        event->later->earlier = event->earlier;
    } else if (event->earlier != NULL) {
        last_set(bucket, event->earlier);
    } else {
        bucket_emptied(near, index);
    }
}

// The next event, if none is due before from_ps; NULL: none.
static inline sim_event_t *near_first(const struct sim_near *near, uint64_t from_ps)
{
    uint32_t from = bucket_of(from_ps), word = from / WORD_BITS;
    uint64_t ahead = near->filled[word] >> from % WORD_BITS << from % WORD_BITS;
    if (ahead == 0) {
        // The next word, cyclically; that is `word` again if only buckets below `from` are filled.
        uint64_t above = near->filled_words & ~((2ull << word) - 1);
        uint64_t words = above != 0 ? above : near->filled_words;
        if (words == 0) {
            return NULL;
        }
        word = (uint32_t)__builtin_ctzll(words);
        ahead = near->filled[word];
    }
    return near->buckets[word * WORD_BITS + (uint32_t)__builtin_ctzll(ahead)].first;
}
