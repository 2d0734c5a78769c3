// The loops of polls that a process has found. If all that a loop reads is as it was, it does the same again. A program
// comes to one poll with loops that differ: it polls other words, or is at another place of a cycle that goes over several
// polls, as the values of its counters tell. So several are remembered of each poll.
#include <string.h>

#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/world.h"

// A place has many if a message may lie in each of 17 buffers, and the program does something else at every eighth poll; with
// more than so many, hardly one comes again. Loop 0 is NONE.
enum { LOOPS = 2048, OF_A_PLACE = 256, NEAR_ONES = 32, NONE = 0 };

// One thread of the process runs at a time.
static struct attach_known loops[LOOPS];
static struct {
    uint64_t rip, rsp;                // of its caller: loops lie far from each other
    uint64_t used;                    // when, in looks; 0: it is of no use
    unsigned users;                   // threads that are in it
    unsigned next;                    // of its place
    unsigned then;                    // that was found after it
    struct attach_loop_word differed; // the last time, in the bits of the mask: what is looked at first
} notes[LOOPS];
static unsigned firsts[LOOKAHEAD_SITES];
static uint64_t looks;

#define EACH_OF(place, i)                                                                                              \
    unsigned i = firsts[place];                                                                                        \
    i != NONE;                                                                                                         \
    i = notes[i].next

// --- is it as it was? -----------------------------------------------------------------------------------------------------

