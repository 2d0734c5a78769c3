// Instructions on general registers. Flags: Intel 64 SDM volume 1, appendix A; AF is left
// out, and a flag that the manual calls undefined keeps some value, as no program depends on it.
#include <Zydis/Zydis.h>

#include "verbs-shim/world/interpret_internal.h"

enum { ALL_FLAGS = INTERPRET_CF | INTERPRET_PF | INTERPRET_ZF | INTERPRET_SF | INTERPRET_OF };

typedef struct interpret_state state_t;
typedef struct interpret_instruction instruction_t;

static bool sign(uint64_t value, unsigned bytes)
{
    return (value >> (8 * bytes - 1) & 1) != 0;
}

static int64_t extended(uint64_t value, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(value << shift) >> shift;
}

// --- flags --------------------------------------------------------------------------------------------------------------

static void flags_set(state_t *state, uint64_t result, unsigned bytes, bool carry, bool overflow)
{
    bool even = (__builtin_popcount((unsigned)(result & 0xff)) & 1) == 0;
    interpret_flags_put(state, (carry ? INTERPRET_CF : 0u) | (even ? INTERPRET_PF : 0u) |
                                   (interpret_cut(result, bytes) == 0 ? INTERPRET_ZF : 0u) |
                                   (sign(result, bytes) ? INTERPRET_SF : 0u) | (overflow ? INTERPRET_OF : 0u));
}

// The others stay as they are.
static void flag_set(state_t *state, unsigned flag, bool is)
{
    state->flags = (uint16_t)((state->flags & ~flag) | (is ? flag : 0));
    state->flags_known |= (uint16_t)flag;
}

static void flags_undefine(state_t *state, unsigned flags)
{
    state->flags_known &= (uint16_t)~flags;
}

static uint64_t add(state_t *state, uint64_t a, uint64_t b, bool carry, unsigned bytes)
{
    uint64_t sum = interpret_cut(a + b + carry, bytes);
    bool out = bytes == 8 ? sum < a || (carry && sum == a)
                          : (interpret_cut(a, bytes) + interpret_cut(b, bytes) + carry) >> 8 * bytes != 0;
    flags_set(state, sum, bytes, out, sign((a ^ sum) & (b ^ sum), bytes));
    return sum;
}

static uint64_t subtract(state_t *state, uint64_t a, uint64_t b, bool borrow, unsigned bytes)
{
    a = interpret_cut(a, bytes);
    b = interpret_cut(b, bytes);
    uint64_t difference = interpret_cut(a - b - borrow, bytes);
    flags_set(state, difference, bytes, a < b || (borrow && a == b), sign((a ^ b) & (a ^ difference), bytes));
    return difference;
}

// --- two operands -------------------------------------------------------------------------------------------------------

static bool both(state_t *state, const instruction_t *instruction, uint64_t *a, uint64_t *b)
{
    return interpret_get(state, instruction, &instruction->operands[0], a) &&
           interpret_get(state, instruction, &instruction->operands[1], b);
}

// xor %eax, %eax has a result whatever the register has, and so has sbb: the carry.
static bool clears(const instruction_t *instruction)
{
    const struct interpret_operand *to = &instruction->operands[0], *from = &instruction->operands[1];
    return (instruction->mnemonic == ZYDIS_MNEMONIC_XOR || instruction->mnemonic == ZYDIS_MNEMONIC_SUB ||
            instruction->mnemonic == ZYDIS_MNEMONIC_SBB) &&
           to->kind == INTERPRET_REGISTER && from->kind == INTERPRET_REGISTER && to->number == from->number &&
           to->high == from->high;
}

