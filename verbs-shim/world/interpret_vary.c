#include "verbs-shim/world/interpret_vary.h"

#include <Zydis/Zydis.h>
#include <string.h>

#include "verbs-shim/world/interpret_internal.h"

typedef struct interpret_state state_t;
typedef struct interpret_instruction instruction_t;
typedef struct interpret_operand operand_t;
typedef struct interpret_vary vary_t;

// What computing may add to a value beside its rate, by rounding.
static const double slack = 4;
static const vary_t steady = {INTERPRET_STEADY, 8, 0, 0}, any = {INTERPRET_ANY, 8, 0, 0};

// The flags are those of comparing a with b (of flags.bytes), of which only one varies.
struct vary_flags {
    vary_t of; // of a, or if `swapped` of b
    bool swapped, only_result; // only_result: carry and overflow are not those of a comparison
    uint64_t a, b;
    unsigned bytes;
};

// One thread of the process runs at a time.
static struct {
    bool on, failed;
    double iterations;
    vary_t registers[INTERPRET_REGISTERS];
    struct vary_flags flags;
} now;

void interpret_vary_begin(void)
{
    memset(&now, 0, sizeof now);
    now.on = true;
    now.iterations = (double)INTERPRET_ITERATIONS_MAX;
}

void interpret_vary_end(void)
{
    now.on = false;
}

bool interpret_vary_is_on(void)
{
    return now.on;
}

vary_t interpret_linear(uint64_t step, unsigned bytes)
{
    int64_t change = bytes == 8 ? (int64_t)step : (int32_t)step;
    return (vary_t){step == 0 ? INTERPRET_STEADY : INTERPRET_LINEAR, (uint8_t)bytes, (uint64_t)change,
                    change < 0 ? -(double)change : (double)change};
}

void interpret_vary_register(unsigned number, vary_t vary)
{
    now.registers[number] = vary;
}

vary_t interpret_vary_of_register(unsigned number)
{
    return now.registers[number];
}

void interpret_vary_word(uint64_t address, unsigned half, vary_t vary)
{
    interpret_memory_halves(address)->half[half] = vary;
}

vary_t interpret_vary_of_word(uint64_t address, unsigned half)
{
    return interpret_memory_halves(address)->half[half];
}

void interpret_vary_bound(double iterations)
{
    now.iterations = iterations < now.iterations ? (iterations > 0 ? iterations : 0) : now.iterations;
}

uint64_t interpret_vary_iterations(void)
{
    return (uint64_t)now.iterations;
}

// The value may move by `distance` before something changes.
static void bound_distance(vary_t vary, double distance)
{
    double room = vary.kind == INTERPRET_LINEAR ? distance : distance - slack;
    interpret_vary_bound(vary.rate > 0 ? room / vary.rate * (1 - 1e-9) : (double)INTERPRET_ITERATIONS_MAX);
}

// --- values -----------------------------------------------------------------------------------------------------------

static bool falls(vary_t vary)
{
    return vary.kind == INTERPRET_LINEAR && (int64_t)vary.step < 0;
}

static uint64_t most_of(unsigned bytes)
{
    return interpret_cut(UINT64_MAX, bytes);
}

// The value stays within its width, as an unsigned number.
static void bound_width(vary_t vary, uint64_t value, unsigned bytes)
{
    uint64_t at = interpret_cut(value, bytes);
    bound_distance(vary, (double)(falls(vary) ? at : most_of(bytes) - at));
}

// Sign extension: the value does not pass the middle of its range.
static void bound_sign(vary_t vary, uint64_t value, unsigned bytes)
{
    uint64_t top = UINT64_C(1) << (8 * bytes - 1);
    uint64_t at = value & (top - 1);
    bound_distance(vary, (double)(falls(vary) ? at : top - 1 - at));
}

static vary_t is_numeric(vary_t vary)
{
    return vary.kind <= INTERPRET_RISING ? vary : any;
}

