#include "verbs-shim/world/interpret.h"

#include <Zydis/Zydis.h>
#include <string.h>

#include "verbs-shim/world/interpret_internal.h"
#include "verbs-shim/world/interpret_vary.h"

static const char *reason = "";

const char *interpret_reason(void)
{
    return reason;
}

// --- decoding ---------------------------------------------------------------------------------------------------------

static uint8_t number_of(ZydisRegister name)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
    return name == ZYDIS_REGISTER_NONE                            ? (uint8_t)INTERPRET_NO_REGISTER
           : name == ZYDIS_REGISTER_RIP                           ? (uint8_t)INTERPRET_RIP
           : ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64 ? (uint8_t)ZydisRegisterGetId(whole)
                                                                  : UINT8_MAX;
}

static bool register_take(const ZydisDecodedOperand *from, struct interpret_operand *to)
{
    ZydisRegister name = from->reg.value;
    ZydisRegisterClass class = ZydisRegisterGetClass(name);
    if (class == ZYDIS_REGCLASS_XMM && ZydisRegisterGetId(name) < 16) {
        to->kind = INTERPRET_VECTOR;
        to->number = (uint8_t)ZydisRegisterGetId(name);
        return true;
    }
    to->kind = INTERPRET_REGISTER;
    to->high = name >= ZYDIS_REGISTER_AH && name <= ZYDIS_REGISTER_BH;
    to->number = number_of(name);
    return to->number < INTERPRET_REGISTERS;
}

static bool memory_take(const ZydisDecodedOperand *from, struct interpret_operand *to)
{
    const ZydisDecodedOperandMem *memory = &from->mem;
    to->kind = INTERPRET_MEMORY;
    to->base = number_of(memory->base);
    to->index = number_of(memory->index);
    to->scale = memory->scale;
    to->fs = memory->segment == ZYDIS_REGISTER_FS;
    to->value = memory->disp.has_displacement ? memory->disp.value : 0;
    return to->base != UINT8_MAX && to->index <= INTERPRET_NO_REGISTER && memory->segment != ZYDIS_REGISTER_GS &&
           (memory->type == ZYDIS_MEMOP_TYPE_MEM || memory->type == ZYDIS_MEMOP_TYPE_AGEN);
}

static bool operand_take(const ZydisDecodedOperand *from, struct interpret_operand *to)
{
    to->bytes = (uint8_t)(from->size / 8);
    switch (from->type) {
    case ZYDIS_OPERAND_TYPE_REGISTER:
        return register_take(from, to);
    case ZYDIS_OPERAND_TYPE_MEMORY:
        return memory_take(from, to);
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
        to->kind = INTERPRET_IMMEDIATE;
        to->value = from->imm.value.s;
        return true;
    case ZYDIS_OPERAND_TYPE_UNUSED:
    case ZYDIS_OPERAND_TYPE_POINTER:
        break;
    }
    return false;
}

// Notes what an operand touches, also one that the instruction does not name.
static void touched_take(const ZydisDecodedInstruction *instruction, const ZydisDecodedOperand *operand,
                         struct interpret_instruction *to)
{
    bool memory = operand->type == ZYDIS_OPERAND_TYPE_MEMORY,
         hidden = operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
    const ZydisRegister names[] = {
        operand->type == ZYDIS_OPERAND_TYPE_REGISTER ? operand->reg.value : ZYDIS_REGISTER_NONE,
        memory ? operand->mem.base : ZYDIS_REGISTER_NONE, memory ? operand->mem.index : ZYDIS_REGISTER_NONE};
    to->plain =
        to->plain && !(memory && hidden) && !to->repeats && instruction->meta.category != ZYDIS_CATEGORY_STRINGOP;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint8_t number = number_of(names[i]);
        bool vector = ZydisRegisterGetClass(names[i]) == ZYDIS_REGCLASS_XMM && ZydisRegisterGetId(names[i]) < 16;
        to->registers |= (uint16_t)(number < INTERPRET_REGISTERS ? 1u << number : 0);
        to->vectors |= (uint16_t)(vector ? 1u << ZydisRegisterGetId(names[i]) : 0);
    }
}

