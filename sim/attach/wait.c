// Threads that have nothing to do until a device writes to their memory, or something happens outside.

#include "sim/attach/internal.h"

// --- waiting for the outside -----------------------------------------------------------------------------------------

void attach_outside_wake(struct attach_server *server, bool ends)
{
    server->settling.wakes++;
    server->settling.ends += ends;
    sim_event_schedule(server->sim, &server->settling.event, 0);
    if (ends) {
        attach_futex_recheck(server, NULL);
    }
    (void)attach_watches_poll(server);
    struct attach_process *process = NULL;
    struct attach_thread *thread;
    unsigned index = 0;
    while ((thread = attach_thread_next(server, &process, &index)) != NULL) {
        (void)attach_loop_woken(thread);
        bool all = (thread->wait.flags & ATTACH_WAIT_OUTSIDE) != 0;
        if ((all && (ends || (thread->wait.flags & ATTACH_WAIT_ENDS) == 0)) ||
            (ends && (thread->wait.flags & (ATTACH_WAIT_DESCRIPTORS | ATTACH_WAIT_ENDS)) != 0)) {
            sim_condition_signal(server->sim, &thread->wait.woken);
        }
    }
}

// --- waiting --------------------------------------------------------------------------------------------------------

// seen_writes: the number of writes when the thread last checked.
static bool something_came(const struct attach_thread *thread, unsigned flags, uint64_t seen_writes,
                           enum attach_woken *woken_out)
{
    const struct attach_process *process = thread->process;
    uint64_t writes = (flags & ATTACH_WAIT_PINNED) != 0 ? process->writes.pinned : process->writes.all;
    if (((flags & ATTACH_WAIT_MEMORY) != 0 && writes != seen_writes) ||
        ((flags & ATTACH_WAIT_EVENTS) != 0 && process->writes.events != thread->seen.events) ||
        ((flags & ATTACH_WAIT_WORK) != 0 && process->writes.works != thread->seen.works)) {
        *woken_out = ATTACH_WOKEN_MEMORY;
        return true;
    }
    *woken_out = ATTACH_WOKEN_OUTSIDE;
    if ((flags & ATTACH_WAIT_DESCRIPTORS) != 0 &&
        (thread->watch.ready || process->server->settling.ends != thread->seen.ends)) {
        return true;
    }
    if ((flags & ATTACH_WAIT_OTHERS) != 0 && process->scheduled != thread->seen.scheduled) {
        return true;
    }
    bool changed = (flags & ATTACH_WAIT_ENDS) != 0 ? process->server->settling.ends != thread->seen.ends
                                                   : process->server->settling.wakes != thread->seen.wakes;
    return (flags & (ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_ENDS)) != 0 && changed;
}

const char *attach_wait_reason(unsigned flags, uint64_t deadline_ps)
{
    static const char *const reasons[] = {"a time",
                                          "a device to write to its memory",
                                          "another program",
                                          "a device to write to its memory, or another program",
                                          "an event of a device",
                                          "an event of a device, or its memory",
                                          "an event of a device, or another program",
                                          "a device, or another program"};
    if ((flags & ATTACH_WAIT_FUTEX) != 0) {
        return "another thread to wake it (futex)";
    }
    if ((flags & ATTACH_WAIT_OTHERS) != 0) {
        return "another thread to write to its memory";
    }
    if ((flags & ATTACH_WAIT_DESCRIPTORS) != 0) {
        return deadline_ps == SIM_NEVER_PS ? "a descriptor to be ready" : "a descriptor to be ready, or a time";
    }
    flags &= ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_EVENTS;
    return flags == 0 && deadline_ps == SIM_NEVER_PS ? "a signal" : reasons[flags];
}

uint64_t attach_alarm_before(const struct attach_process *process, uint64_t deadline_ps)
{
    uint64_t alarm_ps = process->alarm_ps < ATTACH_LAST_PS ? process->alarm_ps : SIM_NEVER_PS;
    return alarm_ps < deadline_ps ? alarm_ps : deadline_ps;
}

void attach_alarm_note(struct attach_process *process)
{
    uint64_t alarm_ps = atomic_load(&process->segment->alarm_ps);
    for (unsigned i = 0; alarm_ps != process->alarm_ps && i < process->slots; i++) {
        if (process->threads[i] != NULL) {
            sim_condition_signal(process->server->sim, &process->threads[i]->wait.woken);
        }
    }
    process->alarm_ps = alarm_ps;
}

static bool shares_memory(const struct attach_process *a, const struct attach_process *b)
{
    return a == b ||
           (a->node == b->node && atomic_load(&a->segment->shares) != 0 && atomic_load(&b->segment->shares) != 0);
}