static bool arithmetic(state_t *state, const instruction_t *instruction)
{
    uint64_t a = 0, b = 0, result = 0;
    unsigned bytes = instruction->operands[0].bytes;
    bool carry = (state->flags & INTERPRET_CF) != 0, keeps = false;
    bool carries = instruction->mnemonic == ZYDIS_MNEMONIC_ADC || instruction->mnemonic == ZYDIS_MNEMONIC_SBB;
    if ((carries && (state->flags_known & INTERPRET_CF) == 0) ||
        (!clears(instruction) && !both(state, instruction, &a, &b))) {
        return false;
    }
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
        result = add(state, a, b, false, bytes);
        break;
    case ZYDIS_MNEMONIC_SUB:
        result = subtract(state, a, b, false, bytes);
        break;
    case ZYDIS_MNEMONIC_CMP:
        result = subtract(state, a, b, false, bytes);
        keeps = true;
        break;
    case ZYDIS_MNEMONIC_ADC:
        result = add(state, a, b, carry, bytes);
        break;
    case ZYDIS_MNEMONIC_SBB:
        result = subtract(state, a, b, carry, bytes);
        break;
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_TEST:
        result = a & b;
        keeps = instruction->mnemonic == ZYDIS_MNEMONIC_TEST;
        flags_set(state, result, bytes, false, false);
        break;
    case ZYDIS_MNEMONIC_OR:
        result = a | b;
        flags_set(state, result, bytes, false, false);
        break;
    default: // XOR
        result = a ^ b;
        flags_set(state, result, bytes, false, false);
        break;
    }
    return keeps || interpret_put(state, instruction, &instruction->operands[0], result);
}

static void carry_keep(state_t *state, unsigned flags, unsigned known)
{
    state->flags = (uint16_t)((state->flags & ~INTERPRET_CF) | (flags & INTERPRET_CF));
    state->flags_known = (uint16_t)((state->flags_known & ~INTERPRET_CF) | (known & INTERPRET_CF));
}

static bool unary(state_t *state, const instruction_t *instruction)
{
    const struct interpret_operand *operand = &instruction->operands[0];
    uint64_t value;
    unsigned bytes = operand->bytes;
    if (!interpret_get(state, instruction, operand, &value)) {
        return false;
    }
    const unsigned flags = state->flags, known = state->flags_known;
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_INC: // leaves CF as it was
        value = add(state, value, 1, false, bytes);
        carry_keep(state, flags, known);
        break;
    case ZYDIS_MNEMONIC_DEC:
        value = subtract(state, value, 1, false, bytes);
        carry_keep(state, flags, known);
        break;
    case ZYDIS_MNEMONIC_NEG:
        value = subtract(state, 0, value, false, bytes);
        break;
    case ZYDIS_MNEMONIC_BSWAP:
        value = bytes == 8 ? __builtin_bswap64(value) : __builtin_bswap32((uint32_t)value);
        break;
    default: // NOT
        value = ~value;
        break;
    }
    return interpret_put(state, instruction, operand, value);
}

static bool shift(state_t *state, const instruction_t *instruction)
{
    uint64_t value, by = 1;
    unsigned bytes = instruction->operands[0].bytes, bits = 8 * bytes;
    if (!interpret_get(state, instruction, &instruction->operands[0], &value) ||
        (instruction->count > 1 && !interpret_get(state, instruction, &instruction->operands[1], &by))) {
        return false;
    }
    by &= bytes == 8 ? 63 : 31;
    if (by == 0) {
        return interpret_put(state, instruction, &instruction->operands[0], value);
    }
    uint64_t result = 0;
    bool carry = false, overflow = false, rotates = false;
    unsigned turn = (unsigned)(by % bits);
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
        result = by < bits ? interpret_cut(value << by, bytes) : 0;
        carry = by <= bits && (value >> (bits - by) & 1) != 0;
        overflow = sign(result, bytes) != carry;
        break;
    case ZYDIS_MNEMONIC_SHR:
        result = by < bits ? value >> by : 0;
        carry = by <= bits && (value >> (by - 1) & 1) != 0;
        overflow = sign(value, bytes);
        break;
    case ZYDIS_MNEMONIC_SAR:
        result = interpret_cut((uint64_t)(extended(value, bytes) >> (by < bits ? by : bits - 1)), bytes);
        carry = (extended(value, bytes) >> (by - 1 < 63 ? by - 1 : 63) & 1) != 0;
        break;
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
        turn = instruction->mnemonic == ZYDIS_MNEMONIC_ROR ? (bits - turn) % bits : turn;
        result = turn == 0 ? value : interpret_cut(value << turn | value >> (bits - turn), bytes);
        carry = instruction->mnemonic == ZYDIS_MNEMONIC_ROL ? (result & 1) != 0 : sign(result, bytes);
        rotates = true;
        break;
    default:
        return false;
    }
    if (rotates) {
        flag_set(state, INTERPRET_CF, carry);
        flags_undefine(state, INTERPRET_OF);
    } else {
        bool is_signed = instruction->mnemonic == ZYDIS_MNEMONIC_SAR;
        flags_set(state, result, bytes, carry, overflow);
        flags_undefine(state, (by > 1 ? INTERPRET_OF : 0u) | (by >= bits && !is_signed ? INTERPRET_CF : 0u));
    }
    return interpret_put(state, instruction, &instruction->operands[0], result);
}

