#include <string.h>

#include "verbs-shim/world/interpret_vary_internal.h"

struct vary_now vary_now;

void interpret_vary_begin(double quotients)
{
    memset(&vary_now, 0, sizeof vary_now);
    vary_now.on = true;
    vary_now.quotients = quotients;
    for (unsigned i = 0; i < INTERPRET_SOURCES; i++) {
        bool moves = i < INTERPRET_OTHERS;
        vary_now.steps[i] = vary_now.back[i] = moves ? (double)INTERPRET_ITERATIONS_MAX : (double)INT64_MAX;
    }
}

void interpret_vary_end(void)
{
    vary_now.on = false;
}

bool interpret_vary_moved_quotients(double iterations)
{
    return vary_now.moved >= iterations;
}

void interpret_vary_loose(void)
{
    vary_now.loose = true;
}

bool interpret_vary_is_on(void)
{
    return vary_now.on;
}

vary_t interpret_linear(uint64_t step, unsigned bytes)
{
    int64_t change = bytes == 8 ? (int64_t)step : (int32_t)step;
    return (vary_t){.kind = step == 0 ? INTERPRET_STEADY : INTERPRET_LINEAR,
                    .bytes = (uint8_t)bytes,
                    .step = (uint64_t)change,
                    .rate = change < 0 ? -(double)change : (double)change};
}

vary_t vary_linear(uint64_t step, unsigned bytes, vary_t from)
{
    vary_t vary = interpret_linear(step, bytes);
    vary.source = vary.kind == INTERPRET_STEADY ? 0 : from.source;
    vary.modulus = vary.kind == INTERPRET_STEADY ? 0 : from.modulus;
    return vary;
}

void interpret_vary_register(unsigned number, vary_t vary)
{
    vary_now.registers[number] = vary;
    vary_now.varying &= ~(1u << number);
    vary_now.varying |= vary.kind != INTERPRET_STEADY ? 1u << number : 0;
}

vary_t interpret_vary_of_register(unsigned number)
{
    return vary_now.registers[number];
}

void interpret_vary_word(uint64_t address, unsigned half, vary_t vary)
{
    interpret_memory_halves(address)->half[half] = vary;
    vary_now.words |= vary.kind != INTERPRET_STEADY ? interpret_bit_of(address) : 0;
}

vary_t interpret_vary_of_word(uint64_t address, unsigned half)
{
    return interpret_memory_halves(address)->half[half];
}

static void bound(double *least, double steps)
{
    *least = steps < *least ? (steps > 0 ? steps : 0) : *least;
}

void vary_bound(vary_t vary, double steps)
{
    bound(&vary_now.steps[vary.source], steps);
}

void vary_bound_back(vary_t vary)
{
    vary_now.back[vary.source] = 0;
}

void interpret_vary_bound(double iterations)
{
    vary_bound(steady, iterations);
}

uint64_t interpret_vary_steps(unsigned source)
{
    return (uint64_t)vary_now.steps[source];
}

uint64_t interpret_vary_back(unsigned source)
{
    return (uint64_t)vary_now.back[source];
}

#define WHOLE_MAX 1e12 // steps up to it are exact: those of words that are only compared begin at 0
// Of what is added to a value with a modulus: all instructions of an interpretation leave it below 2^31.
enum { MODULAR_OFFSET_MAX = 4096 };
// Whole numbers move by more than `distance` when what they are rounded from has moved by one more.
static const double one = 1 - 1e-6;

static double steps_of(vary_t vary, double distance)
{
    double room = vary.kind == INTERPRET_LINEAR ? distance : distance + one - vary_rounding(vary);
    double steps = vary.rate > 0 ? room / vary.rate : (double)INTERPRET_ITERATIONS_MAX;
    bool exact = vary.kind == INTERPRET_LINEAR && steps < WHOLE_MAX && distance < 0x1p53;
    return exact ? steps : steps * (1 - 1e-9);
}

// The value may move down by `down`, and up by `up`, before something changes.
void vary_bound_room(vary_t vary, double down, double up)
{
    bool falls = vary_falls(vary);
    vary_now.failed = vary_now.failed || vary.modulus != 0;
    bound(&vary_now.steps[vary.source], steps_of(vary, falls ? down : up));
    bound(&vary_now.back[vary.source], steps_of(vary, falls ? up : down));
}

