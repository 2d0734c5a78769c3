// Looks ahead from an empty poll (verbs-shim/attach/ahead.h). The program is interpreted from the poll's return on, and
// further polls are taken to find nothing. A poll at the same place with the same registers, and with the same contents
// of all memory that was read before it was written, means that the program repeats what was interpreted, until somebody
// changes what it reads (lookahead_cycle.c).
//
// A loop that was found is remembered with what it reads: if all of that is as it was, it does the same again.

#include <string.h>

#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/world.h"

enum {
    LOOPS = 64,
    SITES = 256,
    SITE_PLACES = 4,
    POLLS_FIRST = 8,
    POLLS_MAX = 1 << 30,
    FEW_POLLS = 16,
    UNKNOWN_FIRST = 4,
    SEARCHES_MAX = 15,
    VAIN_MAX = 31,
    ENDS_MAX = 1023,
    ENOUGH_POLLS = 64
};

// One thread of the process runs at a time.
static struct attach_known loops[LOOPS];
static unsigned loop_next;

// --- remembered loops -----------------------------------------------------------------------------------------------

const struct lookahead_counter *lookahead_counter_at(const struct attach_known *loop, uint64_t address)
{
    for (unsigned i = 0; i < loop->counter_count; i++) {
        if (loop->counters[i].address == address) {
            return &loop->counters[i];
        }
    }
    return NULL;
}

uint64_t lookahead_counter_value(const struct lookahead_counter *counter, uint64_t word)
{
    return counter->bytes == 8 ? word : (uint32_t)(word >> 32 * counter->half);
}

uint64_t lookahead_counter_mask(const struct lookahead_counter *counter)
{
    return counter->bytes == 8 ? UINT64_MAX : (uint64_t)UINT32_MAX << 32 * counter->half;
}

// How many iterations the loop has made since it was found, as this counter shows; UINT64_MAX: it is not known there.
static uint64_t counter_iterations(const struct lookahead_counter *counter, uint64_t value)
{
    uint64_t since = value - counter->first;
    since = counter->bytes == 8 ? since : (uint64_t)(int32_t)since;
    int64_t step = (int64_t)counter->step, distance = (int64_t)since;
    return distance % step == 0 && distance / step >= 0 ? (uint64_t)(distance / step) : UINT64_MAX;
}

// The words are as they were, but for counters, which are read anew. All of these have moved by the same iterations, which
// are *passed_out: what is known of a loop may be known of their differences.
static bool words_same(struct attach_known *loop, uint64_t *passed_out)
{
    bool any = false;
    *passed_out = 0;
    for (unsigned i = 0; i < loop->ahead.word_count; i++) {
        struct attach_loop_word *word = &loop->words[i];
        const struct lookahead_counter *counter = lookahead_counter_at(loop, word->address);
        uint64_t now, mask = word->mask & ~(counter != NULL ? lookahead_counter_mask(counter) : 0);
        // the program may have unmapped it
        if (!interpret_peek(word->address, &now) || ((now ^ word->value) & mask) != 0) {
            return false;
        }
        if (counter != NULL) {
            uint64_t passed = counter_iterations(counter, lookahead_counter_value(counter, now));
            if (any && passed != *passed_out) {
                return false;
            }
            any = true;
            *passed_out = passed;
            word->value = now;
        }
    }
    for (unsigned i = 0; i < loop->counter_count; i++) { // registers are those of the caller
        any = any && loop->counters[i].address != 0;
    }
    return any || *passed_out == 0;
}

// How many iterations are known from now on; 0: none.
static uint64_t iterations_left(struct attach_known *loop, const struct attach_borders *borders, uint64_t now_ps)
{
    uint64_t passed, iteration_ps = 0;
    if (!words_same(loop, &passed) || passed >= loop->ahead.iterations) {
        return 0;
    }
    uint64_t left = loop->ahead.iterations - passed;
    for (unsigned i = 0; i < loop->ahead.count; i++) {
        iteration_ps += loop->ahead.polls[i].own_ps;
        if (!lookahead_still_idle(&loop->caller, borders, &loop->ahead.polls[i])) {
            return 0;
        }
    }
    uint64_t until_ps = loop->timed ? loop->until_ps : UINT64_MAX;
    uint64_t in_time = lookahead_iterations(&loop->ahead, now_ps, until_ps, iteration_ps);
    return in_time < left ? in_time : left;
}

