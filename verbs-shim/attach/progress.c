// A device library's work (struct attach_progress): when it is due, and who does it.
#include <stdatomic.h>

#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"

#define API __attribute__((visibility("default")))

static const struct attach_progress *_Atomic registered;
static uint64_t seen_writes; // at the last pass
static __thread bool passing;

API void attach_progress_set(const struct attach_progress *progress)
{
    atomic_store(&registered, progress);
}

API bool attach_progress_on_writes(void)
{
    const struct attach_progress *progress = atomic_load(&registered);
    return progress != NULL && progress->on_writes;
}

static uint64_t events_written(void)
{
    return attach_client.segment != NULL
               ? atomic_load_explicit(&attach_client.segment->event_writes, memory_order_relaxed)
               : 0;
}

bool attach_progress_is_behind(void)
{
    return attach_progress_on_writes() && !passing && events_written() != seen_writes;
}

void attach_progress_seen(void *ctx)
{
    (void)ctx;
    seen_writes = events_written();
}

API void attach_progress(void)
{
    const struct attach_progress *progress = atomic_load(&registered);
    bool outer = passing;
    if (progress != NULL) {
        attach_progress_seen(NULL);
        passing = true;
        progress->pass();
        passing = outer;
    }
}

unsigned attach_progress_flags(void)
{
    return atomic_load(&registered) != NULL ? ATTACH_WAIT_WORK : 0;
}

static void look(void)
{
    const struct attach_progress *progress = atomic_load(&registered);
    if (progress != NULL && !passing) {
        passing = true;
        progress->look();
        passing = false;
    }
}

bool attach_progress_repeats(void)
{
    const struct attach_progress *progress = atomic_load(&registered);
    return progress != NULL && progress->repeats();
}

static uint64_t due_ps(bool events)
{
    const struct attach_progress *progress = atomic_load(&registered);
    return progress != NULL && !passing ? progress->due_ps(events_written() != seen_writes, events) : ATTACH_NEVER_PS;
}

// --- around a wait ----------------------------------------------------------------------------------------------------

// Whoever waits does the library's work meanwhile. It takes the waiting thread no time, as if another processor did it,
// unless the thread waits for what came of it (`own`). It begins at the thread's time, so that it makes no call just to
// know that.
static void work(bool own)
{
    struct attach_slot *slot = attach_slot();
    if (attach_own.tail_ps != 0) {
        (void)attach_call(slot, ATTACH_OP_NOTHING);
    }
    unsigned calls = attach_own.calls;
    attach_progress();
    bool idle = attach_own.calls == calls && atomic_load_explicit(&slot->entry_count, memory_order_relaxed) == 0;
    bool over = due_ps(own) > slot->now_ps; // else time must go on
    attach_own.tail_ps = (idle || !own) && over ? 0 : attach_own.tail_ps;
}

bool attach_work_before(bool own, uint64_t *work_ps_out)
{
    uint64_t at_ps = due_ps(own);
    if (at_ps != ATTACH_NEVER_PS && at_ps <= attach_now_ps()) {
        work(own);
        return true;
    }
    *work_ps_out = at_ps != ATTACH_NEVER_PS ? at_ps : 0;
    return false;
}

// Who waits for events looks for those of devices that raise them by themselves each time it is woken.
void attach_work_after(bool own)
{
    if (due_ps(own) <= attach_now_ps()) {
        work(own);
    } else if (own) {
        look();
    }
}
