// Runs that make no progress. A program that only waits, polls, sleeps and reads clocks is still. A run is still if no
// program stores to a device or makes another request, and no device writes what a program waits for. A still run ends
// after a fixed simulated time, the same in every run, unless someone outside may let a program go on. Real time ends
// it as well (--wall-limit), unless programs notify each other through the kernel, which may go on for long. If all
// programs of the run are over and what they left (a daemon) is still, the same limits end the run well.
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sim/attach/internal.h"

// CLOCK_CALLS: attach calls between two checks of the real clock. MANY_CALLS: that many calls or sleeps show that a
// program asks repeatedly; one that computes for a minute, or sleeps for a month, makes few.
enum { CLOCK_CALLS = 8, MANY_CALLS = 10000 };
// POLLS_LIMIT_PS is longer than a program polls with a deadline of its own, SLEEPS_LIMIT_PS (an hour) longer than one
// sleeps in a loop. SHORT_SLEEPS_LIMIT_PS is for runs in which all sleep shortly, SHORT_SLEEPS times: longer than they
// give anyone to answer.
enum { SHORT_SLEEPS = 100000, SHORT_SHARE = 1000 };
#define POLLS_LIMIT_PS        (UINT64_C(1000000) * SIM_PS_PER_MS)
#define SLEEPS_LIMIT_PS       (UINT64_C(3600000) * SIM_PS_PER_MS)
#define SHORT_SLEEPS_LIMIT_PS (UINT64_C(100000) * SIM_PS_PER_MS)

void attach_progress_note(struct attach_server *server)
{
    server->still.calls = server->still.silent = server->still.sleeps = 0;
    server->still.since_ps = sim_now_ps(server->sim);
}

void attach_notified_note(struct attach_server *server)
{
    server->still.silent = 0;
}

static bool is_alive(pid_t pid)
{
    char state = attach_state(pid, pid);
    return state != 'Z' && state != 'X';
}

