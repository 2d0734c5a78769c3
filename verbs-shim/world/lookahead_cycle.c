// Finds out after how many polls the program is again where it was. A program may do other things before it comes to such
// a loop; so the state with which later ones are compared, the base, moves on after 1, 2, 4, ... polls (Brent's search for
// a cycle).
//
// If only counters differ - some registers and words - or it reads clocks, these polls are interpreted once more with the
// values that vary (interpret_vary.h): so it is known for how many iterations the program goes the same way. A loop that
// does something else every eighth time is told so from eight times as many polls.
#include <string.h>

#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/world.h"

enum {
    STACK_BYTES = 1 << 20,
    THREAD_BYTES = 1 << 14,
    LIBRARY_BYTES = 1 << 12,
    RED_ZONE_BYTES = 128,
    LONG_WAIT = 256
}; // LONG_WAIT: polls, for which more instructions are interpreted

typedef struct lookahead_counter counter_t;

static const uint8_t saved[] = {INTERPRET_RBX, INTERPRET_RBP, INTERPRET_R12,
                                INTERPRET_R13, INTERPRET_R14, INTERPRET_R15};

// The stack below a call that has returned holds no values (3.2.2): what is read there, padding for example, means
// nothing.
bool lookahead_is_input(const struct interpret_word *word, enum interpret_point point, uint64_t stack)
{
    return word->since[point].read != 0 &&
           (word->address >= stack || word->address < interpret_lowest_stack() - RED_ZONE_BYTES);
}

// Of the thread alone: its stack, the variables that each thread has, and behind them what the C library knows of it.
static bool is_of_thread(uint64_t address, uint64_t stack)
{
    uint64_t variables = (uintptr_t)__builtin_thread_pointer() - THREAD_BYTES;
    return address - (stack - STACK_BYTES) < 2 * (uint64_t)STACK_BYTES ||
           address - variables < THREAD_BYTES + LIBRARY_BYTES;
}

// --- what differs -----------------------------------------------------------------------------------------------------------

// What has changed since that point, as counters. Returns their number; more than LOOKAHEAD_COUNTERS: it is not the same
// place of the program, or too much.
static unsigned differs(const struct lookahead_run *run, const struct interpret_state *before,
                        enum interpret_point point, counter_t counters_out[LOOKAHEAD_COUNTERS])
{
    const struct interpret_state *state = &run->state;
    uint64_t stack = before->registers[INTERPRET_RSP];
    unsigned count = 0, word_count;
    if (state->rip != before->rip || state->registers[INTERPRET_RSP] != stack) {
        return LOOKAHEAD_COUNTERS + 1;
    }
    for (unsigned i = 0; i < sizeof saved; i++) {
        uint64_t step = state->registers[saved[i]] - before->registers[saved[i]];
        if (step != 0 && count++ < LOOKAHEAD_COUNTERS) {
            counters_out[count - 1] =
                (counter_t){.number = saved[i], .bytes = 8, .step = step, .first = before->registers[saved[i]]};
        }
    }
    const struct interpret_word *words = interpret_words(&word_count);
    for (unsigned i = 0; i < word_count && count <= LOOKAHEAD_COUNTERS; i++) {
        const struct interpret_word *word = &words[i];
        const struct interpret_since *since = &word->since[point];
        uint64_t changed = (word->now ^ since->value) & lookahead_mask(since->read);
        if (changed == 0 || !lookahead_is_input(word, point, stack) || lookahead_is_own(run->borders, word->address)) {
            continue;
        }
        for (unsigned half = 0; half < 2; half++) {
            unsigned shift = word->whole ? 0 : 32 * half, bytes = word->whole ? 8 : 4;
            bool in = word->whole ? half == 0 : (uint32_t)(changed >> shift) != 0;
            if (in && count++ < LOOKAHEAD_COUNTERS) {
                uint64_t first = since->value >> shift, step = (word->now >> shift) - first;
                counters_out[count - 1] = (counter_t){.address = word->address,
                                                      .half = (uint8_t)half,
                                                      .bytes = (uint8_t)bytes,
                                                      .step = bytes == 8 ? step : (uint64_t)(int32_t)step,
                                                      .first = bytes == 8 ? first : (uint32_t)first};
            }
        }
    }
    return count;
}