// --- values -----------------------------------------------------------------------------------------------------------

bool vary_falls(vary_t vary)
{
    return vary.kind == INTERPRET_LINEAR && (int64_t)vary.step < 0;
}

static uint64_t most_of(unsigned bytes)
{
    return interpret_cut(UINT64_MAX, bytes);
}

// Of a value with a modulus. It is small: in all its widths it stays as it is.
static bool stays_small(vary_t vary, unsigned bytes)
{
    bool small = vary.modulus != 0 && bytes >= 4;
    if (small) {
        vary.modulus = 0;
        vary_bound_room(vary, 0, (double)INTERPRET_MODULAR_MAX / 2);
    }
    return small;
}

// The value stays within its width, as an unsigned number.
void vary_bound_width(vary_t vary, uint64_t value, unsigned bytes)
{
    uint64_t at = interpret_cut(value, bytes);
    if (!stays_small(vary, bytes)) {
        vary_bound_room(vary, (double)at, (double)(most_of(bytes) - at));
    }
}

// Sign extension: the value does not pass the middle of its range.
void vary_bound_sign(vary_t vary, uint64_t value, unsigned bytes)
{
    uint64_t top = UINT64_C(1) << (8 * bytes - 1);
    uint64_t at = value & (top - 1);
    if (!stays_small(vary, bytes)) {
        vary_bound_room(vary, (double)at, (double)(top - 1 - at));
    }
}

vary_t vary_is_numeric(vary_t vary)
{
    return vary.kind <= INTERPRET_RISING ? vary : any;
}

vary_t interpret_rising(double rate, double rounding)
{
    return (vary_t){
        .kind = INTERPRET_RISING, .bytes = 8, .step = (uint64_t)(rounding * INTERPRET_ROUNDING) + 1, .rate = rate};
}

vary_t vary_rising(double rate, double rounding, vary_t from)
{
    vary_t vary = interpret_rising(rate, rounding);
    vary.source = from.source;
    return vary;
}

double vary_rounding(vary_t vary)
{
    return vary.kind == INTERPRET_RISING ? (double)vary.step / INTERPRET_ROUNDING : 0;
}

// a + sign * b
vary_t vary_sum(vary_t a, vary_t b, int sign)
{
    a = vary_is_numeric(a);
    b = vary_is_numeric(b);
    if (a.kind == INTERPRET_ANY || b.kind == INTERPRET_ANY || a.modulus + b.modulus != 0) {
        return any;
    }
    if (b.kind == INTERPRET_STEADY) {
        return a;
    }
    if (a.kind != INTERPRET_STEADY && a.source != b.source) {
        return any;
    }
    if (a.kind <= INTERPRET_LINEAR && b.kind == INTERPRET_LINEAR) {
        return vary_linear(sign > 0 ? a.step + b.step : a.step - b.step, 8, b);
    }
    if (sign < 0 || vary_falls(a) || vary_falls(b)) {
        return any;
    }
    return vary_rising(a.rate + b.rate, vary_rounding(a) + vary_rounding(b), b);
}

vary_t vary_plus(vary_t vary, uint64_t value)
{
    return vary.modulus == 0 || value <= MODULAR_OFFSET_MAX ? vary : any;
}

vary_t vary_times(vary_t vary, uint64_t by)
{
    if (vary.kind == INTERPRET_STEADY || by == 0) {
        return steady;
    }
    if (vary.kind == INTERPRET_LINEAR && (vary.modulus == 0 || by == 1)) {
        return vary_linear(vary.step * by, 8, vary);
    }
    return vary.kind == INTERPRET_RISING && (int64_t)by > 0
               ? vary_rising(vary.rate * (double)by, vary_rounding(vary) * (double)by, vary)
               : any;
}

vary_t vary_divided(vary_t vary, uint64_t value, unsigned bytes, double by)
{
    if (vary.kind == INTERPRET_STEADY) {
        return steady;
    }
    if (vary.kind > INTERPRET_RISING || vary_falls(vary) || vary.modulus != 0) {
        return any;
    }
    vary_bound_width(vary, value, bytes);
    vary_bound_back(vary);
    return vary_rising(vary.rate / by, vary_rounding(vary) / by + 1, vary);
}

