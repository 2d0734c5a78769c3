// Moves and bits of SSE, with which compilers copy and clear structures.
#include <Zydis/Zydis.h>
#include <string.h>

#include "verbs-shim/world/interpret_internal.h"

typedef struct interpret_state state_t;
typedef struct interpret_instruction instruction_t;
typedef struct interpret_operand operand_t;

static bool is_known(const state_t *state, unsigned number)
{
    return (state->vectors_known >> number & 1) != 0;
}

// The lower bytes: 4, 8 or 16.
static bool get(state_t *state, const instruction_t *instruction, const operand_t *operand, unsigned bytes,
                struct interpret_vector *value_out)
{
    uint64_t address;
    *value_out = (struct interpret_vector){0};
    if (operand->kind == INTERPRET_VECTOR) {
        *value_out = state->vectors[operand->number];
        value_out->high = bytes == 16 ? value_out->high : 0;
        value_out->low = bytes == 4 ? (uint32_t)value_out->low : value_out->low;
        return is_known(state, operand->number);
    }
    if (operand->kind == INTERPRET_REGISTER) {
        return interpret_get(state, instruction, operand, &value_out->low);
    }
    if (operand->kind != INTERPRET_MEMORY || !interpret_address(state, instruction, operand, &address)) {
        return false;
    }
    value_out->low = interpret_load(address, bytes < 8 ? bytes : 8);
    value_out->high = bytes == 16 ? interpret_load(address + 8, 8) : 0;
    return true;
}

static bool put(state_t *state, const instruction_t *instruction, const operand_t *operand, unsigned bytes,
                struct interpret_vector value)
{
    uint64_t address;
    if (operand->kind == INTERPRET_VECTOR) {
        state->vectors[operand->number] = value;
        state->vectors_known |= (uint16_t)(1u << operand->number);
        return true;
    }
    if (operand->kind == INTERPRET_REGISTER) {
        return interpret_put(state, instruction, operand, value.low);
    }
    if (operand->kind != INTERPRET_MEMORY || !interpret_address(state, instruction, operand, &address)) {
        return false;
    }
    interpret_store(address, bytes < 8 ? bytes : 8, value.low);
    if (bytes == 16) {
        interpret_store(address + 8, 8, value.high);
    }
    return true;
}

static bool move(state_t *state, const instruction_t *instruction, unsigned bytes)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    struct interpret_vector value;
    return get(state, instruction, from, bytes, &value) && put(state, instruction, to, bytes, value);
}

// One half of a vector, from or to memory or (movhlps, movlhps) another vector.
static bool move_half(state_t *state, const instruction_t *instruction, bool high)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    struct interpret_vector value;
    if (to->kind == INTERPRET_VECTOR && from->kind == INTERPRET_MEMORY) {
        if (!is_known(state, to->number) || !get(state, instruction, from, 8, &value)) {
            return false;
        }
        *(high ? &state->vectors[to->number].high : &state->vectors[to->number].low) = value.low;
        return true;
    }
    if (to->kind != INTERPRET_MEMORY || from->kind != INTERPRET_VECTOR || !is_known(state, from->number)) {
        return false;
    }
    value = state->vectors[from->number];
    value.low = high ? value.high : value.low;
    return put(state, instruction, to, 8, value);
}

// Two numbers of 32 bits, added to two.
static uint64_t paired(uint64_t a, uint64_t b)
{
    return (uint32_t)(a + b) | ((a >> 32) + (b >> 32)) << 32;
}

static bool combine(state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    struct interpret_vector a, b;
    bool same = from->kind == INTERPRET_VECTOR && from->number == to->number;
    bool exclusive = instruction->mnemonic == ZYDIS_MNEMONIC_PXOR || instruction->mnemonic == ZYDIS_MNEMONIC_XORPS ||
                     instruction->mnemonic == ZYDIS_MNEMONIC_XORPD;
    if (same && exclusive) { // a zero, whatever the register has
        return put(state, instruction, to, 16, (struct interpret_vector){0});
    }
    if (!get(state, instruction, to, 16, &a) || !get(state, instruction, from, 16, &b)) {
        return false;
    }
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_POR:
    case ZYDIS_MNEMONIC_ORPS:
        a = (struct interpret_vector){a.low | b.low, a.high | b.high};
        break;
    case ZYDIS_MNEMONIC_PAND:
    case ZYDIS_MNEMONIC_ANDPS:
        a = (struct interpret_vector){a.low & b.low, a.high & b.high};
        break;
    case ZYDIS_MNEMONIC_PUNPCKLQDQ:
    case ZYDIS_MNEMONIC_UNPCKLPD:
    case ZYDIS_MNEMONIC_MOVLHPS:
        a.high = b.low;
        break;
    case ZYDIS_MNEMONIC_PUNPCKLDQ:
    case ZYDIS_MNEMONIC_UNPCKLPS:
        a = (struct interpret_vector){(uint32_t)a.low | b.low << 32, a.low >> 32 | (b.low >> 32 << 32)};
        break;
    case ZYDIS_MNEMONIC_PUNPCKHDQ:
    case ZYDIS_MNEMONIC_UNPCKHPS:
        a = (struct interpret_vector){(uint32_t)a.high | b.high << 32, a.high >> 32 | (b.high >> 32 << 32)};
        break;
    case ZYDIS_MNEMONIC_PUNPCKHQDQ:
    case ZYDIS_MNEMONIC_UNPCKHPD:
        a = (struct interpret_vector){a.high, b.high};
        break;
    case ZYDIS_MNEMONIC_MOVHLPS:
        a.low = b.high;
        break;
    case ZYDIS_MNEMONIC_PADDQ:
        a = (struct interpret_vector){a.low + b.low, a.high + b.high};
        break;
    case ZYDIS_MNEMONIC_PADDD:
        a = (struct interpret_vector){paired(a.low, b.low), paired(a.high, b.high)};
        break;
    case ZYDIS_MNEMONIC_PANDN:
    case ZYDIS_MNEMONIC_ANDNPS:
        a = (struct interpret_vector){~a.low & b.low, ~a.high & b.high};
        break;
    default: // PXOR, XORPS, XORPD
        a = (struct interpret_vector){a.low ^ b.low, a.high ^ b.high};
        break;
    }
    return put(state, instruction, to, 16, a);
}

