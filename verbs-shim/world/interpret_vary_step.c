// What an instruction does to values that vary.
#include <Zydis/Zydis.h>

#include "verbs-shim/world/interpret_vary_internal.h"

// --- instructions -------------------------------------------------------------------------------------------------------

static bool same_register(const instruction_t *instruction)
{
    const operand_t *a = &instruction->operands[0], *b = &instruction->operands[1];
    return a->kind == INTERPRET_REGISTER && b->kind == INTERPRET_REGISTER && a->number == b->number &&
           a->high == b->high;
}

// What an instruction drops of its operands is in the carry, also if its result is steady.
static void carries_vary(bool varies)
{
    vary_now.flags.carry_varies = vary_now.flags.overflow_varies = varies;
}

static bool arithmetic(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    bool same = same_register(instruction);
    int mnemonic = (int)instruction->mnemonic;
    if (same && (mnemonic == ZYDIS_MNEMONIC_XOR || mnemonic == ZYDIS_MNEMONIC_SUB)) {
        vary_put(state, instruction, to, steady, 0);
        vary_now.flags = (struct vary_flags){0};
        return true;
    }
    vary_t a_vary = vary_of(state, instruction, to), b_vary = vary_of(state, instruction, from), result = steady;
    uint64_t a = vary_value_of(state, instruction, to),
             b = interpret_cut(vary_value_of(state, instruction, from), to->bytes);
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_CMP:
        vary_flags_of(a_vary, a, b_vary, b, to->bytes, false);
        return true;
    case ZYDIS_MNEMONIC_SUB:
        vary_flags_of(a_vary, a, b_vary, b, to->bytes, false);
        vary_put(state, instruction, to, vary_sum(a_vary, b_vary, -1), a - b);
        return true;
    case ZYDIS_MNEMONIC_ADD:
        result = b_vary.kind == INTERPRET_STEADY ? vary_plus(a_vary, b) : vary_sum(a_vary, b_vary, 1);
        vary_flags_of(result, a + b, steady, 0, to->bytes, true);
        carries_vary(a_vary.kind != INTERPRET_STEADY || b_vary.kind != INTERPRET_STEADY);
        vary_put(state, instruction, to, result, a + b);
        return true;
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_TEST:
        result = same                              ? a_vary
                 : b_vary.kind == INTERPRET_STEADY ? vary_masked(a_vary, a, b)
                 : a_vary.kind == INTERPRET_STEADY ? vary_masked(b_vary, b, a)
                                                   : any;
        vary_flags_of(result, a & b, steady, 0, to->bytes, false);
        if (mnemonic == ZYDIS_MNEMONIC_AND) {
            vary_put(state, instruction, to, result, a & b);
        }
        return true;
    case ZYDIS_MNEMONIC_OR: {
        bool parts = (a_vary.kind == INTERPRET_COUNTER_SHIFTED && b_vary.kind == INTERPRET_COUNTER_LOW) ||
                     (b_vary.kind == INTERPRET_COUNTER_SHIFTED && a_vary.kind == INTERPRET_COUNTER_LOW);
        bool unchanged = a_vary.kind == INTERPRET_STEADY && b_vary.kind == INTERPRET_STEADY;
        result = unchanged ? steady : parts ? interpret_rising(a_vary.rate, 1) : same ? a_vary : any;
        vary_flags_of(result, a | b, steady, 0, to->bytes, false);
        vary_put(state, instruction, to, result, a | b);
        return true;
    }
    default: // ADC, SBB, XOR
        if (mnemonic != ZYDIS_MNEMONIC_XOR) {
            vary_condition_bound(2 * VARY_BELOW);
        }
        result = a_vary.kind == INTERPRET_STEADY && b_vary.kind == INTERPRET_STEADY ? steady : any;
        vary_flags_of(result, 0, steady, 0, to->bytes, true);
        vary_put(state, instruction, to, result, 0);
        return true;
    }
}