// A quotient stays the same until its dividend has moved by `distance`, at this rate. If that is soon, it is as `otherwise`
// says.
vary_t vary_quotient(double distance, vary_t dividend, vary_t otherwise)
{
    double room = distance + one - vary_rounding(dividend);
    double iterations = dividend.rate > 0 ? room / dividend.rate * (1 - 1e-9) : 0;
    if (iterations < vary_now.quotients) {
        vary_now.moved = iterations > vary_now.moved ? iterations : vary_now.moved;
        return otherwise;
    }
    vary_bound(dividend, iterations);
    return steady;
}

static unsigned bits_of(uint64_t value)
{
    return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
}

// The bits of the mask. Low bits are a rest: they count as well, until they begin anew.
vary_t vary_masked(vary_t vary, uint64_t value, uint64_t mask)
{
    if (vary.kind == INTERPRET_STEADY || mask == 0) {
        return steady;
    }
    if (vary.kind == INTERPRET_COUNTER_LOW && mask == UINT32_MAX) {
        return vary;
    }
    uint64_t below = bits_of(mask) == 64 ? UINT64_MAX : (UINT64_C(1) << bits_of(mask)) - 1;
    if (vary.kind != INTERPRET_LINEAR || (vary.modulus & below) != 0) {
        return any;
    }
    vary.modulus = 0;
    if ((vary.step & below) == 0) {
        return steady;
    }
    if (mask != below) {
        return any;
    }
    vary_bound_room(vary, (double)(value & mask), (double)(mask - (value & mask)));
    return vary;
}

// --- operands -----------------------------------------------------------------------------------------------------------

vary_t vary_of_address(const operand_t *operand)
{
    vary_t base = operand->base < INTERPRET_REGISTERS ? vary_now.registers[operand->base] : steady;
    vary_t index = operand->index < INTERPRET_REGISTERS ? vary_now.registers[operand->index] : steady;
    bool plain = index.kind == INTERPRET_STEADY && operand->index == INTERPRET_NO_REGISTER;
    return plain ? vary_plus(base, (uint64_t)operand->value) : vary_sum(base, vary_times(index, operand->scale), 1);
}

bool vary_address_of(const state_t *state, const instruction_t *instruction, const operand_t *operand,
                     uint64_t *address_out)
{
    bool varies = vary_of_address(operand).kind != INTERPRET_STEADY;
    vary_now.failed = vary_now.failed || (varies && !vary_now.loose);
    return !varies && !vary_now.failed && interpret_address(state, instruction, operand, address_out);
}

// Of `bytes` bytes in memory.
vary_t vary_loaded(uint64_t address, unsigned bytes)
{
    unsigned offset = (unsigned)(address % 8);
    const struct interpret_halves *word = interpret_memory_halves(address - offset);
    bool low = word->half[0].kind != INTERPRET_STEADY, high = word->half[1].kind != INTERPRET_STEADY;
    if (offset + bytes > 8) {
        const struct interpret_halves *next = interpret_memory_halves(address - offset + 8);
        return low || high || next->half[0].kind != INTERPRET_STEADY || next->half[1].kind != INTERPRET_STEADY ? any
                                                                                                               : steady;
    }
    if (low && word->half[0].bytes == 8) {
        return offset != 0 ? any : word->half[0].kind == INTERPRET_LINEAR || bytes == 8 ? word->half[0] : any;
    }
    bool from_low = offset<4, from_high = offset + bytes> 4;
    if (!(low && from_low) && !(high && from_high)) {
        return steady;
    }
    const vary_t *half = &word->half[offset / 4];
    bool whole = offset % 4 == 0 && !(from_low && from_high);
    return whole && (half->kind == INTERPRET_LINEAR || bytes == 4) ? *half : any;
}