// --- multiplication and division ------------------------------------------------------------------------------------------

static void product_flags_set(state_t *state, bool large)
{
    interpret_flags_put(state, large ? INTERPRET_CF | INTERPRET_OF : 0u);
    flags_undefine(state, INTERPRET_PF | INTERPRET_ZF | INTERPRET_SF);
}

static bool multiply(state_t *state, const instruction_t *instruction)
{
    bool is_signed = instruction->mnemonic == ZYDIS_MNEMONIC_IMUL;
    unsigned bytes = instruction->operands[0].bytes;
    uint64_t a, b;
    if (is_signed && instruction->count >= 2 && instruction->operands[1].kind != INTERPRET_NONE) {
        unsigned first = instruction->count == 3 ? 1 : 0;
        if (!interpret_get(state, instruction, &instruction->operands[first], &a) ||
            !interpret_get(state, instruction, &instruction->operands[first + 1], &b)) {
            return false;
        }
        __int128 product = (__int128)extended(a, bytes) *
                           extended(b, instruction->operands[first + 1].kind == INTERPRET_IMMEDIATE ? 8 : bytes);
        bool large = product != extended((uint64_t)product, bytes);
        product_flags_set(state, large);
        return interpret_put(state, instruction, &instruction->operands[0], (uint64_t)product);
    }
    if (bytes < 4 || (state->known >> INTERPRET_RAX & 1) == 0 ||
        !interpret_get(state, instruction, &instruction->operands[0], &b)) {
        return false;
    }
    a = interpret_cut(state->registers[INTERPRET_RAX], bytes);
    unsigned __int128 product =
        is_signed ? (unsigned __int128)((__int128)extended(a, bytes) * extended(b, bytes)) : (unsigned __int128)a * b;
    uint64_t low = interpret_cut((uint64_t)product, bytes),
             high = interpret_cut((uint64_t)(product >> 8 * bytes), bytes);
    bool large = is_signed ? (__int128)product != extended(low, bytes) : high != 0;
    state->registers[INTERPRET_RAX] = low;
    state->registers[INTERPRET_RDX] = high;
    state->known |= 1u << INTERPRET_RDX;
    product_flags_set(state, large);
    return true;
}

static bool divide(state_t *state, const instruction_t *instruction)
{
    unsigned bytes = instruction->operands[0].bytes;
    const unsigned both_known = 1u << INTERPRET_RAX | 1u << INTERPRET_RDX;
    uint64_t by;
    if (bytes < 4 || (state->known & both_known) != both_known ||
        !interpret_get(state, instruction, &instruction->operands[0], &by) || by == 0) {
        return false;
    }
    unsigned __int128 value = (unsigned __int128)interpret_cut(state->registers[INTERPRET_RDX], bytes) << 8 * bytes |
                              interpret_cut(state->registers[INTERPRET_RAX], bytes);
    uint64_t quotient, rest;
    if (instruction->mnemonic == ZYDIS_MNEMONIC_DIV) {
        if (value / by > interpret_cut(UINT64_MAX, bytes)) {
            return false; // the program would fault
        }
        quotient = (uint64_t)(value / by);
        rest = (uint64_t)(value % by);
    } else {
        __int128 number = bytes == 8 ? (__int128)value : (__int128)(int64_t)value;
        __int128 result = number / extended(by, bytes);
        if (result != extended((uint64_t)result, bytes)) {
            return false;
        }
        quotient = (uint64_t)result;
        rest = (uint64_t)(number % extended(by, bytes));
    }
    state->registers[INTERPRET_RAX] = interpret_cut(quotient, bytes);
    state->registers[INTERPRET_RDX] = interpret_cut(rest, bytes);
    flags_undefine(state, INTERPRET_FLAGS);
    return true;
}

