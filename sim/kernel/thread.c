// Host threads: their waits, wake-ups and ends.
//
// A cancelled thread jumps from the call in which it blocks back to its base; the C call frames in between are dropped.
#include "sim/kernel/thread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kernel/internal.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

enum thread_state { THREAD_SPAWNED, THREAD_RUNNING, THREAD_SLEEPING, THREAD_WAITING };

struct sim_thread {
    sim_t *sim;
    char *name;
    sim_thread_fn fn;
    void *arg;
    enum thread_state state;
    struct sim_coroutine *coroutine; // NULL until it first runs
    sim_event_t wake;
    uint32_t number; // of spawning
    bool takes_turns;
    struct sim_thread *older, *newer;

    // While THREAD_SLEEPING or THREAD_WAITING
    uint64_t since_ps, until_ps;
    // While THREAD_WAITING
    sim_condition_t *condition; // NULL once signalled
    struct sim_thread *ahead, *behind;
    struct sim_wait_reason reason;

    void *base[5]; // of __builtin_setjmp
};

// Of a thread that has waited for this time. Another order at each instant, so that none of two threads that do the same all the
// time is always the first; no two threads have the same (but for very many).
static uint32_t turn_at(uint32_t number, uint64_t time_ps)
{
    uint32_t mixed = (uint32_t)(time_ps * UINT64_C(0x9e3779b97f4a7c15) >> 40);
    return 1 + ((number ^ mixed) & (SIM_RANK_YIELD / 2));
}

static uint32_t rank_at(const struct sim_thread *thread, uint64_t time_ps)
{
    return thread->takes_turns ? turn_at(thread->number, time_ps) : 0;
}

// --- creation and destruction ----------------------------------------------------------------------------------------

enum sim_status sim_thread_spawn(sim_t *sim, const char *name, sim_thread_fn fn, void *arg)
{
    struct sim_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    thread->name = strdup(name);
    if (thread->name == NULL) {
        free(thread);
        return SIM_ERR_NO_MEMORY;
    }
    thread->sim = sim;
    thread->fn = fn;
    thread->arg = arg;
    thread->older = sim->newest;
    if (sim->newest != NULL) {
        sim->newest->newer = thread;
    } else {
        sim->oldest = thread;
    }
    sim->newest = thread;
    sim->thread_count++;
    thread->number = sim->threads_spawned++;
    sim_event_init(&thread->wake, sim_thread_wake, thread);
    sim_event_schedule(sim, &thread->wake, 0);
    return SIM_OK;
}

static void thread_free(struct sim_thread *thread)
{
    sim_t *sim = thread->sim;
    if (thread->older != NULL) {
        thread->older->newer = thread->newer;
    } else {
        sim->oldest = thread->newer;
    }
    if (thread->newer != NULL) {
        thread->newer->older = thread->older;
    } else {
        sim->newest = thread->older;
    }
    sim->thread_count--;
    free(thread->name);
    free(thread);
}

// Not inlined: a __builtin_setjmp must have a frame of its own, and none of its locals may be needed after the jump.
__attribute__((noinline)) static void thread_run_program(struct sim_thread *thread)
{
    if (__builtin_setjmp(thread->base) == 0) {
        thread->fn(thread->arg);
    }
}

static void thread_body(void *arg)
{
    struct sim_thread *thread = arg;
    sim_t *sim = thread->sim;
    thread_run_program(thread);
    struct sim_coroutine *coroutine = thread->coroutine;
    thread_free(thread);
    sim->current = NULL;
    sim_coroutine_end(coroutine);
}

static void thread_enter(struct sim_thread *thread)
{
    thread->state = THREAD_RUNNING;
    thread->sim->current = thread;
    if (thread->coroutine == NULL) {
        thread->coroutine = sim_coroutine_start(thread_body, thread);
    } else {
        sim_coroutine_resume(thread->coroutine);
    }
}

void sim_thread_wake(void *arg)
{
    struct sim_thread *thread = arg;
    sim_progress(thread->sim);
    thread_enter(thread);
}

// AddressSanitizer would take the jump for one on the process's own stack; it is notified of the dropped frames
// instead.
__attribute__((noreturn, noinline, no_sanitize_address)) static void thread_unwind(struct sim_thread *thread)
{
#ifdef __SANITIZE_ADDRESS__
    char *here = __builtin_frame_address(0);
    __asan_unpoison_memory_region(here, (size_t)((char *)thread->base[0] - here));
#endif
    __builtin_longjmp(thread->base, 1);
}

static void thread_block(struct sim_thread *thread, enum thread_state state, uint64_t until_ps)
{
    sim_t *sim = thread->sim;
    thread->state = state;
    thread->since_ps = sim->now_ps;
    thread->until_ps = until_ps;
    sim->current = NULL;
    sim_coroutine_suspend(thread->coroutine);
    if (sim->unwinding) {
        thread_unwind(thread);
    }
}

bool sim_thread_unwind_next(sim_t *sim)
{
    while (sim->oldest != NULL) {
        struct sim_thread *thread = sim->oldest;
        if (thread->coroutine != NULL) {
            thread_enter(thread);
            return true;
        }
        thread_free(thread);
    }
    return false;
}

// --- the calling thread ----------------------------------------------------------------------------------------------

static struct sim_thread *thread_current(const sim_t *sim, const char *caller)
{
    if (sim->current == NULL) {
        sim_panic("kernel", "%s called outside a thread", caller);
    }
    return sim->current;
}

const char *sim_thread_name(const sim_t *sim)
{
    return sim->current != NULL ? sim->current->name : NULL;
}

bool sim_thread_is_running(const sim_t *sim)
{
    return sim->current != NULL;
}