void vary_stored(uint64_t address, unsigned bytes, vary_t vary)
{
    unsigned offset = (unsigned)(address % 8), end = offset + bytes;
    for (unsigned word = 0; word * 8 < end; word++) {
        struct interpret_halves *halves = interpret_memory_halves(address - offset + 8 * word);
        vary_now.words |= vary.kind != INTERPRET_STEADY ? interpret_bit_of(address - offset + 8 * word) : 0;
        if (halves->half[0].bytes == 8 && halves->half[0].kind != INTERPRET_STEADY && (offset != 0 || bytes < 8)) {
            halves->half[0] = halves->half[1] = any; // a part of it remains
            halves->half[0].bytes = halves->half[1].bytes = 4;
        }
        for (unsigned half = 0; half < 2; half++) {
            unsigned begin = 8 * word + 4 * half;
            bool touches = begin < end && begin + 4 > offset, covers = begin >= offset && begin + 4 <= end;
            bool exact = begin == offset && bytes == 4;
            vary_t *to = &halves->half[half];
            if (touches && (vary.kind != INTERPRET_STEADY || covers)) {
                *to = exact ? vary : vary.kind == INTERPRET_STEADY ? steady : any;
                to->bytes = 4;
            } else if (touches && to->kind != INTERPRET_STEADY) {
                to->kind = INTERPRET_ANY;
            }
        }
        if (offset == 0 && bytes == 8) {
            halves->half[0] = vary;
            halves->half[0].bytes = 8;
            halves->half[1] = steady;
        }
    }
}

// As a value of 4 bytes it may move the other way.
vary_t vary_narrowed(vary_t vary, unsigned bytes)
{
    return vary.kind == INTERPRET_LINEAR && bytes == 4 ? vary_linear(vary.step, 4, vary) : vary;
}

vary_t vary_of(const state_t *state, const instruction_t *instruction, const operand_t *operand)
{
    uint64_t address;
    switch ((enum interpret_kind)operand->kind) {
    case INTERPRET_REGISTER: {
        vary_t vary = vary_now.registers[operand->number];
        if (vary.kind == INTERPRET_STEADY || operand->bytes == 8 || vary.kind == INTERPRET_LINEAR) {
            return operand->high && vary.kind != INTERPRET_STEADY ? any : vary_narrowed(vary, operand->bytes);
        }
        bool part = operand->bytes == 4 && (vary.kind == INTERPRET_COUNTER_LOW || vary.kind == INTERPRET_COUNTER_HIGH);
        return part ? vary : any;
    }
    case INTERPRET_MEMORY:
        return vary_address_of(state, instruction, operand, &address) ? vary_loaded(address, operand->bytes) : any;
    case INTERPRET_VECTOR:
        return vary_now.vectors[operand->number];
    case INTERPRET_IMMEDIATE:
    case INTERPRET_NONE:
        break;
    }
    return steady;
}

// value: that is put there, of the operand's width.
void vary_put(const state_t *state, const instruction_t *instruction, const operand_t *operand, vary_t vary,
              uint64_t value)
{
    uint64_t address;
    if (operand->kind == INTERPRET_MEMORY) {
        if (vary_address_of(state, instruction, operand, &address)) {
            vary_stored(address, operand->bytes, vary);
        }
        return;
    }
    if (operand->kind != INTERPRET_REGISTER) {
        return;
    }
    vary_t *to = &vary_now.registers[operand->number];
    vary = vary_narrowed(vary, operand->bytes);
    if (operand->bytes == 4 && (vary.kind == INTERPRET_LINEAR || vary.kind == INTERPRET_RISING)) {
        vary_bound_width(vary, value, 4); // the upper half stays 0
    }
    if (operand->bytes < 4 && (vary.kind != INTERPRET_STEADY || to->kind != INTERPRET_STEADY)) {
        vary = any;
    }
    *to = vary;
}

uint64_t vary_value_of(const state_t *state, const instruction_t *instruction, const operand_t *operand)
{
    uint64_t value = 0;
    (void)interpret_get(state, instruction, operand, &value);
    // An immediate is extended to the width of the other operand.
    return operand->kind == INTERPRET_IMMEDIATE ? value : interpret_cut(value, operand->bytes);
}

// --- flags and conditions -----------------------------------------------------------------------------------------------

// Both move by the same: their distance stays.
static bool move_together(vary_t a, vary_t b)
{
    return a.kind == INTERPRET_LINEAR && b.kind == INTERPRET_LINEAR && a.source == b.source && a.step == b.step &&
           a.modulus == 0 && b.modulus == 0;
}

