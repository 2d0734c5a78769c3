// Empty polls. The thread pays for a poll and is scheduled again; the simulator does not know what it does next. If the
// library in the program knows that the thread is in a loop of polls, computed (known_loop.h) or learned
// (verbs-shim/attach/loop.c), the thread may be fast-forwarded over several iterations: until something is written that
// the loop reads. It continues at the poll of the iteration that sees the write in the program's own loop. Simulated
// time may then be ahead of that poll by less than an iteration; the thread's next costs are taken from that
// difference. The poll policy says which memory counts as read (poll_policy.h).
#include <stdlib.h>

#include "sim/attach/internal.h"

// Learns from what the thread did after the last write to a region. The region may no longer exist.
static void region_learn(struct attach_thread *thread, bool goes_on)
{
    enum poll_outcome outcome = poll_loop_outcome(&thread->loop, goes_on);
    const struct poll_region *region = &thread->loop.region;
    struct attach_object *object =
        outcome == POLL_OUTCOME_NONE
            ? NULL
            : attach_object_find(thread->process, (enum attach_object_kind)region->kind, 0, region->number);
    if (object != NULL) {
        object->unrelated = poll_region_note(object->unrelated, outcome);
    }
}

void attach_loop_left(struct attach_thread *thread)
{
    if (thread->known != NULL) {
        thread->known->on = false;
    }
    region_learn(thread, false);
    thread->loop.poll_seen = false;
}

// --- waiting --------------------------------------------------------------------------------------------------------

static bool is_known(const struct attach_thread *thread)
{
    return thread->known != NULL && thread->known->on;
}

uint64_t attach_known_now_ps(const struct attach_thread *thread)
{
    const sim_t *sim = thread->process->server->sim;
    uint64_t now_ps = sim_now_ps(sim);
    bool has_polled = thread->fast_forwarded && thread->known->start_ps == now_ps;
    return now_ps + (has_polled || sim_turn_is_over(sim, thread->number) ? 1 : 0);
}

bool attach_loop_written(struct attach_thread *thread, const struct poll_write *write)
{
    return is_known(thread) ? known_loop_written(thread->known, write, attach_known_now_ps(thread))
                            : poll_loop_sees(&thread->loop, write);
}

bool attach_loop_woken(struct attach_thread *thread)
{
    return is_known(thread) && known_loop_woken(thread->known, attach_known_now_ps(thread));
}

bool attach_loop_others(struct attach_thread *thread, bool polled_empty, bool same_process)
{
    if (is_known(thread)) {
        return attach_known_changed(thread, same_process) && thread->fast_forwarded;
    }
    if (!thread->fast_forwarded) {
        return false;
    }
    if (thread->shared.known) {
        bool changed = thread->shared.count != 0 && attach_shared_changed(thread);
        if (changed || !same_process) {
            return changed;
        }
    }
    return poll_loop_others(&thread->loop, polled_empty, sim_now_ps(thread->process->server->sim));
}

static bool came(const struct attach_thread *thread, unsigned flags, enum attach_woken *woken_out)
{
    const struct attach_process *process = thread->process;
    *woken_out = thread->loop.seen ? ATTACH_WOKEN_MEMORY : ATTACH_WOKEN_OUTSIDE;
    return thread->loop.seen || thread->loop.others ||
           ((flags & ATTACH_WAIT_OUTSIDE) != 0 && process->server->settling.wakes != thread->seen.wakes);
}

static void known_take(struct attach_thread *thread, const struct attach_request *request)
{
    thread->known = thread->known != NULL ? thread->known : calloc(1, sizeof *thread->known);
    if (thread->known == NULL) {
        attach_fail(thread->process->server, "no memory for a thread's loop");
        return;
    }
    known_loop_take(thread->known, &request->args.poll, thread->slot);
}

void attach_loop_begin(struct attach_thread *thread, const struct attach_request *request)
{
    uint64_t now_ps = sim_now_ps(thread->process->server->sim);
    bool goes_on = (request->args.poll.what & ATTACH_POLL_GOES_ON) != 0;
    if (goes_on) {
        region_learn(thread, true);
    } else {
        attach_loop_left(thread);
    }
    const struct poll_loop before = thread->loop;
    thread->loop = poll_loop_of(&request->args.poll, request->own_ps, host_core_config(thread->core)->poll_ps);
    enum attach_shared_change change = attach_shared_begin(thread, request);
    bool unseen = change == ATTACH_SHARED_OTHER_PAGES && thread->loop.poll_count != 0; // else it has just read them
    poll_loop_continue(&thread->loop, &before, goes_on, change == ATTACH_SHARED_STORED || unseen, now_ps);
    if ((request->args.poll.what & ATTACH_POLL_KNOWN) != 0) {
        known_take(thread, request);
    } else if (thread->known != NULL) {
        thread->known->on = false;
    }
}