unsigned sim_thread_count(const sim_t *sim)
{
    return sim->thread_count;
}

void sim_thread_sleep(sim_t *sim, uint64_t delay_ps)
{
    struct sim_thread *thread = thread_current(sim, "sim_thread_sleep");
    // If the wake would be the very next event, the thread moves time itself and continues: same order, same count, no
    // switch. Not for 0 ps: with a thread that only yields, the loop would never see that time stands still.
    if (delay_ps != 0 && sim_try_advance(sim, delay_ps)) {
        sim->sequence++;
        sim->events_run++;
        sim->rank = rank_at(thread, sim->now_ps);
        sim->instant_events = 1;
        sim_progress(sim);
        return;
    }
    bool yields = thread->takes_turns && delay_ps == 0;
    thread->wake.rank = yields ? (uint32_t)SIM_RANK_YIELD : rank_at(thread, sim->now_ps + delay_ps);
    sim_event_schedule(sim, &thread->wake, delay_ps);
    thread_block(thread, THREAD_SLEEPING, thread->wake.due_ps);
}

uint32_t sim_thread_take_turns(const sim_t *sim)
{
    struct sim_thread *thread = thread_current(sim, "sim_thread_take_turns");
    thread->takes_turns = true;
    return thread->number;
}

bool sim_turn_is_over(const sim_t *sim, uint32_t number)
{
    return sim->rank > turn_at(number, sim->now_ps);
}

// --- conditions ------------------------------------------------------------------------------------------------------

void sim_condition_init(sim_condition_t *condition)
{
    *condition = (sim_condition_t){0};
}

static void condition_append(sim_condition_t *condition, struct sim_thread *thread)
{
    thread->condition = condition;
    thread->ahead = condition->last;
    thread->behind = NULL;
    if (condition->last != NULL) {
        condition->last->behind = thread;
    } else {
        condition->first = thread;
    }
    condition->last = thread;
}

static void condition_remove(sim_condition_t *condition, struct sim_thread *thread)
{
    if (thread->ahead != NULL) {
        thread->ahead->behind = thread->behind;
    } else {
        condition->first = thread->behind;
    }
    if (thread->behind != NULL) {
        thread->behind->ahead = thread->ahead;
    } else {
        condition->last = thread->ahead;
    }
    thread->condition = NULL;
}

static bool condition_wait(sim_t *sim, struct sim_thread *thread, sim_condition_t *condition, uint64_t deadline_ps,
                           const struct sim_wait_reason *reason)
{
    condition_append(condition, thread);
    thread->reason = *reason;
    if (deadline_ps != SIM_NEVER_PS) {
        thread->wake.rank = rank_at(thread, deadline_ps);
        sim_event_schedule_at(sim, &thread->wake, deadline_ps);
    }
    thread_block(thread, THREAD_WAITING, deadline_ps);
    if (thread->condition == NULL) {
        return true;
    }
    condition_remove(condition, thread);
    return false;
}

bool sim_condition_wait(sim_t *sim, sim_condition_t *condition, uint64_t deadline_ps,
                        const struct sim_wait_reason *reason)
{
    struct sim_thread *thread = thread_current(sim, "sim_condition_wait");
    return deadline_ps > sim->now_ps && condition_wait(sim, thread, condition, deadline_ps, reason);
}

bool sim_condition_wait_turn(sim_t *sim, sim_condition_t *condition, const struct sim_wait_reason *reason)
{
    struct sim_thread *thread = thread_current(sim, "sim_condition_wait_turn");
    return sim->rank < rank_at(thread, sim->now_ps) && condition_wait(sim, thread, condition, sim->now_ps, reason);
}

void sim_condition_signal(sim_t *sim, sim_condition_t *condition)
{
    while (condition->first != NULL) {
        struct sim_thread *thread = condition->first;
        condition_remove(condition, thread);
        thread->wake.rank = 0;
        sim_event_schedule(sim, &thread->wake, 0);
    }
}

// --- description -----------------------------------------------------------------------------------------------------

// "name waits for node1.memory: word 0x1000 to become 7 (since 12345 ns)\n"
static void describe(const struct sim_thread *thread, FILE *out)
{
    char since[SIM_NS_TEXT_BYTES];
    char until[SIM_NS_TEXT_BYTES];
    sim_format_ns(since, thread->since_ps);
    sim_format_ns(until, thread->until_ps);
    switch (thread->state) {
    case THREAD_SPAWNED:
    case THREAD_RUNNING:
        fprintf(out, "%s waits for its turn to run\n", thread->name);
        break;
    case THREAD_SLEEPING:
        fprintf(out, "%s waits for time: sleeps until %s ns (since %s ns)\n", thread->name, until, since);
        break;
    case THREAD_WAITING:
        fprintf(out, "%s waits for %s: ", thread->name, thread->reason.component);
        fprintf(out, thread->reason.format, (unsigned long long)thread->reason.a, (unsigned long long)thread->reason.b);
        if (thread->until_ps != SIM_NEVER_PS) {
            fprintf(out, " (since %s ns, until %s ns)\n", since, until);
        } else {
            fprintf(out, " (since %s ns)\n", since);
        }
        break;
    }
}

unsigned sim_describe_waiters(const sim_t *sim, char *buffer, size_t size)
{
    unsigned count = 0;
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    if (out == NULL) {
        sim_panic("kernel", "no memory to describe the waiting threads");
    }
    for (const struct sim_thread *thread = sim->oldest; thread != NULL; thread = thread->newer) {
        if (thread != sim->current) {
            describe(thread, out);
            count++;
        }
    }
    fclose(out);
    if (size != 0) {
        snprintf(buffer, size, "%s", text);
    }
    free(text);
    return count;
}
