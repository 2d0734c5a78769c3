// What varies in a loop of polls. If only counters differ - some registers and words - or it reads clocks, the polls of an
// iteration are interpreted once more with the values that vary (interpret_vary.h): so it is known for how many iterations
// the program goes the same way. And for which other values of a word, if it is only compared: a number of requests that
// are still to come.
#include "verbs-shim/world/lookahead_internal.h"
#include "verbs-shim/world/world.h"

enum { STACK_BYTES = 1 << 20, THREAD_BYTES = 1 << 14, LIBRARY_BYTES = 1 << 12, RED_ZONE_BYTES = 128 };

typedef struct lookahead_counter counter_t;

// Sources.
enum { OF_RANGES = INTERPRET_OTHERS, OF_COUNTERS_APART = OF_RANGES + LOOKAHEAD_RANGES };
_Static_assert(OF_COUNTERS_APART + LOOKAHEAD_COUNTERS == INTERPRET_SOURCES, "each has one");

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

unsigned lookahead_differs(const struct lookahead_run *run, const struct interpret_state *before,
                           enum interpret_point point, counter_t counters_out[LOOKAHEAD_COUNTERS])
{
    const struct interpret_state *state = &run->state;
    uint64_t stack = before->registers[INTERPRET_RSP];
    unsigned count = 0, word_count;
    if (state->rip != before->rip || state->registers[INTERPRET_RSP] != stack) {
        return LOOKAHEAD_COUNTERS + 1;
    }
    for (unsigned i = 0; i < sizeof lookahead_preserved; i++) {
        uint64_t step = state->registers[lookahead_preserved[i]] - before->registers[lookahead_preserved[i]];
        if (step != 0 && count++ < LOOKAHEAD_COUNTERS) {
            counters_out[count - 1] = (counter_t){.number = lookahead_preserved[i],
                                                  .bytes = 8,
                                                  .step = step,
                                                  .first = before->registers[lookahead_preserved[i]]};
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
        bool whole = word->whole && (since->read & 0x0f) != 0 && (since->read & 0xf0) != 0;
        for (unsigned half = 0; half < 2; half++) {
            unsigned shift = whole ? 0 : 32 * half, bytes = whole ? 8 : 4;
            bool in = whole ? half == 0 : (uint32_t)(changed >> shift) != 0;
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
        uint64_t due_ps = ahead->polls[i].until_ps; // a poll that ends then does something
        until_ps = due_ps != UINT64_MAX && due_ps <= until_ps ? due_ps - (due_ps > 0) : until_ps;
    }
    if (until_ps <= now_ps) {
        return 0;
    }
    return until_ps == UINT64_MAX || iteration_ps == 0 ? UINT64_MAX : (until_ps - now_ps) / iteration_ps;
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

// It moves in each iteration.
static bool is_count(struct interpret_vary vary)
{
    return vary.kind == INTERPRET_LINEAR && (vary.source < OF_RANGES || vary.source >= OF_COUNTERS_APART);
}

void lookahead_changes_note(struct attach_ahead *ahead, const struct attach_borders *borders, uint64_t stack)
{
    unsigned count;
    const struct interpret_word *words = interpret_words(&count);
    for (unsigned i = 0; i < count && !borders->alone; i++) {
        const struct interpret_since *since = &words[i].since[INTERPRET_BEGINNING];
        if (since->written == 0 || words[i].now == since->value) {
            continue;
        }
        bool counts = interpret_vary_is_on() && (is_count(interpret_vary_of_word(words[i].address, 0)) ||
                                                 is_count(interpret_vary_of_word(words[i].address, 1)));
        if (((words[i].now ^ since->value) & lookahead_mask(since->written)) != 0 &&
            !is_of_thread(words[i].address, stack) && !lookahead_is_own(borders, words[i].address)) {
            change_note(&ahead->changes, words[i].address);
            ahead->steady = ahead->steady && (counts || !world_shared_has(words[i].address));
        }
    }
}

// --- with what varies -------------------------------------------------------------------------------------------------------

static unsigned counter_source(const struct lookahead_varies *varies, unsigned counter)
{
    unsigned own = varies->apart ? OF_COUNTERS_APART + counter : (unsigned)INTERPRET_COUNTERS;
    return varies->counters[counter].clock ? (unsigned)INTERPRET_CLOCKS : own;
}

static struct interpret_vary vary_of(const counter_t *counter, unsigned source)
{
    struct interpret_vary vary = interpret_linear(counter->step, counter->bytes);
    vary.source = (uint8_t)source;
    vary.modulus = counter->modulus;
    return vary;
}

// As it is by now.
static struct interpret_vary vary_at(const counter_t *counter)
{
    return counter->address != 0 ? interpret_vary_of_word(counter->address, counter->half)
                                 : interpret_vary_of_register(counter->number);
}

static bool same(struct interpret_vary a, struct interpret_vary b)
{
    return a.kind == b.kind && a.step == b.step && a.source == b.source && a.modulus == b.modulus;
}

// Is it by now what was assumed? A word of which a half was written has its halves, each with a value of its own.
static bool is_as_assumed(const counter_t *counter, unsigned source)
{
    const struct interpret_vary now = vary_at(counter);
    return same(now, vary_of(counter, source)) && (counter->address == 0 || now.bytes == counter->bytes);
}

// It is a counter, or has another value in all iterations.
static bool varies_as_assumed(const struct lookahead_varies *varies, uint64_t address, unsigned half)
{
    bool assumed = false;
    for (unsigned i = 0; i < varies->counter_count; i++) {
        const counter_t *counter = &varies->counters[i];
        assumed = assumed || (counter->address == address && counter->half == half);
    }
    for (unsigned i = 0; i < varies->range_count; i++) {
        const counter_t *range = &varies->ranges[i];
        assumed = assumed || (range->address == address && range->half == half && is_as_assumed(range, OF_RANGES + i));
    }
    return assumed;
}

// It may be another value than is there now, and still the same in each iteration.
static bool may_be_another(const struct lookahead_varies *varies, struct interpret_vary vary)
{
    return (vary.source >= OF_RANGES && vary.source < OF_COUNTERS_APART) ||
           (vary.kind == INTERPRET_ANY && lookahead_is_wide(varies));
}

// At a poll: nothing that is made of other values is where somebody else may look.
static bool others_stay_unseen(const struct lookahead_run *run, const struct lookahead_varies *varies, uint64_t stack)
{
    unsigned count;
    bool unseen = true;
    const struct interpret_word *words = interpret_words(&count);
    for (unsigned i = 0; i < 2 * count && unseen && lookahead_is_wide(varies); i++) {
        const struct interpret_word *word = &words[i / 2];
        const struct interpret_since *since = &word->since[INTERPRET_BEGINNING];
        bool written = (since->written & 0xf << 4 * (i % 2)) != 0, same = word->now == since->value;
        unseen = !written || is_of_thread(word->address, stack) || lookahead_is_own(run->borders, word->address) ||
                 !may_be_another(varies, interpret_vary_of_word(word->address, i % 2)) ||
                 (same && varies_as_assumed(varies, word->address, i % 2));
    }
    return unseen;
}

// All words that are read before they are written are the same in each iteration, or as assumed.
static bool words_confirmed(const struct lookahead_run *run, const struct lookahead_varies *varies, uint64_t stack)
{
    unsigned count;
    bool confirmed = true;
    const struct interpret_word *words = interpret_words(&count);
    for (unsigned i = 0; i < 2 * count && confirmed; i++) {
        const struct interpret_word *word = &words[i / 2];
        struct interpret_vary vary = interpret_vary_of_word(word->address, i % 2);
        unsigned read = word->since[INTERPRET_BEGINNING].read >> 4 * (i % 2) & (vary.bytes == 8 ? 0xff : 0xf);
        confirmed = vary.kind == INTERPRET_STEADY || read == 0 || lookahead_is_own(run->borders, word->address) ||
                    varies_as_assumed(varies, word->address, i % 2) ||
                    !lookahead_is_input(word, INTERPRET_BEGINNING, stack);
    }
    return confirmed;
}

// What is only compared is at the end what it was.
static bool ranges_confirmed(const struct lookahead_varies *varies)
{
    bool confirmed = true;
    for (unsigned i = 0; i < varies->range_count && confirmed; i++) {
        const counter_t *range = &varies->ranges[i];
        confirmed = is_as_assumed(range, OF_RANGES + i);
    }
    return confirmed;
}

// All others are the same in each iteration.
static bool registers_confirmed(const struct lookahead_varies *varies)
{
    bool confirmed = true;
    for (unsigned i = 0; i < sizeof lookahead_preserved && confirmed; i++) {
        uint8_t number = lookahead_preserved[i];
        confirmed =
            interpret_vary_of_register(number).kind == INTERPRET_STEADY || lookahead_has_register(varies, number);
    }
    return confirmed;
}

// The counters have changed by what was assumed, in each iteration, and nothing else has that the loop depends on.
static bool is_confirmed(const struct lookahead_run *run, const struct interpret_state *before,
                         const struct lookahead_varies *varies)
{
    counter_t now[LOOKAHEAD_COUNTERS];
    bool confirmed = lookahead_differs(run, before, INTERPRET_BEGINNING, now) == varies->counter_count;
    for (unsigned i = 0; i < varies->counter_count && confirmed; i++) {
        const counter_t *counter = &varies->counters[i];
        confirmed = now[i].address == counter->address && now[i].number == counter->number &&
                    now[i].half == counter->half && now[i].bytes == counter->bytes && now[i].step == counter->step &&
                    is_as_assumed(counter, counter_source(varies, i));
    }
    return confirmed && words_confirmed(run, varies, before->registers[INTERPRET_RSP]) && registers_confirmed(varies) &&
           ranges_confirmed(varies);
}

static void vary_put(const counter_t *counter, struct interpret_vary vary)
{
    if (counter->address != 0) {
        interpret_vary_word(counter->address, counter->half, vary);
    } else {
        interpret_vary_register(counter->number, vary);
    }
}

// Counters that may be times are taken for such, if `wanted`. false: there are none.
static bool clocks_find(struct lookahead_varies *varies, uint64_t period_ps, bool wanted)
{
    bool any = false;
    for (unsigned i = 0; i < varies->counter_count; i++) {
        counter_t *counter = &varies->counters[i];
        bool may = counter->address != 0 && counter->bytes == 8 && counter->step == period_ps;
        counter->clock = wanted && may;
        any = any || may;
    }
    return any;
}

static void vary_begin(struct lookahead_varies *varies, uint64_t began_ps, double quotients)
{
    interpret_begin();
    interpret_vary_begin(quotients);
    for (unsigned i = 0; i < varies->counter_count; i++) {
        counter_t *counter = &varies->counters[i];
        counter->first = counter->clock ? interpret_now(counter->address) - began_ps : counter->first;
        vary_put(counter, vary_of(counter, counter_source(varies, i)));
    }
    for (unsigned i = 0; i < varies->range_count; i++) {
        const counter_t *range = &varies->ranges[i];
        vary_put(range, vary_of(range, OF_RANGES + i));
    }
}

// Returns the iterations that all counters have before them.
static uint64_t steps_take(struct lookahead_varies *varies)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < varies->counter_count; i++) {
        counter_t *counter = &varies->counters[i];
        counter->counted = interpret_vary_steps(counter_source(varies, i));
        counter->back = interpret_vary_back(counter_source(varies, i));
        least = counter->counted < least ? counter->counted : least;
    }
    for (unsigned i = 0; i < varies->range_count; i++) {
        varies->ranges[i].counted = interpret_vary_steps(OF_RANGES + i);
        varies->ranges[i].back = interpret_vary_back(OF_RANGES + i);
    }
    return least;
}

static bool has_clocks(const struct lookahead_varies *varies)
{
    bool has = false;
    for (unsigned i = 0; i < varies->counter_count; i++) {
        has = has || varies->counters[i].clock;
    }
    return has;
}

// For how long, if an iteration takes passed_ps.
static void bounds_take(const struct lookahead_run *run, uint64_t began_ps, uint64_t passed_ps,
                        struct attach_ahead *ahead, struct attach_known *known)
{
    uint64_t idle = lookahead_iterations(ahead, began_ps, UINT64_MAX, passed_ps), counters = steps_take(&known->varies),
             clocks = interpret_vary_steps(INTERPRET_CLOCKS);
    uint64_t in_time = idle < clocks ? idle : clocks;
    ahead->iterations = counters < in_time ? counters : in_time;
    known->bounds.timed = lookahead_reads_clocks(run) || has_clocks(&known->varies);
    known->bounds.asked = run->asked;
    known->bounds.until_ps =
        began_ps + (in_time < UINT64_MAX / 2 / (passed_ps + 1) ? in_time * passed_ps : UINT64_MAX / 2);
}

// quotients: those that stay as they are for fewer iterations are taken to move.
static bool vary(const struct attach_caller *caller, const struct attach_borders *borders, unsigned polls,
                 uint64_t period_ps, double quotients, struct attach_ahead *ahead, struct attach_known *known)
{
    uint64_t began_ps = *borders->now_ps + *borders->tail_ps, passed_ps = 0;
    vary_begin(&known->varies, began_ps, quotients);
    struct lookahead_run run = lookahead_begin(caller, borders, began_ps, period_ps, LOOKAHEAD_INSTRUCTIONS_LONG);
    const struct interpret_state before = run.state;
    interpret_vary_word((uintptr_t)borders->now_ps, 0, interpret_linear(period_ps, 8));
    attach_ahead_begin(ahead, ATTACH_AHEAD_UNKNOWN);
    ahead->steady = true;
    bool idle = true, unseen = true;
    while (idle && unseen && ahead->count < polls) {
        struct attach_ahead_poll poll;
        idle = lookahead_run(&run) == LOOKAHEAD_POLL && lookahead_describe(&run, &poll) == ATTACH_IDLE;
        if (idle) {
            ahead->outside = ahead->outside || run.asked || run.state.rip == borders->poll_call;
            ahead->polls[ahead->count++] = poll;
            passed_ps += poll.own_ps;
            lookahead_pass(&run, poll.own_ps);
            lookahead_changes_note(ahead, borders, caller->rsp);
            unseen = others_stay_unseen(&run, &known->varies, caller->rsp);
        }
    }
    ahead->reason = run.reason;
    // Clocks that rise by less than was assumed bound no less. The thread's time itself has to rise by just that.
    bool in_time =
        passed_ps == run.period_ps || (passed_ps < run.period_ps && !interpret_was_read((uintptr_t)borders->now_ps));
    bool repeats = idle && unseen && in_time && is_confirmed(&run, &before, &known->varies);
    known->bounds.passed_ps = idle ? passed_ps : 0;
    bounds_take(&run, began_ps, passed_ps, ahead, known);
    interpret_vary_end();
    ahead->kind = ATTACH_AHEAD_REPEATS;
    return repeats && ahead->iterations > 0;
}

// Microseconds and milliseconds of a clock: most loops compare them with a time, and go on when they move. Others depend on
// them, and are known until then.
static bool vary_any(const struct attach_caller *caller, const struct attach_borders *borders, unsigned polls,
                     uint64_t period_ps, struct attach_ahead *ahead, struct attach_known *known)
{
    const double few = INTERPRET_QUOTIENTS_FEW, many = 65536;
    return vary(caller, borders, polls, period_ps, many, ahead, known) ||
           (interpret_vary_moved_quotients(few) && vary(caller, borders, polls, period_ps, few, ahead, known));
}

// A counter that moves as the thread's time does is one for itself, unless the loop compares it with that time.
bool lookahead_vary(const struct attach_caller *caller, const struct attach_borders *borders, unsigned polls,
                    uint64_t period_ps, struct attach_ahead *ahead, struct attach_known *known)
{
    bool clocks = clocks_find(&known->varies, period_ps, false);
    return vary_any(caller, borders, polls, period_ps, ahead, known) ||
           (clocks && clocks_find(&known->varies, period_ps, true) &&
            vary_any(caller, borders, polls, period_ps, ahead, known));
}
