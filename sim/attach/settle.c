// The real world. What programs tell each other goes through the machine's kernel, which needs a moment. So before
// simulated time goes on, those who wait for the outside are asked a second time after something may have woken them;
// and where there is nothing to do but to let a deadline come, real time is given to what is outside the run.
#include <poll.h>
#include <sched.h>

#include "sim/attach/internal.h"

enum { YIELDS = 4, IDLE_MS = 1, IDLE_MAX_MS = 20, IDLE_ASKS = 2 };

// Do all wait for the outside, and nothing but a deadline of theirs is due?
static bool only_deadlines(const struct attach_server *server)
{
    uint64_t deadline_ps = SIM_NEVER_PS;
    struct attach_process *process = NULL;
    const struct attach_thread *thread;
    unsigned index = 0;
    while ((thread = attach_thread_next(server, &process, &index)) != NULL) {
        if (!thread->blocked_outside) {
            return false;
        }
        deadline_ps = thread->waits_until_ps < deadline_ps ? thread->waits_until_ps : deadline_ps;
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
        all = thread->blocked_outside || process->ended;
    }
    return all;
}

static void world_look(struct attach_server *server, int ms)
{
    struct pollfd ready[] = {{.fd = server->listener, .events = POLLIN}, {.fd = server->watches, .events = POLLIN}};
    (void)poll(ready, 2, ms);
    attach_accept(server);
    attach_processes_check(server);
    attach_threads_find(server, false);
}

static void settled(struct attach_server *server)
{
    server->settled_wakes = server->wakes;
    server->settled_ends = server->end_wakes;
}

static void settle(void *ctx)
{
    struct attach_server *server = ctx;
    (void)attach_watches_look(server, 0);
    if (server->wakes != server->settled_wakes) {
        for (unsigned i = 0; i < YIELDS; i++) {
            (void)sched_yield();
        }
        attach_outside_wake(server, server->end_wakes != server->settled_ends);
        settled(server);
    } else if (server->started < server->options->program_count && attach_all_blocked_outside(server)) {
        sim_condition_signal(server->sim, &server->quiet);
    } else if ((server->idle_asks < IDLE_ASKS || server->idle_at_ps != sim_now_ps(server->sim)) &&
               only_deadlines(server)) {
        server->idle_asks = server->idle_at_ps == sim_now_ps(server->sim) ? server->idle_asks + 1 : 1;
        server->idle_at_ps = sim_now_ps(server->sim);
        world_look(server, IDLE_MS);
        attach_outside_wake(server, true);
        settled(server);
    }
}

void attach_settle_init(struct attach_server *server)
{
    sim_event_init_update(server->sim, &server->settle, settle, server);
}

static unsigned outside_waiters(const struct attach_server *server)
{
    unsigned count = 0, index = 0;
    struct attach_process *process = NULL;
    const struct attach_thread *thread;
    while ((thread = attach_thread_next(server, &process, &index)) != NULL) {
        count += (thread->waits_for & (ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_DESCRIPTORS)) != 0;
    }
    return count;
}

bool attach_idle(struct attach_server *server)
{
    uint64_t now_ms = attach_real_ms();
    server->idle_since_ms = server->idle_since_ms == 0 ? now_ms : server->idle_since_ms;
    uint64_t idle_ms = now_ms - server->idle_since_ms, before = server->wakes;
    if (idle_ms > attach_idle_limit_ms(server)) {
        return false;
    }
    world_look(server, idle_ms < 100 ? IDLE_MS : IDLE_MAX_MS);
    bool news = server->wakes != before || sim_next_due_ps(server->sim) != SIM_NEVER_PS;
    if (outside_waiters(server) == 0 && !news) {
        return false;
    }
    attach_outside_wake(server, true);
    settled(server);
    return true;
}