uint64_t lookahead_iterations(const struct attach_ahead *ahead, uint64_t now_ps, uint64_t until_ps,
                              uint64_t iteration_ps)
{
    for (unsigned i = 0; i < ahead->count; i++) {
        until_ps = ahead->polls[i].until_ps < until_ps ? ahead->polls[i].until_ps : until_ps;
    }
    if (until_ps <= now_ps) {
        return 0;
    }
    return until_ps == UINT64_MAX || iteration_ps == 0 ? UINT64_MAX : (until_ps - now_ps) / iteration_ps;
}

// Others may look at it to know what the thread does: a lock, or memory that processes share. Of a word that is written by
// plain instructions the threads of a process know only what a lock orders.
static bool is_for_others(const struct interpret_word *word)
{
    return word->atomic || world_shared_has(word->address);
}

static void change_note(struct attach_loop_changes *changes, uint64_t address)
{
    unsigned known = changes->count < ATTACH_LOOP_CHANGES ? changes->count : ATTACH_LOOP_CHANGES, i = 0;
    while (i < known && changes->addresses[i] != address) {
        i++;
    }
    if (i == ATTACH_LOOP_CHANGES) {
        changes->count = ATTACH_LOOP_CHANGES + 1;
    } else if (i == known) {
        changes->addresses[changes->count++] = address;
    }
}

// At a poll: notes what is not as it was in the beginning. steady: nothing of that is for others, counters left out.
static void changes_note(struct attach_ahead *ahead, const struct attach_borders *borders, uint64_t stack)
{
    unsigned count;
    const struct interpret_word *words = interpret_words(&count);
    for (unsigned i = 0; i < count && !borders->alone; i++) {
        const struct interpret_since *since = &words[i].since[INTERPRET_BEGINNING];
        if (since->written == 0 || words[i].now == since->value) {
            continue;
        }
        bool counts = interpret_vary_is_on() && (interpret_vary_of_word(words[i].address, 0).kind == INTERPRET_LINEAR ||
                                                 interpret_vary_of_word(words[i].address, 1).kind == INTERPRET_LINEAR);
        if (((words[i].now ^ since->value) & lookahead_mask(since->written)) != 0 &&
            !is_of_thread(words[i].address, stack) && !lookahead_is_own(borders, words[i].address)) {
            change_note(&ahead->changes, words[i].address);
            ahead->steady = ahead->steady && (counts || !is_for_others(&words[i]));
        }
    }
}

// --- with what varies -------------------------------------------------------------------------------------------------------

static struct interpret_vary vary_of(const counter_t *counter)
{
    return interpret_linear(counter->step, counter->bytes);
}

static bool same(struct interpret_vary a, struct interpret_vary b)
{
    return a.kind == b.kind && a.step == b.step;
}

// The counters have changed by what was assumed, in each iteration, and nothing else has that the loop depends on.
static bool is_confirmed(const struct lookahead_run *run, const struct interpret_state *before,
                         const counter_t *counters, unsigned count)
{
    counter_t now[LOOKAHEAD_COUNTERS];
    bool confirmed = differs(run, before, INTERPRET_BEGINNING, now) == count;
    for (unsigned i = 0; i < count && confirmed; i++) {
        const counter_t *counter = &counters[i];
        struct interpret_vary vary = counter->address != 0 ? interpret_vary_of_word(counter->address, counter->half)
                                                           : interpret_vary_of_register(counter->number);
        confirmed = now[i].address == counter->address && now[i].number == counter->number &&
                    now[i].step == counter->step && same(vary, vary_of(counter));
    }
    // All others that are read before they are written are the same in each iteration.
    unsigned word_count;
    const struct interpret_word *words = interpret_words(&word_count);
    for (unsigned i = 0; i < word_count && confirmed; i++) {
        for (unsigned half = 0; half < 2; half++) {
            struct interpret_vary vary = interpret_vary_of_word(words[i].address, half);
            bool counts = false;
            for (unsigned c = 0; c < count; c++) {
                counts = counts || (counters[c].address == words[i].address && counters[c].half == half);
            }
            unsigned read = words[i].since[INTERPRET_BEGINNING].read >> 4 * half & (vary.bytes == 8 ? 0xff : 0xf);
            confirmed =
                confirmed && (vary.kind == INTERPRET_STEADY || counts || read == 0 ||
                              lookahead_is_own(run->borders, words[i].address) ||
                              !lookahead_is_input(&words[i], INTERPRET_BEGINNING, before->registers[INTERPRET_RSP]));
        }
    }
    for (unsigned i = 0; i < sizeof saved && confirmed; i++) {
        bool counts = false;
        for (unsigned c = 0; c < count; c++) {
            counts = counts || (counters[c].address == 0 && counters[c].number == saved[i]);
        }
        confirmed = counts || interpret_vary_of_register(saved[i]).kind == INTERPRET_STEADY;
    }
    return confirmed;
}

