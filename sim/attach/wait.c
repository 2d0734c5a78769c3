// Threads that have nothing to do: until a device writes to their memory, or something happens outside.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/poll.h>

#include "sim/attach/internal.h"

// The longest that a loop of vain looks is held (docs/decisions/0011).
static const uint64_t vain_max_ps = SIM_PS_PER_MS;
// And by how much it may miss a write beside the word that it looks at: a message's data arrive in thousands of writes.
static const uint64_t stray_max_ps = SIM_PS_PER_US;

// --- who is told of what --------------------------------------------------------------------------------------------

void attach_memory_written(void *ctx, uint64_t bus_address, uint32_t bytes)
{
    struct attach_process *process = ctx;
    process->writes++;
    for (unsigned i = 0; i < process->slots; i++) {
        struct attach_thread *thread = process->threads[i];
        if (thread == NULL) {
            continue;
        }
        bool hit = thread->place - bus_address < bytes;
        thread->place_writes += hit;
        if ((thread->waits_for & ATTACH_WAIT_MEMORY) != 0 && (hit || !thread->strayed)) {
            thread->strayed = true;
            sim_condition_signal(process->server->sim, &thread->woken);
        }
    }
}

// In the order of the processes' beginning, whatever the list's.
void attach_outside_wake(struct attach_server *server)
{
    server->wakes++;
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        for (unsigned i = 0; i < process->slots; i++) {
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

uint64_t attach_alarm_before(const struct attach_process *process, uint64_t deadline_ps)
{
    return process->alarm_ps < deadline_ps ? process->alarm_ps : deadline_ps;
}

void attach_alarm_note(struct attach_process *process)
{
    uint64_t alarm_ps = atomic_load(&process->segment->alarm_ps);
    for (unsigned i = 0; alarm_ps != process->alarm_ps && i < process->slots; i++) {
        if (process->threads[i] != NULL) {
            sim_condition_signal(process->server->sim, &process->threads[i]->woken);
        }
    }
    process->alarm_ps = alarm_ps;
}

// Until something happens that the thread is told of; false: the deadline.
static bool sleep_until(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps)
{
    const struct sim_wait_reason reason = {
        thread->name, reasons[flags & (ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE)], 0, 0};
    thread->waits_for = flags;
    thread->strayed = false;
    bool told = sim_condition_wait(thread->process->server->sim, &thread->woken,
                                   attach_alarm_before(thread->process, deadline_ps), &reason);
    thread->waits_for = 0;
    return told;
}

enum attach_woken attach_thread_wait(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps)
{
    const struct attach_process *process = thread->process;
    sim_t *sim = process->server->sim;
    enum attach_woken woken = ATTACH_WOKEN_DEADLINE;
    // What has no other end than a signal is asked like everybody who waits for the outside.
    unsigned all = flags == 0 && deadline_ps == SIM_NEVER_PS ? (unsigned)ATTACH_WAIT_OUTSIDE : flags;
    while (!process->ended && !something_came(thread, all, &woken)) {
        (void)sleep_until(thread, all, deadline_ps);
        if (sim_now_ps(sim) >= attach_alarm_before(process, deadline_ps) && !something_came(thread, all, &woken)) {
            return sim_now_ps(sim) >= deadline_ps ? ATTACH_WOKEN_DEADLINE : ATTACH_WOKEN_OUTSIDE;
        }
    }
    return woken;
}

// --- vain looks -----------------------------------------------------------------------------------------------------

// A row of vain looks, and what each of its waits may take.
struct row {
    uint64_t start_ps, turn_ps;
    uint64_t bound_ps; // of this wait
    uint64_t quiet_ps; // before writes elsewhere are noticed, while they come in floods
    unsigned flags;
    bool placed; // the same word as in the look before
};

static struct row row_of(struct attach_thread *thread, const struct attach_request *request)
{
    const uint64_t *arguments = request->arguments;
    uint64_t least_ps = host_core_config(thread->core)->poll_ps;
    uint64_t turn_ps = arguments[0] != 0 ? arguments[0] : request->own_ps > least_ps ? request->own_ps : least_ps;
    struct row row = {.start_ps = sim_now_ps(thread->process->server->sim), .flags = (unsigned)arguments[2]};
    row.turn_ps = turn_ps == 0 ? 1 : turn_ps < vain_max_ps ? turn_ps : vain_max_ps;
    row.placed = arguments[1] != 0 && arguments[1] == thread->place;
    if (arguments[3] != 0 || request->entry_count != 0) { // it found something, or did
        thread->vain = 0;
    }
    thread->strays = row.placed ? thread->strays : 0;
    thread->place = arguments[1];
    uint64_t most = vain_max_ps / row.turn_ps, turns = thread->vain < 32 ? UINT64_C(1) << thread->vain : most;
    row.bound_ps = (turns < most ? turns : most) * row.turn_ps;
    uint64_t stray_ps = thread->strays < 20 ? row.turn_ps << thread->strays : stray_max_ps;
    row.quiet_ps = thread->strays == 0 ? 0 : stray_ps < stray_max_ps ? stray_ps : stray_max_ps;
    return row;
}

static bool row_came(const struct attach_thread *thread, const struct row *row, enum attach_woken *woken_out)
{
    unsigned flags = row->placed ? row->flags & ~(unsigned)ATTACH_WAIT_MEMORY : row->flags;
    if (row->placed && thread->place_writes != thread->seen_place_writes) {
        *woken_out = ATTACH_WOKEN_MEMORY;
        return true;
    }
    return something_came(thread, flags, woken_out);
}

enum attach_woken attach_thread_poll(struct attach_thread *thread, const struct attach_request *request)
{
    const struct attach_process *process = thread->process;
    sim_t *sim = process->server->sim;
    enum attach_woken woken = ATTACH_WOKEN_DEADLINE;
    const struct row row = row_of(thread, request);
    bool came, stray;
    for (;;) {
        came = process->ended || row_came(thread, &row, &woken);
        stray = !came && process->writes != thread->seen_writes && (row.flags & ATTACH_WAIT_MEMORY) != 0;
        uint64_t end_ps = row.start_ps + (stray && row.quiet_ps < row.bound_ps ? row.quiet_ps : row.bound_ps);
        if (came || sim_now_ps(sim) >= attach_alarm_before(process, end_ps)) {
            break;
        }
        (void)sleep_until(thread, row.flags, end_ps);
    }
    thread->vain = came || stray ? 0 : thread->vain + 1;
    thread->strays = stray ? thread->strays + 1 : 0;
    uint64_t late_ps = (sim_now_ps(sim) - row.start_ps) % row.turn_ps;
    host_core_spend(thread->core, late_ps != 0 ? row.turn_ps - late_ps : 0);
    return came ? woken : stray ? ATTACH_WOKEN_MEMORY : ATTACH_WOKEN_DEADLINE;
}

void attach_thread_leave(struct attach_thread *thread)
{
    sim_t *sim = thread->process->server->sim;
    const struct sim_wait_reason reason = {thread->name, "a system call to return", 0, 0};
    while (!thread->process->ended && atomic_load(&thread->slot->returned) == 0) {
        thread->waits_for = ATTACH_WAIT_OUTSIDE;
        (void)sim_condition_wait(sim, &thread->woken, SIM_NEVER_PS, &reason);
    }
    thread->waits_for = 0;
    atomic_store(&thread->slot->returned, 0);
}

// --- the real world -------------------------------------------------------------------------------------------------

enum { IDLE_MS = 1, IDLE_MAX_MS = 20 };

static unsigned outside_waiters(const struct attach_server *server)
{
    unsigned count = 0;
    for (const struct attach_process *process = server->processes; process != NULL; process = process->next) {
        for (unsigned i = 0; i < process->slots; i++) {
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
