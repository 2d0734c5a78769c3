// Settling with the real world. Messages between programs pass through the machine's kernel, which needs a moment. So
// before simulated time goes on, threads that wait for the outside check a second time after something may have woken
// them. If nothing is left but to wait for a deadline, real time passes first, for whatever is outside the run.
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sim/attach/internal.h"

enum { IDLE_ASKS = 2 };

// Do all threads wait for the outside, with nothing due but one of their deadlines?
static bool only_deadlines(const struct attach_server *server)
{
    uint64_t deadline_ps = SIM_NEVER_PS;
    struct attach_process *process = NULL;
    const struct attach_thread *thread;
    unsigned index = 0;
    while ((thread = attach_thread_next(server, &process, &index)) != NULL) {
        if (!thread->wait.blocked_outside) {
            return false;
        }
        deadline_ps = thread->wait.until_ps < deadline_ps ? thread->wait.until_ps : deadline_ps;
    }
    return deadline_ps != SIM_NEVER_PS && sim_next_due_ps(server->sim) >= deadline_ps;
}

bool attach_all_blocked_outside(const struct attach_server *server)
{
    struct attach_process *process = NULL;
    const struct attach_thread *thread;
    unsigned index = 0;
    bool all = true;
    while (all && (thread = attach_thread_next(server, &process, &index)) != NULL) {
        all = thread->wait.blocked_outside || process->ended;
    }
    return all;
}

// Until a program connects, a descriptor is ready, or this constant of real_time.h has passed.
static void world_poll(struct attach_server *server, unsigned ms)
{
    struct pollfd ready[] = {{.fd = server->listener.fd, .events = POLLIN}, {.fd = server->watches, .events = POLLIN}};
    (void)poll(ready, 2, (int)attach_real_time(server->real_percent, ms));
    attach_accept(server);
    attach_processes_check(server);
    attach_threads_find(server, false);
}

static void settled(struct attach_server *server)
{
    server->settling.settled_wakes = server->settling.wakes;
    server->settling.settled_ends = server->settling.ends;
}

static void settle(void *ctx)
{
    struct attach_server *server = ctx;
    (void)attach_watches_poll(server);
    if (server->settling.wakes != server->settling.settled_wakes) {
        for (uint64_t i = attach_real_time(server->real_percent, ATTACH_REAL_SETTLE_YIELDS); i > 0; i--) {
            (void)sched_yield();
        }
        attach_outside_wake(server, server->settling.ends != server->settling.settled_ends);
        settled(server);
    } else if (server->launch.started < server->options->program_count && attach_all_blocked_outside(server)) {
        sim_condition_signal(server->sim, &server->launch.all_external);
    } else if ((server->settling.idle_asks < IDLE_ASKS || server->settling.idle_at_ps != sim_now_ps(server->sim)) &&
               only_deadlines(server)) {
        server->settling.idle_asks =
            server->settling.idle_at_ps == sim_now_ps(server->sim) ? server->settling.idle_asks + 1 : 1;
        server->settling.idle_at_ps = sim_now_ps(server->sim);
        world_poll(server, ATTACH_REAL_DEADLINE_MS);
        attach_outside_wake(server, true);
        settled(server);
    }
}

void attach_settle_init(struct attach_server *server)
{
    sim_event_init_update(server->sim, &server->settling.event, settle, server);
}

static unsigned outside_waiters(const struct attach_server *server)
{
    unsigned count = 0, index = 0;
    struct attach_process *process = NULL;
    const struct attach_thread *thread;
    while ((thread = attach_thread_next(server, &process, &index)) != NULL) {
        count += (thread->wait.flags & (ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_DESCRIPTORS)) != 0;
    }
    return count;
}