// Has anything happened since the thread was scheduled, except what it did itself?
static bool anything_happened(const struct attach_thread *thread)
{
    const struct attach_process *process = thread->process;
    return thread->loop.seen || process->writes.all != thread->seen.writes ||
           process->scheduled > thread->seen.scheduled + 1 || process->server->settling.wakes != thread->seen.wakes;
}

// While the thread paid for its last poll, other threads may have been scheduled.
static void paid_meanwhile(struct attach_thread *thread)
{
    struct poll_loop *loop = &thread->loop;
    const struct attach_process *process = thread->process;
    bool others = process->scheduled > thread->seen.scheduled + 1;
    if (thread->shared.count != 0 && thread->shared.seen_scheduled != process->scheduled) {
        (void)attach_shared_changed(thread);
    }
    loop->others = loop->others || loop->stored != 0 || (others && loop->poll_count == 0);
}

// --- catching up --------------------------------------------------------------------------------------------------------

static bool is_ahead(const struct attach_thread *thread)
{
    return thread->fast_forwarded && is_known(thread) && thread->known->changes.count != 0;
}

// The thread's loop was fast-forwarded, and another one of its process may look at what it changes.
static void catch_up(struct attach_thread *thread)
{
    if (!thread->catches_up && known_loop_catch_up(thread->known, attach_known_now_ps(thread))) {
        thread->catches_up = true;
        thread->process->catching_up++;
        sim_condition_signal(thread->process->server->sim, &thread->wait.woken);
    }
}

void attach_loops_catch_up(struct attach_thread *thread)
{
    struct attach_process *process = thread->process;
    const struct sim_wait_reason reason = {thread->name, "other threads' loops", 0, 0};
    for (unsigned i = 0; i < process->slots && !thread->catches_up; i++) {
        struct attach_thread *other = process->threads[i];
        if (other != NULL && other != thread && is_ahead(other)) {
            catch_up(other);
        }
    }
    while (process->catching_up != 0 && !thread->catches_up && !process->ended) {
        (void)sim_condition_wait(process->server->sim, &process->caught_up, SIM_NEVER_PS, &reason);
    }
}

void attach_loop_caught_up(struct attach_thread *thread)
{
    if (thread->catches_up) {
        thread->catches_up = false;
        thread->process->catching_up--;
        sim_condition_signal(thread->process->server->sim, &thread->process->caught_up);
    }
}

static const struct sim_work polling = {"polling", "until the next poll", false};

// Does this thread wait for a word that the known loop of the other one changes between its polls?
static bool looks_at(const struct attach_thread *thread, const struct known_loop *other)
{
    bool looks = false;
    for (unsigned i = 0; is_known(thread) && i < thread->known->word_count && !looks; i++) {
        looks = known_loop_changes(other, thread->known->words[i].address, sizeof thread->known->words[i].value);
    }
    for (unsigned i = 0; !is_known(thread) && i < thread->loop.word_count && !looks; i++) {
        looks = known_loop_changes(other, thread->loop.words[i].address, thread->loop.words[i].bytes);
    }
    return looks;
}

// Where one thread of a process looks at what the loop of another one changes from poll to poll, the polls of that loop are
// carried out: at each of them the first one sees what is there.
static void looks_share(struct attach_thread *thread)
{
    struct attach_process *process = thread->process;
    uint64_t now_ps = sim_now_ps(process->server->sim);
    for (unsigned i = 0; i < process->slots; i++) {
        struct attach_thread *other = process->threads[i];
        if (other == NULL || other == thread) {
            continue;
        }
        if (is_known(thread) && thread->known->changes.count != 0 && looks_at(other, thread->known)) {
            known_loop_sees(thread->known, now_ps);
        }
        if (is_ahead(other) && looks_at(thread, other->known)) {
            catch_up(other);
        }
    }
}

static enum attach_woken poll_iterations(struct attach_thread *thread, uint64_t iterations)
{
    const struct attach_process *process = thread->process;
    sim_t *sim = process->server->sim;
    uint64_t start_ps = sim_now_ps(sim);
    enum attach_woken woken = ATTACH_WOKEN_DEADLINE;
    struct poll_loop *loop = &thread->loop;
    uint64_t end_ps = poll_loop_end_ps(loop, start_ps, iterations);
    if (process->server->options->every_poll && loop->word_count != 0) {
        end_ps = start_ps + loop->iteration_ps;
    }
    if (thread->ahead_ps != 0) {
        loop->skipped = 0;
        return loop->seen ? ATTACH_WOKEN_MEMORY : ATTACH_WOKEN_DEADLINE;
    }
    paid_meanwhile(thread);
    looks_share(thread);
    thread->fast_forwarded = true;
    while (!process->ended && !came(thread, loop->flags, &woken) &&
           sim_now_ps(sim) < attach_alarm_before(process, end_ps)) {
        attach_sleep(thread, loop->flags, end_ps, false);
    }
    thread->fast_forwarded = false;
    uint64_t now_ps = sim_now_ps(sim);
    bool notified = came(thread, loop->flags, &woken);
    woken = notified ? woken : ATTACH_WOKEN_DEADLINE;
    uint64_t seen_ps = poll_loop_leave(loop, start_ps, now_ps, notified);
    if (seen_ps >= now_ps) {
        host_core_spend(thread->core, seen_ps - now_ps, &polling);
    } else {
        thread->ahead_ps = now_ps - seen_ps;
    }
    if (notified && woken == ATTACH_WOKEN_MEMORY && !thread->asks.repeats) {
        attach_progress_note(process->server);
    }
    return woken;
}

