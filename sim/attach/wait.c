// Threads that have nothing to do: until a device writes to their memory, or something happens outside.
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/attach/internal.h"

// The longest that a loop of vain looks is held (docs/decisions/0011).
static const uint64_t vain_max_ps = SIM_PS_PER_MS;
// And the first wait of a row.
static const uint64_t usual_max_ps = 5 * SIM_PS_PER_US;
enum { GROWTH_BITS = 2 };
// Later than this is never.
static const uint64_t last_ps = UINT64_C(1) << 62;
// A message's data arrive in thousands of writes. Of those beside the words that a loop looks at it is told a sixteenth
// of the time late that they have been coming already, and never more than this. They are over after so long without
// one.
static const uint64_t stray_max_ps = SIM_PS_PER_US, flood_gap_ps = 4 * SIM_PS_PER_US;
enum { FLOOD_BITS = 4 };

// --- who waits for the outside ---------------------------------------------------------------------------------------

void attach_outside_wake(struct attach_server *server, bool ends)
{
    server->wakes++;
    server->end_wakes += ends;
    sim_event_schedule(server->sim, &server->settle, 0);
    if (ends) {
        attach_futex_look_again(server, NULL);
    }
    attach_watches_look(server, 0);
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        for (unsigned i = 0; i < process->slots; i++) {
            struct attach_thread *thread = process->threads[i];
            bool all = thread != NULL && (thread->waits_for & ATTACH_WAIT_OUTSIDE) != 0;
            if ((all && (ends || (thread->waits_for & ATTACH_WAIT_ENDS) == 0)) ||
                (ends && thread != NULL && (thread->waits_for & ATTACH_WAIT_DESCRIPTORS) != 0)) {
                sim_condition_signal(server->sim, &thread->woken);
            }
        }
    }
}

// --- waiting --------------------------------------------------------------------------------------------------------