static bool unary(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0];
    vary_t vary = vary_of(state, instruction, to), result = any;
    uint64_t value = vary_value_of(state, instruction, to);
    if (instruction->mnemonic == ZYDIS_MNEMONIC_INC || instruction->mnemonic == ZYDIS_MNEMONIC_DEC) {
        bool carry_varies = vary_now.flags.carry_varies || vary_now.flags.of.kind != INTERPRET_STEADY;
        uint64_t more = instruction->mnemonic == ZYDIS_MNEMONIC_INC ? 1 : UINT64_MAX;
        result = vary_plus(vary, more);
        value += more;
        vary_flags_of(result, value, steady, 0, to->bytes, true);
        vary_now.flags.carry_varies = carry_varies; // the carry stays that of an earlier instruction
    } else {
        result = vary.kind == INTERPRET_STEADY ? steady : any;
        if (instruction->mnemonic == ZYDIS_MNEMONIC_NEG) { // the others leave the flags as they are
            vary_flags_of(result, 0, steady, 0, to->bytes, true);
        }
    }
    vary_put(state, instruction, to, result, value);
    return true;
}

static bool shift(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    vary_t vary = vary_of(state, instruction, to), result = any;
    uint64_t value = vary_value_of(state, instruction, to), by = 1;
    if (instruction->count > 1) {
        vary_now.failed = vary_now.failed || vary_of(state, instruction, from).kind != INTERPRET_STEADY;
        by = vary_value_of(state, instruction, from) & (to->bytes == 8 ? 63 : 31);
    }
    if (vary.kind == INTERPRET_STEADY) {
        result = steady;
    } else if (instruction->mnemonic == ZYDIS_MNEMONIC_SHL) {
        result = vary.kind == INTERPRET_COUNTER_HIGH && by == 32 && to->bytes == 8
                     ? (vary_t){.kind = INTERPRET_COUNTER_SHIFTED, .bytes = 8, .rate = vary.rate}
                     : vary_times(vary, UINT64_C(1) << by);
        if (result.kind == INTERPRET_RISING) {
            vary_bound_width(result, value << by, to->bytes);
        }
        value <<= by;
    } else if (instruction->mnemonic == ZYDIS_MNEMONIC_SHR || instruction->mnemonic == ZYDIS_MNEMONIC_SAR) {
        if (instruction->mnemonic == ZYDIS_MNEMONIC_SAR) {
            vary_now.failed = vary_now.failed || (value >> (8 * to->bytes - 1)) != 0;
            vary_bound_sign(vary, value, to->bytes);
        }
        uint64_t rest = value & ((UINT64_C(1) << by) - 1);
        result = vary_divided(vary, value, to->bytes, (double)(UINT64_C(1) << by));
        result = result.kind == INTERPRET_RISING ? vary_quotient((double)((UINT64_C(1) << by) - 1 - rest), vary, result)
                                                 : result;
        value >>= by;
    }
    bool rotates = instruction->mnemonic == ZYDIS_MNEMONIC_ROL || instruction->mnemonic == ZYDIS_MNEMONIC_ROR;
    if (by != 0 && !(rotates && result.kind == INTERPRET_STEADY)) { // else all flags, or most, stay as they are
        vary_flags_of(result, value, steady, 0, to->bytes, true);
        carries_vary(vary.kind != INTERPRET_STEADY);
    }
    vary_put(state, instruction, to, result, value);
    return true;
}

