// Looks ahead from an empty poll (verbs-shim/attach/ahead.h). The program is interpreted from the poll's return on, and
// further polls are taken to find nothing. A poll at the same place with the same registers, and with the same contents
// of all memory that was read before it was written, means that the program repeats what was interpreted, until somebody
// changes what it reads (lookahead_cycle.c).
//
// A loop that was found is remembered with what it reads: if all of that is as it was, it does the same again. A thread
// that leaves it at another poll than that from which it looked is taken there by interpreting the polls between.

#include <string.h>

#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/world.h"

enum {
    LOOPS = 64,
    SITES = 256,
    SITE_PLACES = 4,
    RED_ZONE_BYTES = 128,
    POLLS_FIRST = 8,
    POLLS_MAX = 1 << 30,
    UNKNOWN_FIRST = 4,
    BACKOFF_MAX = 1023,
    ENOUGH_POLLS = 256
};

// One thread of the process runs at a time.
static struct attach_known loops[LOOPS];
static unsigned loop_next;

// --- remembered loops -----------------------------------------------------------------------------------------------

static const struct lookahead_counter *counter_at(const struct attach_known *loop, uint64_t address)
{
    for (unsigned i = 0; i < loop->counter_count; i++) {
        if (loop->counters[i].address == address) {
            return &loop->counters[i];
        }
    }
    return NULL;
}

static uint64_t counter_value(const struct lookahead_counter *counter, uint64_t word)
{
    return counter->bytes == 8 ? word : (uint32_t)(word >> 32 * counter->half);
}