static vary_t rising(double rate)
{
    return (vary_t){INTERPRET_RISING, 8, 0, rate};
}

// a + sign * b
static vary_t sum(vary_t a, vary_t b, int sign)
{
    a = is_numeric(a);
    b = is_numeric(b);
    if (a.kind == INTERPRET_ANY || b.kind == INTERPRET_ANY) {
        return any;
    }
    if (b.kind == INTERPRET_STEADY) {
        return a;
    }
    if (a.kind <= INTERPRET_LINEAR && b.kind == INTERPRET_LINEAR) {
        return interpret_linear(sign > 0 ? a.step + b.step : a.step - b.step, 8);
    }
    if (sign < 0 || falls(a) || falls(b)) {
        return any;
    }
    return rising(a.rate + b.rate);
}

static vary_t times(vary_t vary, uint64_t by)
{
    if (vary.kind == INTERPRET_STEADY || by == 0) {
        return steady;
    }
    if (vary.kind == INTERPRET_LINEAR) {
        return interpret_linear(vary.step * by, 8);
    }
    return vary.kind == INTERPRET_RISING && (int64_t)by > 0 ? rising(vary.rate * (double)by) : any;
}

static vary_t divided(vary_t vary, uint64_t value, unsigned bytes, double by)
{
    if (vary.kind == INTERPRET_STEADY) {
        return steady;
    }
    if (vary.kind > INTERPRET_RISING || falls(vary)) {
        return any;
    }
    bound_width(vary, value, bytes);
    return rising(vary.rate / by);
}

// A quotient stays the same until its dividend has moved by `distance`, at this rate. If that is soon, it is as `otherwise`
// says.
static vary_t quotient(double distance, double rate, vary_t otherwise)
{
    enum { ITERATIONS_ENOUGH = 16 };
    double iterations = rate > 0 ? (distance - slack) / rate * (1 - 1e-9) : 0;
    if (iterations < ITERATIONS_ENOUGH) {
        return otherwise;
    }
    interpret_vary_bound(iterations);
    return steady;
}

static unsigned bits_of(uint64_t value)
{
    return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
}

// The bits of the mask.
static vary_t masked(vary_t vary, uint64_t mask)
{
    if (vary.kind == INTERPRET_STEADY || mask == 0) {
        return steady;
    }
    uint64_t below = bits_of(mask) == 64 ? UINT64_MAX : (UINT64_C(1) << bits_of(mask)) - 1;
    if (vary.kind == INTERPRET_COUNTER_LOW && mask == UINT32_MAX) {
        return vary;
    }
    return vary.kind == INTERPRET_LINEAR && (vary.step & below) == 0 ? steady : any;
}

// --- operands -----------------------------------------------------------------------------------------------------------

static vary_t of_address(const operand_t *operand)
{
    vary_t base = operand->base < INTERPRET_REGISTERS ? now.registers[operand->base] : steady;
    vary_t index = operand->index < INTERPRET_REGISTERS ? now.registers[operand->index] : steady;
    return sum(base, times(index, operand->scale), 1);
}

static bool address_of(const state_t *state, const instruction_t *instruction, const operand_t *operand,
                       uint64_t *address_out)
{
    now.failed = now.failed || of_address(operand).kind != INTERPRET_STEADY;
    return !now.failed && interpret_address(state, instruction, operand, address_out);
}

// Of `bytes` bytes in memory.
static vary_t loaded(uint64_t address, unsigned bytes)
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
    bool from_low = offset < 4, from_high = offset + bytes > 4;
    if (!(low && from_low) && !(high && from_high)) {
        return steady;
    }
    const vary_t *half = &word->half[offset / 4];
    bool whole = offset % 4 == 0 && !(from_low && from_high);
    return whole && (half->kind == INTERPRET_LINEAR || bytes == 4) ? *half : any;
}