static void decode(uint64_t rip, struct interpret_instruction *to)
{
    static ZydisDecoder decoder;
    static bool begun;
    ZydisDecodedInstruction from;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!begun) {
        begun = ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
    }
    const unsigned char *code = (const unsigned char *)rip; // NOLINT(performance-no-int-to-ptr)
    uint64_t more;
    *to = (struct interpret_instruction){.rip = rip};
    if (!interpret_peek(rip, &to->code) || !interpret_peek(rip + sizeof to->code, &more)) {
        return;
    }
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, ZYDIS_MAX_INSTRUCTION_LENGTH, &from, operands))) {
        return;
    }
    to->mnemonic = (uint16_t)from.mnemonic;
    to->length = from.length;
    to->condition = from.opcode & 0xf;
    to->category = (uint16_t)from.meta.category;
    to->repeats = (from.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
    to->known = from.address_width == 64;
    for (unsigned i = 0; i < from.operand_count_visible && to->known; i++) {
        to->known = i < INTERPRET_OPERANDS && operand_take(&operands[i], &to->operands[i]);
        bool accessed =
            to->known && operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && operands[i].mem.type == ZYDIS_MEMOP_TYPE_MEM;
        to->memory = accessed ? &to->operands[i] : to->memory;
        to->count++;
    }
    to->plain = to->known;
    for (unsigned i = 0; i < from.operand_count; i++) {
        touched_take(&from, &operands[i], to);
    }
}

// Instructions in the order in which they were first interpreted: those of a loop lie side by side. When there is no room
// all are forgotten. Place 0 is none.
enum { INSTRUCTIONS = 16384, SLOTS = 2 * INSTRUCTIONS };
static struct interpret_instruction instructions[INSTRUCTIONS];
static uint32_t instruction_count = 1, slots[SLOTS];

static uint32_t place_of(uint64_t rip)
{
    uint32_t slot = (uint32_t)(rip * UINT64_C(0x9e3779b97f4a7c15) >> 40) % SLOTS;
    while (slots[slot] != 0 && instructions[slots[slot]].rip != rip) {
        slot = (slot + 1) % SLOTS;
    }
    if (slots[slot] != 0) {
        return slots[slot];
    }
    if (instruction_count == INSTRUCTIONS) {
        memset(slots, 0, sizeof slots);
        instruction_count = 1;
        return place_of(rip);
    }
    instructions[instruction_count] = (struct interpret_instruction){.rip = rip};
    return slots[slot] = instruction_count++;
}

// before: the one that was interpreted before it; NULL: none.
static struct interpret_instruction *instruction_at(uint64_t rip, struct interpret_instruction *before)
{
    uint32_t place = before != NULL ? before->next : 0;
    if (instructions[place].rip != rip) {
        place = place_of(rip);
        if (before != NULL) {
            before->next = place;
        }
    }
    struct interpret_instruction *instruction = &instructions[place];
    uint64_t code = 0, rest = 0;
    (void)interpret_peek(rip, &code);
    bool same = instruction->length != 0 && instruction->code == code;
    if (!same || instruction->length > sizeof code) {
        (void)interpret_peek(rip + sizeof code, &rest);
        if (!same || instruction->rest != rest) {
            decode(rip, instruction);
            instruction->rest = rest;
        }
    }
    return instruction;
}

// --- operands ---------------------------------------------------------------------------------------------------------

static bool register_get(const struct interpret_state *state, unsigned number, uint64_t *value_out)
{
    bool known = (state->known >> number & 1) != 0;
    reason = known ? reason : "a register without a value";
    *value_out = state->registers[number];
    return known;
}

bool interpret_address(const struct interpret_state *state, const struct interpret_instruction *instruction,
                       const struct interpret_operand *operand, uint64_t *address_out)
{
    uint64_t base = 0, index = 0;
    (void)instruction;
    bool known = operand->base == INTERPRET_NO_REGISTER || operand->base == INTERPRET_RIP ||
                 register_get(state, operand->base, &base);
    known = known && (operand->index == INTERPRET_NO_REGISTER || register_get(state, operand->index, &index));
    base = operand->base == INTERPRET_RIP ? state->rip : base;
    base += operand->fs ? (uint64_t)(uintptr_t)__builtin_thread_pointer() : 0;
    *address_out = base + index * operand->scale + (uint64_t)operand->value;
    return known;
}

bool interpret_get(const struct interpret_state *state, const struct interpret_instruction *instruction,
                   const struct interpret_operand *operand, uint64_t *value_out)
{
    uint64_t address;
    switch ((enum interpret_kind)operand->kind) {
    case INTERPRET_REGISTER:
        if (!register_get(state, operand->number, value_out)) {
            return false;
        }
        *value_out = interpret_cut(*value_out >> (operand->high ? 8 : 0), operand->bytes);
        return true;
    case INTERPRET_MEMORY:
        if (operand->bytes > 8 || !interpret_address(state, instruction, operand, &address)) {
            return false;
        }
        *value_out = interpret_load(address, operand->bytes);
        return true;
    case INTERPRET_IMMEDIATE:
        *value_out = (uint64_t)operand->value;
        return true;
    case INTERPRET_NONE:
    case INTERPRET_VECTOR:
        break;
    }
    return false;
}

