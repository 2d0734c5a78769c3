// Runs that lead nowhere. A program that looks for ever moves simulated time on, one that computes for ever stops it:
// limits of real time end both. Where a program has ended badly and the others can only look in vain, so much simulated
// time does, which is sooner, and the same in every run. Where all programs of the run are over and what they have left
// (a daemon) does nothing but wait, the same ends the run well.
#include <stdlib.h>

#include "sim/attach/internal.h"

// Of real time, where all wait for each other and nothing is due: the kernel's, and that of children that are not
// attached.
enum { GRACE_MS = 2000 };
// Looks in vain between two looks at the clock.
enum { VAIN_LOOKS = 8 };

void attach_progress_note(struct attach_server *server)
{
    server->vain_looks = 0;
    server->quiet_since_ps = sim_now_ps(server->sim);
}

static bool is_alive(pid_t pid)
{
    char state = attach_state(pid, pid);
    return state != 'Z' && state != 'X';
}

// Has a process a child that is not attached? Its work takes real time.
static bool has_strangers(const struct attach_server *server)
{
    for (const struct attach_process *process = server->processes; process != NULL; process = process->next) {
        char name[64], line[1024];
        snprintf(name, sizeof name, "task/%d/children", (int)process->pid);
        (void)attach_proc_read(process->pid, name, line, sizeof line);
        char *at = line, *end;
        for (long pid = strtol(at, &end, 10); end != at; pid = strtol(at, &end, 10)) {
            const struct attach_process *child = server->processes;
            while (child != NULL && child->pid != (pid_t)pid) {
                child = child->next;
            }
            if (child == NULL && is_alive((pid_t)pid)) {
                return true;
            }
            at = end;
        }
    }
    return false;
}

uint64_t attach_idle_limit_ms(const struct attach_server *server)
{
    uint64_t limit_ms = server->options->wall_limit_ms;
    bool of_others = !server->ended_badly && !attach_programs_over(server) &&
                     (attach_watches_of_others(server) || has_strangers(server));
    return of_others || limit_ms < GRACE_MS ? limit_ms : GRACE_MS;
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

static const char *const requests[] = {
#define REQUEST(name, doc) "the end of " #name,
    ATTACH_REQUESTS(REQUEST)
#undef REQUEST
};

static const char *asked(const struct attach_request *request)
{
    switch (request->op) {
    case ATTACH_OP_WAIT:
        return attach_wait_reason((unsigned)request->arguments[0], request->arguments[1]);
    case ATTACH_OP_POLL:
        return attach_wait_reason((unsigned)request->arguments[2], 0);
    case ATTACH_OP_WAIT_WORD:
        return attach_wait_reason(ATTACH_WAIT_MEMORY, 0);
    case ATTACH_OP_FUTEX_WAIT:
        return attach_wait_reason(ATTACH_WAIT_FUTEX, 0);
    }
    return request->op < ATTACH_OPS ? requests[request->op] : "nothing that there is";
}

static bool looks_in_vain(const struct attach_request *request)
{
    return request->op == ATTACH_OP_POLL && (request->entry_count == 0 || request->arguments[6] != 0);
}

// It can go on by nothing but what a device or another program does.
static bool is_endless(const struct attach_request *request)
{
    return looks_in_vain(request) || (request->op == ATTACH_OP_WAIT && request->arguments[1] == SIM_NEVER_PS) ||
           (request->op == ATTACH_OP_FUTEX_WAIT && request->arguments[3] == SIM_NEVER_PS) ||
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

static void vain_fail(struct attach_thread *thread, const char *how_long)
{
    char title[256];
    attach_thread_title(thread, title, sizeof title);
    attach_fail(thread->process->server, "%s looks for something that nobody %s, and all others wait:\n", title,
                how_long);
    attach_waiters_tell(thread->process->server);
}

// Real time is asked for now and then.
static void vain_note(struct attach_thread *thread)
{
    struct attach_server *server = thread->process->server;
    if (++server->vain_looks % VAIN_LOOKS != 0) {
        return;
    }
    uint64_t now_ms = attach_real_ms(), limit_ms = server->options->wall_limit_ms;
    server->vain_since_ms = server->vain_looks == VAIN_LOOKS ? now_ms : server->vain_since_ms;
    bool late = now_ms - server->vain_since_ms > limit_ms;
    bool quiet = (sim_now_ps(server->sim) - server->quiet_since_ps) / SIM_PS_PER_MS > limit_ms;
    if (attach_programs_over(server)) {
        if (late || quiet) {
            attach_outside_note(server, quiet ? 0 : ATTACH_RUN_OUTSIDE_CLOCK);
            attach_leave(server);
        }
    } else if (late) {
        vain_fail(thread, "sends");
    } else if (server->ended_badly && quiet && all_endless(server)) {
        vain_fail(thread, "has sent for longer in simulated time than --wall-limit says");
    }
}

void attach_crossing_note(struct attach_thread *thread, const struct attach_request *request)
{
    struct attach_server *server = thread->process->server;
    bool waits_outside = (request->op == ATTACH_OP_WAIT &&
                          (request->arguments[0] & (ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_DESCRIPTORS)) != 0) ||
                         request->op == ATTACH_OP_FUTEX_WAIT;
    thread->asks_for = asked(request);
    thread->asked_ps = sim_now_ps(server->sim);
    thread->endless = is_endless(request);
    // Nothing but a wait for the outside, or for a signal, which has no other end.
    if (!waits_outside && !(request->op == ATTACH_OP_WAIT && thread->endless)) {
        attach_outside_note(server, server->idle_since_ms != 0 ? ATTACH_RUN_OUTSIDE_EVENT : 0);
        server->idle_since_ms = 0;
    }
    bool repeats = request->op == ATTACH_OP_NOTHING && thread->repeats; // the library's clock is read between two looks
    thread->repeats = repeats || (request->op == ATTACH_OP_POLL && request->arguments[6] != 0);
    bool does_wait =
        request->op == ATTACH_OP_WAIT && request->entry_count == 0; // with an end: a loop of them moves time on
    if (looks_in_vain(request) || (does_wait && !thread->endless)) {
        vain_note(thread);
    } else if (!waits_outside && !does_wait && !repeats) {
        attach_progress_note(server);
    }
}