// cbw, cwde, cdqe; cwd, cdq, cqo
static bool widen(state_t *state, const instruction_t *instruction)
{
    uint64_t *rax = &state->registers[INTERPRET_RAX];
    if ((state->known >> INTERPRET_RAX & 1) == 0) {
        return false;
    }
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_CDQE:
        *rax = (uint64_t)extended(*rax, 4);
        return true;
    case ZYDIS_MNEMONIC_CWDE:
        *rax = interpret_cut((uint64_t)extended(*rax, 2), 4);
        return true;
    case ZYDIS_MNEMONIC_CDQ:
        state->registers[INTERPRET_RDX] = sign(*rax, 4) ? UINT32_MAX : 0;
        break;
    case ZYDIS_MNEMONIC_CQO:
        state->registers[INTERPRET_RDX] = sign(*rax, 8) ? UINT64_MAX : 0;
        break;
    default:
        return false;
    }
    state->known |= 1u << INTERPRET_RDX;
    return true;
}

// --- moves ----------------------------------------------------------------------------------------------------------------

static bool move(state_t *state, const instruction_t *instruction)
{
    const struct interpret_operand *to = &instruction->operands[0], *from = &instruction->operands[1];
    uint64_t value, address;
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_LEA:
        return interpret_address(state, instruction, from, &address) && interpret_put(state, instruction, to, address);
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
        return interpret_get(state, instruction, from, &value) &&
               interpret_put(state, instruction, to, (uint64_t)extended(value, from->bytes));
    default: // MOV, MOVZX
        return interpret_get(state, instruction, from, &value) && interpret_put(state, instruction, to, value);
    }
}

static bool conditional(state_t *state, const instruction_t *instruction)
{
    const struct interpret_operand *to = &instruction->operands[0];
    uint64_t value;
    bool holds;
    if (!interpret_condition_known(state, instruction->condition, &holds)) {
        return false;
    }
    if (instruction->count == 1) { // SETcc
        return interpret_put(state, instruction, to, holds);
    }
    // CMOVcc reads its source in any case, and clears the upper half in any case.
    return interpret_get(state, instruction, &instruction->operands[holds ? 1 : 0], &value) &&
           interpret_put(state, instruction, to, value);
}

static bool exchange(state_t *state, const instruction_t *instruction)
{
    const struct interpret_operand *to = &instruction->operands[0], *from = &instruction->operands[1];
    uint64_t a, b;
    unsigned bytes = to->bytes;
    if (!both(state, instruction, &a, &b)) {
        return false;
    }
    if (instruction->mnemonic == ZYDIS_MNEMONIC_CMPXCHG) {
        if ((state->known >> INTERPRET_RAX & 1) == 0) {
            return false;
        }
        uint64_t wanted = interpret_cut(state->registers[INTERPRET_RAX], bytes);
        (void)subtract(state, wanted, a, false, bytes);
        const struct interpret_operand accumulator = {
            .kind = INTERPRET_REGISTER, .bytes = (uint8_t)bytes, .number = INTERPRET_RAX};
        return wanted == a ? interpret_put(state, instruction, to, b)
                           : interpret_put(state, instruction, &accumulator, a);
    }
    uint64_t stored = instruction->mnemonic == ZYDIS_MNEMONIC_XADD ? add(state, a, b, false, bytes) : b;
    return interpret_put(state, instruction, from, a) && interpret_put(state, instruction, to, stored);
}