// seen_writes: how many there had been when the thread looked.
static bool something_came(const struct attach_thread *thread, unsigned flags, uint64_t seen_writes,
                           enum attach_woken *woken_out)
{
    const struct attach_process *process = thread->process;
    if (((flags & ATTACH_WAIT_MEMORY) != 0 && process->writes != seen_writes) ||
        ((flags & ATTACH_WAIT_EVENTS) != 0 && process->event_writes != thread->seen_event_writes)) {
        *woken_out = ATTACH_WOKEN_MEMORY;
        return true;
    }
    *woken_out = ATTACH_WOKEN_OUTSIDE;
    if ((flags & ATTACH_WAIT_DESCRIPTORS) != 0 &&
        (thread->watch_ready || process->server->end_wakes != thread->seen_ends)) {
        return true;
    }
    if ((flags & ATTACH_WAIT_TURNS) != 0 && process->server->node_turns[process->node] != thread->seen_turns) {
        return true;
    }
    bool news = (flags & ATTACH_WAIT_ENDS) != 0 ? process->server->end_wakes != thread->seen_ends
                                                : process->server->wakes != thread->seen_wakes;
    return (flags & ATTACH_WAIT_OUTSIDE) != 0 && news;
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
    if ((flags & ATTACH_WAIT_TURNS) != 0) {
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
    uint64_t alarm_ps = process->alarm_ps < last_ps ? process->alarm_ps : SIM_NEVER_PS;
    return alarm_ps < deadline_ps ? alarm_ps : deadline_ps;
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

// A thread has had its turn: others look at what it may have written to memory that they share.
void attach_turn_note(const struct attach_process *of)
{
    of->server->node_turns[of->node]++;
    if (of->server->turn_waiters == 0) {
        return;
    }
    for (struct attach_process *process = of->server->processes; process != NULL; process = process->next) {
        for (unsigned i = 0; i < process->slots && process->node == of->node; i++) {
            struct attach_thread *thread = process->threads[i];
            if (thread != NULL && (thread->waits_for & ATTACH_WAIT_TURNS) != 0) {
                sim_condition_signal(of->server->sim, &thread->woken);
            }
        }
    }
}

// Until something happens that the thread is told of; false: the deadline.
static bool sleep_until(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps)
{
    const struct sim_wait_reason reason = {thread->name, attach_wait_reason(flags, deadline_ps), 0, 0};
    struct attach_server *server = thread->process->server;
    thread->waits_for = flags;
    server->turn_waiters += (flags & ATTACH_WAIT_TURNS) != 0;
    thread->waits_until_ps = attach_alarm_before(thread->process, deadline_ps);
    thread->strayed = false;
    if (thread->patient) {
        sim_event_schedule(server->sim, &server->settle, 0);
    }
    bool told = sim_condition_wait(server->sim, &thread->woken, thread->waits_until_ps, &reason);
    server->turn_waiters -= (flags & ATTACH_WAIT_TURNS) != 0;
    thread->waits_for = 0;
    return told;
}

void attach_sleep(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps)
{
    thread->patient = true;
    (void)sleep_until(thread, flags, deadline_ps < last_ps ? deadline_ps : SIM_NEVER_PS);
    thread->patient = false;
}

enum attach_woken attach_thread_wait(struct attach_thread *thread, unsigned flags, uint64_t deadline_ps)
{
    const struct attach_process *process = thread->process;
    sim_t *sim = process->server->sim;
    enum attach_woken woken = ATTACH_WOKEN_DEADLINE;
    // A library's look may have crossed itself, and what was written after that is not what it has seen.
    const uint64_t seen_writes = thread->waited_writes;
    // What has no other end than a signal is asked like everybody who waits for the outside.
    unsigned all =
        flags == 0 && deadline_ps == SIM_NEVER_PS ? (unsigned)(ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_ENDS) : flags;
    deadline_ps = deadline_ps < last_ps ? deadline_ps : SIM_NEVER_PS;
    while (!process->ended && !something_came(thread, all, seen_writes, &woken)) {
        thread->patient = (all & (ATTACH_WAIT_OUTSIDE | ATTACH_WAIT_DESCRIPTORS)) != 0;
        (void)sleep_until(thread, all, deadline_ps);
        thread->patient = false;
        if (sim_now_ps(sim) >= attach_alarm_before(process, deadline_ps) &&
            !something_came(thread, all, seen_writes, &woken)) {
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
    uint64_t quiet_ps; // before writes elsewhere are noticed: what belongs to them may follow, and they come in floods
    unsigned flags;
    bool placed; // all writes to the word since the last look are known
    bool exact;  // the words of a loop, of which the same holds; nothing else matters
};

// Whole turns: one, or twice as long as the longer of the last two rows took that found something (a send's end and an
// answer come in turn); four times as much with every wait. After a write elsewhere it begins small: that may be what
// the program waits for, and it may look here once more before it does something about it.
static uint64_t bound_of(const struct attach_thread *thread, uint64_t turn_ps, uint64_t quiet_ps)
{
    uint64_t longer_ps = thread->rows_ps[0] > thread->rows_ps[1] ? thread->rows_ps[0] : thread->rows_ps[1];
    uint64_t usual_ps = longer_ps < usual_max_ps ? 2 * longer_ps : 2 * usual_max_ps;
    usual_ps = thread->stray ? quiet_ps : usual_ps;
    uint64_t most = vain_max_ps / turn_ps, turns = usual_ps / turn_ps + 1;
    for (unsigned i = 0; i < thread->vain && turns < most; i++) {
        turns <<= GROWTH_BITS;
    }
    return (turns < most ? turns : most) * turn_ps;
}

// The words that a thread looked at last: a loop looks at more than one queue. true: it was one of them before.
static bool place_note(struct attach_thread *thread, uint64_t place)
{
    for (unsigned i = 0; i < ATTACH_PLACES; i++) {
        if (place != 0 && thread->places[i] == place) {
            return true;
        }
    }
    if (place != 0) {
        thread->places[thread->next_place] = place;
        thread->next_place = (thread->next_place + 1) % ATTACH_PLACES;
    }
    return false;
}

// The words of a loop that reads nothing else. true: all writes to them since the last look are known.
static bool words_note(struct attach_thread *thread, const struct attach_request *request)
{
    uint64_t count = request->arguments[4];
    bool and_pinned = request->arguments[5] != 0;
    if (count == 0 || count > ATTACH_RANGES_MAX) {
        return false;
    }
    size_t bytes = count * sizeof thread->words[0];
    bool before = thread->word_count == count && thread->words_and_pinned == and_pinned &&
                  memcmp(thread->words, request->structure, bytes) == 0;
    memcpy(thread->words, request->structure, bytes);
    thread->word_count = (uint32_t)count;
    thread->words_and_pinned = and_pinned;
    return before || thread->process->writes == thread->seen_writes;
}

// Was nothing else written since the thread got its turn?
static bool only_here(const struct attach_thread *thread, uint64_t place)
{
    for (unsigned i = 0; i < ATTACH_PLACES; i++) {
        if (thread->places[i] == place) {
            return thread->hits[i] == thread->process->writes - thread->seen_writes;
        }
    }
    return false;
}

// What was written may be for any of the words that the loop looks at, or for none that is known. What was written to
// this word alone it finds here, and nothing on its way round.
static void round_begin(struct attach_thread *thread, uint64_t place, bool stray)
{
    thread->round_kind = stray ? ROUND_OF_STRAY : only_here(thread, place) ? ROUND_OVER : ROUND_OF_PLACE;
    thread->round[0] = place;
    thread->round_count = 1;
    thread->rounds_left = 0;
}

// A write elsewhere: the loop sees it by itself on its way round, and may go round once more with what it found (Open
// MPI does) before anything shows it.
static void stray_note(struct attach_thread *thread, uint64_t now_ps)
{
    if (now_ps - thread->stray_ps > flood_gap_ps) {
        thread->flood_ps = now_ps;
    }
    thread->stray_ps = now_ps;
    thread->stray_pinned_writes = thread->process->pinned_writes;
    thread->stray = true;
    thread->rounds_left = now_ps - thread->flood_ps < stray_max_ps << FLOOD_BITS;
}

void attach_thread_did(struct attach_thread *thread)
{
    // What it waits for comes by writes that only it sees: there is no flood.
    if (thread->stray && thread->process->pinned_writes == thread->stray_pinned_writes) {
        thread->stray_ps = 0;
    }
    thread->stray = false;
    thread->vain = 0;
    thread->rounds_left = 0;
}

// Is the look at this word a step of a round that is not over?
static bool round_step(struct attach_thread *thread, const struct attach_request *request)
{
    uint64_t place = request->arguments[1];
    bool did = thread->round_kind == ROUND_OF_PLACE && request->entry_count != 0;
    for (unsigned i = 0; i < thread->round_count && !did; i++) {
        did = thread->round[i] == place;
    }
    if (did && thread->rounds_left > 0) {
        thread->rounds_left--;
        thread->round_count = 0;
        did = false;
    }
    if (did || thread->round_count == ATTACH_PLACES) {
        thread->round_kind = ROUND_OVER;
    }
    if (thread->round_kind == ROUND_OVER) {
        return false;
    }
    thread->round[thread->round_count++] = place;
    return true;
}

static struct row row_of(struct attach_thread *thread, const struct attach_request *request)
{
    const uint64_t *arguments = request->arguments;
    uint64_t least_ps = host_core_config(thread->core)->poll_ps;
    uint64_t turn_ps = arguments[0] != 0 ? arguments[0] : request->own_ps > least_ps ? request->own_ps : least_ps;
    struct row row = {.start_ps = sim_now_ps(thread->process->server->sim), .flags = (unsigned)arguments[2]};
    row.turn_ps = turn_ps == 0 ? 1 : turn_ps < vain_max_ps ? turn_ps : vain_max_ps;
    row.placed =
        place_note(thread, arguments[1]) || (arguments[1] != 0 && thread->process->writes == thread->seen_writes);
    row.exact = words_note(thread, request);
    if (arguments[3] != 0 || request->entry_count != 0) {
        attach_thread_did(thread);
    }
    thread->row_start_ps = thread->vain == 0 ? row.start_ps : thread->row_start_ps;
    bool flood = row.start_ps - thread->stray_ps <= flood_gap_ps;
    uint64_t age_ps = flood ? (row.start_ps - thread->flood_ps) >> FLOOD_BITS : 0;
    row.quiet_ps = age_ps < stray_max_ps ? age_ps : stray_max_ps;
    row.bound_ps = bound_of(thread, row.turn_ps, row.quiet_ps);
    return row;
}

static bool row_came(const struct attach_thread *thread, const struct row *row, enum attach_woken *woken_out)
{
    unsigned flags = row->placed || row->exact ? row->flags & ~(unsigned)ATTACH_WAIT_MEMORY : row->flags;
    if ((row->placed && thread->place_writes != thread->seen_place_writes) ||
        (row->exact && thread->word_writes != thread->seen_word_writes)) {
        *woken_out = ATTACH_WOKEN_MEMORY;
        return true;
    }
    return something_came(thread, flags, thread->seen_writes, woken_out);
}

enum attach_woken attach_thread_poll(struct attach_thread *thread, const struct attach_request *request)
{
    const struct attach_process *process = thread->process;
    sim_t *sim = process->server->sim;
    enum attach_woken woken = ATTACH_WOKEN_DEADLINE;
    const struct row row = row_of(thread, request);
    const bool step = !row.exact && round_step(thread, request);
    bool came, stray;
    thread->waits_for_words = row.exact;
    for (;;) {
        came = process->ended || row_came(thread, &row, &woken);
        stray = !came && !row.exact && process->writes != thread->seen_writes && (row.flags & ATTACH_WAIT_MEMORY) != 0;
        uint64_t end_ps = row.start_ps + (stray && row.quiet_ps < row.bound_ps ? row.quiet_ps : row.bound_ps);
        if (came || (step && !stray) || sim_now_ps(sim) >= attach_alarm_before(process, end_ps)) {
            break;
        }
        (void)sleep_until(thread, row.flags, end_ps);
    }
    thread->waits_for_words = false;
    // What was written elsewhere is as vain as nothing, for who looks again and has done nothing with it.
    if (came && woken == ATTACH_WOKEN_MEMORY && !thread->repeats) {
        attach_progress_note(thread->process->server);
    }
    if (came) {
        thread->rows_ps[1] = thread->rows_ps[0];
        thread->rows_ps[0] = sim_now_ps(sim) - thread->row_start_ps;
    }
    if (stray || (came && woken == ATTACH_WOKEN_MEMORY && !row.exact)) {
        round_begin(thread, request->arguments[1], stray);
    }
    if (stray) {
        stray_note(thread, sim_now_ps(sim));
    }
    thread->stray = thread->stray && !came;
    thread->vain = came || stray ? 0 : thread->vain + !step;
    static const struct sim_work turn = {"polling", "until the next look", false};
    uint64_t late_ps = (sim_now_ps(sim) - row.start_ps) % row.turn_ps;
    host_core_spend(thread->core, late_ps != 0 ? row.turn_ps - late_ps : 0, &turn);
    return came ? woken : stray ? ATTACH_WOKEN_MEMORY : ATTACH_WOKEN_DEADLINE;
}

// --- the real world -------------------------------------------------------------------------------------------------
// What programs tell each other goes through the machine's kernel, which needs a moment. So before simulated time goes
// on, those who wait for the outside are asked a second time after something may have woken them; and where there is
// nothing to do but to let a deadline come, real time is given to what is outside the run.

enum { YIELDS = 4, IDLE_MS = 1, IDLE_MAX_MS = 20, IDLE_ASKS = 2 };

// The first of its threads, in the order of all; NULL: none is left.
static struct attach_thread *thread_next(const struct attach_server *server, struct attach_process **process,
                                         unsigned *index)
{
    for (*process = *process != NULL ? *process : server->processes; *process != NULL; *process = (*process)->next) {
        while (*index < (*process)->slots) {
            struct attach_thread *thread = (*process)->threads[(*index)++];
            if (thread != NULL) {
                return thread;
            }
        }
        *index = 0;
    }
    return NULL;
}

// Do all wait for the outside, and nothing but a deadline of theirs is due?
static bool only_deadlines(const struct attach_server *server)
{
    uint64_t deadline_ps = SIM_NEVER_PS;
    struct attach_process *process = NULL;
    const struct attach_thread *thread;
    unsigned index = 0;
    while ((thread = thread_next(server, &process, &index)) != NULL) {
        if (!thread->patient) {
            return false;
        }
        deadline_ps = thread->waits_until_ps < deadline_ps ? thread->waits_until_ps : deadline_ps;
    }
    return deadline_ps != SIM_NEVER_PS && sim_next_due_ps(server->sim) >= deadline_ps;
}

bool attach_all_patient(const struct attach_server *server)
{
    struct attach_process *process = NULL;
    const struct attach_thread *thread;
    unsigned index = 0;
    bool all = true;
    while (all && (thread = thread_next(server, &process, &index)) != NULL) {
        all = thread->patient || process->ended;
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
    attach_watches_look(server, 0);
    if (server->wakes != server->settled_wakes) {
        for (unsigned i = 0; i < YIELDS; i++) {
            (void)sched_yield();
        }
        attach_outside_wake(server, server->end_wakes != server->settled_ends);
        settled(server);
    } else if (server->started < server->options->program_count && attach_all_patient(server)) {
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
    sim_event_init_late(server->sim, &server->settle, settle, server);
}

static unsigned outside_waiters(const struct attach_server *server)
{
    unsigned count = 0, index = 0;
    struct attach_process *process = NULL;
    const struct attach_thread *thread;
    while ((thread = thread_next(server, &process, &index)) != NULL) {
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
