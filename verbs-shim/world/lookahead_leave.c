// A thread that leaves a known loop at another poll than that from which it looked comes there in one of two ways. If the
// loop meets nothing but its own memory, the thread makes the last polls itself, with that memory as it was then, and each
// finds nothing. Else they are interpreted, and it goes on with the registers and memory that this gives.
#include <string.h>

#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/world.h"

enum { RED_ZONE_BYTES = 128 };

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
    uint64_t mask = lookahead_counter_mask(counter),
             by = (word->now & mask) - (word->since[INTERPRET_BEGINNING].value & mask);
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
        const struct lookahead_counter *counter = lookahead_counter_at(loop, word->address);
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
        mask &= counter != NULL ? ~lookahead_counter_mask(counter) : UINT64_MAX;
        uint64_t others = counter != NULL ? counter_moved(counter, word, now) : now;
        to->words[to->count].address = word->address;
        to->words[to->count++].value = (others & ~mask) | (word->now & mask);
    }
    return true;
}

// Counters are where they are after so many iterations. Registers: of the caller.
static void counters_advance(struct attach_known *loop, struct attach_caller *caller, uint64_t iterations)
{
    uint64_t *const registers[] = {&caller->rbx, &caller->rbp, &caller->r12, &caller->r13, &caller->r14, &caller->r15};
    for (unsigned i = 0; i < loop->varies.counter_count; i++) {
        const struct lookahead_counter *counter = &loop->varies.counters[i];
        uint64_t by = counter->step * iterations;
        if (counter->address == 0) {
            for (unsigned r = 0; r < sizeof lookahead_preserved; r++) {
                *registers[r] += lookahead_preserved[r] == counter->number ? by : 0;
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
    for (unsigned i = 0; i < loop->varies.counter_count; i++) {
        const struct lookahead_counter *counter = &loop->varies.counters[i];
        if (counter->address != 0) {
            uint64_t value =
                lookahead_counter_value(counter, interpret_now(counter->address)) + counter->step * iterations;
            interpret_preset(counter->address, value << (counter->bytes == 8 ? 0 : 32 * counter->half),
                             lookahead_counter_mask(counter));
        }
    }
}

// When an iteration began of which so many polls have passed, the last of which ended at left_ps.
static uint64_t began_ps(const struct attach_known *loop, unsigned polls, uint64_t left_ps)
{
    for (unsigned i = 0; i < polls; i++) {
        left_ps -= loop->ahead.polls[i % loop->ahead.count].own_ps;
    }
    return left_ps;
}

// From the beginning of an iteration on, over so many polls, to the one at which the thread has left the loop.
static bool left_at(struct attach_known *loop, const struct attach_caller *caller, const struct attach_borders *borders,
                    uint64_t iterations, unsigned polls, uint64_t from_ps, struct attach_resume *to,
                    enum attach_left_by *by_out)
{
    interpret_begin();
    words_preset(loop, iterations);
    struct lookahead_run run = lookahead_begin(caller, borders, from_ps, 0, 2 * LOOKAHEAD_INSTRUCTIONS_LONG);
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

// --- making its last polls once more ---------------------------------------------------------------------------------

// Words that have changed since the loop read them, and what they are now.
enum { HELD_WORDS = 64 };
static struct {
    uint64_t address, now, mask; // mask: of the bytes that have changed; the thread may write others meanwhile
} held[HELD_WORDS];
static unsigned held_count;

void lookahead_words_give_back(void)
{
    while (held_count > 0) {
        uint64_t current, mask = held[--held_count].mask;
        if (interpret_peek(held[held_count].address, &current)) {
            (void)interpret_poke(held[held_count].address, (current & ~mask) | (held[held_count].now & mask));
        }
    }
}

static bool hold(uint64_t address, uint64_t now, uint64_t before)
{
    bool done = held_count < HELD_WORDS && interpret_poke(address, before);
    if (done) {
        held[held_count].address = address;
        held[held_count].mask = changed_bytes(now, before);
        held[held_count++].now = now;
    }
    return done;
}

// Are the counters in this word where the loop has left them? Others may have counted as well. Takes them out of the mask.
static bool counters_are_there(const struct attach_known *loop, const struct attach_loop_word *word, uint64_t now,
                               uint64_t iterations, uint64_t *mask)
{
    bool there = true;
    for (unsigned i = 0; i < loop->varies.counter_count; i++) {
        const struct lookahead_counter *counter = &loop->varies.counters[i];
        if (counter->address == word->address) {
            uint64_t was = lookahead_counter_value(counter, word->value) + counter->step * iterations;
            there = there && lookahead_counter_value(counter, now) == (counter->bytes == 8 ? was : (uint32_t)was);
            *mask &= ~lookahead_counter_mask(counter);
        }
    }
    return there;
}

// Memory is as the loop read it, after so many iterations. Counters are that already. No other thread runs until
// words_give_back, and no device writes.
static bool words_hold(struct attach_known *loop, uint64_t iterations)
{
    bool all = true;
    for (unsigned i = 0; i < loop->ahead.word_count && all; i++) {
        const struct attach_loop_word *word = &loop->words[i];
        uint64_t now, mask = word->mask;
        all = interpret_peek(word->address, &now) && counters_are_there(loop, word, now, iterations, &mask);
        if (all && ((now ^ word->value) & mask) != 0) {
            all = hold(word->address, now, (now & ~mask) | (word->value & mask));
        }
    }
    if (!all) {
        lookahead_words_give_back();
    }
    return all;
}

// What else the loop meets is as it was: no kernel is asked, and a library's function finds nothing without looking.
static bool may_be_made_again(const struct attach_known *loop)
{
    bool plain = !loop->bounds.asked && !loop->ahead.outside && attach_environment()->computes == 0;
    for (unsigned i = 0; i < loop->ahead.count && plain; i++) {
        plain = loop->ahead.polls[i].plain;
    }
    return plain;
}

// The last iteration is made again, too, if there was one: what it writes may be read later.
enum attach_left_how lookahead_leave(struct attach_known *loop, struct attach_caller *caller,
                                     const struct attach_borders *borders, const struct attach_left_at *at,
                                     struct attach_resume *resume_out, enum attach_left_by *by_out,
                                     struct attach_left_makes *makes_out)
{
    bool again = at->iterations > 0;
    unsigned polls = (again ? loop->ahead.count : 0) + at->poll;
    uint64_t before = at->iterations - again, from_ps = began_ps(loop, polls, at->at_ps);
    counters_advance(loop, caller, before);
    if (polls == 0) {
        return ATTACH_LEFT_HERE;
    }
    if (may_be_made_again(loop) && words_hold(loop, before)) {
        *makes_out = (struct attach_left_makes){polls, loop->ahead.polls, loop->ahead.count, from_ps};
        return ATTACH_LEFT_MAKES;
    }
    return left_at(loop, caller, borders, before, polls, from_ps, resume_out, by_out) ? ATTACH_LEFT_ELSEWHERE
                                                                                      : ATTACH_LEFT_HERE;
}
