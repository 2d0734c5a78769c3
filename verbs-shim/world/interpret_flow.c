// The stack, jumps, strings, and instructions that do nothing.
#include <Zydis/Zydis.h>

#include "verbs-shim/world/interpret_internal.h"

enum { STRING_BYTES_MAX = 4096 };

typedef struct interpret_state state_t;
typedef struct interpret_instruction instruction_t;

static bool push(state_t *state, uint64_t value)
{
    state->registers[INTERPRET_RSP] -= 8;
    interpret_store(state->registers[INTERPRET_RSP], 8, value);
    return true;
}

static uint64_t pop(state_t *state)
{
    uint64_t value = interpret_load(state->registers[INTERPRET_RSP], 8);
    state->registers[INTERPRET_RSP] += 8;
    return value;
}

// A jump names its target by a distance, in a register, or in memory.
static bool target(state_t *state, const instruction_t *instruction, uint64_t *target_out)
{
    const struct interpret_operand *operand = &instruction->operands[0];
    if (!interpret_get(state, instruction, operand, target_out)) {
        return false;
    }
    *target_out += operand->kind == INTERPRET_IMMEDIATE ? state->rip : 0;
    return true;
}

static bool stack_or_jump(state_t *state, const instruction_t *instruction)
{
    uint64_t value;
    switch ((int)instruction->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
        return instruction->operands[0].bytes != 2 &&
               interpret_get(state, instruction, &instruction->operands[0], &value) &&
               push(state, instruction->operands[0].kind == INTERPRET_IMMEDIATE
                               ? (uint64_t)instruction->operands[0].value
                               : value);
    case ZYDIS_MNEMONIC_POP:
        return instruction->operands[0].bytes == 8 &&
               interpret_put(state, instruction, &instruction->operands[0], pop(state));
    case ZYDIS_MNEMONIC_LEAVE:
        if ((state->known >> INTERPRET_RBP & 1) == 0) {
            return false;
        }
        state->registers[INTERPRET_RSP] = state->registers[INTERPRET_RBP];
        state->registers[INTERPRET_RBP] = pop(state);
        return true;
    case ZYDIS_MNEMONIC_CALL:
        if (!target(state, instruction, &value)) {
            return false;
        }
        (void)push(state, state->rip);
        state->rip = value;
        return true;
    case ZYDIS_MNEMONIC_RET:
        state->rip = pop(state);
        state->registers[INTERPRET_RSP] += instruction->count != 0 ? (uint64_t)instruction->operands[0].value : 0;
        return true;
    case ZYDIS_MNEMONIC_JMP:
        if (!target(state, instruction, &value)) {
            return false;
        }
        state->rip = value;
        return true;
    default:
        return false;
    }
}

static bool jump_conditional(state_t *state, const instruction_t *instruction)
{
    bool jumps;
    if (instruction->mnemonic == ZYDIS_MNEMONIC_JRCXZ || instruction->mnemonic == ZYDIS_MNEMONIC_JECXZ ||
        instruction->mnemonic == ZYDIS_MNEMONIC_LOOP || instruction->mnemonic == ZYDIS_MNEMONIC_LOOPE ||
        instruction->mnemonic == ZYDIS_MNEMONIC_LOOPNE ||
        !interpret_condition_known(state, instruction->condition, &jumps)) {
        return false;
    }
    state->rip += jumps ? (uint64_t)instruction->operands[0].value : 0;
    return true;
}

// rep movs and rep stos, upwards, as compilers write them for copies.
static bool string_move(state_t *state, const instruction_t *instruction, unsigned bytes, bool copies)
{
    const unsigned needed = 1u << INTERPRET_RDI | 1u << (copies ? INTERPRET_RSI : INTERPRET_RAX);
    uint64_t *rcx = &state->registers[INTERPRET_RCX], *rdi = &state->registers[INTERPRET_RDI];
    if ((state->known & needed) != needed || (instruction->repeats && (state->known >> INTERPRET_RCX & 1) == 0)) {
        return false;
    }
    uint64_t count = instruction->repeats ? *rcx : 1;
    if (count > STRING_BYTES_MAX / bytes) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++, *rdi += bytes) {
        uint64_t value =
            copies ? interpret_load(state->registers[INTERPRET_RSI], bytes) : state->registers[INTERPRET_RAX];
        state->registers[INTERPRET_RSI] += copies ? bytes : 0;
        interpret_store(*rdi, bytes, value);
    }
    *rcx = instruction->repeats ? 0 : *rcx;
    return true;
}

static bool other(state_t *state, const instruction_t *instruction)
{
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
    case ZYDIS_MNEMONIC_MOVSB:
        return string_move(state, instruction, 1, true);
    case ZYDIS_MNEMONIC_MOVSD: // also an instruction on vectors
        return instruction->operands[0].kind != INTERPRET_VECTOR && instruction->operands[1].kind != INTERPRET_VECTOR &&
               string_move(state, instruction, 4, true);
    case ZYDIS_MNEMONIC_MOVSQ:
        return string_move(state, instruction, 8, true);
    case ZYDIS_MNEMONIC_STOSB:
        return string_move(state, instruction, 1, false);
    case ZYDIS_MNEMONIC_STOSD:
        return string_move(state, instruction, 4, false);
    case ZYDIS_MNEMONIC_STOSQ:
        return string_move(state, instruction, 8, false);
    default:
        return false;
    }
}

bool interpret_flow(state_t *state, const instruction_t *instruction)
{
    if (instruction->category == ZYDIS_CATEGORY_COND_BR) {
        return jump_conditional(state, instruction);
    }
    return stack_or_jump(state, instruction) || other(state, instruction);
}
