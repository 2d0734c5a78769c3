// Empty polls. The thread pays for one and has its turn again: what it does next is its own affair. Where its side
// knows that it is in a loop of polls (verbs-shim/attach/loop.c), it may be fast-forwarded over several iterations:
// until something is written that the loop polls, and then to the poll of the iteration that sees it, which is the one
// at which the program's own loop would have seen it. Simulated time may be beyond that poll by less than an iteration
// then; the thread's next costs are taken from that.
//
// What a loop polls: words that its polls name, and whatever else devices write, as it may read that between its
// polls; but for quiet memory, and for its own memory where no peer may write at will. A region of which many writes in
// a row led to nothing is not polled, as far as one can see, until the loop does something after a write to it.
#include <string.h>

#include "sim/attach/internal.h"

// Of a region: how much less than nothing came of writes to it, and what something counts.
enum { REGION_DULL = 16, REGION_NEWS = 64, REGION_LEAST = -64 };
// A thread that polls all the time and finds nothing as well may have written to shared memory: that is noticed late by
// an eighth of what the loop has waited.
enum { OTHERS_SHARE = 8 };
static const uint64_t iteration_max_ps = SIM_PS_PER_MS, skip_max_ps = 1000 * SIM_PS_PER_MS;

static struct attach_loop loop_of(const struct attach_thread *thread, const struct attach_request *request)
{
    const struct attach_args_poll *args = &request->args.poll;
    const struct attach_polled *polled = &args->polled;
    uint64_t least_ps = host_core_config(thread->core)->poll_ps;
    struct attach_loop loop = {.iteration_ps = args->iteration_ps, .flags = args->flags};
    if (polled->word_count != 0) {
        loop.iteration_ps = request->own_ps;
        loop.word_count = polled->word_count <= ATTACH_RANGES_MAX ? polled->word_count : 0;
        memcpy(loop.words, polled->words, loop.word_count * sizeof loop.words[0]);
        loop.any_pinned = polled->any_pinned != 0 || loop.word_count == 0;
    } else {
        loop.poll_count = polled->poll_count <= ATTACH_POLLS_MAX ? polled->poll_count : 0;
        memcpy(loop.polls, polled->polls, loop.poll_count * sizeof loop.polls[0]);
        loop.any_pinned = loop.poll_count == 0;
    }
    loop.iteration_ps = loop.iteration_ps > least_ps ? loop.iteration_ps : least_ps;
    loop.iteration_ps = loop.iteration_ps < iteration_max_ps ? loop.iteration_ps : iteration_max_ps;
    for (unsigned i = 0; i < loop.poll_count; i++) {
        loop.any_pinned = loop.any_pinned || loop.polls[i].bus_address == 0;
        loop.polls[i].after_ps %= loop.iteration_ps;
    }
    return loop;
}

// --- what is written ------------------------------------------------------------------------------------------------

static bool word_hit(const struct attach_loop *loop, bool pinned, uint64_t address, uint32_t bytes)
{
    bool hit = false;
    for (unsigned i = 0; i < loop->word_count && !hit; i++) {
        const struct attach_word *word = &loop->words[i];
        hit =
            (word->pinned != 0) == pinned && (word->address - address < bytes || address - word->address < word->bytes);
    }
    return hit;
}

static bool poll_hit(struct attach_loop *loop, uint64_t bus_address, uint32_t bytes)
{
    for (unsigned i = 0; i < loop->poll_count; i++) {
        if (loop->polls[i].bus_address - bus_address < bytes) {
            loop->hit = loop->came ? loop->hit : i; // the first write counts
            return true;
        }
    }
    return false;
}