bool attach_idle(struct attach_server *server)
{
    uint64_t now_ms = attach_silence_ms(server);
    server->settling.idle_since_ms = server->settling.idle_since_ms == 0 ? now_ms : server->settling.idle_since_ms;
    uint64_t idle_ms = now_ms - server->settling.idle_since_ms, before = server->settling.wakes;
    if (idle_ms > attach_idle_limit_ms(server)) {
        return false;
    }
    world_poll(server, idle_ms < attach_real_time(server->real_percent, ATTACH_REAL_IDLE_SHORT_MS)
                           ? ATTACH_REAL_DEADLINE_MS
                           : ATTACH_REAL_IDLE_LOOK_MAX_MS);
    bool changed = server->settling.wakes != before || sim_next_due_ps(server->sim) != SIM_NEVER_PS;
    if (outside_waiters(server) == 0 && !changed) {
        return false;
    }
    attach_outside_wake(server, true);
    settled(server);
    return true;
}

// --- signals from outside the run -----------------------------------------------------------------------------------

static uint64_t bit_of(int signal_number)
{
    return UINT64_C(1) << (signal_number - 1);
}

// A set of signals in the text of /proc/PID/status.
static uint64_t signals_read(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    return line != NULL ? strtoull(line + strlen(name), NULL, 16) : 0;
}

// Signals that are pending for the process as a whole and will end it: it neither handles nor ignores them. Others wait
// for the next slot of the program. 0 also if it is gone.
static uint64_t signals_ending(pid_t pid)
{
    const uint64_t harmless = bit_of(SIGCHLD) | bit_of(SIGCONT) | bit_of(SIGTSTP) | bit_of(SIGTTIN) | bit_of(SIGTTOU) |
                              bit_of(SIGURG) | bit_of(SIGWINCH);
    char status[4096];
    (void)attach_proc_read(pid, "status", status, sizeof status);
    uint64_t kept = signals_read(status, "\nSigIgn:\t") | signals_read(status, "\nSigCgt:\t");
    return signals_read(status, "\nShdPnd:\t") & ~(harmless | kept);
}

void attach_signals_sent(struct attach_server *server)
{
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        process->signals_seen = process->ended ? 0 : signals_ending(process->reach.pid);
    }
}

// Was it killed, and may not have ended yet? The pending signal stays visible in most cases; else a flag of its first
// thread tells (proc(5), linux/sched.h).
static bool is_killed(pid_t pid)
{
    enum { PF_SIGNALED = 0x400 };
    char status[4096];
    (void)attach_proc_read(pid, "status", status, sizeof status);
    uint64_t pending = signals_read(status, "\nShdPnd:\t") | signals_read(status, "\nSigPnd:\t");
    unsigned long long flags = 0;
    (void)attach_stat_read(pid, 9, 1, &flags);
    return (pending & bit_of(SIGKILL)) != 0 || (flags & PF_SIGNALED) != 0;
}

void attach_killed_await(struct attach_server *server)
{
    bool timed = !server->options->functional;
    for (struct attach_process *process = server->processes; process != NULL && timed; process = process->next) {
        if (!process->ended && !process->leaving && is_killed(process->reach.pid)) {
            struct pollfd end = {.fd = process->reach.pidfd, .events = POLLIN};
            bool over = poll(&end, 1, (int)server->options->wall_limit_ms) == 1;
            attach_outside_note(server, over ? 0 : ATTACH_RUN_OUTSIDE_CLOCK);
            (void)attach_process_check(process);
        }
    }
}

void attach_signals_check(struct attach_server *server)
{
    uint64_t now_ms = attach_real_ms();
    bool found = false;
    if (now_ms - server->settling.looked_ms < attach_real_time(server->real_percent, ATTACH_REAL_SIGNALS_LOOK_MS)) {
        return;
    }
    server->settling.looked_ms = now_ms;
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        uint64_t pending = process->ended ? 0 : signals_ending(process->reach.pid);
        found = found || (pending & ~process->signals_seen) != 0;
        process->signals_seen = pending;
    }
    if (found) {
        attach_outside_note(server, ATTACH_RUN_OUTSIDE_EVENT);
        attach_outside_wake(server, true);
    }
}