// Does a process have a child that is not attached? The work of such a child takes real time.
static bool has_strangers(const struct attach_server *server)
{
    for (const struct attach_process *process = server->processes; process != NULL; process = process->next) {
        char name[64], line[1024];
        snprintf(name, sizeof name, "task/%d/children", (int)process->reach.pid);
        (void)attach_proc_read(process->reach.pid, name, line, sizeof line);
        char *at = line, *end;
        for (long pid = strtol(at, &end, 10); end != at; pid = strtol(at, &end, 10)) {
            const struct attach_process *child = server->processes;
            while (child != NULL && child->reach.pid != (pid_t)pid) {
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

bool attach_programs_over(const struct attach_server *server)
{
    const struct attach_run_options *options = server->options;
    bool over = server->launch.started == options->program_count, any = false;
    for (uint32_t i = 0; i < server->launch.started && over; i++) {
        bool ended = server->launch.pids[i] == 0;
        over = ended || options->servers || options->programs[i].serves;
        any = any || ended;
    }
    return over && any;
}

// --- what a thread asks for -----------------------------------------------------------------------------------------

static const char *const ends_of[] = {
#define REQUEST(ID, name, ARGUMENTS, REPLY) "the end of " #ID,
#include "verbs-shim/attach/requests.def"
#undef REQUEST
};

static const char *asked(const struct attach_request *request)
{
    switch (request->op) {
    case ATTACH_OP_WAIT:
        return attach_wait_reason(request->args.wait.flags, request->args.wait.deadline_ps);
    case ATTACH_OP_POLL:
        return attach_wait_reason(request->args.poll.flags, 0);
    case ATTACH_OP_WAIT_WORD:
        return attach_wait_reason(ATTACH_WAIT_MEMORY, 0);
    case ATTACH_OP_FUTEX_WAIT:
        return attach_wait_reason(ATTACH_WAIT_FUTEX, 0);
    }
    return request->op < ATTACH_OPS ? ends_of[request->op] : "nothing that there is";
}

static bool polls_empty(const struct attach_request *request)
{
    return request->op == ATTACH_OP_POLL && (request->args.poll.what & ATTACH_POLL_CLOCK) == 0 &&
           (request->entry_count == 0 || (request->args.poll.what & ATTACH_POLL_REPEATS) != 0);
}

// Only a device or another program can let the thread go on.
static bool is_endless(const struct attach_request *request)
{
    return polls_empty(request) || (request->op == ATTACH_OP_WAIT && request->args.wait.deadline_ps == SIM_NEVER_PS) ||
           (request->op == ATTACH_OP_FUTEX_WAIT && request->args.futex_wait.deadline_ps == SIM_NEVER_PS) ||
           (request->op == ATTACH_OP_WAIT_WORD && request->args.wait_word.timeout_ns == 0);
}

// --- limits ---------------------------------------------------------------------------------------------------------

static bool all_endless(const struct attach_server *server)
{
    bool all = server->launch.started == server->options->program_count;
    for (const struct attach_process *process = server->processes; process != NULL && all; process = process->next) {
        all = process->ended || process->alarm_ps == SIM_NEVER_PS;
        for (unsigned i = 0; i < process->slots && all && !process->ended; i++) {
            all = process->threads[i] == NULL || process->threads[i]->asks.endless;
        }
    }
    return all;
}

// Does every wait with a deadline take less than most_ps?
static bool all_short(const struct attach_server *server, uint64_t most_ps)
{
    bool all = server->launch.started == server->options->program_count;
    for (const struct attach_process *process = server->processes; process != NULL && all; process = process->next) {
        all = process->ended || process->alarm_ps == SIM_NEVER_PS;
        for (unsigned i = 0; i < process->slots && all && !process->ended; i++) {
            const struct attach_thread *thread = process->threads[i];
            all = thread == NULL || thread->asks.endless || thread->wait.until_ps < thread->asks.since_ps + most_ps;
        }
    }
    return all;
}

// May someone outside the run let a program go on? That takes real time, however far simulated time goes.
static bool has_others(struct attach_server *server)
{
    bool asks = !server->ends.badly && !attach_programs_over(server), strangers = asks && has_strangers(server);
    attach_outside_note(server, strangers ? ATTACH_RUN_OUTSIDE_CLOCK : 0);
    return asks && (attach_watches_of_others(server) || strangers);
}

uint64_t attach_idle_limit_ms(struct attach_server *server)
{
    uint64_t limit_ms = server->options->wall_limit_ms,
             stalled_ms = attach_real_time(server->real_percent, ATTACH_REAL_STALLED_MS);
    return has_others(server) || limit_ms < stalled_ms ? limit_ms : stalled_ms;
}

static void still_fail(struct attach_server *server, const char *who, uint64_t seconds, const char *of)
{
    char waiters[sizeof server->result->text];
    attach_waiters_print(server, waiters, sizeof waiters);
    attach_servers_hint(server, waiters, sizeof waiters);
    attach_fail(server,
                "livelock: %sno program has made progress for %llu s of %s time; they poll for data that no peer will "
                "send:\n%s",
                who, (unsigned long long)seconds, of, waiters);
}

// Processor time of the simulator and of the programs.
static uint64_t used_ms(const struct attach_server *server)
{
    struct timespec own;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    uint64_t ms = (uint64_t)own.tv_sec * 1000 + (uint64_t)own.tv_nsec / 1000000;
    uint64_t ticks = 0;
    for (const struct attach_process *process = server->processes; process != NULL; process = process->next) {
        ticks += attach_processor_ticks(process->reach.pid);
    }
    return ms + ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

// Was the run still for longer than --wall-limit, on a processor that it had for a quarter of this time at least? On a
// machine that is busy with other work it gets more time.
static bool is_late(struct attach_server *server, uint64_t elapsed_ms)
{
    enum { LOOKS = 64, PATIENCE = 20 };
    struct attach_still *still = &server->still;
    uint64_t limit_ms = server->options->wall_limit_ms;
    if (elapsed_ms <= limit_ms / 2) {
        return false;
    }
    if (still->used_since_ms != still->since_ms) {
        still->used_since_ms = still->since_ms;
        still->looked_ms = elapsed_ms;
        still->used_ms = used_ms(server);
    }
    if (elapsed_ms <= limit_ms || elapsed_ms - still->looked_ms < limit_ms / LOOKS) {
        return false;
    }
    still->looked_ms = elapsed_ms;
    return elapsed_ms / PATIENCE > limit_ms || used_ms(server) - still->used_ms >= limit_ms / 4;
}

// Notes an attach call that is no progress. sleeps: it is a wait with a deadline. Clocks are checked now and then.
static void still_note(struct attach_server *server, bool sleeps)
{
    struct attach_still *still = &server->still;
    still->sleeps += sleeps;
    still->silent++;
    if (++still->calls % CLOCK_CALLS != 0) {
        return;
    }
    uint64_t now_ms =
                 attach_silence_of(&still->clock, attach_real_time(server->real_percent, ATTACH_REAL_CALLS_STEP_MS)),
             elapsed_ps = sim_now_ps(server->sim) - still->since_ps;
    still->since_ms = still->silent <= CLOCK_CALLS ? now_ms : still->since_ms;
    uint64_t elapsed_ms = now_ms - still->since_ms;
    bool late = still->silent >= MANY_CALLS && is_late(server, elapsed_ms);
    bool ends = (elapsed_ps > POLLS_LIMIT_PS && (attach_programs_over(server) || all_endless(server))) ||
                (elapsed_ps > SLEEPS_LIMIT_PS && still->sleeps >= MANY_CALLS) ||
                (elapsed_ps > SHORT_SLEEPS_LIMIT_PS && still->sleeps >= SHORT_SLEEPS &&
                 all_short(server, elapsed_ps / SHORT_SHARE));
    ends = ends && !has_others(server);
    if (!late && !ends) {
        return;
    }
    attach_outside_note(server, ends ? 0 : ATTACH_RUN_OUTSIDE_CLOCK);
    if (attach_programs_over(server)) {
        attach_leave(server);
    } else {
        still_fail(server, "", ends ? elapsed_ps / (1000 * SIM_PS_PER_MS) : elapsed_ms / 1000,
                   ends ? "simulated" : "real");
    }
}

// Programs whose key says that they serve: when the others have ended, they have a second for what they still do.
static bool servers_late(const struct attach_server *server, uint64_t now_ps)
{
    bool any = false;
    for (uint32_t i = 0; i < server->launch.started && !server->options->servers; i++) {
        any = any || (server->launch.pids[i] != 0 && server->options->programs[i].serves);
    }
    return any && now_ps > server->launch.ended_ps + 1000 * SIM_PS_PER_MS && attach_programs_over(server);
}

// Calls of any kind are progress only if simulated time moves: a program that asks for ever for what takes no time keeps
// everybody else from going on. true: it has moved since the last call.
static bool time_note(struct attach_thread *thread)
{
    struct attach_server *server = thread->process->server;
    struct attach_still *still = &server->still;
    uint64_t now_ps = sim_now_ps(server->sim);
    if (servers_late(server, now_ps) && !attach_stopped(server)) {
        attach_leave(server);
    }
    if (still->moved_ps != now_ps || still->moved_calls == 0) {
        still->moved_ps = now_ps;
        still->moved_calls = 1;
        still->moved_ms = 0;
        return true;
    }
    if (++still->moved_calls % CLOCK_CALLS != 0 || still->moved_calls < MANY_CALLS) {
        return false;
    }
    uint64_t now_ms =
        attach_silence_of(&still->clock, attach_real_time(server->real_percent, ATTACH_REAL_CALLS_STEP_MS));
    still->moved_ms = still->moved_ms == 0 ? now_ms : still->moved_ms;
    uint64_t elapsed_ms = now_ms - still->moved_ms;
    if (elapsed_ms > server->options->wall_limit_ms && !attach_stopped(server)) {
        char title[256], at[48];
        attach_thread_title(thread, title, sizeof title);
        observe_time_print(now_ps, at, sizeof at);
        attach_outside_note(server, ATTACH_RUN_OUTSIDE_CLOCK);
        attach_fail(
            server,
            "livelock: no simulated time has passed for %llu s of real time, at %s, in which programs made %llu "
            "calls; the last one is of %s: %s",
            (unsigned long long)(elapsed_ms / 1000), at, (unsigned long long)still->moved_calls, title,
            thread->asks.what);
    }
    return false;
}

void attach_stranger_note(struct attach_thread *creator, uint64_t ms)
{
    struct attach_server *server = creator->process->server;
    server->still.strangers_ms += ms;
    if (server->still.strangers_ms > server->options->wall_limit_ms && !attach_stopped(server)) {
        char title[256];
        attach_thread_title(creator, title, sizeof title);
        attach_fail(server, "%s announces threads that do not come; the run has waited for %llu s of real time", title,
                    (unsigned long long)server->still.strangers_ms / 1000);
    }
}

// A queue pair that retries for ever moves simulated time on for ever while all programs sleep. Ctrl-C is noticed here
// as well.
void attach_devices_check(void *ctx)
{
    struct attach_server *server = ctx;
    uint64_t elapsed_ps = sim_now_ps(server->sim) - server->still.since_ps;
    if (!attach_stopped(server) && !server->options->functional && elapsed_ps > POLLS_LIMIT_PS && all_endless(server) &&
        !has_others(server)) {
        still_fail(server, "devices move, but ", elapsed_ps / (1000 * SIM_PS_PER_MS), "simulated");
    }
}

// Does the request store to a device? A store that may wake others is progress of the threads that it wakes.
static bool stores(const struct attach_thread *thread, const struct attach_request *request)
{
    bool any = false;
    for (uint32_t i = 0; i < request->entry_count && !any; i++) {
        any = thread->slot->entries[i].kind != ATTACH_ENTRY_MAY_WAKE;
    }
    return any;
}

// Does the request notify another program, or was the thread notified by one: a lock that is handed over, a message
// through the kernel?
static bool is_notification(const struct attach_request *request)
{
    bool found = request->op == ATTACH_OP_POLL && (request->args.poll.what & ATTACH_POLL_FOUND) != 0;
    bool yields = request->op == ATTACH_OP_WAIT && request->args.wait.flags == 0 && request->args.wait.deadline_ps == 0;
    return found || yields || request->op == ATTACH_OP_FUTEX_WAKE || request->op == ATTACH_OP_FUTEX_REQUEUE;
}

// A clock read after a store, a full list; a load from a device by a library that only repeats what it did before.
static bool is_beside_a_poll(const struct attach_thread *thread, const struct attach_request *request)
{
    return request->op == ATTACH_OP_NOTHING || request->op == ATTACH_OP_FLUSH ||
           (request->op == ATTACH_OP_READ && thread->asks.repeats);
}

// Does the request only wait, poll or read clocks? What a library repeats while it polls counts as polling. beside:
// is_beside_a_poll.
static bool is_still(struct attach_thread *thread, const struct attach_request *request, bool beside)
{
    bool polls = request->op == ATTACH_OP_POLL;
    thread->asks.repeats = polls                                 ? (request->args.poll.what & ATTACH_POLL_REPEATS) != 0
                           : request->op == ATTACH_OP_WAIT       ? request->args.wait.repeats != 0
                           : request->op == ATTACH_OP_FUTEX_WAIT ? request->args.futex_wait.repeats != 0
                                                                 : beside && thread->asks.repeats;
    return (!stores(thread, request) || thread->asks.repeats) &&
           (polls || beside || request->op == ATTACH_OP_WAIT || request->op == ATTACH_OP_WAIT_WORD ||
            request->op == ATTACH_OP_FUTEX_WAIT || request->op == ATTACH_OP_FUTEX_WAKE ||
            request->op == ATTACH_OP_FUTEX_REQUEUE);
}

// The thread is in a loop over memory without any call, until something outside writes there.
static bool spins(const struct attach_request *request)
{
    return polls_empty(request) && request->args.poll.iterations == UINT64_MAX &&
           (request->args.poll.flags & ATTACH_WAIT_OUTSIDE) != 0;
}

void attach_call_note(struct attach_thread *thread, const struct attach_request *request)
{
    struct attach_server *server = thread->process->server;
    bool beside = is_beside_a_poll(thread, request), still = is_still(thread, request, beside);
    bool counts_as_poll = still && beside; // of a thread that polls, and its library's repetitions
    bool waits_outside = (request->op == ATTACH_OP_WAIT &&
                          (request->args.wait.flags & (ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_DESCRIPTORS)) != 0) ||
                         request->op == ATTACH_OP_FUTEX_WAIT || spins(request);
    bool polled = thread->asks.endless && (thread->asks.polls || thread->asks.repeats);
    if (!counts_as_poll || !polled) {
        thread->asks.polls = polls_empty(request);
        thread->asks.endless = is_endless(request);
        thread->asks.what = asked(request);
        // The first poll of a loop may have stores before it.
        bool goes_on = thread->asks.polls && thread->asks.polled;
        thread->asks.since_ps = goes_on ? thread->asks.since_ps : sim_now_ps(server->sim);
        thread->asks.polled = request->op == ATTACH_OP_POLL;
    }
    // Everything but a wait for the outside, or for a signal, which nothing else can end.
    if (!waits_outside && !(request->op == ATTACH_OP_WAIT && thread->asks.endless)) {
        attach_outside_note(server, server->settling.idle_since_ms != 0 ? ATTACH_RUN_OUTSIDE_EVENT : 0);
        server->settling.idle_since_ms = 0;
    }
    if (is_notification(request)) {
        attach_notified_note(server);
    }
    bool moved = time_note(thread);
    if (still) {
        still_note(server, request->op == ATTACH_OP_WAIT && !thread->asks.endless);
    } else if (moved || server->options->functional) {
        attach_progress_note(server);
    }
}