const struct lookahead_counter *lookahead_counter_at(const struct attach_known *loop, uint64_t address)
{
    for (unsigned i = 0; i < loop->varies.counter_count; i++) {
        if (loop->varies.counters[i].address == address) {
            return &loop->varies.counters[i];
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

int64_t lookahead_counter_moved(const struct lookahead_counter *counter, uint64_t value)
{
    uint64_t since = value - counter->first, modulus = counter->modulus;
    int64_t step = (int64_t)counter->step, distance = counter->bytes == 8 ? (int64_t)since : (int32_t)since;
    if (modulus != 0) {
        distance = (distance % (int64_t)modulus + (int64_t)modulus) % (int64_t)modulus;
    }
    if (distance == INT64_MIN) {
        return INT64_MIN;
    }
    int64_t moved = distance / step;
    bool is_known =
        distance % step == 0 && (moved >= 0 ? (uint64_t)moved <= counter->counted : -(uint64_t)moved <= counter->back);
    return is_known && (modulus == 0 || value < INTERPRET_MODULAR_MAX) ? moved : INT64_MIN;
}

static int64_t moved_by_now(const struct lookahead_counter *counter, const struct attach_caller *caller)
{
    uint64_t word;
    if (counter->address == 0) {
        return lookahead_counter_moved(counter, lookahead_register(caller, counter->number));
    }
    bool there = interpret_peek(counter->address, &word); // the program may have unmapped it
    return there ? lookahead_counter_moved(counter, lookahead_counter_value(counter, word)) : INT64_MIN;
}

// All counters have moved by the same iterations: what is known of a loop may be known of their differences; or they are
// apart. Returns how many iterations are left; 0: it is not known.
static uint64_t counters_left(const struct attach_known *loop, const struct attach_caller *caller, uint64_t now_ps)
{
    uint64_t left = UINT64_MAX;
    int64_t all = 0;
    bool any = false;
    for (unsigned i = 0; i < loop->varies.counter_count; i++) {
        const struct lookahead_counter *counter = &loop->varies.counters[i];
        uint64_t word;
        if (counter->clock) { // bounds.until_ps tells how long
            if (!interpret_peek(counter->address, &word) || word - now_ps != counter->first) {
                return 0;
            }
            continue;
        }
        int64_t moved = moved_by_now(counter, caller);
        if (moved == INT64_MIN || (!loop->varies.apart && any && moved != all)) {
            return 0;
        }
        any = true;
        all = moved;
        left = counter->counted - (uint64_t)moved < left ? counter->counted - (uint64_t)moved : left;
    }
    return left;
}

// What is only compared is not far from what it was.
static bool ranges_hold(const struct attach_known *loop, const struct attach_caller *caller)
{
    bool hold = true;
    for (unsigned i = 0; i < loop->varies.range_count && hold; i++) {
        hold = moved_by_now(&loop->varies.ranges[i], caller) != INT64_MIN;
    }
    return hold;
}

// The registers are as they were, but for counters and ranges.
static bool is_caller_of(const struct attach_known *loop, const struct attach_caller *caller)
{
    if (memcmp(&loop->caller, caller, sizeof *caller) == 0) {
        return true;
    }
    if (loop->caller.rip != caller->rip || loop->caller.rsp != caller->rsp ||
        loop->varies.counter_count + loop->varies.range_count == 0) {
        return false;
    }
    bool same = true;
    for (unsigned i = 0; i < sizeof lookahead_preserved && same; i++) {
        uint8_t number = lookahead_preserved[i];
        same = lookahead_register(&loop->caller, number) == lookahead_register(caller, number);
        same = same || lookahead_has_register(&loop->varies, number);
    }
    return same;
}

static bool is_there(const struct attach_loop_word *word, uint64_t mask, uint64_t *now_out)
{
    return interpret_peek(word->address, now_out) && ((*now_out ^ word->value) & mask) == 0;
}

// The words are as they were; counters and states of polls are read anew. *differed_out: one that is not.
static bool words_same(struct attach_known *loop, struct attach_loop_word *differed_out)
{
    for (unsigned i = 0; i < loop->ahead.word_count; i++) {
        struct attach_loop_word *word = &loop->words[i];
        uint64_t now;
        if (!is_there(word, loop->steady[i], &now)) {
            *differed_out = (struct attach_loop_word){word->address, 0, word->value, loop->steady[i]};
            return false;
        }
        word->value = now;
    }
    return true;
}

// How many iterations are known from now on; 0: none.
static uint64_t iterations_left(struct attach_known *loop, const struct attach_caller *caller,
                                const struct attach_borders *borders, struct attach_loop_word *differed_out)
{
    uint64_t now_ps = *borders->now_ps + *borders->tail_ps, iteration_ps = 0;
    uint64_t left = counters_left(loop, caller, now_ps);
    if (left == 0 || !ranges_hold(loop, caller) || !words_same(loop, differed_out)) {
        return 0;
    }
    for (unsigned i = 0; i < loop->ahead.count; i++) {
        iteration_ps += loop->ahead.polls[i].own_ps;
        if (!lookahead_still_idle(caller, borders, &loop->ahead.polls[i])) {
            return 0;
        }
    }
    uint64_t until_ps = loop->bounds.timed ? loop->bounds.until_ps : UINT64_MAX;
    uint64_t in_time = lookahead_iterations(&loop->ahead, now_ps, until_ps, iteration_ps);
    return in_time < left ? in_time : left;
}

// --- finding and keeping ----------------------------------------------------------------------------------------------------

// For so many iterations from now on; 0: it is not this one.
static uint64_t is_found(unsigned i, const struct attach_caller *caller, const struct attach_borders *borders)
{
    struct attach_known *loop = &loops[i];
    uint64_t word, mask = notes[i].differed.mask;
    if (notes[i].rip != caller->rip || notes[i].rsp != caller->rsp ||
        (mask != 0 && !is_there(&notes[i].differed, mask, &word)) || loop->ahead.count == 0 ||
        !is_caller_of(loop, caller)) {
        return 0;
    }
    bool may = (loop->varies.counter_count + loop->varies.range_count == 0 || notes[i].users == 0) &&
               (!loop->alone || borders->alone) && !loop->bounds.asked &&
               (!loop->bounds.timed || lookahead_time_is_known(borders));
    return may ? iterations_left(loop, caller, borders, &notes[i].differed) : 0;
}

struct attach_known *lookahead_known_find(unsigned place, const struct attach_caller *caller,
                                          const struct attach_borders *borders, uint64_t *iterations_out)
{
    static unsigned last[LOOKAHEAD_SITES]; // the one that was found last
    unsigned then = notes[last[place]].then;
    looks++;
    *iterations_out = then != NONE && loops[then].place == place ? is_found(then, caller, borders) : 0;
    for (EACH_OF(place, i)) {
        if (*iterations_out != 0) {
            break;
        }
        *iterations_out = is_found(then = i, caller, borders);
    }
    if (*iterations_out == 0) {
        return NULL;
    }
    notes[last[place]].then = then;
    last[place] = then;
    notes[then].used = looks;
    return &loops[then];
}

static void place_give(unsigned loop, unsigned place)
{
    notes[loop].next = firsts[place];
    firsts[place] = loop;
    loops[loop].place = place;
}

static void place_leave(unsigned loop)
{
    unsigned *link = &firsts[loops[loop].place];
    while (*link != loop) {
        link = &notes[*link].next;
    }
    *link = notes[loop].next;
}

// Of these and `oldest`, in which no thread is. NONE: there is none.
static unsigned oldest_of(unsigned place, unsigned oldest, unsigned *count_out)
{
    *count_out = 0;
    for (EACH_OF(place, i)) {
        ++*count_out;
        if (notes[i].users == 0 && (oldest == NONE || notes[i].used < notes[oldest].used)) {
            oldest = i;
        }
    }
    return oldest;
}

// One more for a place, that of another one if all are in use. NONE: threads are in all.
static unsigned one_more(unsigned place)
{
    static unsigned begun = NONE + 1;
    unsigned loop = begun, count;
    if (begun < LOOPS) {
        begun++;
    } else {
        loop = NONE;
        for (unsigned i = 0; i < LOOKAHEAD_SITES; i++) {
            loop = oldest_of(i, loop, &count);
        }
        if (loop == NONE) {
            return NONE;
        }
        place_leave(loop);
    }
    place_give(loop, place);
    return loop;
}

struct attach_known *lookahead_known_free(unsigned place)
{
    unsigned count, loop = oldest_of(place, NONE, &count);
    if (loop == NONE || (notes[loop].used != 0 && count < OF_A_PLACE)) {
        loop = one_more(place);
    }
    if (loop == NONE) {
        return NULL;
    }
    loops[loop].ahead.count = 0;
    notes[loop].used = 0;
    return &loops[loop];
}

// In the order of addresses. false: they are too many.
static bool word_add(struct attach_known *loop, const struct attach_loop_word *word, uint64_t steady)
{
    if (loop->ahead.word_count == ATTACH_LOOP_WORDS) {
        return false;
    }
    unsigned at = loop->ahead.word_count++;
    for (; at > 0 && loop->words[at - 1].address > word->address; at--) {
        loop->words[at] = loop->words[at - 1];
        loop->steady[at] = loop->steady[at - 1];
    }
    loop->words[at] = *word;
    loop->steady[at] = steady;
    return true;
}

static uint64_t varying_mask(const struct lookahead_varies *varies, uint64_t address)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < varies->counter_count; i++) {
        mask |= varies->counters[i].address == address ? lookahead_counter_mask(&varies->counters[i]) : 0;
    }
    for (unsigned i = 0; i < varies->range_count; i++) {
        mask |= varies->ranges[i].address == address ? lookahead_counter_mask(&varies->ranges[i]) : 0;
    }
    return mask;
}

// What a poll of a library's function depends on. Another time it may do so as well with another value: the function is
// asked (lookahead_still_idle). false: they are too many, or an iteration changes it.
static bool state_add(struct attach_known *loop, uint64_t address)
{
    uint64_t value;
    if (!interpret_peek(address, &value) || interpret_now(address) != value) {
        return false;
    }
    for (unsigned i = 0; i < loop->ahead.word_count; i++) {
        if (loop->words[i].address == address) {
            loop->words[i].mask = UINT64_MAX;
            return true;
        }
    }
    return word_add(loop, &(struct attach_loop_word){address, 0, value, UINT64_MAX}, 0);
}

// What the loop reads before it writes it, and the states of libraries; false: too much.
static bool words_add(struct attach_known *loop, const struct attach_caller *caller,
                      const struct attach_borders *borders)
{
    unsigned count;
    const struct interpret_word *words = interpret_words(&count);
    for (unsigned i = 0; i < count; i++) {
        const struct interpret_since *since = &words[i].since[INTERPRET_BEGINNING];
        uint64_t address = words[i].address, mask = lookahead_mask(since->read);
        const struct attach_loop_word word = {address, 0, since->value, mask};
        if (lookahead_is_input(&words[i], INTERPRET_BEGINNING, caller->rsp) && !lookahead_is_own(borders, address) &&
            !word_add(loop, &word, mask & ~varying_mask(&loop->varies, address))) {
            return false;
        }
    }
    for (unsigned i = 0; i < loop->ahead.count; i++) {
        if (loop->ahead.polls[i].state != 0 && !state_add(loop, loop->ahead.polls[i].state)) {
            return false;
        }
    }
    return true;
}

bool lookahead_known_keep(struct attach_known *loop, const struct attach_caller *caller,
                          const struct attach_ahead *ahead, const struct attach_borders *borders)
{
    loop->caller = *caller;
    notes[loop - loops].rip = caller->rip;
    notes[loop - loops].rsp = caller->rsp;
    loop->alone = borders->alone;
    notes[loop - loops].used = looks;
    notes[loop - loops].differed.mask = 0;
    attach_ahead_copy(&loop->ahead, ahead);
    loop->ahead.known = loop;
    loop->ahead.words = loop->words;
    loop->ahead.word_count = 0;
    bool all = words_add(loop, caller, borders);
    loop->ahead.count = all ? loop->ahead.count : 0;
    return all;
}

struct attach_known *lookahead_known_near(const struct attach_known *loop, struct lookahead_varies *wider_out)
{
    struct attach_known *nearest = NULL;
    struct lookahead_varies wider;
    unsigned seen = 0;
    for (EACH_OF(loop->place, i)) {
        bool alike = seen++ < NEAR_ONES && notes[i].rip == loop->caller.rip && notes[i].rsp == loop->caller.rsp &&
                     &loops[i] != loop;
        if (alike && lookahead_wider(loop, &loops[i], &wider) &&
            (nearest == NULL || wider.range_count < wider_out->range_count)) {
            nearest = &loops[i];
            *wider_out = wider;
        }
    }
    return nearest;
}

void lookahead_known_widened(struct attach_known *loop, struct attach_known *other)
{
    for (unsigned i = 0; i < loop->ahead.word_count; i++) {
        loop->steady[i] &= ~varying_mask(&loop->varies, loop->words[i].address);
    }
    notes[other - loops].used = 0;
}

void lookahead_known_enter(struct attach_known *loop, uint64_t iterations, struct attach_ahead *ahead_out)
{
    notes[loop - loops].users++;
    loop->given = iterations;
    attach_ahead_copy(ahead_out, &loop->ahead);
    ahead_out->iterations = iterations;
}

bool lookahead_words_differ(const struct attach_loop_word *words, unsigned count)
{
    uint64_t now;
    unsigned i = 0;
    while (i < count && is_there(&words[i], words[i].mask, &now)) {
        i++;
    }
    return i < count;
}

bool lookahead_known_is_used(unsigned place)
{
    bool is_used = false;
    for (EACH_OF(place, i)) {
        is_used = is_used || notes[i].users != 0;
    }
    return is_used;
}

void lookahead_known_forget(unsigned place)
{
    for (EACH_OF(place, i)) {
        loops[i].ahead.count = 0;
        notes[i].used = notes[i].differed.mask = 0;
    }
}

void lookahead_known_leave(const struct attach_known *loop)
{
    notes[loop - loops].users--;
}

// The child has none of the threads that were in a loop.
void world_lookahead_forked(void)
{
    for (unsigned i = 0; i < LOOPS; i++) {
        notes[i].users = 0;
    }
}