// `polls` polls from the beginning on, if `counters` change by `step` in them. true: they repeat, for ahead->iterations.
static bool vary(const struct attach_caller *caller, const struct attach_borders *borders, unsigned polls,
                 uint64_t period_ps, struct attach_ahead *ahead, struct attach_known *known)
{
    interpret_begin();
    interpret_vary_begin();
    for (unsigned i = 0; i < known->counter_count; i++) {
        const counter_t *counter = &known->counters[i];
        if (counter->address != 0) {
            interpret_vary_word(counter->address, counter->half, vary_of(counter));
        } else {
            interpret_vary_register(counter->number, vary_of(counter));
        }
    }
    uint64_t began_ps = *borders->now_ps + *borders->tail_ps, passed_ps = 0;
    struct lookahead_run run = lookahead_begin(caller, borders, began_ps, period_ps, LOOKAHEAD_INSTRUCTIONS_LONG);
    const struct interpret_state before = run.state;
    interpret_vary_word((uintptr_t)borders->now_ps, 0, interpret_linear(period_ps, 8));
    attach_ahead_begin(ahead, ATTACH_AHEAD_UNKNOWN);
    ahead->steady = true;
    bool idle = true;
    while (idle && ahead->count < polls) {
        struct attach_ahead_poll poll;
        idle = lookahead_run(&run) == LOOKAHEAD_POLL && lookahead_describe(&run, &poll) == ATTACH_IDLE;
        if (idle) {
            ahead->outside = ahead->outside || run.asked || run.state.rip == borders->poll_call;
            ahead->polls[ahead->count++] = poll;
            passed_ps += poll.own_ps;
            lookahead_pass(&run, poll.own_ps);
            changes_note(ahead, borders, caller->rsp);
        }
    }
    ahead->reason = run.reason;
    // Clocks that rise by less than was assumed bound no less. The thread's time itself has to rise by just that.
    bool in_time =
        passed_ps == run.period_ps || (passed_ps < run.period_ps && !interpret_was_read((uintptr_t)borders->now_ps));
    bool repeats = idle && in_time && is_confirmed(&run, &before, known->counters, known->counter_count);
    known->passed_ps = idle ? passed_ps : 0;
    uint64_t idle_iterations = lookahead_iterations(ahead, began_ps, UINT64_MAX, passed_ps);
    known->counted = interpret_vary_iterations();
    ahead->iterations = idle_iterations < known->counted ? idle_iterations : known->counted;
    known->timed = lookahead_reads_clocks(&run);
    known->asked = run.asked;
    known->until_ps = began_ps + (ahead->iterations < UINT64_MAX / 2 / (passed_ps + 1) ? ahead->iterations * passed_ps
                                                                                       : UINT64_MAX / 2);
    interpret_vary_end();
    ahead->kind = ATTACH_AHEAD_REPEATS;
    return repeats && ahead->iterations > 0;
}

// --- the search -------------------------------------------------------------------------------------------------------------

enum { OF_SEARCH, OF_CANDIDATE }; // copies of memory (interpret_select)