static bool multiply(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0];
    vary_now.flags = (struct vary_flags){.of = any}; // no program looks at them
    if (instruction->mnemonic == ZYDIS_MNEMONIC_IMUL && instruction->count >= 2) {
        unsigned first = instruction->count == 3 ? 1 : 0;
        const operand_t *a = &instruction->operands[first], *b = &instruction->operands[first + 1];
        vary_t a_vary = vary_of(state, instruction, a), b_vary = vary_of(state, instruction, b);
        uint64_t by = vary_value_of(state, instruction, b);
        vary_t result = b_vary.kind == INTERPRET_STEADY   ? vary_times(a_vary, by)
                        : a_vary.kind == INTERPRET_STEADY ? vary_times(b_vary, vary_value_of(state, instruction, a))
                                                          : any;
        vary_put(state, instruction, to, result, vary_value_of(state, instruction, a) * by);
        return true;
    }
    vary_t a = vary_now.registers[INTERPRET_RAX], b = vary_of(state, instruction, to), high = any;
    uint64_t by = vary_value_of(state, instruction, to), value = state->registers[INTERPRET_RAX];
    bool one = to->bytes == 8 && b.kind == INTERPRET_STEADY && instruction->mnemonic == ZYDIS_MNEMONIC_MUL;
    bool none = a.kind == INTERPRET_STEADY && b.kind == INTERPRET_STEADY;
    if (one && by != 0) {
        high = vary_divided(a, value, 8, 18446744073709551616.0 / (double)by);
        vary_t product = vary_rising(a.rate * (double)by, vary_rounding(a) * (double)by, a);
        high = high.kind == INTERPRET_RISING ? vary_quotient((double)~(value * by), product, high) : high;
    }
    vary_now.registers[INTERPRET_RDX] = none ? steady : high;
    vary_now.registers[INTERPRET_RAX] = none ? steady : one && a.kind == INTERPRET_LINEAR ? vary_times(a, by) : any;
    return true;
}

// Of a counter the rest is one as well, until it begins anew; of a clock only the quotient is known.
static bool divide(const state_t *state, const instruction_t *instruction)
{
    const operand_t *by = &instruction->operands[0];
    unsigned bytes = by->bytes;
    vary_t *rax = &vary_now.registers[INTERPRET_RAX], *rdx = &vary_now.registers[INTERPRET_RDX];
    vary_t vary = vary_narrowed(*rax, bytes), high = *rdx, d = vary_of(state, instruction, by);
    bool none = vary.kind == INTERPRET_STEADY && high.kind == INTERPRET_STEADY && d.kind == INTERPRET_STEADY;
    uint64_t value = interpret_cut(state->registers[INTERPRET_RAX], bytes),
             divisor = vary_value_of(state, instruction, by);
    uint64_t top = instruction->mnemonic == ZYDIS_MNEMONIC_IDIV ? UINT64_C(1) << (8 * bytes - 1) : 0;
    bool plain = bytes >= 4 && high.kind == INTERPRET_STEADY && d.kind == INTERPRET_STEADY && divisor != 0 &&
                 interpret_cut(state->registers[INTERPRET_RDX], bytes) == 0 && ((value | divisor) & top) == 0;
    vary_now.flags = (struct vary_flags){.of = any};
    if (none || !plain) {
        *rax = *rdx = none ? steady : any;
        return true;
    }
    if (vary.kind != INTERPRET_LINEAR || vary_falls(vary) || vary.modulus % divisor != 0) {
        *rax = vary_divided(vary, value, bytes, (double)divisor);
        *rdx = any;
        return true;
    }
    vary_bound_width(vary, value, bytes);
    bool modular = vary.modulus != 0, whole = vary.step % divisor == 0;
    *rax = modular ? any : whole ? vary_linear(vary.step / divisor, 8, vary) : steady;
    vary.modulus = 0;
    *rdx = whole ? steady : vary;
    if (!whole) {
        vary_bound_room(vary, (double)(value % divisor), (double)(divisor - 1 - value % divisor));
    }
    return true;
}

static bool move(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    if (instruction->mnemonic == ZYDIS_MNEMONIC_LEA) {
        uint64_t address = 0;
        (void)interpret_address(state, instruction, from, &address);
        vary_put(state, instruction, to, vary_of_address(from), address);
        return true;
    }
    vary_t vary = vary_of(state, instruction, from);
    uint64_t value = vary_value_of(state, instruction, from);
    if (vary.kind != INTERPRET_STEADY && from->bytes < to->bytes) {
        bool is_signed = instruction->mnemonic != ZYDIS_MNEMONIC_MOVZX;
        vary = vary_is_numeric(vary);
        if (is_signed) {
            vary_bound_sign(vary, value, from->bytes);
        } else {
            vary_bound_width(vary, value, from->bytes);
        }
    }
    vary_put(state, instruction, to, vary, value);
    return true;
}