static void stored(uint64_t address, unsigned bytes, vary_t vary)
{
    unsigned offset = (unsigned)(address % 8), end = offset + bytes;
    for (unsigned word = 0; word * 8 < end; word++) {
        struct interpret_halves *halves = interpret_memory_halves(address - offset + 8 * word);
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
static vary_t narrowed(vary_t vary, unsigned bytes)
{
    return vary.kind == INTERPRET_LINEAR && bytes == 4 ? interpret_linear(vary.step, 4) : vary;
}

static vary_t of(const state_t *state, const instruction_t *instruction, const operand_t *operand)
{
    uint64_t address;
    switch ((enum interpret_kind)operand->kind) {
    case INTERPRET_REGISTER: {
        vary_t vary = now.registers[operand->number];
        if (vary.kind == INTERPRET_STEADY || operand->bytes == 8 || vary.kind == INTERPRET_LINEAR) {
            return operand->high && vary.kind != INTERPRET_STEADY ? any : narrowed(vary, operand->bytes);
        }
        bool part = operand->bytes == 4 && (vary.kind == INTERPRET_COUNTER_LOW || vary.kind == INTERPRET_COUNTER_HIGH);
        return part ? vary : any;
    }
    case INTERPRET_MEMORY:
        return address_of(state, instruction, operand, &address) ? loaded(address, operand->bytes) : any;
    case INTERPRET_IMMEDIATE:
    case INTERPRET_VECTOR:
    case INTERPRET_NONE:
        break;
    }
    return steady;
}

// value: that is put there, of the operand's width.
static void put(const state_t *state, const instruction_t *instruction, const operand_t *operand, vary_t vary,
                uint64_t value)
{
    uint64_t address;
    if (operand->kind == INTERPRET_MEMORY) {
        if (address_of(state, instruction, operand, &address)) {
            stored(address, operand->bytes, vary);
        }
        return;
    }
    if (operand->kind != INTERPRET_REGISTER) {
        return;
    }
    vary_t *to = &now.registers[operand->number];
    vary = narrowed(vary, operand->bytes);
    if (operand->bytes == 4 && (vary.kind == INTERPRET_LINEAR || vary.kind == INTERPRET_RISING)) {
        bound_width(vary, value, 4); // the upper half stays 0
    }
    if (operand->bytes < 4 && (vary.kind != INTERPRET_STEADY || to->kind != INTERPRET_STEADY)) {
        vary = any;
    }
    *to = vary;
}

static uint64_t value_of(const state_t *state, const instruction_t *instruction, const operand_t *operand)
{
    uint64_t value = 0;
    (void)interpret_get(state, instruction, operand, &value);
    return interpret_cut(value, operand->bytes);
}

// --- flags and conditions -----------------------------------------------------------------------------------------------

static void flags_of(vary_t a_vary, uint64_t a, vary_t b_vary, uint64_t b, unsigned bytes, bool only_result)
{
    a_vary = is_numeric(a_vary);
    b_vary = is_numeric(b_vary);
    bool both = a_vary.kind != INTERPRET_STEADY && b_vary.kind != INTERPRET_STEADY, swapped = false;
    if (both && a_vary.kind == INTERPRET_LINEAR && b_vary.kind == INTERPRET_LINEAR && a_vary.step == b_vary.step) {
        a_vary = any; // their difference is the same, but not where they wrap
    }
    if (a_vary.kind == INTERPRET_STEADY && b_vary.kind != INTERPRET_STEADY) {
        swapped = true;
        a_vary = b_vary;
    }
    now.flags = (struct vary_flags){.of = both ? any : a_vary,
                                    .swapped = swapped,
                                    .only_result = only_result,
                                    .a = interpret_cut(a, bytes),
                                    .b = interpret_cut(b, bytes),
                                    .bytes = bytes};
}

enum { OVERFLOW, BELOW, EQUAL, BELOW_OR_EQUAL, SIGN, PARITY, LESS, LESS_OR_EQUAL };

// x moves, y stays; numbers from 0 to most. How far may it move before the relation may change, or x wraps?
static uint64_t room(unsigned relation, uint64_t x, uint64_t y, uint64_t most, bool down)
{
    bool equal = relation == EQUAL, or_equal = relation == BELOW_OR_EQUAL;
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
static void condition_bound(unsigned condition)
{
    const struct vary_flags *flags = &now.flags;
    unsigned kind = condition >> 1;
    if (flags->of.kind == INTERPRET_STEADY) {
        return;
    }
    bool carries = kind == BELOW || kind == BELOW_OR_EQUAL || kind == LESS || kind == LESS_OR_EQUAL;
    if (flags->of.kind == INTERPRET_ANY || kind == OVERFLOW || kind == PARITY || (flags->only_result && carries) ||
        (kind == SIGN && flags->swapped)) {
        now.failed = true;
        return;
    }
    bool down = falls(flags->of), is_signed = kind == LESS || kind == LESS_OR_EQUAL;
    if (kind == SIGN) { // of the difference
        uint64_t difference = interpret_cut(flags->a - flags->b, flags->bytes);
        uint64_t top = UINT64_C(1) << (8 * flags->bytes - 1);
        uint64_t at = difference & (top - 1);
        bound_distance(flags->of, (double)(down ? at : top - 1 - at));
        return;
    }
    uint64_t a = ordered(flags->a, flags->bytes, is_signed), b = ordered(flags->b, flags->bytes, is_signed);
    uint64_t x = flags->swapped ? b : a, y = flags->swapped ? a : b;
    bool or_equal = kind == BELOW_OR_EQUAL || kind == LESS_OR_EQUAL;
    unsigned relation = kind == EQUAL ? EQUAL : or_equal != flags->swapped ? BELOW_OR_EQUAL : BELOW; // a < b: not b <= a
    bound_distance(flags->of, (double)room(relation, x, y, most_of(flags->bytes), down));
}

// --- instructions -------------------------------------------------------------------------------------------------------

static bool same_register(const instruction_t *instruction)
{
    const operand_t *a = &instruction->operands[0], *b = &instruction->operands[1];
    return a->kind == INTERPRET_REGISTER && b->kind == INTERPRET_REGISTER && a->number == b->number &&
           a->high == b->high;
}

static bool arithmetic(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    bool same = same_register(instruction);
    int mnemonic = (int)instruction->mnemonic;
    if (same && (mnemonic == ZYDIS_MNEMONIC_XOR || mnemonic == ZYDIS_MNEMONIC_SUB)) {
        put(state, instruction, to, steady, 0);
        now.flags = (struct vary_flags){0};
        return true;
    }
    vary_t a_vary = of(state, instruction, to), b_vary = of(state, instruction, from), result = steady;
    uint64_t a = value_of(state, instruction, to), b = interpret_cut(value_of(state, instruction, from), to->bytes);
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_CMP:
        flags_of(a_vary, a, b_vary, b, to->bytes, false);
        return true;
    case ZYDIS_MNEMONIC_SUB:
        flags_of(a_vary, a, b_vary, b, to->bytes, false);
        put(state, instruction, to, sum(a_vary, b_vary, -1), a - b);
        return true;
    case ZYDIS_MNEMONIC_ADD:
        result = sum(a_vary, b_vary, 1);
        flags_of(result, a + b, steady, 0, to->bytes, true);
        put(state, instruction, to, result, a + b);
        return true;
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_TEST:
        result = same                               ? a_vary
                 : b_vary.kind == INTERPRET_STEADY ? masked(a_vary, b)
                 : a_vary.kind == INTERPRET_STEADY ? masked(b_vary, a)
                                                   : any;
        flags_of(result, a & b, steady, 0, to->bytes, false);
        if (mnemonic == ZYDIS_MNEMONIC_AND) {
            put(state, instruction, to, result, a & b);
        }
        return true;
    case ZYDIS_MNEMONIC_OR: {
        bool parts = (a_vary.kind == INTERPRET_COUNTER_SHIFTED && b_vary.kind == INTERPRET_COUNTER_LOW) ||
                     (b_vary.kind == INTERPRET_COUNTER_SHIFTED && a_vary.kind == INTERPRET_COUNTER_LOW);
        bool unchanged = a_vary.kind == INTERPRET_STEADY && b_vary.kind == INTERPRET_STEADY;
        result = unchanged ? steady : parts ? rising(a_vary.rate) : same ? a_vary : any;
        flags_of(result, a | b, steady, 0, to->bytes, false);
        put(state, instruction, to, result, a | b);
        return true;
    }
    default: // ADC, SBB, XOR
        if (mnemonic != ZYDIS_MNEMONIC_XOR) {
            condition_bound(2 * BELOW);
        }
        result = a_vary.kind == INTERPRET_STEADY && b_vary.kind == INTERPRET_STEADY ? steady : any;
        flags_of(result, 0, steady, 0, to->bytes, true);
        put(state, instruction, to, result, 0);
        return true;
    }
}

static bool unary(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0];
    vary_t vary = of(state, instruction, to), result = any;
    uint64_t value = value_of(state, instruction, to);
    if (instruction->mnemonic == ZYDIS_MNEMONIC_INC) {
        result = vary;
        flags_of(result, value + 1, steady, 0, to->bytes, true);
        value++;
    } else if (instruction->mnemonic == ZYDIS_MNEMONIC_DEC) {
        result = vary;
        flags_of(result, value - 1, steady, 0, to->bytes, true);
        value--;
    } else {
        result = vary.kind == INTERPRET_STEADY ? steady : any;
        flags_of(result, 0, steady, 0, to->bytes, true);
    }
    put(state, instruction, to, result, value);
    return true;
}

static bool shift(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    vary_t vary = of(state, instruction, to), result = any;
    uint64_t value = value_of(state, instruction, to), by = 1;
    if (instruction->count > 1) {
        now.failed = now.failed || of(state, instruction, from).kind != INTERPRET_STEADY;
        by = value_of(state, instruction, from) & (to->bytes == 8 ? 63 : 31);
    }
    if (vary.kind == INTERPRET_STEADY) {
        result = steady;
    } else if (instruction->mnemonic == ZYDIS_MNEMONIC_SHL) {
        result = vary.kind == INTERPRET_COUNTER_HIGH && by == 32 && to->bytes == 8
                     ? (vary_t){INTERPRET_COUNTER_SHIFTED, 8, 0, vary.rate}
                     : times(vary, UINT64_C(1) << by);
        if (result.kind == INTERPRET_RISING) {
            bound_width(result, value << by, to->bytes);
        }
        value <<= by;
    } else if (instruction->mnemonic == ZYDIS_MNEMONIC_SHR || instruction->mnemonic == ZYDIS_MNEMONIC_SAR) {
        if (instruction->mnemonic == ZYDIS_MNEMONIC_SAR) {
            now.failed = now.failed || (value >> (8 * to->bytes - 1)) != 0;
            bound_sign(vary, value, to->bytes);
        }
        uint64_t rest = value & ((UINT64_C(1) << by) - 1);
        result = divided(vary, value, to->bytes, (double)(UINT64_C(1) << by));
        result = result.kind == INTERPRET_RISING
                     ? quotient((double)((UINT64_C(1) << by) - 1 - rest), vary.rate, result)
                     : result;
        value >>= by;
    }
    flags_of(result, value, steady, 0, to->bytes, true);
    put(state, instruction, to, result, value);
    return true;
}

static bool multiply(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0];
    now.flags = (struct vary_flags){.of = any}; // no program looks at them
    if (instruction->mnemonic == ZYDIS_MNEMONIC_IMUL && instruction->count >= 2) {
        unsigned first = instruction->count == 3 ? 1 : 0;
        const operand_t *a = &instruction->operands[first], *b = &instruction->operands[first + 1];
        vary_t a_vary = of(state, instruction, a), b_vary = of(state, instruction, b);
        uint64_t by = value_of(state, instruction, b);
        vary_t result = b_vary.kind == INTERPRET_STEADY ? times(a_vary, by)
                        : a_vary.kind == INTERPRET_STEADY ? times(b_vary, value_of(state, instruction, a))
                                                          : any;
        put(state, instruction, to, result, value_of(state, instruction, a) * by);
        return true;
    }
    vary_t a = now.registers[INTERPRET_RAX], b = of(state, instruction, to), high = any;
    uint64_t by = value_of(state, instruction, to), value = state->registers[INTERPRET_RAX];
    bool one = to->bytes == 8 && b.kind == INTERPRET_STEADY && instruction->mnemonic == ZYDIS_MNEMONIC_MUL;
    bool none = a.kind == INTERPRET_STEADY && b.kind == INTERPRET_STEADY;
    if (one && by != 0) {
        high = divided(a, value, 8, 18446744073709551616.0 / (double)by);
        high = high.kind == INTERPRET_RISING ? quotient((double)~(value * by), a.rate * (double)by, high) : high;
    }
    now.registers[INTERPRET_RDX] = none ? steady : high;
    now.registers[INTERPRET_RAX] = none ? steady : one && a.kind == INTERPRET_LINEAR ? times(a, by) : any;
    return true;
}