static struct sim_wait_reason poll_end(const struct attach_thread *thread)
{
    return (struct sim_wait_reason){thread->name, "the end of its poll", 0, 0};
}

void attach_turn_await(struct attach_thread *thread)
{
    const struct sim_wait_reason reason = poll_end(thread);
    while (sim_condition_wait_turn(thread->process->server->sim, &thread->wait.woken, &reason)) {
    }
}

// Until the thread is signalled, or to its turn at the end of the poll at which it goes on. true: that has come.
static bool known_sleep(struct attach_thread *thread)
{
    struct known_loop *known = thread->known;
    const struct attach_process *process = thread->process;
    sim_t *sim = process->server->sim;
    const struct sim_wait_reason reason = poll_end(thread);
    if (sim_now_ps(sim) >= known->seen_ps) {
        return thread->catches_up || !sim_condition_wait_turn(sim, &thread->wait.woken, &reason);
    }
    if (sim_now_ps(sim) < attach_alarm_before(process, SIM_NEVER_PS)) {
        attach_sleep(thread, thread->loop.flags, known->seen_ps, false);
    } else { // the next poll is the first that sees the time
        known_loop_sees(known, sim_now_ps(sim));
        (void)sim_condition_wait(sim, &thread->wait.woken, known->seen_ps, &reason);
    }
    return false;
}

// Waits until something comes that the known loop reads, and to the end of the poll that is carried out then.
static enum attach_woken known_iterations(struct attach_thread *thread, uint64_t iterations)
{
    const struct attach_process *process = thread->process;
    struct attach_server *server = process->server;
    struct known_loop *known = thread->known;
    known_loop_start(known, sim_now_ps(server->sim), iterations);
    looks_share(thread);
    if (thread->ahead_ps != 0) { // its own time comes first
        known->seen_ps = known->start_ps;
        known->hit = 0;
    }
    thread->fast_forwarded = true;
    while (!process->ended && !known->early && !known_sleep(thread)) {
    }
    thread->fast_forwarded = false;
    if (thread->catches_up && !known->early) {
        thread->ahead_ps = sim_now_ps(server->sim) - known->seen_ps;
    }
    thread->loop.skipped = known_loop_iterations(known);
    if (known->own && !thread->asks.repeats) {
        attach_progress_note(server);
    }
    known->on = false;
    return known->own ? ATTACH_WOKEN_MEMORY : ATTACH_WOKEN_OUTSIDE;
}

// Words of the process's own memory: the loop is known to poll them.
static void words_found(const struct attach_thread *thread)
{
    const struct attach_process *process = thread->process;
    uint64_t at_ps = sim_now_ps(process->server->sim) - thread->ahead_ps;
    for (unsigned i = 0; i < thread->loop.word_count; i++) {
        const struct attach_word *word = &thread->loop.words[i];
        if (word->pinned == 0) {
            observe_found(process->observed, word->address, word->bytes, at_ps);
        }
    }
}

int64_t attach_serve_poll(struct attach_thread *thread, const struct attach_args_poll *args,
                          struct attach_reply_poll *reply)
{
    if (is_known(thread)) {
        enum attach_woken known = known_iterations(thread, args->iterations);
        reply->poll = thread->known->hit;
        reply->early = thread->known->early;
        reply->at_ps =
            reply->early ? thread->known->seen_ps : sim_now_ps(thread->process->server->sim) - thread->ahead_ps;
        reply->iterations = thread->loop.skipped;
        reply->happened = anything_happened(thread);
        return known;
    }
    if ((args->what & ATTACH_POLL_REST) != 0) {
        attach_turn_await(thread);
    }
    enum attach_woken woken = poll_iterations(thread, args->iterations);
    if (woken == ATTACH_WOKEN_MEMORY && thread->process->server->options->explain) {
        words_found(thread);
    }
    reply->iterations = thread->loop.skipped;
    if (thread->loop.poll_count != 0) { // else its words are known
        attach_late_note(thread, thread->loop.skipped * thread->loop.iteration_ps);
    }
    reply->happened = anything_happened(thread);
    reply->stored = thread->loop.stored != 0;
    // A write is worth another look of the poll that is carried out now only if it may be what this one polls.
    return woken == ATTACH_WOKEN_MEMORY && !thread->loop.own ? ATTACH_WOKEN_OUTSIDE : woken;
}
