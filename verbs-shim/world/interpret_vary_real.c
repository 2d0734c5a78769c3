// Numbers of double precision that vary: computed from clocks and counters, they rise or fall, at most at some rate. Rounding
// keeps the order of numbers, and adds less to them than is left out here.
#include <Zydis/Zydis.h>
#include <float.h>

#include "verbs-shim/world/interpret_vary_internal.h"

// A REAL has in `step`: bit 0: it falls; above: iterations by which it may be ahead of its rate, as whole numbers of which it was
// made are, and rounded ones, in parts of INTERPRET_ROUNDING.
static vary_t real_of(double rate, bool falls, double ahead, vary_t from)
{
    static const double ahead_max = 1e12;
    uint64_t parts = ahead < ahead_max ? (uint64_t)(ahead * INTERPRET_ROUNDING) + 1 : 0;
    return parts != 0 ? (vary_t){.kind = INTERPRET_REAL,
                                 .bytes = 8,
                                 .source = from.source,
                                 .step = parts << 1 | falls,
                                 .rate = rate}
                      : any;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static bool falls(vary_t vary)
{
    return (vary.step & 1) != 0;
}

static double ahead_of(vary_t vary)
{
    return (double)(vary.step >> 1) / INTERPRET_ROUNDING;
}

static vary_t operand_vary(const state_t *state, const instruction_t *instruction, const operand_t *operand)
{
    uint64_t address;
    if (operand->kind == INTERPRET_VECTOR) {
        return vary_now.vectors[operand->number];
    }
    if (operand->kind != INTERPRET_MEMORY) {
        return vary_of(state, instruction, operand);
    }
    vary_t vary = vary_address_of(state, instruction, operand, &address) ? vary_loaded(address, 8) : any;
    return vary.kind == INTERPRET_STEADY || vary.kind == INTERPRET_REAL ? vary : any;
}

// From a whole number with a sign.
static vary_t converted(vary_t vary, uint64_t value, unsigned bytes)
{
    bool down = vary_falls(vary);
    vary = vary_is_numeric(vary);
    if (vary.kind == INTERPRET_STEADY || vary.kind == INTERPRET_ANY || vary.modulus != 0) {
        return vary.kind == INTERPRET_STEADY ? steady : any;
    }
    vary_bound_sign(vary, value, bytes);
    vary_bound_back(vary);
    double rounding = 2 * DBL_EPSILON * (double)value; // 0: it has a sign, which vary_bound_sign has refused
    return vary.rate > 0 ? real_of(vary.rate, down, (vary_rounding(vary) + rounding) / vary.rate, vary) : any;
}

static vary_t sum(vary_t a, vary_t b, bool minus)
{
    bool b_falls = falls(b) != minus;
    if (a.kind == INTERPRET_ANY || b.kind == INTERPRET_ANY ||
        (a.kind == INTERPRET_STEADY && b.kind == INTERPRET_STEADY)) {
        return a.kind == INTERPRET_STEADY && b.kind == INTERPRET_STEADY ? steady : any;
    }
    if (b.kind == INTERPRET_STEADY) {
        return a;
    }
    if (a.kind == INTERPRET_STEADY) {
        return real_of(b.rate, b_falls, ahead_of(b), b);
    }
    return falls(a) == b_falls && a.source == b.source
               ? real_of(a.rate + b.rate, b_falls, greater(ahead_of(a), ahead_of(b)), b)
               : any;
}

static vary_t scaled(vary_t vary, double by)
{
    if (vary.kind != INTERPRET_REAL) {
        return vary;
    }
    return by != 0 && __builtin_isfinite(by)
               ? real_of(vary.rate * __builtin_fabs(by), falls(vary) != (by < 0), ahead_of(vary), vary)
               : any;
}

// What is computed is rounded, now and in later iterations.
static vary_t rounded(vary_t vary, double a, double b, int mnemonic)
{
    double value = mnemonic == ZYDIS_MNEMONIC_MULSD   ? a * b
                   : mnemonic == ZYDIS_MNEMONIC_DIVSD ? a / b
                                                      : greater(__builtin_fabs(a), __builtin_fabs(b));
    double rounding = 2 * DBL_EPSILON * __builtin_fabs(value); // also if it grows to twice of this
    return vary.kind == INTERPRET_REAL ? real_of(vary.rate, falls(vary), ahead_of(vary) + rounding / vary.rate, vary)
                                       : vary;
}

static bool compute(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    vary_t a = operand_vary(state, instruction, to), b = operand_vary(state, instruction, from), result = any;
    double a_value = 0, b_value = 0;
    bool known =
        interpret_real_get(state, instruction, to, &a_value) && interpret_real_get(state, instruction, from, &b_value);
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_ADDSD:
        result = sum(a, b, false);
        break;
    case ZYDIS_MNEMONIC_SUBSD:
        result = sum(a, b, true);
        break;
    case ZYDIS_MNEMONIC_MULSD:
        result = b.kind == INTERPRET_STEADY   ? scaled(a, b_value)
                 : a.kind == INTERPRET_STEADY ? scaled(b, a_value)
                                              : any;
        break;
    default: // DIVSD
        result = b.kind == INTERPRET_STEADY ? scaled(a, 1 / b_value) : any;
        break;
    }
    vary_now.vectors[to->number] = rounded(result, a_value, b_value, (int)instruction->mnemonic);
    return known;
}