// *oldest_out: if there are as many at this poll as are looked at, none of which is it, the oldest of them: a ring of
// completions gives each wait another word to look at.
static struct attach_known *loop_find(const struct attach_caller *caller, uint64_t key,
                                      const struct attach_borders *borders, uint64_t *iterations_out,
                                      struct attach_known **oldest_out)
{
    enum { LATEST = 4 };
    uint64_t now_ps = *borders->now_ps + *borders->tail_ps;
    unsigned looked = 0;
    *oldest_out = NULL;
    for (unsigned i = 1; i <= LOOPS && looked < LATEST; i++) {
        struct attach_known *loop = &loops[(loop_next - i) % LOOPS];
        if (loop->ahead.count == 0 || loop->key != key || memcmp(&loop->caller, caller, sizeof *caller) != 0) {
            continue;
        }
        *oldest_out = ++looked == LATEST ? loop : NULL;
        bool may = (loop->counter_count == 0 || loop->users == 0) && (!loop->alone || borders->alone) && !loop->asked &&
                   (!loop->timed || lookahead_time_is_known(borders));
        *iterations_out = may ? iterations_left(loop, borders, now_ps) : 0;
        if (*iterations_out != 0) {
            return loop;
        }
    }
    return NULL;
}

// In the order of addresses.
static void word_add(struct attach_known *loop, const struct interpret_word *word)
{
    unsigned at = loop->ahead.word_count++;
    for (; at > 0 && loop->words[at - 1].address > word->address; at--) {
        loop->words[at] = loop->words[at - 1];
    }
    const struct interpret_since *since = &word->since[INTERPRET_BEGINNING];
    loop->words[at] = (struct attach_loop_word){word->address, 0, since->value, lookahead_mask(since->read)};
}

// NULL: threads are in all of them. preferred: NULL or one that is not needed any more.
static struct attach_known *loop_free(struct attach_known *preferred)
{
    struct attach_known *loop = NULL;
    if (preferred != NULL && preferred->users == 0) {
        return preferred;
    }
    for (unsigned i = 0; i < LOOPS && (loop == NULL || loop->users != 0); i++) {
        loop = &loops[loop_next++ % LOOPS];
    }
    return loop->users == 0 ? loop : NULL;
}

// false: it reads too many words.
static bool loop_keep(struct attach_known *loop, const struct attach_caller *caller, uint64_t key,
                      const struct attach_ahead *ahead, const struct attach_borders *borders)
{
    unsigned count;
    const struct interpret_word *words = interpret_words(&count);
    loop->caller = *caller;
    loop->key = key;
    loop->alone = borders->alone;
    loop->ahead = *ahead;
    loop->ahead.known = loop;
    loop->ahead.words = loop->words;
    loop->ahead.word_count = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!lookahead_is_input(&words[i], INTERPRET_BEGINNING, caller->rsp) ||
            lookahead_is_own(borders, words[i].address)) {
            continue;
        }
        if (loop->ahead.word_count == ATTACH_LOOP_WORDS) {
            loop->ahead.count = 0;
            return false;
        }
        word_add(loop, &words[i]);
    }
    return true;
}

// --- looking ------------------------------------------------------------------------------------------------------------

// What is known of a poll. wanted: how many polls are worth looking ahead of: four times as many if it came to them without
// an event, half as many if an event came soon. What was in vain is tried more and more rarely (exponential backoff).
struct backoff {
    unsigned length, skips;
};
static struct site {
    uint64_t key, wanted;
    struct lookahead_candidate cycle; // with which counters it was found to repeat the last time
    uint64_t told;                    // of how many polls the last search told
    unsigned unknown;
    bool at_end;              // the thread has just made all iterations of a loop that were known
    unsigned lead;            // polls after which a loop began the last time; 0: it did not
    struct backoff leads;     // of finding that out again
    struct backoff searches;  // of a search for a better cycle than the last one
    struct backoff aperiodic; // of looks that came to no cycle
    struct backoff vain;      // of looks that told nothing of use
    struct backoff ends;      // and of those that told that this poll is the last one
} sites[SITES];