static void register_put(state_t *state, unsigned number, uint64_t value)
{
    state->registers[number] = value;
    state->known |= (uint16_t)(1u << number);
}

// cmpxchg16b: rdx:rax with memory, which gets rcx:rbx if both are equal. The other flags stay, which no program uses.
static bool exchange_16(state_t *state, const instruction_t *instruction)
{
    static const uint16_t read = 1u << INTERPRET_RAX | 1u << INTERPRET_RDX | 1u << INTERPRET_RBX | 1u << INTERPRET_RCX;
    const uint64_t *registers = state->registers;
    uint64_t address;
    if ((state->known & read) != read || !interpret_address(state, instruction, &instruction->operands[0], &address) ||
        address % 16 != 0) {
        return false;
    }
    uint64_t low = interpret_load(address, 8), high = interpret_load(address + 8, 8);
    bool equal = low == registers[INTERPRET_RAX] && high == registers[INTERPRET_RDX];
    interpret_store(address, 8, equal ? registers[INTERPRET_RBX] : low);
    interpret_store(address + 8, 8, equal ? registers[INTERPRET_RCX] : high);
    if (!equal) {
        register_put(state, INTERPRET_RAX, low);
        register_put(state, INTERPRET_RDX, high);
    }
    flag_set(state, INTERPRET_ZF, equal);
    flags_undefine(state, INTERPRET_FLAGS & ~INTERPRET_ZF);
    return true;
}

// --- bits ---------------------------------------------------------------------------------------------------------------

static bool bit_test(state_t *state, const instruction_t *instruction)
{
    uint64_t value, number;
    const struct interpret_operand *to = &instruction->operands[0];
    if (to->kind != INTERPRET_REGISTER && instruction->operands[1].kind != INTERPRET_IMMEDIATE) {
        return false; // the bit may be in another word
    }
    if (!both(state, instruction, &value, &number)) {
        return false;
    }
    uint64_t bit = UINT64_C(1) << number % (8u * to->bytes);
    flag_set(state, INTERPRET_CF, (value & bit) != 0);
    flags_undefine(state, INTERPRET_FLAGS & ~INTERPRET_CF); // ZF is as it was, which no program uses
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_BTS:
        return interpret_put(state, instruction, to, value | bit);
    case ZYDIS_MNEMONIC_BTR:
        return interpret_put(state, instruction, to, value & ~bit);
    case ZYDIS_MNEMONIC_BTC:
        return interpret_put(state, instruction, to, value ^ bit);
    default: // BT
        return true;
    }
}

static bool bit_find(state_t *state, const instruction_t *instruction)
{
    uint64_t value;
    if (!interpret_get(state, instruction, &instruction->operands[1], &value) || value == 0) {
        return false;
    }
    bool last = instruction->mnemonic == ZYDIS_MNEMONIC_BSR;
    uint64_t found = last ? 63u - (unsigned)__builtin_clzll(value) : (unsigned)__builtin_ctzll(value);
    bool counts = instruction->mnemonic == ZYDIS_MNEMONIC_TZCNT;
    flags_set(state, counts ? found : value, 8, false, false);
    flags_undefine(state, INTERPRET_PF | INTERPRET_SF | INTERPRET_OF | (counts ? 0u : INTERPRET_CF));
    return interpret_put(state, instruction, &instruction->operands[0], found);
}

bool interpret_integer(state_t *state, const instruction_t *instruction)
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
    case ZYDIS_MNEMONIC_CMPXCHG16B:
        return exchange_16(state, instruction);
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC:
        return bit_test(state, instruction);
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR:
    case ZYDIS_MNEMONIC_TZCNT:
        return bit_find(state, instruction);
    case ZYDIS_MNEMONIC_CDQE:
    case ZYDIS_MNEMONIC_CWDE:
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CQO:
        return widen(state, instruction);
    default:
        break;
    }
    if (instruction->category == ZYDIS_CATEGORY_CMOV || instruction->category == ZYDIS_CATEGORY_SETCC) {
        return conditional(state, instruction);
    }
    return false;
}