static bool widen(const state_t *state, const instruction_t *instruction)
{
    vary_t *rax = &vary_now.registers[INTERPRET_RAX];
    uint64_t value = state->registers[INTERPRET_RAX];
    if (rax->kind == INTERPRET_STEADY) {
        vary_now.registers[INTERPRET_RDX] =
            instruction->mnemonic == ZYDIS_MNEMONIC_CDQ || instruction->mnemonic == ZYDIS_MNEMONIC_CQO
                ? steady
                : vary_now.registers[INTERPRET_RDX];
        return true;
    }
    if (rax->kind > INTERPRET_RISING) {
        return false;
    }
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_CDQE:
        vary_bound_sign(*rax, value, 4);
        return true;
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CQO:
        vary_bound_sign(*rax, value, instruction->mnemonic == ZYDIS_MNEMONIC_CQO ? 8 : 4);
        vary_now.registers[INTERPRET_RDX] = steady;
        return true;
    default:
        return false;
    }
}

static bool conditional(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0];
    vary_condition_bound(instruction->condition);
    if (instruction->count == 1) { // SETcc
        vary_put(state, instruction, to, steady, 0);
        return true;
    }
    const operand_t *from = &instruction->operands[interpret_condition(state->flags, instruction->condition) ? 1 : 0];
    vary_put(state, instruction, to, vary_of(state, instruction, from), vary_value_of(state, instruction, from));
    return true;
}

static bool exchange(const state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    vary_t a = vary_of(state, instruction, to), b = vary_of(state, instruction, from);
    if (instruction->mnemonic == ZYDIS_MNEMONIC_XADD) {
        uint64_t x = vary_value_of(state, instruction, to), y = vary_value_of(state, instruction, from);
        vary_flags_of(vary_sum(a, b, 1), x + y, steady, 0, to->bytes, true);
        vary_put(state, instruction, from, a, x);
        vary_put(state, instruction, to, vary_sum(a, b, 1), x + y);
        return true;
    }
    if (instruction->mnemonic == ZYDIS_MNEMONIC_CMPXCHG) {
        bool unchanged = a.kind == INTERPRET_STEADY && b.kind == INTERPRET_STEADY &&
                         vary_now.registers[INTERPRET_RAX].kind == INTERPRET_STEADY;
        vary_now.flags = (struct vary_flags){0};
        return unchanged;
    }
    vary_put(state, instruction, from, a, vary_value_of(state, instruction, to));
    vary_put(state, instruction, to, b, vary_value_of(state, instruction, from));
    return true;
}

// --- the stack, and whatever else ---------------------------------------------------------------------------------------

static bool stack_or_jump(const state_t *state, const instruction_t *instruction)
{
    const operand_t *first = &instruction->operands[0];
    uint64_t rsp = state->registers[INTERPRET_RSP];
    if (vary_now.registers[INTERPRET_RSP].kind != INTERPRET_STEADY) {
        return false;
    }
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
        vary_stored(rsp - 8, 8, vary_of(state, instruction, first));
        return true;
    case ZYDIS_MNEMONIC_POP:
        vary_put(state, instruction, first, vary_loaded(rsp, 8), 0);
        return true;
    case ZYDIS_MNEMONIC_LEAVE: {
        bool known = vary_now.registers[INTERPRET_RBP].kind == INTERPRET_STEADY;
        vary_now.registers[INTERPRET_RBP] = vary_loaded(state->registers[INTERPRET_RBP], 8);
        return known;
    }
    case ZYDIS_MNEMONIC_CALL:
        vary_stored(rsp - 8, 8, steady);
        return vary_of(state, instruction, first).kind == INTERPRET_STEADY;
    case ZYDIS_MNEMONIC_RET:
        return vary_loaded(rsp, 8).kind == INTERPRET_STEADY;
    case ZYDIS_MNEMONIC_JMP:
        return vary_of(state, instruction, first).kind == INTERPRET_STEADY;
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
            unchanged = unchanged && vary_address_of(state, instruction, operand, &address) &&
                        vary_loaded(address, 8).kind == INTERPRET_STEADY &&
                        vary_loaded(address + 8, 8).kind == INTERPRET_STEADY;
        } else {
            unchanged = unchanged && vary_of(state, instruction, operand).kind == INTERPRET_STEADY;
        }
    }
    return unchanged;
}