// Of a counter the rest is one as well, until it begins anew; of a clock only the quotient is known.
static bool divide(const state_t *state, const instruction_t *instruction)
{
    const operand_t *by = &instruction->operands[0];
    unsigned bytes = by->bytes;
    vary_t *rax = &now.registers[INTERPRET_RAX], *rdx = &now.registers[INTERPRET_RDX];
    vary_t vary = narrowed(*rax, bytes), high = *rdx, d = of(state, instruction, by);
    bool none = vary.kind == INTERPRET_STEADY && high.kind == INTERPRET_STEADY && d.kind == INTERPRET_STEADY;
    uint64_t value = interpret_cut(state->registers[INTERPRET_RAX], bytes), divisor = value_of(state, instruction, by);
    uint64_t top = instruction->mnemonic == ZYDIS_MNEMONIC_IDIV ? UINT64_C(1) << (8 * bytes - 1) : 0;
    bool plain = bytes >= 4 && high.kind == INTERPRET_STEADY && d.kind == INTERPRET_STEADY && divisor != 0 &&
                 interpret_cut(state->registers[INTERPRET_RDX], bytes) == 0 && ((value | divisor) & top) == 0;
    now.flags = (struct vary_flags){.of = any};
    if (none || !plain) {
        *rax = *rdx = none ? steady : any;
        return true;
    }
    *rax = divided(vary, value, bytes, (double)divisor);
    *rdx = any;
    if (vary.kind == INTERPRET_LINEAR && !falls(vary) && vary.step % divisor == 0) {
        *rax = interpret_linear(vary.step / divisor, 8);
        *rdx = steady;
    } else if (vary.kind == INTERPRET_LINEAR && !falls(vary)) {
        bound_distance(vary, (double)(divisor - 1 - value % divisor));
        *rax = steady;
        *rdx = vary;
    }
    return true;
}

