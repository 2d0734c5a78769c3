// Empty polls (attach.h). What the program does next decides how far one of them goes: what is computed (ahead.h), else for
// calls what was learned (loop.h).
#include <string.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/attach/attach_ops.h"
#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/attach/real_time.h"

#define API __attribute__((visibility("default")))

static bool timed(void)
{
    return attach_mode() == ATTACH_TIMED;
}

// what: enum attach_poll_flags.
static enum attach_woken poll_call(struct attach_slot *slot, uint64_t iterations, uint64_t iteration_ps, unsigned flags,
                                   unsigned what)
{
    struct attach_args_poll *poll = &slot->args.poll;
    poll->iterations = iterations;
    poll->iteration_ps = iteration_ps;
    poll->flags = flags;
    poll->what = what | (attach_own.found ? (unsigned)ATTACH_POLL_FOUND : 0);
    int64_t woken = attach_call(slot, ATTACH_OP_POLL);
    attach_own.found = attach_own.did = false;
    attach_own.quiet_polls = slot->reply.poll.happened != 0 ? 0 : attach_own.quiet_polls + 1;
    return woken < 0 ? ATTACH_WOKEN_OUTSIDE : (enum attach_woken)woken;
}

static struct attach_slot *slot_to_poll(void)
{
    struct attach_slot *slot = timed() ? attach_slot_to_call() : NULL;
    if (slot == NULL) {
        (void)kernel_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    return slot;
}

// Describes the polls of an iteration for the simulator: the time of each after this one, and its word.
static uint64_t iteration_describe(struct attach_polled *polled, const struct loop_poll *iteration, unsigned period)
{
    uint64_t iteration_ps = 0;
    for (unsigned i = 0; i < period; i++) {
        iteration_ps += i > 0 ? iteration[i].own_ps : 0;
        polled->polls[i] =
            (struct attach_iteration_poll){.after_ps = iteration_ps, .bus_address = iteration[i].bus_address};
    }
    polled->poll_count = period;
    polled->word_count = 0;
    return iteration_ps + iteration[0].own_ps;
}

// Describes the polls of a loop that is known: this one, and the next ones. Returns the time of all.
static uint64_t known_describe(struct attach_slot *slot, const struct attach_ahead *ahead, const struct loop_poll *poll)
{
    uint64_t after_ps = 0;
    slot->loop_polls[0] = (struct attach_iteration_poll){.bus_address = poll->bus_address};
    for (unsigned i = 0; i < ahead->count; i++) {
        const struct attach_ahead_poll *next = &ahead->polls[i];
        struct attach_iteration_poll *to = &slot->loop_polls[i + 1];
        *to = (struct attach_iteration_poll){.after_ps = after_ps += next->own_ps};
        if (next->word == 0 || !attach_pinned_find((const void *)(uintptr_t)next->word, 1, &to->bus_address)) {
            to->bus_address = 0;
        }
    }
    // The last poll of an iteration is this one again.
    slot->loop_poll_count = ahead->count;
    memcpy(slot->loop_words, ahead->words, ahead->word_count * sizeof ahead->words[0]);
    slot->loop_word_count = ahead->word_count;
    slot->loop_changes = ahead->changes;
    attach_pinned_words(slot->loop_words, ahead->word_count);
    (void)iteration_describe(&slot->args.poll.polled, poll, 1);
    slot->args.poll.polled.page_count = slot->args.poll.polled.pages_known = 0;
    return after_ps;
}

static bool is_known(const struct attach_ahead *ahead)
{
    bool unseen = attach_is_alone() || ahead->steady;
    return ahead->kind == ATTACH_AHEAD_REPEATS && unseen;
}

// Polls until the known loop sees something.
static enum attach_woken poll_known(struct attach_slot *slot, const struct attach_ahead *ahead,
                                    const struct loop_poll *poll, unsigned flags, unsigned what,
                                    struct attach_caller *caller)
{
    uint64_t iteration_ps = known_describe(slot, ahead, poll);
    flags |= ahead->outside ? (unsigned)ATTACH_WAIT_OUTSIDE : 0;
    attach_loop_begins(slot);
    enum attach_woken woken =
        poll_call(slot, ahead->iterations, iteration_ps, flags, what | (unsigned)ATTACH_POLL_KNOWN);
    attach_loop_ends(slot);
    const struct attach_reply_poll *reply = &slot->reply.poll;
    const struct attach_left_at at = {reply->iterations, reply->poll, reply->at_ps};
    attach_own.wait_polls += at.iterations * ahead->count + at.poll;
    attach_own.rest = (struct attach_rest){0};
    if (reply->early != 0 && at.poll < slot->loop_poll_count) {
        attach_own.rest = (struct attach_rest){at.at_ps, slot->loop_polls[at.poll].bus_address, flags};
    }
    attach_loop_left(ahead, caller, &at, woken);
    return at.iterations == 0 && at.poll == 0 ? woken : ATTACH_WOKEN_OUTSIDE; // else this poll has no result
}

// What the program does next is not known: what a loop is, is learned.
static enum attach_woken poll_learned(struct attach_slot *slot, const struct loop_poll *poll, unsigned flags,
                                      unsigned what, bool goes_on)
{
    struct loop_poll iteration[ATTACH_POLLS_MAX] = {*poll};
    unsigned period;
    if (!goes_on) {
        loop_end(&attach_own.loop, attach_own.found || attach_own.quiet_polls < attach_own.loop.period + 1);
    }
    attach_own.loop.shares = attach_window_possible();
    bool learned = loop_learns(&attach_own.loop);
    uint64_t iterations = loop_poll_note(&attach_own.loop, poll, iteration, &period);
    if (loop_learns(&attach_own.loop) && !learned) {
        attach_window_forget();
    } else if (learned && !loop_learns(&attach_own.loop)) {
        loop_pages_learned(&attach_own.loop, &attach_own.pages);
    }
    what |= period != 0 && attach_own.loop.iterations > 1 ? (unsigned)ATTACH_POLL_GOES_ON : 0;
    struct attach_polled *polled = &slot->args.poll.polled;
    uint64_t iteration_ps = iteration_describe(polled, iteration, period != 0 ? period : 1);
    attach_pages_describe(polled, loop_pages(&attach_own.loop), iteration, period);
    enum attach_woken woken = poll_call(slot, iterations, iteration_ps, flags, what);
    if (slot->reply.poll.stored != 0) {
        attach_own.stored = true;
        loop_stored(&attach_own.loop);
    } else {
        loop_skipped(&attach_own.loop, slot->reply.poll.iterations, woken != ATTACH_WOKEN_DEADLINE);
    }
    if (loop_learns(&attach_own.loop)) {
        attach_window_learn(poll->key);
    }
    return woken;
}

// One poll that stands for itself.
static enum attach_woken poll_once(struct attach_slot *slot, const struct loop_poll *poll, unsigned flags,
                                   unsigned what)
{
    struct attach_polled *polled = &slot->args.poll.polled;
    uint64_t iteration_ps = iteration_describe(polled, poll, 1);
    attach_pages_describe(polled, NULL, poll, 1);
    return poll_call(slot, 0, iteration_ps, flags, what);
}

enum attach_woken attach_poll_rest(enum attach_woken woken)
{
    struct attach_slot *slot = slot_to_poll();
    const struct loop_poll poll = {.own_ps = attach_own.tail_ps, .bus_address = attach_own.rest.bus_address};
    enum attach_woken then = slot != NULL ? poll_once(slot, &poll, attach_own.rest.flags, ATTACH_POLL_REST) : woken;
    return woken == ATTACH_WOKEN_MEMORY ? woken : then;
}

// Does the loop read nothing but clocks, and memory that nobody else writes?
static bool reads_clocks_alone(const struct attach_ahead *ahead)
{
    bool alone = ahead->kind == ATTACH_AHEAD_REPEATS && !ahead->outside;
    for (unsigned i = 0; i < ahead->count; i++) {
        alone = alone && ahead->polls[i].word == 0 && ahead->polls[i].function == ATTACH_POLL_FUNCTIONS;
    }
    for (unsigned i = 0; i < ahead->word_count; i++) {
        uint64_t bus_address;
        const void *word = (const void *)(uintptr_t)ahead->words[i].address;
        alone = alone && !attach_pinned_find(word, 1, &bus_address);
    }
    return alone;
}

static bool is_before_alarm(const struct attach_slot *slot)
{
    return slot->now_ps + attach_own.tail_ps <
           atomic_load_explicit(&attach_client.segment->alarm_ps, memory_order_relaxed);
}

// With --every-poll each reading of a clock would be an attach call. Those of a loop that reads clocks alone are made without
// one, up to the last few or to an alarm: after these the thread sees what happened meanwhile. If what devices write is work for a library,
// the loop ends there.
static enum attach_woken poll_reference(struct attach_slot *slot, const struct loop_poll *poll, unsigned flags,
                                        unsigned what, struct attach_caller *caller)
{
    enum { LAST = 8 };
    struct attach_ahead ahead;
    attach_own.readings = attach_own.calls == attach_own.readings_calls ? attach_own.readings : 0;
    if (poll->clock && attach_own.readings > 0 && is_before_alarm(slot)) {
        attach_own.readings--;
        return ATTACH_WOKEN_OUTSIDE;
    }
    if (!poll->clock || !attach_is_alone() || atomic_load(&slot->entry_count) != 0 ||
        !attach_look_ahead(caller, poll->key, slot, &ahead) || !is_known(&ahead)) {
        return poll_once(slot, poll, flags, what);
    }
    bool alone = reads_clocks_alone(&ahead) && ahead.iterations > LAST;
    ahead.iterations -= alone ? LAST : 0;
    if (alone && attach_progress_on_writes()) {
        return poll_known(slot, &ahead, poll, flags, what, caller);
    }
    attach_loop_left(&ahead, caller, &(struct attach_left_at){0}, ATTACH_WOKEN_OUTSIDE);
    attach_own.readings = alone ? ahead.iterations * ahead.count : 0;
    attach_own.readings_calls = attach_own.calls;
    return alone ? ATTACH_WOKEN_OUTSIDE : poll_once(slot, poll, flags, what);
}

// So many polls of a wait stand for themselves if nothing can be shown; then what a loop is is learned.
enum { UNKNOWN_POLLS = 1000 };
// At most so many polls begin a wait without a look.
enum { BRIEF_POLLS = 1000 };

// A wait begins. If the last one was over before a look had paid, this one is not looked ahead of until it has lasted longer.
static void wait_begin(bool clock)
{
    uint64_t last = attach_own.wait_polls, more = last + last / 2 + 4;
    bool brief = !clock && attach_own.look_effort > last && more <= BRIEF_POLLS;
    attach_own.polls_ahead = brief ? (unsigned)more : 0;
    attach_own.look_effort = brief ? attach_own.look_effort / 2 : 0;
    attach_own.unknown_polls = 0;
    attach_own.unknown_stops.count = 0;
    attach_own.wait_polls = 0;
}

// A loop that is not known comes to the same few places behind which nothing is known; a program that does other things
// between polls that find nothing comes to many, and would be taken for one that waits.
static bool may_be_learned(uint64_t unknown_at)
{
    struct unknown_stops *stops = &attach_own.unknown_stops;
    unsigned i = 0;
    while (i < stops->count && stops->at[i] != unknown_at) {
        i++;
    }
    if (unknown_at != 0 && i == stops->count && i < UNKNOWN_STOPS) {
        stops->at[stops->count++] = unknown_at;
    }
    return attach_own.unknown_polls++ >= UNKNOWN_POLLS && stops->count < UNKNOWN_STOPS;
}

enum attach_woken attach_poll_again(const struct loop_poll *poll, unsigned flags, bool repeats,
                                    struct attach_caller *caller)
{
    struct attach_slot *slot = slot_to_poll();
    if (slot == NULL) {
        return ATTACH_WOKEN_OUTSIDE;
    }
    attach_once_more_end();
    attach_loop_forget();
    (void)attach_window_possible(); // so that the simulator knows who shares memory
    unsigned what = (repeats ? (unsigned)ATTACH_POLL_REPEATS : 0) | (poll->clock ? (unsigned)ATTACH_POLL_CLOCK : 0);
    if (attach_greeting()->every_poll != 0) {
        return poll_reference(slot, poll, flags, what, caller);
    }
    if (attach_own.stored && !attach_own.found && attach_own.did && !repeats) {
        loop_pages_doubt(&attach_own.loop);
    }
    bool goes_on = !attach_own.found && (!attach_own.did || repeats), repeated = goes_on && attach_own.repeats;
    if (!goes_on) {
        wait_begin(poll->clock);
    }
    attach_own.wait_polls++;
    attach_own.repeats = false;
    struct attach_ahead ahead;
    attach_ahead_begin(&ahead, ATTACH_AHEAD_ENDS);
    attach_window_close();
    if (attach_own.polls_ahead > 0) {
        attach_own.polls_ahead--;
    } else if (!attach_look_ahead(caller, poll->key, slot, &ahead)) {
        attach_ahead_begin(&ahead, ATTACH_AHEAD_UNKNOWN);
    } else if (ahead.kind == ATTACH_AHEAD_UNKNOWN && !attach_own.only_if_known && !may_be_learned(ahead.unknown_at)) {
        ahead.kind = ATTACH_AHEAD_ENDS; // a poll stands for itself if nothing else can be shown
    }
    if (is_known(&ahead)) {
        attach_own.repeats = ahead.kind == ATTACH_AHEAD_REPEATS;
        loop_end(&attach_own.loop, true);
        return poll_known(slot, &ahead, poll, flags, what | (repeated ? (unsigned)ATTACH_POLL_GOES_ON : 0), caller);
    }
    bool others_see = ahead.kind == ATTACH_AHEAD_REPEATS; // what it does
    if (others_see) {
        attach_loop_left(&ahead, caller, &(struct attach_left_at){0}, ATTACH_WOKEN_OUTSIDE);
    }
    if (attach_own.only_if_known && ahead.kind != ATTACH_AHEAD_ENDS) { // it is no poll
        attach_own.only_if_known = false;
        return ATTACH_WOKEN_OUTSIDE;
    }
    if (others_see) {
        ahead.kind = ATTACH_AHEAD_ENDS;
        ahead.count = 0; // it may come to a loop of which they see nothing
    }
    if (ahead.kind == ATTACH_AHEAD_ENDS) {
        attach_own.polls_ahead += ahead.count;
        loop_end(&attach_own.loop, true);
        return poll_once(slot, poll, flags, what | (repeated ? (unsigned)ATTACH_POLL_GOES_ON : 0));
    }
    return poll_learned(slot, poll, flags, what, goes_on);
}

// A thread whose words or pages are known is in the loop until one of them is written.
static enum attach_woken poll_memory(struct attach_slot *slot, unsigned words, const struct loop_pages *pages)
{
    struct attach_polled *polled = &slot->args.poll.polled;
    if (attach_progress_is_behind()) {
        return ATTACH_WOKEN_MEMORY;
    }
    polled->poll_count = 0;
    polled->word_count = words;
    polled->any_pinned = attach_progress_on_writes();
    attach_pages_describe(polled, pages, NULL, 0);
    return poll_call(slot, UINT64_MAX, 0, ATTACH_WAIT_MEMORY | ATTACH_WAIT_OUTSIDE, 0);
}

API enum attach_woken attach_poll_pages(const uint64_t *pages, unsigned count)
{
    attach_shares();
    struct attach_slot *slot = slot_to_poll();
    struct loop_pages list = {0};
    for (unsigned i = 0; i < count; i++) {
        attach_pages_add(&list, pages[i], 0);
    }
    return slot != NULL ? poll_memory(slot, 0, &list) : ATTACH_WOKEN_OUTSIDE;
}

API enum attach_woken attach_poll_words(const struct attach_range *ranges, unsigned count)
{
    struct attach_slot *slot = slot_to_poll();
    struct loop_pages pages = {0}; // another process may write there
    attach_window_shares();
    if (slot == NULL) {
        return ATTACH_WOKEN_OUTSIDE;
    }
    count = count <= ATTACH_RANGES_MAX ? count : 0;
    for (unsigned i = 0; i < count; i++) {
        struct attach_word word = {.address = (uintptr_t)ranges[i].address, .bytes = ranges[i].bytes};
        uint64_t bus_address;
        word.pinned = attach_pinned_find(ranges[i].address, ranges[i].bytes, &bus_address);
        word.address = word.pinned ? bus_address : word.address;
        slot->args.poll.polled.words[i] = word;
        attach_window_pages(&pages, (uintptr_t)ranges[i].address, ranges[i].bytes);
    }
    return poll_memory(slot, count, pages.count != 0 ? &pages : NULL); // else any slot of others counts
}

enum attach_woken attach_poll_call_from(unsigned flags, uint64_t site, struct attach_caller *caller)
{
    if (!timed()) {
        attach_sleep_really(ATTACH_REAL_FUNCTIONAL_CALL_NS);
        return ATTACH_WOKEN_OUTSIDE;
    }
    const struct attach_greeting *greeting = attach_greeting();
    attach_spend_ps(greeting->call_ps > greeting->poll_ps ? greeting->call_ps : greeting->poll_ps);
    const struct loop_poll poll = {.key = site, .own_ps = attach_own.tail_ps};
    return attach_poll_again(&poll, flags, false, caller);
}

// Readings of clocks of which is known where they were called. Computing that costs time is not told of.
bool attach_clocks_poll(void)
{
    return attach_environment()->computes == 0;
}

API bool attach_poll_clock(uint64_t site, uint64_t cost_ps, const struct attach_clock *clock,
                           struct attach_caller *caller, uint64_t *now_ps_out)
{
    bool others = timed() && (attach_window_possible() || (attach_greeting()->every_poll != 0 && !attach_is_alone()));
    bool told = timed() && caller != NULL && attach_clocks_poll();
    if (!others && !told) {
        return false;
    }
    if (attach_progress_is_behind()) {
        attach_progress();
    }
    uint64_t before_ps = attach_own.tail_ps;
    attach_spend_ps(cost_ps);
    const struct loop_poll poll = {.key = site, .own_ps = attach_own.tail_ps, .clock = true};
    attach_own.clock = *clock;
    attach_own.only_if_known = !others;
    enum attach_woken woken =
        attach_poll_again(&poll, ATTACH_WAIT_MEMORY | ATTACH_WAIT_EVENTS, false, told ? caller : NULL);
    attach_own.clock.form = 0;
    bool polled = others || attach_own.only_if_known;
    attach_own.only_if_known = false;
    attach_own.tail_ps = polled ? attach_own.tail_ps : before_ps;
    if (polled) {
        *now_ps_out = attach_now_ps();
    }
    if (polled && woken == ATTACH_WOKEN_MEMORY && attach_progress_on_writes()) {
        attach_progress();
    }
    return polled;
}
