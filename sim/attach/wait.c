// Threads that have nothing to do: until a device writes to their memory, or something happens outside.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/poll.h>

#include "sim/attach/internal.h"

// The longest that a loop of vain looks is held (docs/decisions/0011).
static const uint64_t vain_max_ps = SIM_PS_PER_MS;

// --- who is told of what --------------------------------------------------------------------------------------------

void attach_memory_written(void *ctx, uint64_t bus_address, uint32_t bytes)
{
    struct attach_process *process = ctx;
    (void)bus_address;
    (void)bytes;
    process->writes++;
    for (unsigned i = 0; i < ATTACH_SLOTS; i++) {
        struct attach_thread *thread = process->threads[i];
        if (thread != NULL && (thread->waits_for & ATTACH_WAIT_MEMORY) != 0) {
            sim_condition_signal(process->server->sim, &thread->woken);
        }
    }
}

// In the order of the processes' beginning, whatever the list's.
void attach_outside_wake(struct attach_server *server)
{
    server->wakes++;
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        for (unsigned i = 0; i < ATTACH_SLOTS; i++) {
            struct attach_thread *thread = process->threads[i];
            if (thread != NULL && (thread->waits_for & ATTACH_WAIT_OUTSIDE) != 0) {
                sim_condition_signal(server->sim, &thread->woken);
            }
        }
    }
}

// --- waiting --------------------------------------------------------------------------------------------------------

static bool something_came(const struct attach_thread *thread, unsigned flags, enum attach_woken *woken_out)
{
    if ((flags & ATTACH_WAIT_MEMORY) != 0 && thread->process->writes != thread->seen_writes) {
        *woken_out = ATTACH_WOKEN_MEMORY;
        return true;
    }
    *woken_out = ATTACH_WOKEN_OUTSIDE;
    return (flags & ATTACH_WAIT_OUTSIDE) != 0 && thread->process->server->wakes != thread->seen_wakes;
}

static const char *const reasons[] = {
    "a time", "a device to write to its memory", "another program",
    "a device to write to its memory, or another program"};

enum attach_woken attach_thread_wait(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps)
{
    sim_t *sim = thread->process->server->sim;
    enum attach_woken woken = ATTACH_WOKEN_DEADLINE;
    const struct sim_wait_reason reason = {thread->name,
                                           reasons[flags & (ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE)], 0, 0};
    bool intime = true;
    thread->waits_for = flags;
    while (!thread->process->ended && !something_came(thread, flags, &woken) && intime) {
        intime = sim_condition_wait(sim, &thread->woken, deadline_ps, &reason);
    }
    thread->waits_for = 0;
    return something_came(thread, flags, &woken) ? woken : ATTACH_WOKEN_DEADLINE;
}

void attach_thread_poll(struct attach_thread *thread, uint64_t turn_ps, uint64_t bus_address)
{
    struct attach_server *server = thread->process->server;
    uint64_t start_ps = sim_now_ps(server->sim);
    uint64_t turn = turn_ps == 0 ? 1 : turn_ps < vain_max_ps ? turn_ps : vain_max_ps;
    uint64_t turns = thread->vain < 32 ? UINT64_C(1) << thread->vain : UINT64_C(1) << 32;
    (void)bus_address;
    if (turns > vain_max_ps / turn) {
        turns = vain_max_ps / turn;
    }
    enum attach_woken woken = attach_thread_wait(thread, ATTACH_WAIT_MEMORY, start_ps + turns * turn);
    if (woken != ATTACH_WOKEN_MEMORY) {
        thread->vain++;
        return;
    }
    thread->vain = 0;
    uint64_t late_ps = (sim_now_ps(server->sim) - start_ps) % turn;
    host_core_spend(thread->core, late_ps != 0 ? turn - late_ps : 0);
}

void attach_thread_leave(struct attach_thread *thread)
{
    sim_t *sim = thread->process->server->sim;
    const struct sim_wait_reason reason = {thread->name, "a system call to return", 0, 0};
    thread->left = true;
    while (!thread->process->ended && atomic_load(&thread->slot->returned) == 0) {
        thread->waits_for = ATTACH_WAIT_OUTSIDE;
        (void)sim_condition_wait(sim, &thread->woken, SIM_NEVER_PS, &reason);
    }
    thread->waits_for = 0;
    thread->left = false;
    atomic_store(&thread->slot->returned, 0);
}

// --- the real world -------------------------------------------------------------------------------------------------

enum { IDLE_MS = 1, IDLE_MAX_MS = 20 };

static unsigned outside_waiters(const struct attach_server *server)
{
    unsigned count = 0;
    for (const struct attach_process *process = server->processes; process != NULL; process = process->next) {
        for (unsigned i = 0; i < ATTACH_SLOTS; i++) {
            const struct attach_thread *thread = process->threads[i];
            count += thread != NULL && (thread->waits_for & ATTACH_WAIT_OUTSIDE) != 0;
        }
    }
    return count;
}

bool attach_idle(struct attach_server *server)
{
    uint64_t now_ms = attach_real_ms();
    server->idle_since_ms = server->idle_since_ms == 0 ? now_ms : server->idle_since_ms;
    uint64_t idle_ms = now_ms - server->idle_since_ms, before = server->wakes;
    unsigned threads = sim_thread_count(server->sim);
    if (idle_ms > server->options->wall_limit_ms) {
        return false;
    }
    struct pollfd listener = {.fd = server->listener, .events = POLLIN};
    (void)poll(&listener, 1, idle_ms < 100 ? IDLE_MS : IDLE_MAX_MS);
    attach_accept(server);
    attach_processes_check(server);
    attach_threads_find(server);
    bool news = server->wakes != before || sim_thread_count(server->sim) != threads;
    if (outside_waiters(server) == 0 && !news) {
        return false;
    }
    attach_outside_wake(server);
    return true;
}