// In it while it is known: nothing of the program is called, and the state of this search is not moved.
struct search {
    struct lookahead_run run;
    struct interpret_state beginning, base;
    unsigned lead;  // polls before the base
    bool later;     // a loop begins at the base
    unsigned first; // polls of the first candidate; 0: none
    uint64_t began_ps, passed_ps;
    struct attach_ahead *ahead;
    struct attach_known *known;
    struct lookahead_candidate *best;
    uint64_t best_polls; // of which it tells; 0: there is none
};

// Few polls, and the first candidate's number of polls times 1, 2, 4, ...
static bool is_worth_it(unsigned first, unsigned polls)
{
    enum { FEW = 8 };
    unsigned times = polls / first;
    return polls <= FEW || (polls % first == 0 && (times & (times - 1)) == 0);
}

static bool candidate_try(const struct attach_caller *caller, const struct attach_borders *borders,
                          const struct lookahead_candidate *candidate, struct attach_ahead *ahead,
                          struct attach_known *known)
{
    interpret_select(OF_CANDIDATE);
    known->counter_count = candidate->counter_count;
    memcpy(known->counters, candidate->counters, sizeof known->counters);
    return vary(caller, borders, candidate->polls, candidate->period_ps, ahead, known);
}

uint64_t lookahead_told(const struct attach_ahead *ahead)
{
    return ahead->iterations > INTERPRET_ITERATIONS_MAX ? INTERPRET_ITERATIONS_MAX : ahead->iterations * ahead->count;
}

// Only the counters of `candidate` have changed so far. true: that they do tells of enough polls.
static bool candidate_tells(struct search *search, const struct attach_caller *caller,
                            const struct lookahead_candidate *candidate, uint64_t enough)
{
    struct attach_ahead repeating;
    search->first = search->first == 0 ? candidate->polls : search->first;
    if (!is_worth_it(search->first, candidate->polls)) {
        return false;
    }
    bool repeats = candidate_try(caller, search->run.borders, candidate, &repeating, search->known);
    uint64_t told = repeats ? lookahead_told(&repeating) : 0;
    if (told > search->best_polls) {
        *search->best = *candidate;
        search->best_polls = told;
    }
    if (told >= enough) {
        attach_ahead_copy(search->ahead, &repeating);
        return true;
    }
    interpret_select(OF_SEARCH);
    return false;
}

// The next poll is described, and finds nothing. false: the search is over.
static bool poll_next(struct search *search, uint64_t wanted, struct attach_ahead_poll *poll_out)
{
    struct attach_ahead *ahead = search->ahead;
    enum lookahead_stop stop = lookahead_run(&search->run);
    bool more = stop == LOOKAHEAD_POLL && ahead->count < ATTACH_AHEAD_POLLS && ahead->count < wanted;
    enum attach_idle idle = more ? lookahead_describe(&search->run, poll_out) : ATTACH_IDLE_UNKNOWN;
    if (idle != ATTACH_IDLE) {
        bool ends = stop == LOOKAHEAD_CALL || idle == ATTACH_FINDS || ahead->count > 1;
        ahead->kind = ends ? ATTACH_AHEAD_ENDS : ATTACH_AHEAD_UNKNOWN;
        ahead->reason = stop == LOOKAHEAD_POLL ? "a poll that may do more, or too many" : search->run.reason;
        return false;
    }
    ahead->outside = ahead->outside || search->run.asked || search->run.state.rip == search->run.borders->poll_call;
    ahead->polls[ahead->count++] = *poll_out;
    search->passed_ps += poll_out->own_ps;
    lookahead_pass(&search->run, poll_out->own_ps);
    return true;
}

// Nothing has changed since the beginning: what was interpreted repeats.
static void repeats(struct search *search)
{
    struct attach_ahead *ahead = search->ahead;
    ahead->kind = ATTACH_AHEAD_REPEATS;
    ahead->iterations = lookahead_iterations(ahead, search->began_ps, UINT64_MAX, search->passed_ps);
    search->known->counter_count = 0;
    search->known->counted = UINT64_MAX;
    search->known->timed = false;
    search->known->asked = search->run.asked;
}