static struct site *site_of(uint64_t key)
{
    unsigned first = (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40);
    struct site *site = NULL;
    for (unsigned i = 0; i < SITE_PLACES && (site == NULL || (site->key != key && site->key != 0)); i++) {
        site = &sites[(first + i) % SITES];
    }
    if (site->key != key) {
        *site = (struct site){.key = key, .wanted = POLLS_FIRST, .told = UINT64_MAX};
    }
    return site;
}

static bool skips(struct backoff *backoff)
{
    bool any = backoff->skips > 0;
    backoff->skips -= any;
    return any;
}

// The next time it skips twice as many. None at first: the first time in vain may be the end of a loop.
static void backs_off(struct backoff *backoff, unsigned most)
{
    backoff->skips = backoff->length;
    backoff->length = backoff->length < most ? 2 * backoff->length + 1 : backoff->length;
}

static void polls_more(struct site *site)
{
    if (site->wanted < POLLS_MAX) {
        site->wanted *= 4;
    }
}

static void polls_were(struct site *site, uint64_t made, uint64_t known)
{
    if (made >= known) {
        polls_more(site);
    } else if (made < site->wanted / 4) {
        site->wanted /= 2;
    }
}

static void stands_for_itself(struct attach_ahead *ahead, uint64_t polls)
{
    *ahead = (struct attach_ahead){.kind = ATTACH_AHEAD_ENDS, .count = (unsigned)polls, .reason = ""};
}

// Of a loop that does something else every eighth time, a short cycle tells little, and a longer one all.
static uint64_t enough_polls(const struct site *site, uint64_t wanted)
{
    uint64_t enough = site->told / 2 < ENOUGH_POLLS ? site->told / 2 : ENOUGH_POLLS;
    enough = enough < FEW_POLLS ? FEW_POLLS : enough;
    return wanted < enough ? wanted : enough;
}

static void searched(struct site *site, const struct attach_ahead *ahead, const struct lookahead_candidate *found)
{
    bool repeats = ahead->kind == ATTACH_AHEAD_REPEATS;
    site->told = repeats ? lookahead_told(ahead) : site->told;
    if (repeats && found->polls == site->cycle.polls) {
        backs_off(&site->searches, SEARCHES_MAX);
    } else {
        site->searches = (struct backoff){0};
    }
    if (repeats) {
        site->aperiodic.length /= 2;
        site->cycle = *found;
    } else if (ahead->count < ATTACH_AHEAD_POLLS) {
        site->aperiodic.length = 0;
    } else {
        backs_off(&site->aperiodic, SEARCHES_MAX);
    }
}

// What is left of a loop that has ended where it was known to is often a poll or two: they stand for themselves.
static void cycle_find(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                       struct attach_ahead *ahead, struct attach_known *known)
{
    struct site *site = site_of(key);
    if (site->at_end) {
        site->at_end = false;
        stands_for_itself(ahead, 1);
        return;
    }
    static bool led; // the last look has led here
    led = !led && site->lead != 0 && skips(&site->leads);
    if (led) {
        stands_for_itself(ahead, site->lead);
        return;
    }
    // A wait lasts as long again as it has.
    uint64_t polls = site->wanted > borders->waited ? site->wanted : borders->waited;
    const struct lookahead_wanted wanted = {polls, enough_polls(site, polls)};
    if (site->cycle.polls != 0 && lookahead_cycle_again(caller, borders, &site->cycle, ahead, known)) {
        uint64_t told = lookahead_told(ahead);
        if (told >= wanted.enough) {
            return;
        }
        if (skips(&site->searches)) {
            if (told < FEW_POLLS) {
                stands_for_itself(ahead, told);
            }
            return;
        }
    }
    if (skips(&site->aperiodic)) {
        stands_for_itself(ahead, ATTACH_AHEAD_POLLS);
        return;
    }
    struct lookahead_candidate found;
    if (lookahead_cycle(caller, key, borders, &wanted, ahead, known, &found)) {
        site->lead = ahead->count;
        backs_off(&site->leads, SEARCHES_MAX);
    } else {
        site->lead = site->leads.length = 0;
    }
    searched(site, ahead, &found);
    bool unsteady = ahead->kind == ATTACH_AHEAD_REPEATS && !ahead->steady;
    if (unsteady || ahead->kind == ATTACH_AHEAD_UNKNOWN) {
        backs_off(&site->vain, VAIN_MAX);
        site->vain.skips = site->vain.length; // also the first time
    } else {
        site->vain.length = 0;
    }
    if (ahead->kind == ATTACH_AHEAD_ENDS && ahead->count == 0) {
        backs_off(&site->ends, ENDS_MAX);
    } else {
        site->ends.length = 0;
    }
    // Once only, the dynamic linker may look for a function.
    if (ahead->kind == ATTACH_AHEAD_UNKNOWN && site->unknown < UNKNOWN_FIRST) {
        site->unknown++;
        ahead->kind = ATTACH_AHEAD_ENDS;
    }
}