static uint64_t counter_mask(const struct lookahead_counter *counter)
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
        const struct lookahead_counter *counter = counter_at(loop, word->address);
        uint64_t now, mask = word->mask & ~(counter != NULL ? counter_mask(counter) : 0);
        // the program may have unmapped it
        if (!interpret_peek(word->address, &now) || ((now ^ word->value) & mask) != 0) {
            return false;
        }
        if (counter != NULL) {
            uint64_t passed = counter_iterations(counter, counter_value(counter, now));
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
    uint64_t most = loop->ahead.kind == ATTACH_AHEAD_MAKES ? !loop->timed : loop->ahead.iterations;
    uint64_t passed, iteration_ps = 0;
    if (!words_same(loop, &passed) || passed >= most) {
        return 0;
    }
    uint64_t left = most - passed;
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

static struct attach_known *loop_find(const struct attach_caller *caller, uint64_t key,
                                      const struct attach_borders *borders, uint64_t *iterations_out)
{
    uint64_t now_ps = *borders->now_ps + *borders->tail_ps;
    for (unsigned i = 0; i < LOOPS; i++) {
        struct attach_known *loop = &loops[i];
        bool may = loop->ahead.count != 0 && loop->key == key && memcmp(&loop->caller, caller, sizeof *caller) == 0 &&
                   (loop->counter_count == 0 || loop->users == 0) && (!loop->alone || borders->alone) && !loop->asked &&
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

// NULL: threads are in all of them.
static struct attach_known *loop_free(void)
{
    struct attach_known *loop = NULL;
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
// an event, half as many if an event came soon. Whether only counters differ is tried more and more rarely where it did not
// help (exponential backoff).
struct backoff {
    unsigned length, skips;
};
static struct site {
    uint64_t key, wanted;
    unsigned cycle; // polls of the last loop; 0: not known
    uint64_t told;  // of how many polls the last search told
    unsigned unknown;
    bool at_end;             // the thread has just made all iterations of a loop that were known
    struct backoff counters; // of trying whether only counters differ
    struct backoff vain;     // of looks that told nothing of use
    struct backoff ends;     // and of those that told that this poll is the last one
} sites[SITES];

static struct site *site_of(uint64_t key)
{
    unsigned first = (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40);
    struct site *site = NULL;
    for (unsigned i = 0; i < SITE_PLACES && (site == NULL || (site->key != key && site->key != 0)); i++) {
        site = &sites[(first + i) % SITES];
    }
    if (site->key != key) {
        *site = (struct site){.key = key, .wanted = POLLS_FIRST};
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
static void backs_off(struct backoff *backoff)
{
    backoff->skips = backoff->length;
    backoff->length = backoff->length < BACKOFF_MAX ? 2 * backoff->length + 1 : backoff->length;
}

static void polls_more(struct site *site)
{
    if (site->wanted < POLLS_MAX) {
        site->wanted *= 4;
        site->counters = (struct backoff){0};
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

static uint64_t polls_told(const struct attach_ahead *ahead)
{
    return ahead->iterations > POLLS_MAX ? POLLS_MAX : ahead->iterations * ahead->count;
}

// Of a loop that does something else every eighth time, a short cycle tells little, and a longer one all.
static bool is_enough(const struct site *site, uint64_t polls)
{
    return polls >= site->wanted || polls >= ENOUGH_POLLS || polls >= site->told / 2;
}

static void cycle_find(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                       struct attach_ahead *ahead, struct attach_known *known)
{
    struct site *site = site_of(key);
    bool at_end = site->at_end; // what is left of the loop is often less than 64 polls
    site->at_end = false;
    if (!at_end && site->cycle != 0 && site->cycle < site->wanted &&
        lookahead_cycle(caller, key, borders, site->cycle, LOOKAHEAD_TRIES_OF_THESE, ahead, known) == LOOKAHEAD_CYCLE &&
        is_enough(site, polls_told(ahead))) {
        return;
    }
    enum lookahead_tries tries = at_end || skips(&site->counters) ? LOOKAHEAD_TRIES_NONE : LOOKAHEAD_TRIES_ALL;
    enum lookahead_cycle found = lookahead_cycle(caller, key, borders, site->wanted, tries, ahead, known);
    site->cycle = found == LOOKAHEAD_CYCLE ? ahead->count : at_end ? site->cycle : 0;
    site->told = polls_told(ahead);
    if (found == LOOKAHEAD_CYCLE) {
        site->counters.length /= 2;
    } else if (found == LOOKAHEAD_NO_CYCLE) {
        backs_off(&site->counters);
    }
    // What they leave, such as a request in a queue, others may take up: they are carried out. (Noted if it is not alone.)
    if (ahead->kind == ATTACH_AHEAD_MAKES && ahead->changes.count != 0) {
        ahead->kind = ATTACH_AHEAD_ENDS;
    }
    bool unsteady = ahead->kind == ATTACH_AHEAD_REPEATS && !ahead->steady;
    if (unsteady || ahead->kind == ATTACH_AHEAD_UNKNOWN) {
        backs_off(&site->vain);
        site->vain.skips = site->vain.length; // also the first time
    } else {
        site->vain.length = 0;
    }
    if (ahead->kind == ATTACH_AHEAD_ENDS && ahead->count == 0) {
        backs_off(&site->ends);
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
    struct attach_known *known = loop_find(caller, key, borders, &iterations);
    if (known != NULL) {
        known->users++;
        known->given = iterations;
        *ahead_out = known->ahead;
        ahead_out->iterations = iterations;
        return;
    }
    struct site *site = site_of(key);
    if (skips(&site->ends)) { // a poll may always stand for itself
        *ahead_out = (struct attach_ahead){.kind = ATTACH_AHEAD_ENDS};
        return;
    }
    known = skips(&site->vain) ? NULL : loop_free();
    if (known == NULL) {
        *ahead_out = (struct attach_ahead){.kind = ATTACH_AHEAD_UNKNOWN};
        return;
    }
    known->ahead.count = 0;
    cycle_find(caller, key, borders, ahead_out, known);
    if (known->timed && !lookahead_time_is_known(borders)) { // the next poll will tell
        *ahead_out = (struct attach_ahead){.kind = ATTACH_AHEAD_ENDS};
    }
    if (ahead_out->kind == ATTACH_AHEAD_REPEATS || ahead_out->kind == ATTACH_AHEAD_MAKES) {
        if (loop_keep(known, caller, key, ahead_out, borders)) {
            known->users++;
            known->given = ahead_out->kind == ATTACH_AHEAD_MAKES ? 1 : ahead_out->iterations;
            *ahead_out = known->ahead;
        } else {
            ahead_out->kind = ATTACH_AHEAD_UNKNOWN;
            ahead_out->reason = "too many words";
        }
    }
}

// --- going on at a later poll -------------------------------------------------------------------------------------------

static void resume_take(const struct interpret_state *state, struct attach_resume *to)
{
    const uint64_t *registers = state->registers;
    to->rbx = registers[INTERPRET_RBX];
    to->rbp = registers[INTERPRET_RBP];
    to->r12 = registers[INTERPRET_R12];
    to->r13 = registers[INTERPRET_R13];
    to->r14 = registers[INTERPRET_R14];
    to->r15 = registers[INTERPRET_R15];
    to->rsp = registers[INTERPRET_RSP];
    to->rip = state->rip;
    to->rdi = registers[INTERPRET_RDI];
    to->rsi = registers[INTERPRET_RSI];
    to->rdx = registers[INTERPRET_RDX];
    to->rax = registers[INTERPRET_RAX];
}

_Static_assert(ATTACH_RESUME_WORDS >= INTERPRET_WORDS_MAX, "all words fit");

static uint64_t changed_bytes(uint64_t a, uint64_t b)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < 64; i += 8) {
        mask |= ((a ^ b) >> i & 0xff) != 0 ? UINT64_C(0xff) << i : 0;
    }
    return mask;
}

// Where the counter is by now, if others count as well: it moves by as much as it did in the interpretation.
static uint64_t counter_moved(const struct lookahead_counter *counter, const struct interpret_word *word, uint64_t now)
{
    uint64_t mask = counter_mask(counter), by = (word->now & mask) - (word->since[INTERPRET_BEGINNING].value & mask);
    return (now & ~mask) | (((now & mask) + by) & mask);
}

// What the program has written, but below its stack, and where others have not written since. What was below the stack
// before are frames of calls that have returned, and of this one. false: memory that has gone.
static bool writes_take(const struct attach_known *loop, const struct attach_borders *borders, uint64_t stack_before,
                        struct attach_resume *to)
{
    unsigned count;
    const struct interpret_word *words = interpret_words(&count);
    to->count = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct interpret_word *word = &words[i];
        const struct lookahead_counter *counter = counter_at(loop, word->address);
        uint64_t mask = lookahead_mask(word->since[INTERPRET_BEGINNING].written), now;
        bool dead = word->address < to->rsp && word->address >= interpret_lowest_stack() - RED_ZONE_BYTES;
        if (mask == 0 || dead || lookahead_is_own(borders, word->address)) {
            continue;
        }
        if (!interpret_peek(word->address, &now)) {
            return false;
        }
        bool frame = word->address >= to->rsp && word->address < stack_before;
        mask &= frame ? UINT64_MAX : ~changed_bytes(now, word->since[INTERPRET_BEGINNING].value);
        mask &= counter != NULL ? ~counter_mask(counter) : UINT64_MAX;
        uint64_t others = counter != NULL ? counter_moved(counter, word, now) : now;
        to->words[to->count].address = word->address;
        to->words[to->count++].value = (others & ~mask) | (word->now & mask);
    }
    return true;
}

// Counters are where they are after so many iterations. Registers: of the caller.
static void counters_advance(struct attach_known *loop, struct attach_caller *caller, uint64_t iterations)
{
    static const uint8_t saved[] = {INTERPRET_RBX, INTERPRET_RBP, INTERPRET_R12,
                                    INTERPRET_R13, INTERPRET_R14, INTERPRET_R15};
    uint64_t *const registers[] = {&caller->rbx, &caller->rbp, &caller->r12, &caller->r13, &caller->r14, &caller->r15};
    for (unsigned i = 0; i < loop->counter_count; i++) {
        const struct lookahead_counter *counter = &loop->counters[i];
        uint64_t by = counter->step * iterations;
        if (counter->address == 0) {
            for (unsigned r = 0; r < sizeof saved; r++) {
                *registers[r] += saved[r] == counter->number ? by : 0;
            }
        } else if (counter->bytes == 8) {
            *(uint64_t *)counter->address += by; // NOLINT(performance-no-int-to-ptr)
        } else {
            ((uint32_t *)counter->address)[counter->half] += (uint32_t)by; // NOLINT(performance-no-int-to-ptr)
        }
    }
}

// Of what the loop read: by now others have written there.
static void words_preset(struct attach_known *loop, uint64_t iterations)
{
    for (unsigned i = 0; i < loop->ahead.word_count; i++) {
        const struct attach_loop_word *word = &loop->words[i];
        interpret_preset(word->address, word->value, word->mask);
    }
    for (unsigned i = 0; i < loop->counter_count; i++) {
        const struct lookahead_counter *counter = &loop->counters[i];
        if (counter->address != 0) {
            uint64_t value = counter_value(counter, interpret_now(counter->address)) + counter->step * iterations;
            interpret_preset(counter->address, value << (counter->bytes == 8 ? 0 : 32 * counter->half),
                             counter_mask(counter));
        }
    }
}

// From the beginning of an iteration on, over so many polls, to the one at which the thread has left the loop.
static bool left_at(struct attach_known *loop, const struct attach_caller *caller, const struct attach_borders *borders,
                    uint64_t iterations, unsigned polls, uint64_t left_ps, struct attach_resume *to,
                    enum attach_left_by *by_out)
{
    uint64_t began_ps = left_ps;
    for (unsigned i = 0; i < polls; i++) {
        began_ps -= loop->ahead.polls[i % loop->ahead.count].own_ps;
    }
    interpret_begin();
    words_preset(loop, iterations);
    struct lookahead_run run = lookahead_begin(caller, borders, began_ps, 0, 2 * LOOKAHEAD_INSTRUCTIONS_LONG);
    run.replays = true;
    for (unsigned passed = 0; lookahead_run(&run) == LOOKAHEAD_POLL; passed++) {
        if (passed + 1 == polls) {
            *by_out = lookahead_at(&run);
            if (*by_out != ATTACH_LEFT_FUNCTION) {
                lookahead_pass(&run, loop->ahead.polls[passed % loop->ahead.count].own_ps);
            }
            resume_take(&run.state, to);
            return writes_take(loop, borders, caller->rsp, to);
        }
        lookahead_pass(&run, loop->ahead.polls[passed % loop->ahead.count].own_ps);
    }
    return false;
}

// The last iteration is interpreted, too, if there was one: what it writes may be read later.
static bool leave(struct attach_known *known, struct attach_caller *caller, const struct attach_borders *borders,
                 const struct attach_left_at *at, struct attach_resume *resume_out, enum attach_left_by *by_out)
{
    known->users--;
    if (at->poll > known->ahead.count) {
        return false;
    }
    bool is_long = known->given > POLLS_MAX;
    polls_were(site_of(known->key), at->iterations * known->ahead.count + at->poll,
               is_long ? UINT64_MAX : known->given * known->ahead.count);
    bool again = at->iterations > 0 && known->ahead.kind == ATTACH_AHEAD_REPEATS;
    site_of(known->key)->at_end = again && at->iterations >= known->given;
    unsigned polls = (again ? known->ahead.count : 0) + at->poll;
    counters_advance(known, caller, at->iterations - again);
    return polls != 0 &&
           left_at(known, caller, borders, at->iterations - again, polls, at->at_ps, resume_out, by_out);
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

static bool left(struct attach_known *known, struct attach_caller *caller, const struct attach_borders *borders,
                 const struct attach_left_at *at, struct attach_resume *resume_out, enum attach_left_by *by_out)
{
    runs = true;
    bool elsewhere = leave(known, caller, borders, at, resume_out, by_out);
    runs = false;
    return elsewhere;
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
    static const struct attach_look_ahead_ops ops = {look_ahead, left};
    lookahead_library_start();
    attach_ahead_by(&ops);
}