void vary_flags_of(vary_t a_vary, uint64_t a, vary_t b_vary, uint64_t b, unsigned bytes, bool only_result)
{
    a_vary = vary_is_numeric(a_vary);
    b_vary = vary_is_numeric(b_vary);
    if (bytes >= 4 && move_together(a_vary, b_vary)) {
        vary_bound_width(a_vary, a, bytes);
        vary_bound_width(b_vary, b, bytes);
        vary_bound_sign(a_vary, a, bytes);
        vary_bound_sign(b_vary, b, bytes);
        a_vary = b_vary = steady;
    }
    bool both = a_vary.kind != INTERPRET_STEADY && b_vary.kind != INTERPRET_STEADY, swapped = false;
    if (a_vary.kind == INTERPRET_STEADY && b_vary.kind != INTERPRET_STEADY) {
        swapped = true;
        a_vary = b_vary;
    }
    vary_now.flags = (struct vary_flags){.of = both ? any : a_vary,
                                         .swapped = swapped,
                                         .only_result = only_result,
                                         .a = interpret_cut(a, bytes),
                                         .b = interpret_cut(b, bytes),
                                         .bytes = bytes};
}

// x moves, y stays; numbers from 0 to most. How far may it move before the relation may change, or x wraps?
static uint64_t room(unsigned relation, uint64_t x, uint64_t y, uint64_t most, bool down)
{
    bool equal = relation == VARY_EQUAL, or_equal = relation == VARY_BELOW_OR_EQUAL;
    if (equal && x == y) {
        return 0;
    }
    if (!down) {
        return x < y ? y - x - (or_equal ? 0 : 1) : x == y && or_equal ? 0 : most - x;
    }
    return x > y ? x - y - (equal || or_equal ? 1 : 0) : x == y && !or_equal ? 0 : x;
}

// As numbers in the order of the comparison.
static uint64_t ordered(uint64_t value, unsigned bytes, bool is_signed)
{
    uint64_t top = UINT64_C(1) << (8 * bytes - 1);
    return interpret_cut(is_signed ? value ^ top : value, bytes);
}

// The condition holds, or not, in so many iterations.
void vary_condition_bound(unsigned condition)
{
    const struct vary_flags *flags = &vary_now.flags;
    unsigned kind = condition >> 1;
    bool by_overflow = kind == VARY_OVERFLOW || kind == VARY_LESS || kind == VARY_LESS_OR_EQUAL;
    if ((flags->carry_varies && (kind == VARY_BELOW || kind == VARY_BELOW_OR_EQUAL)) ||
        (flags->overflow_varies && by_overflow)) {
        vary_now.failed = true;
        return;
    }
    if (flags->of.kind == INTERPRET_STEADY) {
        return;
    }
    bool carries = kind == VARY_BELOW || kind == VARY_BELOW_OR_EQUAL || kind == VARY_LESS || kind == VARY_LESS_OR_EQUAL;
    if (flags->of.kind == INTERPRET_ANY || kind == VARY_OVERFLOW || kind == VARY_PARITY ||
        (flags->only_result && carries) || (kind == VARY_SIGN && flags->swapped)) {
        vary_now.failed = true;
        return;
    }
    bool is_signed = kind == VARY_LESS || kind == VARY_LESS_OR_EQUAL;
    if (kind == VARY_SIGN) { // of the difference
        uint64_t difference = interpret_cut(flags->a - flags->b, flags->bytes);
        uint64_t top = UINT64_C(1) << (8 * flags->bytes - 1);
        uint64_t at = difference & (top - 1);
        vary_bound_room(flags->of, (double)at, (double)(top - 1 - at));
        return;
    }
    uint64_t a = ordered(flags->a, flags->bytes, is_signed), b = ordered(flags->b, flags->bytes, is_signed);
    uint64_t x = flags->swapped ? b : a, y = flags->swapped ? a : b;
    bool or_equal = kind == VARY_BELOW_OR_EQUAL || kind == VARY_LESS_OR_EQUAL;
    unsigned relation = kind == VARY_EQUAL           ? VARY_EQUAL
                        : or_equal != flags->swapped ? VARY_BELOW_OR_EQUAL
                                                     : VARY_BELOW; // a < b: not b <= a
    uint64_t most = most_of(flags->bytes);
    vary_bound_room(flags->of, (double)room(relation, x, y, most, true), (double)room(relation, x, y, most, false));
}