bool attach_loop_written(struct attach_thread *thread, const struct attach_written *written)
{
    struct attach_loop *loop = &thread->loop;
    if (loop->word_count != 0) {
        return word_hit(loop, written->pinned, written->address, written->bytes) ||
               (loop->any_pinned && written->pinned && !written->quiet);
    }
    if (written->pinned && poll_hit(loop, written->address, written->bytes)) {
        loop->poll_came = true;
        return true;
    }
    if (written->quiet) {
        return false;
    }
    const struct attach_object *region = written->region;
    bool same = region != NULL && loop->region_polls != 0 && loop->region == region->number;
    if (region != NULL && !same) {
        loop->region = region->number;
        loop->region_kind = region->kind;
        loop->region_polls = 2 * loop->poll_count + 1; // as loop_skipped of loop.c waits
    }
    return region == NULL || region->dull < REGION_DULL || (written->pinned && loop->any_pinned);
}

// What came of the last write to a region: nothing, when the loop has polled everything since then and goes on.
static void region_learn(struct attach_thread *thread, bool goes_on)
{
    struct attach_loop *loop = &thread->loop;
    if (loop->region_polls == 0 || (goes_on && --loop->region_polls != 0)) {
        return;
    }
    struct attach_object *region = attach_object_find(thread->process, loop->region_kind, 0, loop->region);
    loop->region_polls = 0;
    if (region != NULL && goes_on) {
        region->dull += region->dull < REGION_DULL;
    } else if (region != NULL && !loop->poll_came) { // else it may be a poll that found something
        region->dull = region->dull > REGION_LEAST ? region->dull - REGION_NEWS : region->dull;
    }
}

void attach_loop_left(struct attach_thread *thread)
{
    region_learn(thread, false);
    thread->loop.poll_came = false;
}

// --- waiting --------------------------------------------------------------------------------------------------------

// Another thread has had its turn. looked: it polled and found nothing, and may have done nothing else. same_process:
// it is one of the same process.
bool attach_loop_others(struct attach_thread *thread, bool looked, bool same_process)
{
    if (thread->shared.known) {
        bool changed = thread->shared.count != 0 && attach_shared_changed(thread);
        if (changed || !same_process) {
            return changed;
        }
    }
    uint64_t now_ps = sim_now_ps(thread->process->server->sim);
    const struct attach_loop *loop = &thread->loop;
    if (looked && (now_ps - loop->told_ps) * OTHERS_SHARE < now_ps - loop->began_ps) {
        return false;
    }
    thread->loop.told_ps = now_ps;
    return true;
}

static bool came(const struct attach_thread *thread, unsigned flags, enum attach_woken *woken_out)
{
    const struct attach_process *process = thread->process;
    *woken_out = thread->loop.came ? ATTACH_WOKEN_MEMORY : ATTACH_WOKEN_OUTSIDE;
    return thread->loop.came || thread->loop.others ||
           ((flags & ATTACH_WAIT_OUTSIDE) != 0 && process->server->wakes != thread->seen_wakes);
}

// When the iteration begins whose poll sees what came at `now`, if this one begins at start_ps.
static uint64_t iteration_seen_ps(const struct attach_loop *loop, uint64_t start_ps, uint64_t now_ps)
{
    uint64_t after_ps = loop->hit < loop->poll_count ? loop->polls[loop->hit].after_ps : 0;
    uint64_t gone_ps = now_ps - start_ps;
    uint64_t iterations = gone_ps <= after_ps ? 0 : (gone_ps - after_ps + loop->iteration_ps - 1) / loop->iteration_ps;
    return start_ps + iterations * loop->iteration_ps;
}

// The poll behind which a page that has changed is read first.
static unsigned stored_hit(const struct attach_loop *loop, uint64_t start_ps, uint64_t now_ps)
{
    unsigned hit = ATTACH_POLLS_MAX;
    uint64_t first_ps = UINT64_MAX;
    for (unsigned poll = 0; poll < loop->poll_count; poll++) {
        struct attach_loop one = *loop;
        one.hit = poll;
        uint64_t read_ps = iteration_seen_ps(&one, start_ps, now_ps) + loop->polls[poll].after_ps;
        if ((loop->stored >> poll & 1) != 0 && read_ps < first_ps) {
            first_ps = read_ps;
            hit = poll;
        }
    }
    return hit;
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
    const struct attach_loop before = thread->loop;
    thread->loop = loop_of(thread, request);
    enum attach_shared_news news = attach_shared_begin(thread, request);
    bool unseen = news == ATTACH_SHARED_OTHER_PAGES && thread->loop.poll_count != 0; // else it has just read them
    thread->loop.others = before.others || news == ATTACH_SHARED_STORED || unseen;
    thread->loop.poll_came = goes_on && before.poll_came && before.region_polls != 0;
    thread->loop.region = before.region;
    thread->loop.region_kind = before.region_kind;
    thread->loop.region_polls = goes_on ? before.region_polls : 0;
    thread->loop.began_ps = goes_on ? before.began_ps : now_ps;
    thread->loop.told_ps = goes_on ? before.told_ps : now_ps;
    thread->loop.hit = ATTACH_POLLS_MAX;
}

