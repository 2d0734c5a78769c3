// Scalar instructions of SSE2 on numbers of double precision, with which programs compute with times (MPI_Wtime). They are carried
// out in the process that would carry them out, with its rounding (MXCSR).
#include <Zydis/Zydis.h>
#include <string.h>

#include "verbs-shim/world/interpret_internal.h"

typedef struct interpret_state state_t;
typedef struct interpret_instruction instruction_t;
typedef struct interpret_operand operand_t;

double interpret_real(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

bool interpret_real_get(const state_t *state, const instruction_t *instruction, const operand_t *operand,
                        double *value_out)
{
    uint64_t address, bits;
    if (operand->kind == INTERPRET_VECTOR) {
        *value_out = interpret_real(state->vectors[operand->number].low);
        return (state->vectors_known >> operand->number & 1) != 0;
    }
    if (operand->kind != INTERPRET_MEMORY || !interpret_address(state, instruction, operand, &address)) {
        return false;
    }
    bits = interpret_load(address, 8);
    *value_out = interpret_real(bits);
    return true;
}

// The upper half of the register stays: it must be known, as the register may be stored.
static bool real_put(state_t *state, const operand_t *operand, double value)
{
    state->vectors[operand->number].low = bits_of(value);
    state->vectors_known |= (uint16_t)(1u << operand->number);
    return true;
}

static bool from_integer(state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0], *from = &instruction->operands[1];
    uint64_t value;
    if ((state->vectors_known >> to->number & 1) == 0 || !interpret_get(state, instruction, from, &value)) {
        return false;
    }
    return real_put(state, to, from->bytes == 8 ? (double)(int64_t)value : (double)(int32_t)value);
}

static bool to_integer(state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0];
    double value, limit = to->bytes == 8 ? 0x1p63 : 0x1p31;
    if (!interpret_real_get(state, instruction, &instruction->operands[1], &value) ||
        !(__builtin_fabs(value) < limit)) {
        return false;
    }
    return interpret_put(state, instruction, to, interpret_cut((uint64_t)(int64_t)value, to->bytes));
}

static bool compute(state_t *state, const instruction_t *instruction)
{
    const operand_t *to = &instruction->operands[0];
    double a, b;
    if (!interpret_real_get(state, instruction, to, &a) ||
        !interpret_real_get(state, instruction, &instruction->operands[1], &b)) {
        return false;
    }
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_ADDSD:
        return real_put(state, to, a + b);
    case ZYDIS_MNEMONIC_SUBSD:
        return real_put(state, to, a - b);
    case ZYDIS_MNEMONIC_MULSD:
        return real_put(state, to, a * b);
    default: // DIVSD
        return real_put(state, to, a / b);
    }
}

bool interpret_reals(state_t *state, const instruction_t *instruction)
{
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_CVTSI2SD:
        return from_integer(state, instruction);
    case ZYDIS_MNEMONIC_CVTTSD2SI:
        return to_integer(state, instruction);
    case ZYDIS_MNEMONIC_ADDSD:
    case ZYDIS_MNEMONIC_SUBSD:
    case ZYDIS_MNEMONIC_MULSD:
    case ZYDIS_MNEMONIC_DIVSD:
        return compute(state, instruction);
    default:
        return false;
    }
}