static bool move(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    if (instruction->mnemonic == ZYDIS_MNEMONIC_LEA) {
        uint64_t address = 0;
        (void)interpret_address(state, instruction, from, &address);
        put(state, instruction, to, of_address(from), address);
        return true;
    }
    vary_t vary = of(state, instruction, from);
    uint64_t value = value_of(state, instruction, from);
    if (vary.kind != INTERPRET_STEADY && from->bytes < to->bytes) {
        bool is_signed = instruction->mnemonic != ZYDIS_MNEMONIC_MOVZX;
        vary = is_numeric(vary);
        if (is_signed) {
            bound_sign(vary, value, from->bytes);
        } else {
            bound_width(vary, value, from->bytes);
        }
    }
    put(state, instruction, to, vary, value);
    return true;
}

static bool widen(const state_t *state, const instruction_t *instruction)
{
    vary_t *rax = &now.registers[INTERPRET_RAX];
    uint64_t value = state->registers[INTERPRET_RAX];
    if (rax->kind == INTERPRET_STEADY) {
        now.registers[INTERPRET_RDX] = instruction->mnemonic == ZYDIS_MNEMONIC_CDQ ||
                                               instruction->mnemonic == ZYDIS_MNEMONIC_CQO
                                           ? steady
                                           : now.registers[INTERPRET_RDX];
        return true;
    }
    if (rax->kind > INTERPRET_RISING) {
        return false;
    }
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_CDQE:
        bound_sign(*rax, value, 4);
        return true;
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CQO:
        bound_sign(*rax, value, instruction->mnemonic == ZYDIS_MNEMONIC_CQO ? 8 : 4);
        now.registers[INTERPRET_RDX] = steady;
        return true;
    default:
        return false;
    }
}