// Since the thread got its turn, but for its own.
static bool anything_happened(const struct attach_thread *thread)
{
    const struct attach_process *process = thread->process;
    return thread->loop.came || process->writes != thread->seen_writes || process->turns > thread->seen_turns + 1 ||
           process->server->wakes != thread->seen_wakes;
}

// While the thread paid for its last poll, others may have had their turns.
static void paid_meanwhile(struct attach_thread *thread)
{
    struct attach_loop *loop = &thread->loop;
    const struct attach_process *process = thread->process;
    bool others = process->turns > thread->seen_turns + 1;
    if (thread->shared.count != 0 && thread->shared.seen_turns != process->turns) {
        (void)attach_shared_changed(thread);
    }
    loop->others = loop->others || loop->stored != 0 || (others && loop->poll_count == 0);
}

static enum attach_woken poll_iterations(struct attach_thread *thread, uint64_t iterations)
{
    static const struct sim_work polling = {"polling", "until the next poll", false};
    const struct attach_process *process = thread->process;
    sim_t *sim = process->server->sim;
    uint64_t start_ps = sim_now_ps(sim);
    enum attach_woken woken = ATTACH_WOKEN_DEADLINE;
    struct attach_loop *loop = &thread->loop;
    uint64_t most = skip_max_ps / loop->iteration_ps;
    uint64_t end_ps = start_ps + (iterations < most ? iterations : most) * loop->iteration_ps;
    end_ps = loop->word_count != 0 ? SIM_NEVER_PS : end_ps; // nothing else ends it
    if (thread->ahead_ps != 0) {
        loop->skipped = 0;
        return loop->came ? ATTACH_WOKEN_MEMORY : ATTACH_WOKEN_DEADLINE;
    }
    paid_meanwhile(thread);
    loop->waits = true;
    while (!process->ended && !came(thread, loop->flags, &woken) &&
           sim_now_ps(sim) < attach_alarm_before(process, end_ps)) {
        attach_sleep(thread, loop->flags, end_ps, false);
    }
    loop->waits = false;
    uint64_t now_ps = sim_now_ps(sim);
    bool told = came(thread, loop->flags, &woken);
    if (!told) {
        woken = ATTACH_WOKEN_DEADLINE;
        loop->hit = ATTACH_POLLS_MAX;
    }
    if (told && !loop->came && loop->stored != 0) {
        loop->hit = stored_hit(loop, start_ps, now_ps);
    }
    uint64_t seen_ps = now_ps > start_ps ? iteration_seen_ps(loop, start_ps, now_ps) : start_ps;
    loop->skipped = (seen_ps - start_ps) / loop->iteration_ps;
    if (seen_ps >= now_ps) {
        host_core_spend(thread->core, seen_ps - now_ps, &polling);
    } else {
        thread->ahead_ps = now_ps - seen_ps;
    }
    if (told && woken == ATTACH_WOKEN_MEMORY && !thread->repeats) {
        attach_progress_note(process->server);
    }
    return woken;
}

// Of words of its own memory it is known that the loop polls them.
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
    enum attach_woken woken = poll_iterations(thread, args->iterations);
    if (woken == ATTACH_WOKEN_MEMORY && thread->process->server->options->explain) {
        words_found(thread);
    }
    reply->iterations = thread->loop.skipped;
    reply->happened = anything_happened(thread);
    reply->stored = thread->loop.stored != 0;
    return woken;
}