enum { STRING_BYTES_MAX = 4096 };

bool interpret_vary_is_steady(uint64_t address, uint64_t bytes)
{
    bool unchanged = true;
    for (uint64_t word = address & ~UINT64_C(7); vary_now.on && word < address + bytes && unchanged; word += 8) {
        unchanged = vary_loaded(word, 8).kind == INTERPRET_STEADY;
    }
    return unchanged;
}

// Strings and vectors: only if nothing varies in what they touch.
static bool other(const state_t *state, const instruction_t *instruction)
{
    static const uint8_t string_registers[] = {INTERPRET_RAX, INTERPRET_RCX, INTERPRET_RSI, INTERPRET_RDI};
    bool loads = instruction->mnemonic == ZYDIS_MNEMONIC_MOVSB || instruction->mnemonic == ZYDIS_MNEMONIC_MOVSD ||
                 instruction->mnemonic == ZYDIS_MNEMONIC_MOVSQ;
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
        vary_now.flags = (struct vary_flags){0};
        return is_on_steady_values(state, instruction);
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSQ:
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ: {
        uint64_t count = instruction->repeats ? state->registers[INTERPRET_RCX] : 1;
        for (unsigned i = 0; i < sizeof string_registers; i++) {
            if (vary_now.registers[string_registers[i]].kind != INTERPRET_STEADY) {
                return false;
            }
        }
        uint64_t bytes = count < STRING_BYTES_MAX ? 8 * count : 0; // at most; more are not interpreted
        return interpret_vary_is_steady(state->registers[INTERPRET_RDI], bytes) &&
               (!loads || interpret_vary_is_steady(state->registers[INTERPRET_RSI], bytes));
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
    case ZYDIS_MNEMONIC_CMPXCHG16B: // of registers that it does not name
        vary_now.flags = (struct vary_flags){0};
        return (vary_now.varying & 0xf) == 0 && is_on_steady_values(state, instruction);
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
    bool known;
    if (vary_reals(state, instruction, &known)) {
        return known;
    }
    if (instruction->category == ZYDIS_CATEGORY_COND_BR) {
        vary_condition_bound(instruction->condition);
        return true;
    }
    if (instruction->category == ZYDIS_CATEGORY_CMOV || instruction->category == ZYDIS_CATEGORY_SETCC) {
        return conditional(state, instruction);
    }
    return other(state, instruction);
}

// All that it touches is steady, and so is what it makes of that. What it leaves of older flags is steady as well.
static bool is_steady(const state_t *state, const instruction_t *instruction)
{
    uint64_t address = 0;
    bool untouched = instruction->plain && ((uint32_t)instruction->registers & vary_now.varying) == 0 &&
                     ((uint32_t)instruction->vectors << 16 & vary_now.varying) == 0 &&
                     vary_now.flags.of.kind == INTERPRET_STEADY && !vary_now.flags.carry_varies &&
                     !vary_now.flags.overflow_varies;
    if (!untouched || instruction->memory == NULL) {
        return untouched;
    }
    bool known = interpret_address(state, instruction, instruction->memory, &address);
    uint64_t touched = interpret_bit_of(address) | interpret_bit_of(address + instruction->memory->bytes - 1);
    touched |= instruction->memory->bytes > 8 ? interpret_bit_of(address + 8) : 0; // one of three words
    return known && (vary_now.words & touched) == 0;
}

static void varying_note(void)
{
    vary_now.varying = 0;
    for (unsigned i = 0; i < INTERPRET_REGISTERS; i++) {
        vary_now.varying |= vary_now.registers[i].kind != INTERPRET_STEADY ? 1u << i : 0;
        vary_now.varying |= vary_now.vectors[i].kind != INTERPRET_STEADY ? 1u << (16 + i) : 0;
    }
}

bool interpret_vary_step(const state_t *state, const instruction_t *instruction)
{
    bool known = is_steady(state, instruction);
    if (!known) {
        known = carry_out(state, instruction);
        varying_note();
    }
    return known && !vary_now.failed && vary_now.steps[INTERPRET_CLOCKS] >= 1 &&
           vary_now.steps[INTERPRET_COUNTERS] >= 1;
}