static bool conditional(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0];
    condition_bound(instruction->condition);
    if (instruction->count == 1) { // SETcc
        put(state, instruction, to, steady, 0);
        return true;
    }
    const operand_t *from = &instruction->operands[interpret_condition(state->flags, instruction->condition) ? 1 : 0];
    put(state, instruction, to, of(state, instruction, from), value_of(state, instruction, from));
    return true;
}

static bool exchange(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    vary_t a = of(state, instruction, to), b = of(state, instruction, from);
    if (instruction->mnemonic == ZYDIS_MNEMONIC_XADD) {
        uint64_t x = value_of(state, instruction, to), y = value_of(state, instruction, from);
        flags_of(sum(a, b, 1), x + y, steady, 0, to->bytes, true);
        put(state, instruction, from, a, x);
        put(state, instruction, to, sum(a, b, 1), x + y);
        return true;
    }
    if (instruction->mnemonic == ZYDIS_MNEMONIC_CMPXCHG) {
        bool unchanged = a.kind == INTERPRET_STEADY && b.kind == INTERPRET_STEADY &&
                         now.registers[INTERPRET_RAX].kind == INTERPRET_STEADY;
        now.flags = (struct vary_flags){0};
        return unchanged;
    }
    put(state, instruction, from, a, value_of(state, instruction, to));
    put(state, instruction, to, b, value_of(state, instruction, from));
    return true;
}

