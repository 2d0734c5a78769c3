// The queue of pending events: its two levels, and the next event of both.
#include "sim/kernel/internal.h"

#include <inttypes.h>

#include "sim/kernel/near.h"

#define SLOT_NEAR UINT32_MAX // slots of the far level are 1-based indices

_Static_assert(SIM_NEAR_WORDS <= 64, "the summary of the near level has a bit for each word");

static void queue_add(struct sim_queue *queue, sim_event_t *event, uint64_t now_ps)
{
    if (near_add(&queue->near, event, now_ps)) {
        event->slot = SLOT_NEAR;
    } else {
        sim_far_add(&queue->far, event);
        queue->far_due_ps = queue->far.entries[0].key.due_ps;
    }
    if (queue->first == NULL || sim_queue_before(sim_queue_key_of(event), sim_queue_key_of(queue->first))) {
        queue->first = event;
    }
}

// near: the first event of the near level; NULL: none.
static inline void first_find(struct sim_queue *queue, sim_event_t *near)
{
    queue->first = near;
    if (near != NULL && near->due_ps < queue->far_due_ps) {
        return;
    }
    if (queue->far.count != 0) {
        const struct sim_far_entry *far = &queue->far.entries[0];
        if (near == NULL || sim_queue_before(far->key, sim_queue_key_of(near))) {
            queue->first = far->event;
        }
    }
}

static inline void queue_remove(struct sim_queue *queue, sim_event_t *event)
{
    sim_event_t *later = NULL;
    if (event->slot == SLOT_NEAR) {
        near_remove(&queue->near, event);
        later = event->later;
    } else {
        sim_far_remove(&queue->far, event);
        queue->far_due_ps = queue->far.count != 0 ? queue->far.entries[0].key.due_ps : SIM_NEVER_PS;
    }
    event->slot = 0;
    if (queue->first == event) {
        first_find(queue, later != NULL ? later : near_first(&queue->near, event->due_ps));
    }
}

void sim_queue_pop(struct sim_queue *queue)
{
    queue_remove(queue, queue->first);
}

void sim_queue_fini(struct sim_queue *queue)
{
    sim_far_fini(&queue->far);
}

void sim_event_init(sim_event_t *event, sim_event_fn fn, void *ctx)
{
    *event = (sim_event_t){.fn = fn, .ctx = ctx};
}

void sim_event_init_update(sim_t *sim, sim_event_t *event, sim_event_fn fn, void *ctx)
{
    *event = (sim_event_t){.fn = fn, .ctx = ctx, .rank = SIM_RANK_UPDATE + ++sim->late_events};
}

__attribute__((noreturn, noinline)) static void due_is_wrong(uint64_t due_ps)
{
    if (due_ps == SIM_NEVER_PS) {
        sim_panic("kernel", "event scheduled for never");
    }
    sim_panic("kernel", "event scheduled at %" PRIu64 " ps, in the past", due_ps);
}

void sim_event_schedule_at(sim_t *sim, sim_event_t *event, uint64_t due_ps)
{
    // Unsigned: a time in the past wraps to a large value.
    if (due_ps - sim->now_ps >= SIM_NEVER_PS - sim->now_ps) {
        due_is_wrong(due_ps);
    }
    if (event->slot == 0 || event->due_ps != due_ps) { // rescheduled for the same time, it keeps its first cause
        event->cause = sim->cause;
    }
    if (event->slot != 0) {
        queue_remove(&sim->queue, event);
    }
    event->due_ps = due_ps;
    event->order = (uint64_t)event->rank << SIM_SEQUENCE_BITS | ++sim->sequence;
    queue_add(&sim->queue, event, sim->now_ps);
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
    if (event->slot != 0) {
        queue_remove(&sim->queue, event);
    }
}