static void look(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                 struct attach_ahead *ahead_out)
{
    uint64_t iterations;
    struct attach_known *oldest, *known = loop_find(caller, key, borders, &iterations, &oldest);
    if (known != NULL) {
        known->users++;
        known->given = iterations;
        *ahead_out = known->ahead;
        ahead_out->iterations = iterations;
        return;
    }
    struct site *site = site_of(key);
    if (skips(&site->ends)) { // a poll may always stand for itself
        stands_for_itself(ahead_out, 0);
        return;
    }
    known = skips(&site->vain) ? NULL : loop_free(oldest);
    if (known == NULL) {
        *ahead_out = (struct attach_ahead){.kind = ATTACH_AHEAD_UNKNOWN};
        return;
    }
    known->ahead.count = 0;
    cycle_find(caller, key, borders, ahead_out, known);
    if (known->timed && !lookahead_time_is_known(borders)) { // the next poll will tell
        stands_for_itself(ahead_out, 0);
    }
    if (ahead_out->kind == ATTACH_AHEAD_REPEATS) {
        if (loop_keep(known, caller, key, ahead_out, borders)) {
            known->users++;
            known->given = ahead_out->iterations;
            *ahead_out = known->ahead;
        } else {
            ahead_out->kind = ATTACH_AHEAD_UNKNOWN;
            ahead_out->reason = "too many words";
        }
    }
}

static enum attach_left_how leave(struct attach_known *known, struct attach_caller *caller,
                                  const struct attach_borders *borders, const struct attach_left_at *at,
                                  struct attach_resume *resume_out, enum attach_left_by *by_out,
                                  struct attach_left_makes *makes_out)
{
    known->users--;
    if (at->poll > known->ahead.count) {
        return ATTACH_LEFT_HERE;
    }
    struct site *site = site_of(known->key);
    bool is_long = known->given > POLLS_MAX;
    polls_were(site, at->iterations * known->ahead.count + at->poll,
               is_long ? UINT64_MAX : known->given * known->ahead.count);
    site->at_end = at->iterations > 0 && at->iterations >= known->given;
    return lookahead_leave(known, caller, borders, at, resume_out, by_out, makes_out);
}

// --- from outside ---------------------------------------------------------------------------------------------------------

// A thread that computes for long is examined (spin.c): not while it looks ahead, as it takes the time of the machine.
static bool runs;

bool world_lookahead_runs(void)
{
    return runs;
}

static void look_ahead(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                       struct attach_ahead *ahead_out)
{
    runs = true;
    unsigned before = lookahead_effort();
    look(caller, key, borders, ahead_out);
    ahead_out->effort = lookahead_effort() - before;
    runs = false;
}

static enum attach_left_how left(struct attach_known *known, struct attach_caller *caller,
                                 const struct attach_borders *borders, const struct attach_left_at *at,
                                 struct attach_resume *resume_out, enum attach_left_by *by_out,
                                 struct attach_left_makes *makes_out)
{
    runs = true;
    enum attach_left_how how = leave(known, caller, borders, at, resume_out, by_out, makes_out);
    runs = false;
    return how;
}

// The child has none of the threads that were in a loop.
void world_lookahead_forked(void)
{
    for (unsigned i = 0; i < LOOPS; i++) {
        loops[i].users = 0;
    }
}

void world_lookahead_start(void)
{
    static const struct attach_look_ahead_ops ops = {look_ahead, left, lookahead_words_give_back};
    lookahead_library_start();
    attach_ahead_by(&ops);
}
