// Runs that lead nowhere. A program that looks for ever moves simulated time on, one that computes for ever stops it:
// limits of real time end both. Where a program has ended badly and the others can only look in vain, so much simulated
// time does, which is sooner, and the same in every run. Where all programs of the run are over and what they have left
// (a daemon) does nothing but wait, the same ends the run well.
#include "sim/attach/internal.h"

// Of real time, where all wait for the outside, nothing is due and a program has ended badly.
enum { GRACE_MS = 2000 };

void attach_progress_note(struct attach_server *server)
{
    server->vain_since_ms = 0;
    server->quiet_since_ps = sim_now_ps(server->sim);
}

uint64_t attach_idle_limit_ms(const struct attach_server *server)
{
    uint64_t limit_ms = server->options->wall_limit_ms;
    return (server->ended_badly || attach_programs_over(server)) && limit_ms > GRACE_MS ? GRACE_MS : limit_ms;
}

bool attach_programs_over(const struct attach_server *server)
{
    bool over = server->started == server->options->program_count;
    for (uint32_t i = 0; i < server->started && over; i++) {
        over = server->pids[i] == 0;
    }
    return over;
}

// --- what a thread asks for -----------------------------------------------------------------------------------------

static const char *const waits[] = {"a time", "a device to write to its memory", "another program",
                                    "a device to write to its memory, or another program"};

static const char *const requests[] = {
#define REQUEST(name, doc) "the end of " #name,
    ATTACH_REQUESTS(REQUEST)
#undef REQUEST
};

static const char *asked(const struct attach_request *request)
{
    switch (request->op) {
    case ATTACH_OP_WAIT:
    case ATTACH_OP_POLL: {
        uint64_t flags = request->arguments[request->op == ATTACH_OP_WAIT ? 0 : 2];
        return waits[flags & (ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE)];
    }
    case ATTACH_OP_WAIT_WORD:
        return waits[ATTACH_WAIT_MEMORY];
    }
    return request->op < ATTACH_OPS ? requests[request->op] : "nothing that there is";
}

static bool looks_in_vain(const struct attach_request *request)
{
    return request->op == ATTACH_OP_POLL && request->entry_count == 0;
}

// It can go on by nothing but what a device or another program does.
static bool is_endless(const struct attach_request *request)
{
    return looks_in_vain(request) || (request->op == ATTACH_OP_WAIT && request->arguments[1] == SIM_NEVER_PS) ||
           (request->op == ATTACH_OP_WAIT_WORD && request->arguments[3] == 0);
}

// --- limits ---------------------------------------------------------------------------------------------------------

static bool all_endless(const struct attach_server *server)
{
    bool all = server->started == server->options->program_count;
    for (const struct attach_process *process = server->processes; process != NULL && all; process = process->next) {
        all = process->ended || process->alarm_ps == SIM_NEVER_PS;
        for (unsigned i = 0; i < process->slots && all && !process->ended; i++) {
            all = process->threads[i] == NULL || process->threads[i]->endless;
        }
    }
    return all;
}

static void vain_note(struct attach_thread *thread)
{
    char title[256];
    struct attach_server *server = thread->process->server;
    uint64_t now_ms = attach_real_ms(), limit_ms = server->options->wall_limit_ms;
    uint64_t quiet_ps = sim_now_ps(server->sim) - server->quiet_since_ps;
    server->vain_since_ms = server->vain_since_ms == 0 ? now_ms : server->vain_since_ms;
    attach_thread_title(thread, title, sizeof title);
    if (attach_programs_over(server)) {
        if (now_ms - server->vain_since_ms > limit_ms || quiet_ps / SIM_PS_PER_MS > limit_ms) {
            attach_leave(server);
        }
    } else if (now_ms - server->vain_since_ms > limit_ms) {
        attach_fail(server, "%s looks for something that nobody sends, and all others wait:\n", title);
        attach_waiters_tell(server);
    } else if (server->ended_badly && quiet_ps / SIM_PS_PER_MS > limit_ms && all_endless(server)) {
        attach_fail(server,
                    "%s looks for something that nobody has sent for %llu s of simulated time, and all others wait:\n",
                    title, (unsigned long long)(quiet_ps / SIM_PS_PER_MS / 1000));
        attach_waiters_tell(server);
    }
}

void attach_crossing_note(struct attach_thread *thread, const struct attach_request *request)
{
    struct attach_server *server = thread->process->server;
    bool waits_outside = request->op == ATTACH_OP_WAIT && (request->arguments[0] & ATTACH_WAIT_OUTSIDE) != 0;
    thread->asks_for = asked(request);
    thread->asked_ps = sim_now_ps(server->sim);
    thread->endless = is_endless(request);
    // Nothing but a wait for the outside, or for a signal, which has no other end.
    if (!waits_outside && !(request->op == ATTACH_OP_WAIT && thread->endless)) {
        server->idle_since_ms = 0;
    }
    bool does_wait =
        request->op == ATTACH_OP_WAIT && request->entry_count == 0; // with an end: a loop of them moves time on
    if (looks_in_vain(request) || (does_wait && !thread->endless)) {
        vain_note(thread);
    } else if (!waits_outside && !does_wait) {
        attach_progress_note(server);
    }
}
