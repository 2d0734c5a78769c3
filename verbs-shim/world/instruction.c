#include "verbs-shim/world/instruction.h"

#include <Zydis/Zydis.h>

// Instructions that compute in general registers, compare, jump or do nothing. What else they have to satisfy follows
// from their operands.
static bool is_plain(const ZydisDecodedInstruction *instruction)
{
    switch ((int)instruction->meta.category) {
    case ZYDIS_CATEGORY_BINARY:
    case ZYDIS_CATEGORY_BITBYTE:
    case ZYDIS_CATEGORY_BMI1:
    case ZYDIS_CATEGORY_BMI2:
    case ZYDIS_CATEGORY_CMOV:
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_CONVERT:
    case ZYDIS_CATEGORY_DATAXFER:
    case ZYDIS_CATEGORY_LOGICAL:
    case ZYDIS_CATEGORY_LZCNT:
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_ROTATE:
    case ZYDIS_CATEGORY_SETCC:
    case ZYDIS_CATEGORY_SHIFT:
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_WIDENOP:
        return true;
    }
    return instruction->mnemonic == ZYDIS_MNEMONIC_LEA || instruction->mnemonic == ZYDIS_MNEMONIC_LFENCE ||
           instruction->mnemonic == ZYDIS_MNEMONIC_PAUSE || instruction->mnemonic == ZYDIS_MNEMONIC_ENDBR64;
}

// --- registers ------------------------------------------------------------------------------------------------------

static bool is_general(ZydisRegister name)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);
    return ZydisRegisterGetClass(whole) == ZYDIS_REGCLASS_GPR64;
}

static unsigned bit_of(ZydisRegister name)
{
    return is_general(name)
               ? 1u << ZydisRegisterGetId(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name))
               : 0;
}

const unsigned char world_register_places[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                                 REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                 REG_R12, REG_R13, REG_R14, REG_R15};

static uintptr_t value_of(const greg_t *registers, ZydisRegister name)
{
    return name == ZYDIS_REGISTER_NONE ? 0 : (uintptr_t)registers[world_register_places[ZydisRegisterGetId(name) % 16]];
}

// --- operands -------------------------------------------------------------------------------------------------------

static bool register_take(const ZydisDecodedOperand *operand, struct world_instruction *instruction)
{
    bool written = (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    ZydisRegister name = operand->reg.value;
    bool flags_or_next = name == ZYDIS_REGISTER_RFLAGS || name == ZYDIS_REGISTER_RIP;
    instruction->written_registers |= written ? bit_of(name) : 0;
    return is_general(name) || flags_or_next;
}

static bool memory_take(const ZydisDecodedOperand *operand, const unsigned char *next, const greg_t *registers,
                        struct world_instruction *instruction)
{
    const ZydisDecodedOperandMem *memory = &operand->mem;
    bool default_segment = memory->segment == ZYDIS_REGISTER_DS || memory->segment == ZYDIS_REGISTER_SS ||
                           memory->segment == ZYDIS_REGISTER_CS || memory->segment == ZYDIS_REGISTER_ES;
    if (memory->type == ZYDIS_MEMOP_TYPE_AGEN || operand->actions == 0) { // lea, nop: nothing is accessed
        return true;
    }
    bool relative = memory->base == ZYDIS_REGISTER_RIP;
    bool registers_known = (relative || memory->base == ZYDIS_REGISTER_NONE || is_general(memory->base)) &&
                           (memory->index == ZYDIS_REGISTER_NONE || is_general(memory->index));
    if (memory->type != ZYDIS_MEMOP_TYPE_MEM || (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 ||
        !default_segment || !registers_known || instruction->bytes != 0) {
        return false;
    }
    instruction->bytes = operand->size / 8u;
    instruction->address = (relative ? (uintptr_t)next : value_of(registers, memory->base)) +
                           value_of(registers, memory->index) * memory->scale + (uintptr_t)memory->disp.value;
    instruction->address_registers = (relative ? 0 : bit_of(memory->base)) | bit_of(memory->index);
    return true;
}

static bool decode(const unsigned char *code, ZydisDecodedInstruction *decoded,
                   ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT])
{
    ZydisDecoder decoder;
    return ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
           ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, ZYDIS_MAX_INSTRUCTION_LENGTH, decoded, operands));
}

unsigned world_instruction_bytes(const unsigned char *code)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction decoded;
    bool known =
        ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
        ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code, ZYDIS_MAX_INSTRUCTION_LENGTH, &decoded));
    return known ? decoded.length : 0;
}

unsigned world_instruction_movable_bytes(const unsigned char *code)
{
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    bool stays = !decode(code, &decoded, operands) || !is_plain(&decoded) ||
                 (decoded.attributes & ZYDIS_ATTRIB_IS_RELATIVE) != 0 ||
                 (int)decoded.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
    return stays ? 0 : decoded.length;
}

bool world_instruction_decode(const unsigned char *code, const greg_t *registers,
                              struct world_instruction *instruction_out)
{
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    struct world_instruction instruction = {0};
    if (!decode(code, &decoded, operands)) {
        return false;
    }
    bool known = is_plain(&decoded) && decoded.address_width == 64 && (decoded.attributes & ZYDIS_ATTRIB_HAS_LOCK) == 0;
    for (unsigned i = 0; i < decoded.operand_count && known; i++) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER) {
            known = register_take(&operands[i], &instruction);
        } else if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) {
            known = memory_take(&operands[i], code + decoded.length, registers, &instruction);
        }
    }
    *instruction_out = known ? instruction : *instruction_out;
    return known;
}
