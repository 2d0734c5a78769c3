// Looks in vain. The thread pays for a look and has its turn again: what it does next is its own affair. Where its side
// knows that it is in a loop of looks (verbs-shim/attach/loop.c), it may be led over several turns of it: until
// something is written that the loop looks at, and then to the look of the turn that sees it, which is the one at which
// the program's own loop would have seen it. Simulated time may be beyond that look by less than a turn then; the
// thread's next costs are taken from that.
//
// What a loop looks at: words that its looks name, and whatever else devices write, as it may read that between its
// looks; but for quiet memory, and for its own memory where no peer may write at will. A region of which many writes in
// a row led to nothing is not looked at, as far as one can see, until the loop does something after a write to it.
#include <string.h>

#include "sim/attach/internal.h"

// Of a region: how much less than nothing came of writes to it, and what something counts.
enum { REGION_DULL = 16, REGION_NEWS = 64, REGION_LEAST = -64 };
// A thread that looks in vain all the time as well may have written to shared memory: that is noticed late by an eighth
// of what the loop has waited.
enum { OTHERS_SHARE = 8 };
static const uint64_t turn_max_ps = SIM_PS_PER_MS, skip_max_ps = 1000 * SIM_PS_PER_MS;

static struct attach_loop loop_of(const struct attach_thread *thread, const struct attach_request *request)
{
    const uint64_t *arguments = request->arguments;
    uint64_t least_ps = host_core_config(thread->core)->poll_ps;
    struct attach_loop loop = {.turn_ps = arguments[1], .flags = (unsigned)arguments[2]};
    if (arguments[4] != 0) {
        loop.turn_ps = request->own_ps;
        loop.word_count = arguments[4] <= ATTACH_RANGES_MAX ? (unsigned)arguments[4] : 0;
        memcpy(loop.words, request->structure, loop.word_count * sizeof loop.words[0]);
        loop.any_pinned = arguments[5] != 0 || loop.word_count == 0;
    } else {
        loop.look_count = arguments[3] <= ATTACH_TURN_LOOKS_MAX ? (unsigned)arguments[3] : 0;
        memcpy(loop.looks, request->structure, loop.look_count * sizeof loop.looks[0]);
        loop.any_pinned = loop.look_count == 0;
    }
    loop.turn_ps = loop.turn_ps > least_ps ? loop.turn_ps : least_ps;
    loop.turn_ps = loop.turn_ps < turn_max_ps ? loop.turn_ps : turn_max_ps;
    for (unsigned i = 0; i < loop.look_count; i++) {
        loop.any_pinned = loop.any_pinned || loop.looks[i].bus_address == 0;
        loop.looks[i].after_ps %= loop.turn_ps;
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

static bool look_hit(struct attach_loop *loop, uint64_t bus_address, uint32_t bytes)
{
    for (unsigned i = 0; i < loop->look_count; i++) {
        if (loop->looks[i].bus_address - bus_address < bytes) {
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
    if (written->pinned && look_hit(loop, written->address, written->bytes)) {
        loop->look_came = true;
        return true;
    }
    if (written->quiet) {
        return false;
    }
    const struct attach_object *region = written->region;
    bool same = region != NULL && loop->region_looks != 0 && loop->region == region->number;
    if (region != NULL && !same) {
        loop->region = region->number;
        loop->region_kind = region->kind;
        loop->region_looks = 2 * loop->look_count + 1; // as loop_skipped of loop.c waits
    }
    return region == NULL || region->dull < REGION_DULL || (written->pinned && loop->any_pinned);
}

// What came of the last write to a region: nothing, when the loop has looked at everything since then and goes on.
static void region_learn(struct attach_thread *thread, bool goes_on)
{
    struct attach_loop *loop = &thread->loop;
    if (loop->region_looks == 0 || (goes_on && --loop->region_looks != 0)) {
        return;
    }
    struct attach_object *region = attach_object_find(thread->process, loop->region_kind, 0, loop->region);
    loop->region_looks = 0;
    if (region != NULL && goes_on) {
        region->dull += region->dull < REGION_DULL;
    } else if (region != NULL && !loop->look_came) { // else it may be a look that found something
        region->dull = region->dull > REGION_LEAST ? region->dull - REGION_NEWS : region->dull;
    }
}

void attach_loop_left(struct attach_thread *thread)
{
    region_learn(thread, false);
    thread->loop.look_came = false;
}

// --- waiting --------------------------------------------------------------------------------------------------------

// Another thread has had its turn. looked: it looked in vain, and may have done nothing else.
bool attach_loop_others(struct attach_thread *thread, bool looked)
{
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

// The time of the look that sees what came at `now`, if the turn's first look is at start_ps, and that turn's
// beginning.
static uint64_t turn_seen_ps(const struct attach_loop *loop, uint64_t start_ps, uint64_t now_ps)
{
    uint64_t after_ps = loop->hit < loop->look_count ? loop->looks[loop->hit].after_ps : 0;
    uint64_t gone_ps = now_ps - start_ps;
    uint64_t turns = gone_ps <= after_ps ? 0 : (gone_ps - after_ps + loop->turn_ps - 1) / loop->turn_ps;
    return start_ps + turns * loop->turn_ps;
}

void attach_loop_begin(struct attach_thread *thread, const struct attach_request *request)
{
    uint64_t now_ps = sim_now_ps(thread->process->server->sim);
    bool goes_on = request->arguments[7] != 0;
    if (goes_on) {
        region_learn(thread, true);
    } else {
        attach_loop_left(thread);
    }
    const struct attach_loop before = thread->loop;
    thread->loop = loop_of(thread, request);
    thread->loop.others = before.others;
    thread->loop.look_came = goes_on && before.look_came && before.region_looks != 0;
    thread->loop.region = before.region;
    thread->loop.region_kind = before.region_kind;
    thread->loop.region_looks = goes_on ? before.region_looks : 0;
    thread->loop.began_ps = goes_on ? before.began_ps : now_ps;
    thread->loop.told_ps = goes_on ? before.told_ps : now_ps;
    thread->loop.hit = ATTACH_TURN_LOOKS_MAX;
}

// Since the thread got its turn, but for its own.
static bool anything_happened(const struct attach_thread *thread)
{
    const struct attach_process *process = thread->process;
    return thread->loop.came || process->writes != thread->seen_writes || process->turns > thread->seen_turns + 1 ||
           process->server->wakes != thread->seen_wakes;
}

static enum attach_woken poll_turns(struct attach_thread *thread, const struct attach_request *request)
{
    static const struct sim_work turn = {"polling", "until the next look", false};
    const struct attach_process *process = thread->process;
    sim_t *sim = process->server->sim;
    uint64_t start_ps = sim_now_ps(sim), turns = request->arguments[0];
    enum attach_woken woken = ATTACH_WOKEN_DEADLINE;
    struct attach_loop *loop = &thread->loop;
    uint64_t most = skip_max_ps / loop->turn_ps;
    uint64_t end_ps = start_ps + (turns < most ? turns : most) * loop->turn_ps;
    end_ps = loop->word_count != 0 ? SIM_NEVER_PS : end_ps; // nothing else ends it
    if (thread->ahead_ps != 0) {
        thread->slot->values[0] = 0;
        return loop->came ? ATTACH_WOKEN_MEMORY : ATTACH_WOKEN_DEADLINE;
    }
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
        loop->hit = ATTACH_TURN_LOOKS_MAX;
    }
    uint64_t seen_ps = now_ps > start_ps ? turn_seen_ps(loop, start_ps, now_ps) : start_ps;
    thread->slot->values[0] = (seen_ps - start_ps) / loop->turn_ps;
    if (seen_ps >= now_ps) {
        host_core_spend(thread->core, seen_ps - now_ps, &turn);
    } else {
        thread->ahead_ps = now_ps - seen_ps;
    }
    if (told && woken == ATTACH_WOKEN_MEMORY && !thread->repeats) {
        attach_progress_note(process->server);
    }
    return woken;
}

enum attach_woken attach_thread_poll(struct attach_thread *thread, const struct attach_request *request)
{
    enum attach_woken woken = poll_turns(thread, request);
    thread->slot->values[1] = anything_happened(thread);
    return woken;
}