void attach_scheduled_note(const struct attach_thread *of, bool polled_empty)
{
    struct attach_server *server = of->process->server;
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        bool shares = shares_memory(process, of->process);
        bool same = process == of->process;
        process->scheduled += shares;
        for (unsigned i = 0; i < process->slots && shares; i++) {
            struct attach_thread *thread = process->threads[i];
            if (thread == NULL || thread == of) {
                continue;
            }
            bool loops = attach_loop_others(thread, polled_empty, same);
            thread->loop.others = thread->loop.others || loops;
            if (loops || (thread->wait.flags & ATTACH_WAIT_OTHERS) != 0) {
                sim_condition_signal(server->sim, &thread->wait.woken);
            }
        }
    }
}

void attach_stored_note(const struct attach_thread *of)
{
    struct attach_server *server = of->process->server;
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        for (unsigned i = 0; i < process->slots && shares_memory(process, of->process); i++) {
            struct attach_thread *thread = process->threads[i];
            bool known = thread != NULL && thread != of && thread->known != NULL && thread->known->on;
            if (known && attach_known_changed(thread, process == of->process) && thread->fast_forwarded) {
                sim_condition_signal(server->sim, &thread->wait.woken);
            }
        }
    }
}

void attach_wakes_note(const struct attach_thread *of, const struct attach_request *request)
{
    struct attach_server *server = of->process->server;
    struct attach_process *process = NULL;
    struct attach_thread *thread;
    unsigned index = 0;
    bool wakes = false;
    for (uint32_t i = 0; i < request->entry_count && !wakes; i++) {
        wakes = of->slot->entries[i].kind == ATTACH_ENTRY_MAY_WAKE;
    }
    while (wakes && (thread = attach_thread_next(server, &process, &index)) != NULL) {
        if (thread != of && attach_loop_woken(thread) && thread->fast_forwarded) {
            sim_condition_signal(server->sim, &thread->wait.woken);
        }
    }
}

// Until the thread is signalled. false: the deadline has passed.
static bool sleep_until(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps)
{
    const struct sim_wait_reason reason = {thread->name, attach_wait_reason(flags, deadline_ps), 0, 0};
    struct attach_process *process = thread->process;
    struct attach_server *server = process->server;
    thread->wait.flags = flags;
    thread->wait.until_ps = attach_alarm_before(process, deadline_ps);
    if (thread->wait.blocked_outside) {
        sim_event_schedule(server->sim, &server->settling.event, 0);
    }
    bool signalled = sim_condition_wait(server->sim, &thread->wait.woken, thread->wait.until_ps, &reason);
    thread->wait.flags = 0;
    if (!thread->fast_forwarded) { // a fast-forwarded loop does not sleep
        thread->wait.blocked_outside = false;
        attach_preempt(thread, ADVERSARY_WAKE);
    }
    return signalled;
}

void attach_sleep(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps, bool blocked_outside)
{
    thread->wait.blocked_outside = blocked_outside;
    (void)sleep_until(thread, flags, deadline_ps < ATTACH_LAST_PS ? deadline_ps : SIM_NEVER_PS);
    thread->wait.blocked_outside = false;
}

enum attach_woken attach_thread_wait(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps)
{
    const struct attach_process *process = thread->process;
    sim_t *sim = process->server->sim;
    enum attach_woken woken = ATTACH_WOKEN_DEADLINE;
    // The library's own check may have made an attach call; writes after that call are not seen yet.
    const uint64_t seen_writes =
        (flags & ATTACH_WAIT_PINNED) != 0 ? thread->seen.waited_pinned : thread->seen.waited_writes;
    flags |= (flags & ATTACH_WAIT_DESCRIPTORS) != 0 && thread->watch.blind ? ATTACH_WAIT_OUTSIDE : 0u;
    // A wait that only a signal can end is treated as a wait for the outside. Meanwhile a library may work.
    const unsigned own = flags & ~(unsigned)ATTACH_WAIT_WORK;
    const unsigned all =
        own == 0 && deadline_ps == SIM_NEVER_PS ? flags | ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_ENDS : flags;
    deadline_ps = deadline_ps < ATTACH_LAST_PS ? deadline_ps : SIM_NEVER_PS;
    if ((own & ~(unsigned)ATTACH_WAIT_ENDS) == 0 && deadline_ps <= sim_now_ps(sim)) {
        sim_thread_sleep(sim, 0);
    }
    while (!process->ended && !something_came(thread, all, seen_writes, &woken)) {
        thread->wait.blocked_outside = (all & (ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_DESCRIPTORS)) != 0;
        (void)sleep_until(thread, all, deadline_ps);
        thread->wait.blocked_outside = false;
        if (sim_now_ps(sim) >= attach_alarm_before(process, deadline_ps) &&
            !something_came(thread, all, seen_writes, &woken)) {
            return sim_now_ps(sim) >= deadline_ps ? ATTACH_WOKEN_DEADLINE : ATTACH_WOKEN_OUTSIDE;
        }
    }
    return woken;
}