// A number of 4 or 8 bytes: between registers the rest of the vector stays.
static bool move_number(state_t *state, const instruction_t *instruction, unsigned bytes)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    struct interpret_vector value;
    if (to->kind != INTERPRET_VECTOR || from->kind != INTERPRET_VECTOR) {
        return move(state, instruction, bytes);
    }
    if (!is_known(state, to->number) || !get(state, instruction, from, bytes, &value)) {
        return false;
    }
    uint64_t kept = bytes == 4 ? state->vectors[to->number].low & ~UINT64_C(0xffffffff) : 0;
    state->vectors[to->number].low = kept | value.low;
    return true;
}

// comisd and ucomisd: unordered 7, greater 0, less 1 (CF), equal 0x40 (ZF).
static bool compare(state_t *state, const instruction_t *instruction)
{
    struct interpret_vector a, b;
    double first, second;
    if (!get(state, instruction, &instruction->operands[0], 8, &a) ||
        !get(state, instruction, &instruction->operands[1], 8, &b)) {
        return false;
    }
    memcpy(&first, &a.low, sizeof first);
    memcpy(&second, &b.low, sizeof second);
    interpret_flags_put(state, first > second    ? 0u
                               : first < second  ? INTERPRET_CF
                               : first == second ? INTERPRET_ZF
                                                 : INTERPRET_CF | INTERPRET_PF | INTERPRET_ZF);
    return true;
}

// Parts of `bits` bits (16 or 32) of four in `from`, chosen by two bits of `order` each.
static uint64_t shuffled(const uint64_t from[2], unsigned order, unsigned bits, unsigned first)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < 64 / bits; i++) {
        unsigned part = order >> 2 * (first + i) & 3;
        uint64_t value = from[part * bits / 64] >> part * bits % 64;
        result |= (value & ((UINT64_C(1) << bits) - 1)) << i * bits;
    }
    return result;
}

static bool shuffle(state_t *state, const instruction_t *instruction)
{
    struct interpret_vector value;
    if (!get(state, instruction, &instruction->operands[1], 16, &value)) {
        return false;
    }
    const uint64_t all[] = {value.low, value.high}, high[] = {value.high, 0};
    unsigned order = (unsigned)instruction->operands[2].value & 0xff;
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_PSHUFD:
        value = (struct interpret_vector){shuffled(all, order, 32, 0), shuffled(all, order, 32, 2)};
        break;
    case ZYDIS_MNEMONIC_PSHUFLW:
        value.low = shuffled(all, order, 16, 0);
        break;
    default: // PSHUFHW
        value.high = shuffled(high, order, 16, 0);
        break;
    }
    return put(state, instruction, &instruction->operands[0], 16, value);
}

bool interpret_vector(state_t *state, const instruction_t *instruction)
{
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
        return move(state, instruction, 16);
    case ZYDIS_MNEMONIC_MOVQ:
        return move(state, instruction, 8);
    case ZYDIS_MNEMONIC_MOVD:
        return move(state, instruction, 4);
    case ZYDIS_MNEMONIC_MOVSD:
        return move_number(state, instruction, 8);
    case ZYDIS_MNEMONIC_MOVSS:
        return move_number(state, instruction, 4);
    case ZYDIS_MNEMONIC_COMISD:
    case ZYDIS_MNEMONIC_UCOMISD:
        return compare(state, instruction);
    case ZYDIS_MNEMONIC_PSHUFD:
    case ZYDIS_MNEMONIC_PSHUFLW:
    case ZYDIS_MNEMONIC_PSHUFHW:
        return shuffle(state, instruction);
    case ZYDIS_MNEMONIC_MOVHPS:
    case ZYDIS_MNEMONIC_MOVHPD:
        return move_half(state, instruction, true);
    case ZYDIS_MNEMONIC_MOVLPS:
    case ZYDIS_MNEMONIC_MOVLPD:
        return move_half(state, instruction, false);
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD:
    case ZYDIS_MNEMONIC_POR:
    case ZYDIS_MNEMONIC_ORPS:
    case ZYDIS_MNEMONIC_PAND:
    case ZYDIS_MNEMONIC_ANDPS:
    case ZYDIS_MNEMONIC_PUNPCKLQDQ:
    case ZYDIS_MNEMONIC_UNPCKLPD:
    case ZYDIS_MNEMONIC_MOVLHPS:
    case ZYDIS_MNEMONIC_PUNPCKLDQ:
    case ZYDIS_MNEMONIC_UNPCKLPS:
    case ZYDIS_MNEMONIC_PUNPCKHDQ:
    case ZYDIS_MNEMONIC_UNPCKHPS:
    case ZYDIS_MNEMONIC_PUNPCKHQDQ:
    case ZYDIS_MNEMONIC_UNPCKHPD:
    case ZYDIS_MNEMONIC_MOVHLPS:
    case ZYDIS_MNEMONIC_PADDQ:
    case ZYDIS_MNEMONIC_PADDD:
    case ZYDIS_MNEMONIC_PANDN:
    case ZYDIS_MNEMONIC_ANDNPS:
        return combine(state, instruction);
    default:
        return false;
    }
}
