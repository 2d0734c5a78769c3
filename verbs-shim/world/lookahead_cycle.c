// Finds out after how many polls the program is again where it was. A program may do other things before it comes to such
// a loop; so the state with which later ones are compared, the base, moves on after 1, 2, 4, ... polls (Brent's search for
// a cycle).
// If only counters differ, or it reads clocks, the loop may repeat (lookahead_vary.c): one that does something else every
// eighth time is told so from eight times as many polls.
#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/world.h"

enum { LONG_WAIT = 256 }; // polls, for which more instructions are interpreted

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
    known->varies = candidate->varies;
    return lookahead_vary(caller, borders, candidate->polls, candidate->period_ps, ahead, known);
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
        ahead->unknown_at = search->run.state.rip;
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
    search->known->varies = (struct lookahead_varies){0};
    search->known->bounds.timed = false;
    search->known->bounds.asked = search->run.asked;
}

// Nothing has changed since the base, or, if no loop is known yet, counters and clocks alone: one may begin there.
static bool begins_later(struct search *search)
{
    struct lookahead_counter counters[LOOKAHEAD_COUNTERS];
    if (search->lead == 0) {
        return false;
    }
    unsigned count = lookahead_differs(&search->run, &search->base, INTERPRET_BASE, counters);
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
        lookahead_changes_note(ahead, borders, caller->rsp);
        struct lookahead_candidate candidate = {.polls = ahead->count, .period_ps = search->passed_ps};
        candidate.varies.counter_count =
            poll.key == key
                ? lookahead_differs(&search->run, &search->beginning, INTERPRET_BEGINNING, candidate.varies.counters)
                : UINT32_MAX;
        bool may = candidate.varies.counter_count <= LOOKAHEAD_COUNTERS;
        bool steady = candidate.varies.counter_count == 0 && !lookahead_reads_clocks(&search->run);
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

// The values from which it varies are those that are there now.
static bool begin_here(const struct attach_caller *caller, struct lookahead_counter counters[], unsigned count)
{
    uint64_t registers[INTERPRET_REGISTERS], word;
    bool there = true;
    lookahead_registers(caller, registers);
    for (unsigned i = 0; i < count && there; i++) {
        if (counters[i].address == 0) {
            counters[i].first = registers[counters[i].number];
        } else {
            there = interpret_peek(counters[i].address, &word);
            counters[i].first = there ? lookahead_counter_value(&counters[i], word) : 0;
        }
        counters[i].other = counters[i].first;
        counters[i].modulus = counters[i].first < INTERPRET_MODULAR_MAX ? counters[i].modulus : 0;
    }
    return there;
}

static bool again(const struct attach_caller *caller, const struct attach_borders *borders,
                  struct lookahead_candidate *candidate, struct attach_ahead *ahead, struct attach_known *known)
{
    if (candidate_try(caller, borders, candidate, ahead, known)) {
        return true;
    }
    if (known->bounds.passed_ps == 0 || known->bounds.passed_ps == candidate->period_ps) {
        return false;
    }
    for (unsigned i = 0; i < candidate->varies.counter_count; i++) {
        struct lookahead_counter *counter = &candidate->varies.counters[i];
        counter->step = counter->step == candidate->period_ps ? known->bounds.passed_ps : counter->step;
    }
    candidate->period_ps = known->bounds.passed_ps; // the same polls, which take another time
    return candidate_try(caller, borders, candidate, ahead, known);
}

bool lookahead_cycle_again(const struct attach_caller *caller, const struct attach_borders *borders,
                           struct lookahead_candidate *candidate, struct attach_ahead *ahead,
                           struct attach_known *known)
{
    struct lookahead_varies *varies = &candidate->varies;
    if (!begin_here(caller, varies->counters, varies->counter_count) ||
        !begin_here(caller, varies->ranges, varies->range_count)) {
        return false;
    }
    if (again(caller, borders, candidate, ahead, known)) {
        return true;
    }
    bool wide = lookahead_is_wide(varies);
    lookahead_narrow(varies);
    return wide && again(caller, borders, candidate, ahead, known);
}
