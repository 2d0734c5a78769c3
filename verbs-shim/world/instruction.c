#include "verbs-shim/world/instruction.h"

#include <string.h>

#define NO_REGISTER 16u

enum kind {
    UNKNOWN,
    PLAIN,   // no operand in memory, and no register that addresses would be made of
    SETS,    // the register in the opcode's low bits
    SETS_AX, // the accumulator
    LOADS,   // reads the operand, changes the register
    ADDRESS, // computes the operand's address
    READS,   // reads the operand
    CHANGES  // the operand, which is a register
};

struct code {
    const unsigned char *at; // of the opcode; then behind it, then behind the operand
    bool small /* 0x66 */, has_rex, two_bytes;
    unsigned rex, op, mod, reg, rm;
};

// --- what kind it is ------------------------------------------------------------------------------------------------

static enum kind two_byte_kind(const struct code *code)
{
    unsigned op = code->op;
    if (op >= 0x40 && op <= 0x4f) { // cmovcc
        return LOADS;
    }
    if (op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf) { // movzx, movsx
        return LOADS;
    }
    if (op >= 0x90 && op <= 0x9f) { // setcc
        return code->mod == 3 ? CHANGES : UNKNOWN;
    }
    bool jump = op >= 0x80 && op <= 0x8f, nop = op == 0x1e || op == 0x1f; // or endbr64
    bool lfence = op == 0xae && code->mod == 3 && code->reg == 5 && code->rm % 8 == 0;
    return jump || nop || lfence ? PLAIN : UNKNOWN;
}

static enum kind kind_of(const struct code *code)
{
    unsigned op = code->op;
    bool registers = code->mod == 3;
    if (code->two_bytes) {
        return two_byte_kind(code);
    }
    switch (op) {
    case 0x8a:
    case 0x8b:
    case 0x63: // mov, movsxd
    case 0x02:
    case 0x03:
    case 0x0a:
    case 0x0b:
    case 0x22:
    case 0x23:
    case 0x2a:
    case 0x2b:
    case 0x32:
    case 0x33: // add, or, and, sub, xor to a register
        return LOADS;
    case 0x8d: // lea
        return registers ? UNKNOWN : ADDRESS;
    case 0x38:
    case 0x39:
    case 0x3a:
    case 0x3b: // cmp
    case 0x84:
    case 0x85: // test
        return READS;
    case 0x3c:
    case 0x3d:
    case 0xa8:
    case 0xa9: // cmp and test of the accumulator and a constant
    case 0xeb:
    case 0xe9: // jmp
        return PLAIN;
    case 0x90: // nop, pause; xchg with r8 to r15 where REX says so
        return (code->rex & 1) != 0 ? UNKNOWN : PLAIN;
    case 0x04:
    case 0x05:
    case 0x0c:
    case 0x0d:
    case 0x24:
    case 0x25:
    case 0x2c:
    case 0x2d:
    case 0x34:
    case 0x35: // the same of the accumulator and a constant
        return SETS_AX;
    case 0x88:
    case 0x89: // mov
    case 0x00:
    case 0x01:
    case 0x08:
    case 0x09:
    case 0x20:
    case 0x21:
    case 0x28:
    case 0x29:
    case 0x30:
    case 0x31: // add, or, and, sub, xor to the operand
    case 0xc1:
    case 0xd1:
    case 0xd3: // shifts
        return registers ? CHANGES : UNKNOWN;
    case 0x80:
    case 0x81:
    case 0x83: // cmp; others of the group
        return code->reg % 8 == 7 ? READS : registers ? CHANGES : UNKNOWN;
    case 0xf6:
    case 0xf7: // test
        return code->reg % 8 <= 1 ? READS : UNKNOWN;
    case 0xff: // inc, dec
        return registers && code->reg % 8 <= 1 ? CHANGES : UNKNOWN;
    default:
        return op >= 0x70 && op <= 0x7f ? PLAIN : op >= 0xb8 && op <= 0xbf ? SETS : UNKNOWN; // jcc; mov of a constant
    }
}

static unsigned operand_bytes(const struct code *code)
{
    if (code->two_bytes && (code->op == 0xb6 || code->op == 0xbe || (code->op & 0xf0) == 0x90)) {
        return 1;
    }
    if (code->two_bytes && (code->op == 0xb7 || code->op == 0xbf)) {
        return 2;
    }
    if (!code->two_bytes && code->op % 2 == 0) { // of those that are known
        return 1;
    }
    bool wide = (code->rex & 8) != 0 && (code->two_bytes || code->op != 0x63);
    return wide ? 8 : code->small ? 2 : 4;
}

