// A loop that was found may have been known already, but for the value of a word that it compares (a number of requests that
// are still to come), for a counter that was set back, or for one that it divides by a constant. What would have to vary for
// both to be the same loop is tried (lookahead_vary.c).
#include "verbs-shim/world/lookahead_internal.h"

typedef struct lookahead_counter counter_t;

bool lookahead_is_wide(const struct lookahead_varies *varies)
{
    bool wide = varies->apart || varies->range_count > 0;
    for (unsigned i = 0; i < varies->counter_count; i++) {
        wide = wide || varies->counters[i].modulus != 0;
    }
    return wide;
}

void lookahead_narrow(struct lookahead_varies *varies)
{
    varies->apart = false;
    varies->range_count = 0;
    for (unsigned i = 0; i < varies->counter_count; i++) {
        varies->counters[i].modulus = 0;
    }
}

static bool all_known(const counter_t counters[], unsigned count)
{
    bool known = true;
    for (unsigned i = 0; i < count; i++) {
        known = known && (counters[i].clock || lookahead_counter_moved(&counters[i], counters[i].other) != INT64_MIN);
    }
    return known;
}

bool lookahead_is_known_with_others(const struct lookahead_varies *varies)
{
    return all_known(varies->counters, varies->counter_count) && all_known(varies->ranges, varies->range_count);
}

// --- what differs -----------------------------------------------------------------------------------------------------------

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// The counter of the other loop was not where this one is: it may be taken by a modulus. false: it is at another place.
static bool counter_widen(counter_t *counter, const counter_t *other)
{
    counter->other = other->first;
    if (counter->clock || other->clock) {
        return counter->clock && other->clock && counter->first == other->first;
    }
    if (lookahead_counter_moved(counter, other->first) != INT64_MIN) {
        return true;
    }
    if (lookahead_counter_moved(other, counter->first) != INT64_MIN) {
        counter->modulus = other->modulus;
        return true;
    }
    uint64_t distance = counter->first > other->first ? counter->first - other->first : other->first - counter->first;
    uint64_t modulus = common_divisor(distance, other->modulus);
    bool small = counter->first < INTERPRET_MODULAR_MAX && other->first < INTERPRET_MODULAR_MAX;
    counter->modulus = (uint32_t)modulus;
    return small && (int64_t)counter->step > 0 && modulus > counter->step && modulus % counter->step == 0;
}

static bool same_place(const counter_t *a, const counter_t *b)
{
    return a->address == b->address && a->number == b->number && a->half == b->half && a->bytes == b->bytes &&
           a->step == b->step;
}

static bool counters_widen(struct lookahead_varies *wider, const struct lookahead_varies *other)
{
    bool alike = wider->counter_count == other->counter_count;
    for (unsigned i = 0; i < wider->counter_count && alike; i++) {
        alike = same_place(&wider->counters[i], &other->counters[i]) &&
                counter_widen(&wider->counters[i], &other->counters[i]);
    }
    wider->apart = wider->counter_count > 1;
    return alike;
}

static bool is_read_whole(uint64_t address)
{
    unsigned count, i = 0;
    const struct interpret_word *words = interpret_words(&count);
    while (i < count && words[i].address != address) {
        i++;
    }
    return i < count && words[i].whole;
}

static uint64_t ranges_mask(const struct lookahead_varies *varies, uint64_t address)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < varies->range_count; i++) {
        mask |= varies->ranges[i].address == address ? lookahead_counter_mask(&varies->ranges[i]) : 0;
    }
    return mask;
}

bool lookahead_has_register(const struct lookahead_varies *varies, uint8_t number)
{
    bool has = false;
    for (unsigned i = 0; i < varies->counter_count; i++) {
        has = has || (varies->counters[i].address == 0 && varies->counters[i].number == number);
    }
    for (unsigned i = 0; i < varies->range_count; i++) {
        has = has || (varies->ranges[i].address == 0 && varies->ranges[i].number == number);
    }
    return has;
}

// Of the part of the word that has these bits. false: they are too many.
static bool range_add(struct lookahead_varies *varies, uint64_t address, uint64_t bits, uint64_t value, uint64_t other)
{
    bool whole = is_read_whole(address);
    for (unsigned half = 0; half < (whole ? 1 : 2); half++) {
        counter_t range = {.address = address, .half = (uint8_t)half, .bytes = whole ? 8 : 4, .step = 1};
        if ((bits & lookahead_counter_mask(&range)) == 0) {
            continue;
        }
        if (varies->range_count == LOOKAHEAD_RANGES) {
            return false;
        }
        range.first = lookahead_counter_value(&range, value);
        range.other = lookahead_counter_value(&range, other);
        varies->ranges[varies->range_count++] = range;
    }
    return true;
}

// Registers that differ, and those that are ranges of the other one. false: another place, or too many.
static bool registers_widen(struct lookahead_varies *wider, const struct attach_known *loop,
                            const struct attach_known *other)
{
    bool alike = loop->caller.rip == other->caller.rip && loop->caller.rsp == other->caller.rsp;
    for (unsigned i = 0; i < sizeof lookahead_preserved && alike; i++) {
        uint8_t number = lookahead_preserved[i];
        uint64_t value = lookahead_register(&loop->caller, number), was = lookahead_register(&other->caller, number);
        bool takes =
            (value != was || lookahead_has_register(&other->varies, number)) && !lookahead_has_register(wider, number);
        alike = !takes || wider->range_count < LOOKAHEAD_RANGES;
        if (takes && alike) {
            wider->ranges[wider->range_count++] =
                (counter_t){.number = number, .bytes = 8, .step = 1, .first = value, .other = was};
        }
    }
    return alike;
}

// Words that differ, and those that are ranges of the other one. false: other words, or too many.
static bool ranges_widen(struct lookahead_varies *wider, const struct attach_known *loop,
                         const struct attach_known *other)
{
    bool alike = loop->ahead.word_count == other->ahead.word_count;
    for (unsigned i = 0; i < loop->ahead.word_count && alike; i++) {
        uint64_t address = loop->words[i].address, value = loop->words[i].value, was = other->words[i].value;
        uint64_t bits = ((value ^ was) & loop->steady[i] & other->steady[i]) |
                        (ranges_mask(&other->varies, address) & loop->words[i].mask);
        bits &= ~ranges_mask(wider, address);
        alike = address == other->words[i].address && (bits == 0 || range_add(wider, address, bits, value, was));
    }
    return alike;
}

static bool same_polls(const struct attach_ahead *a, const struct attach_ahead *b)
{
    bool same = a->count == b->count;
    for (unsigned i = 0; i < a->count && same; i++) {
        same = a->polls[i].key == b->polls[i].key && a->polls[i].own_ps == b->polls[i].own_ps;
    }
    return same;
}

static bool is_wider(const struct lookahead_varies *than, const struct lookahead_varies *varies)
{
    bool wider = varies->range_count > than->range_count || varies->apart != than->apart;
    for (unsigned i = 0; i < varies->counter_count; i++) {
        wider = wider || varies->counters[i].modulus != than->counters[i].modulus;
    }
    return wider;
}

bool lookahead_wider(const struct attach_known *loop, const struct attach_known *other,
                     struct lookahead_varies *wider_out)
{
    *wider_out = loop->varies;
    return same_polls(&loop->ahead, &other->ahead) && counters_widen(wider_out, &other->varies) &&
           registers_widen(wider_out, loop, other) && ranges_widen(wider_out, loop, other) &&
           is_wider(&loop->varies, wider_out);
}