// Nothing has changed since the base, or, if no loop is known yet, counters and clocks alone: one may begin there.
static bool begins_later(struct search *search)
{
    counter_t counters[LOOKAHEAD_COUNTERS];
    if (search->lead == 0) {
        return false;
    }
    unsigned count = differs(&search->run, &search->base, INTERPRET_BASE, counters);
    bool may =
        search->best_polls == 0 ? count <= LOOKAHEAD_COUNTERS : count == 0 && !lookahead_reads_clocks(&search->run);
    if (!may) {
        return false;
    }
    search->ahead->kind = ATTACH_AHEAD_ENDS;
    search->ahead->count = search->lead;
    search->later = true;
    return true;
}

static void search(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                   const struct lookahead_wanted *wanted, struct search *search)
{
    struct attach_ahead *ahead = search->ahead;
    unsigned instructions = wanted->polls > LONG_WAIT ? LOOKAHEAD_INSTRUCTIONS_LONG : LOOKAHEAD_INSTRUCTIONS;
    search->began_ps = *borders->now_ps + *borders->tail_ps;
    interpret_select(OF_SEARCH);
    interpret_begin();
    search->run = lookahead_begin(caller, borders, search->began_ps, 0, instructions);
    search->beginning = search->base = search->run.state;
    attach_ahead_begin(ahead, ATTACH_AHEAD_UNKNOWN);
    ahead->steady = true;
    struct attach_ahead_poll poll;
    while (poll_next(search, wanted->polls, &poll)) {
        changes_note(ahead, borders, caller->rsp);
        struct lookahead_candidate candidate = {.polls = ahead->count, .period_ps = search->passed_ps};
        candidate.counter_count =
            poll.key == key ? differs(&search->run, &search->beginning, INTERPRET_BEGINNING, candidate.counters)
                            : UINT32_MAX;
        bool may = candidate.counter_count <= LOOKAHEAD_COUNTERS;
        bool steady = candidate.counter_count == 0 && !lookahead_reads_clocks(&search->run);
        if (steady) {
            repeats(search);
            return;
        }
        if ((may && candidate_tells(search, caller, &candidate, wanted->enough)) || begins_later(search)) {
            return;
        }
        if ((ahead->count & (ahead->count - 1)) == 0) {
            search->lead = ahead->count;
            search->base = search->run.state;
            interpret_rebase();
        }
    }
}

bool lookahead_cycle(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                     const struct lookahead_wanted *wanted, struct attach_ahead *ahead, struct attach_known *known,
                     struct lookahead_candidate *candidate_out)
{
    static struct search one; // one thread of the process runs at a time
    one = (struct search){.ahead = ahead, .known = known, .best = candidate_out};
    candidate_out->polls = 0;
    search(caller, key, borders, wanted, &one);
    struct attach_ahead repeating;
    if (ahead->kind != ATTACH_AHEAD_REPEATS && one.best_polls > ahead->count &&
        candidate_try(caller, borders, candidate_out, &repeating, known)) {
        attach_ahead_copy(ahead, &repeating);
    }
    return one.later && ahead->kind == ATTACH_AHEAD_ENDS;
}

bool lookahead_cycle_again(const struct attach_caller *caller, const struct attach_borders *borders,
                           struct lookahead_candidate *candidate, struct attach_ahead *ahead,
                           struct attach_known *known)
{
    uint64_t registers[INTERPRET_REGISTERS], word;
    lookahead_registers(caller, registers);
    for (unsigned i = 0; i < candidate->counter_count; i++) {
        counter_t *counter = &candidate->counters[i];
        if (counter->address == 0) {
            counter->first = registers[counter->number];
        } else if (interpret_peek(counter->address, &word)) {
            counter->first = lookahead_counter_value(counter, word);
        } else {
            return false;
        }
    }
    if (candidate_try(caller, borders, candidate, ahead, known)) {
        return true;
    }
    if (known->passed_ps == 0 || known->passed_ps == candidate->period_ps) {
        return false;
    }
    candidate->period_ps = known->passed_ps; // the same polls, which take another time
    return candidate_try(caller, borders, candidate, ahead, known);
}