// --- the stack, and whatever else ---------------------------------------------------------------------------------------

static bool stack_or_jump(const state_t *state, const instruction_t *instruction)
{
    const operand_t *first = &instruction->operands[0];
    uint64_t rsp = state->registers[INTERPRET_RSP];
    if (now.registers[INTERPRET_RSP].kind != INTERPRET_STEADY) {
        return false;
    }
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
        stored(rsp - 8, 8, of(state, instruction, first));
        return true;
    case ZYDIS_MNEMONIC_POP:
        put(state, instruction, first, loaded(rsp, 8), 0);
        return true;
    case ZYDIS_MNEMONIC_LEAVE: {
        bool known = now.registers[INTERPRET_RBP].kind == INTERPRET_STEADY;
        now.registers[INTERPRET_RBP] = loaded(state->registers[INTERPRET_RBP], 8);
        return known;
    }
    case ZYDIS_MNEMONIC_CALL:
        stored(rsp - 8, 8, steady);
        return of(state, instruction, first).kind == INTERPRET_STEADY;
    case ZYDIS_MNEMONIC_RET:
        return loaded(rsp, 8).kind == INTERPRET_STEADY;
    case ZYDIS_MNEMONIC_JMP:
        return of(state, instruction, first).kind == INTERPRET_STEADY;
    default:
        return false;
    }
}