// Which of them is greater stays for so many iterations.
static bool compare(const state_t *state, const instruction_t *instruction)
{
    const operand_t *first = &instruction->operands[0], *second = &instruction->operands[1];
    vary_t a = operand_vary(state, instruction, first), b = operand_vary(state, instruction, second);
    vary_t difference = sum(a, b, true);
    double x, y;
    vary_now.flags = (struct vary_flags){0};
    if (difference.kind == INTERPRET_STEADY) {
        return true;
    }
    if (difference.kind == INTERPRET_ANY || !interpret_real_get(state, instruction, first, &x) ||
        !interpret_real_get(state, instruction, second, &y) || x == y || !__builtin_isfinite(x) ||
        !__builtin_isfinite(y)) {
        return false;
    }
    if (falls(difference) == (x > y)) { // towards each other
        double room = __builtin_fabs(x - y) - 64 * DBL_EPSILON * greater(__builtin_fabs(x), __builtin_fabs(y));
        vary_bound(difference, room / difference.rate * (1 - 1e-9) - ahead_of(difference));
    }
    return true;
}

// A whole number from 0 on.
static bool to_integer(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0];
    vary_t vary = operand_vary(state, instruction, &instruction->operands[1]);
    double value;
    if (vary.kind == INTERPRET_REAL) {
        bool rises = !falls(vary) && interpret_real_get(state, instruction, &instruction->operands[1], &value) &&
                     value >= 0 && ahead_of(vary) * vary.rate <= 1;
        vary = rises ? vary_rising(vary.rate, 2, vary) : any;
    }
    vary_put(state, instruction, to, vary, 0);
    return true;
}

// Between vectors and memory, or (movq) a register: 8 bytes, or 16 with a half that does not vary.
static bool move(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    vary_t vary = operand_vary(state, instruction, from);
    uint64_t address;
    if (from->kind == INTERPRET_MEMORY && from->bytes > 8) {
        bool half =
            vary_address_of(state, instruction, from, &address) && vary_loaded(address + 8, 8).kind == INTERPRET_STEADY;
        vary = half ? vary : any;
    }
    if (to->kind == INTERPRET_VECTOR) {
        vary_now.vectors[to->number] = vary;
        return vary.kind == INTERPRET_STEADY || vary.kind == INTERPRET_REAL;
    }
    if (to->kind == INTERPRET_MEMORY && vary_address_of(state, instruction, to, &address)) {
        vary_stored(address, 8, vary);
        if (to->bytes > 8) {
            vary_stored(address + 8, 8, steady);
        }
        return vary.kind == INTERPRET_STEADY || to->bytes == 8;
    }
    vary_put(state, instruction, to, vary, 0);
    return to->kind == INTERPRET_REGISTER;
}

bool vary_reals(const state_t *state, const instruction_t *instruction, bool *known_out)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_CVTSI2SD:
        vary_now.vectors[to->number] =
            converted(vary_of(state, instruction, from), vary_value_of(state, instruction, from), from->bytes);
        *known_out = vary_now.vectors[to->number].kind != INTERPRET_ANY;
        return true;
    case ZYDIS_MNEMONIC_CVTTSD2SI:
        *known_out = to_integer(state, instruction);
        return true;
    case ZYDIS_MNEMONIC_ADDSD:
    case ZYDIS_MNEMONIC_SUBSD:
    case ZYDIS_MNEMONIC_MULSD:
    case ZYDIS_MNEMONIC_DIVSD:
        *known_out = compute(state, instruction) && vary_now.vectors[to->number].kind != INTERPRET_ANY;
        return true;
    case ZYDIS_MNEMONIC_COMISD:
    case ZYDIS_MNEMONIC_UCOMISD:
        *known_out = compare(state, instruction);
        return true;
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
        vary_now.vectors[to->number] = from->kind == INTERPRET_VECTOR && from->number == to->number
                                           ? steady // a zero, whatever was there
                                           : vary_now.vectors[to->number];
        *known_out = to->kind == INTERPRET_VECTOR && vary_now.vectors[to->number].kind == INTERPRET_STEADY &&
                     operand_vary(state, instruction, from).kind == INTERPRET_STEADY;
        return true;
    case ZYDIS_MNEMONIC_MOVSD:
        if (to->kind == INTERPRET_MEMORY && from->kind == INTERPRET_MEMORY) {
            return false; // of a string
        }
        __attribute__((fallthrough));
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
        *known_out = move(state, instruction);
        return true;
    default:
        return false;
    }
}