static unsigned constant_bytes(const struct code *code)
{
    if (code->two_bytes) {
        return 0;
    }
    if (code->op == 0x80 || code->op == 0x83 || code->op == 0xf6) {
        return 1;
    }
    return code->op == 0x81 || code->op == 0xf7 ? (code->small ? 2 : 4) : 0;
}

// --- where its operand is -------------------------------------------------------------------------------------------

static uintptr_t register_of(const greg_t *registers, unsigned number)
{
    static const unsigned char places[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                             REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return number == NO_REGISTER ? 0 : (uintptr_t)registers[places[number]];
}

static int32_t distance_take(struct code *code, unsigned bytes)
{
    int32_t distance = 0;
    if (bytes == 1) {
        distance = (int8_t)*code->at;
    } else if (bytes == 4) {
        memcpy(&distance, code->at, 4);
    }
    code->at += bytes;
    return distance;
}

// Behind the ModRM byte.
static void operand_decode(struct code *code, const greg_t *registers, struct world_instruction *instruction)
{
    unsigned base = code->rm, index = NO_REGISTER, scale = 0;
    unsigned distance_bytes = code->mod == 1 ? 1 : code->mod == 2 ? 4 : 0;
    bool relative = code->mod == 0 && code->rm % 8 == 5; // to the next instruction
    if (code->rm % 8 == 4) {
        unsigned sib = *code->at++;
        scale = sib >> 6;
        index = (sib >> 3 & 7) | (code->rex & 2) << 2;
        index = index == 4 ? NO_REGISTER : index;
        base = (sib & 7) | (code->rex & 1) << 3;
        if ((sib & 7) == 5 && code->mod == 0) {
            base = NO_REGISTER;
            distance_bytes = 4;
        }
    }
    if (relative) {
        base = NO_REGISTER;
        distance_bytes = 4;
    }
    int32_t distance = distance_take(code, distance_bytes);
    instruction->address =
        register_of(registers, base) + (register_of(registers, index) << scale) + (uintptr_t)(intptr_t)distance;
    if (relative) {
        instruction->address += (uintptr_t)code->at + constant_bytes(code);
    }
    instruction->address_registers = (1u << base | 1u << index) & ~(1u << NO_REGISTER);
}

// --- all of it ------------------------------------------------------------------------------------------------------

static unsigned written_register(const struct code *code, unsigned number)
{
    bool extends = code->two_bytes && (code->op & 0xf0) != 0x90;             // from a byte: the register is larger
    bool high_byte = operand_bytes(code) == 1 && !extends && !code->has_rex; // ah to bh
    return 1u << (high_byte ? number & 3 : number);
}

static struct code opcode_take(const unsigned char *at)
{
    struct code code = {.at = at};
    for (; *code.at == 0x66 || *code.at == 0xf2 || *code.at == 0xf3 || *code.at == 0x2e || *code.at == 0x3e;
         code.at++) {
        code.small = code.small || *code.at == 0x66;
    }
    if ((*code.at & 0xf0) == 0x40) {
        code.has_rex = true;
        code.rex = *code.at++ & 0xf;
    }
    code.two_bytes = *code.at == 0x0f;
    code.at += code.two_bytes;
    code.op = *code.at++;
    code.mod = *code.at >> 6; // where it has such a byte
    code.reg = (*code.at >> 3 & 7) | (code.rex & 4) << 1;
    code.rm = (*code.at & 7) | (code.rex & 1) << 3;
    return code;
}

bool world_instruction_decode(const unsigned char *at, const greg_t *registers,
                              struct world_instruction *instruction_out)
{
    struct code code = opcode_take(at);
    struct world_instruction instruction = {0};
    enum kind kind = kind_of(&code);
    if (kind == UNKNOWN) {
        return false;
    }
    if (kind == SETS) {
        instruction.written_registers = 1u << ((code.op & 7) | (code.rex & 1) << 3);
    } else if (kind == SETS_AX) {
        instruction.written_registers = 1;
    } else if (kind == CHANGES) {
        instruction.written_registers = written_register(&code, code.rm);
    } else if (kind == LOADS || kind == ADDRESS) {
        instruction.written_registers = written_register(&code, code.reg);
    }
    if ((kind == LOADS || kind == READS) && code.mod != 3) {
        instruction.bytes = operand_bytes(&code);
        code.at++;
        operand_decode(&code, registers, &instruction);
    }
    *instruction_out = instruction;
    return true;
}