static bool is_on_steady_values(const state_t *state, const instruction_t *instruction)
{
    bool unchanged = true;
    for (unsigned i = 0; i < instruction->count && i < INTERPRET_OPERANDS; i++) {
        const operand_t *operand = &instruction->operands[i];
        uint64_t address;
        if (operand->kind == INTERPRET_MEMORY && operand->bytes > 8) {
            unchanged = unchanged && address_of(state, instruction, operand, &address) &&
                        loaded(address, 8).kind == INTERPRET_STEADY && loaded(address + 8, 8).kind == INTERPRET_STEADY;
        } else {
            unchanged = unchanged && of(state, instruction, operand).kind == INTERPRET_STEADY;
        }
    }
    return unchanged;
}

// Strings and vectors: only if nothing varies in what they touch.
static bool other(const state_t *state, const instruction_t *instruction)
{
    static const uint8_t string_registers[] = {INTERPRET_RAX, INTERPRET_RCX, INTERPRET_RSI, INTERPRET_RDI};
    bool loads = instruction->mnemonic == ZYDIS_MNEMONIC_MOVSB || instruction->mnemonic == ZYDIS_MNEMONIC_MOVSQ;
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_PAUSE:
    case ZYDIS_MNEMONIC_LFENCE:
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_SFENCE:
    case ZYDIS_MNEMONIC_PREFETCHNTA:
    case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1:
    case ZYDIS_MNEMONIC_PREFETCHT2:
    case ZYDIS_MNEMONIC_PREFETCHW:
    case ZYDIS_MNEMONIC_CLD:
        return true;
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC:
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR:
    case ZYDIS_MNEMONIC_TZCNT:
    case ZYDIS_MNEMONIC_COMISD:
    case ZYDIS_MNEMONIC_UCOMISD:
        now.flags = (struct vary_flags){0};
        return is_on_steady_values(state, instruction);
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ: {
        uint64_t count = instruction->repeats ? state->registers[INTERPRET_RCX] : 1;
        for (unsigned i = 0; i < sizeof string_registers; i++) {
            if (now.registers[string_registers[i]].kind != INTERPRET_STEADY) {
                return false;
            }
        }
        for (uint64_t i = 0; i < count && i < 4096; i++) { // 8 bytes at most each
            if ((loads && loaded(state->registers[INTERPRET_RSI] + 8 * i, 1).kind != INTERPRET_STEADY) ||
                loaded(state->registers[INTERPRET_RDI] + 8 * i, 1).kind != INTERPRET_STEADY) {
                return false;
            }
        }
        return true;
    }
    default:
        return is_on_steady_values(state, instruction);
    }
}

static bool carry_out(const state_t *state, const instruction_t *instruction)
{
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_ADC:
    case ZYDIS_MNEMONIC_SBB:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_TEST:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_XOR:
        return arithmetic(state, instruction);
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
    case ZYDIS_MNEMONIC_NEG:
    case ZYDIS_MNEMONIC_NOT:
    case ZYDIS_MNEMONIC_BSWAP:
        return unary(state, instruction);
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
        return shift(state, instruction);
    case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MUL:
        return multiply(state, instruction);
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV:
        return divide(state, instruction);
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
    case ZYDIS_MNEMONIC_LEA:
        return move(state, instruction);
    case ZYDIS_MNEMONIC_XCHG:
    case ZYDIS_MNEMONIC_XADD:
    case ZYDIS_MNEMONIC_CMPXCHG:
        return exchange(state, instruction);
    case ZYDIS_MNEMONIC_CDQE:
    case ZYDIS_MNEMONIC_CWDE:
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CQO:
        return widen(state, instruction);
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_LEAVE:
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_JMP:
        return stack_or_jump(state, instruction);
    default:
        break;
    }
    if (instruction->category == ZYDIS_CATEGORY_COND_BR) {
        condition_bound(instruction->condition);
        return true;
    }
    if (instruction->category == ZYDIS_CATEGORY_CMOV || instruction->category == ZYDIS_CATEGORY_SETCC) {
        return conditional(state, instruction);
    }
    return other(state, instruction);
}

bool interpret_vary_step(const state_t *state, const instruction_t *instruction)
{
    bool known = carry_out(state, instruction);
    return known && !now.failed && now.iterations >= 1;
}