// A register of 4 bytes clears the upper half; smaller parts leave the rest as it was. If the rest has no value, no
// program depends on it.
static void register_put(struct interpret_state *state, const struct interpret_operand *operand, uint64_t value)
{
    uint64_t *whole = &state->registers[operand->number];
    unsigned shift = operand->high ? 8 : 0;
    uint64_t mask = operand->bytes >= 4 ? UINT64_MAX : interpret_cut(UINT64_MAX, operand->bytes) << shift;
    *whole = (*whole & ~mask) | (interpret_cut(value, operand->bytes) << shift & mask);
    state->known |= (uint16_t)(1u << operand->number);
}

bool interpret_put(struct interpret_state *state, const struct interpret_instruction *instruction,
                   const struct interpret_operand *operand, uint64_t value)
{
    uint64_t address;
    if (operand->kind == INTERPRET_REGISTER) {
        register_put(state, operand, value);
        return true;
    }
    if (operand->kind != INTERPRET_MEMORY || operand->bytes > 8 ||
        !interpret_address(state, instruction, operand, &address)) {
        return false;
    }
    interpret_store(address, operand->bytes, value);
    return true;
}

// The sixteen conditions: eight, and their opposites.
bool interpret_condition(unsigned flags, unsigned condition)
{
    bool carry = (flags & INTERPRET_CF) != 0, parity = (flags & INTERPRET_PF) != 0, zero = (flags & INTERPRET_ZF) != 0;
    bool sign = (flags & INTERPRET_SF) != 0, overflow = (flags & INTERPRET_OF) != 0;
    const bool conditions[] = {
        overflow, carry, zero, carry || zero, sign, parity, sign != overflow, zero || sign != overflow};
    return conditions[condition >> 1] != ((condition & 1) != 0);
}

bool interpret_condition_known(const struct interpret_state *state, unsigned condition, bool *holds_out)
{
    static const uint16_t needed[] = {INTERPRET_OF,
                                      INTERPRET_CF,
                                      INTERPRET_ZF,
                                      INTERPRET_CF | INTERPRET_ZF,
                                      INTERPRET_SF,
                                      INTERPRET_PF,
                                      INTERPRET_SF | INTERPRET_OF,
                                      INTERPRET_ZF | INTERPRET_SF | INTERPRET_OF};
    *holds_out = interpret_condition(state->flags, condition);
    return (needed[condition >> 1] & ~state->flags_known) == 0;
}

void interpret_flags_put(struct interpret_state *state, unsigned flags)
{
    state->flags = (uint16_t)flags;
    state->flags_known = INTERPRET_FLAGS;
}

// --- running ----------------------------------------------------------------------------------------------------------

static bool step(struct interpret_state *state, const struct interpret_instruction *instruction)
{
    uint64_t at = state->rip;
    reason = "";
    state->rip += instruction->length;
    bool known = instruction->known && instruction->length != 0 &&
                 (!interpret_vary_is_on() || interpret_vary_step(state, instruction)) &&
                 (interpret_integer(state, instruction) || interpret_flow(state, instruction) ||
                  interpret_vector(state, instruction) || interpret_reals(state, instruction)) &&
                 !interpret_memory_failed();
    interpret_stack_note(state->registers[INTERPRET_RSP]);
    if (!known) {
        state->rip = at;
        reason = interpret_memory_failed() ? "memory"
                 : reason[0] != '\0'       ? reason
                                           : ZydisMnemonicGetString((ZydisMnemonic)instruction->mnemonic);
    }
    return known;
}

static bool is_among(uint64_t address, const uintptr_t *addresses, unsigned count)
{
    unsigned i = 0;
    while (i < count && addresses[i] != address) {
        i++;
    }
    return i < count;
}

enum interpret_stop interpret_run(struct interpret_state *state, const uintptr_t *addresses, unsigned count,
                                  unsigned *instructions_left)
{
    uint64_t next = 0, bits = 0; // next: behind the last instruction; functions are entered by a jump
    struct interpret_instruction *instruction = NULL;
    for (unsigned i = 0; i < count; i++) {
        bits |= interpret_bit_of(addresses[i]);
    }
    while (*instructions_left > 0) {
        if (state->rip != next && (bits & interpret_bit_of(state->rip)) != 0 &&
            is_among(state->rip, addresses, count)) {
            return INTERPRET_AT;
        }
        instruction = instruction_at(state->rip, instruction);
        next = state->rip + instruction->length;
        if (!step(state, instruction)) {
            return INTERPRET_UNKNOWN;
        }
        --*instructions_left;
    }
    return INTERPRET_LIMIT;
}
