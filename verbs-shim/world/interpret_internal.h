// What the files of the interpreter share. Private to them.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "verbs-shim/world/interpret.h"

// Calls within the library, without its table of symbols.
#pragma GCC visibility push(hidden)

enum interpret_kind { INTERPRET_NONE, INTERPRET_REGISTER, INTERPRET_VECTOR, INTERPRET_MEMORY, INTERPRET_IMMEDIATE };
enum { INTERPRET_NO_REGISTER = 16, INTERPRET_RIP = 17, INTERPRET_OPERANDS = 3 };

struct interpret_operand {
    uint8_t kind; // enum interpret_kind
    uint8_t bytes;
    uint8_t number; // of a register
    bool high;      // ah, ch, dh, bh
    uint8_t base, index, scale;
    bool fs;       // thread-local memory
    int64_t value; // of an immediate; displacement of memory
};

// An instruction, decoded once.
struct interpret_instruction {
    uint64_t rip, code, rest; // its first 8 bytes, and the next if it is longer: decoded again when they have changed
    uint16_t mnemonic;        // of Zydis
    uint16_t category;        // of Zydis
    uint32_t next;            // the place of the one that was interpreted after it the last time
    uint8_t length, count, condition;
    bool known, repeats;
    bool plain;                             // it touches nothing but these, and one operand in memory, at most
    uint16_t registers, vectors;            // that it reads or writes, or makes addresses of
    const struct interpret_operand *memory; // that it accesses; NULL: none
    struct interpret_operand operands[INTERPRET_OPERANDS];
};

// The lower bytes of a value.
static inline uint64_t interpret_cut(uint64_t value, unsigned bytes)
{
    return bytes >= 8 ? value : value & ((UINT64_C(1) << 8 * bytes) - 1);
}

// One of 64 bits, for the word at this address.
static inline uint64_t interpret_bit_of(uint64_t address)
{
    return UINT64_C(1) << (address / 8 * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

bool interpret_memory_failed(void);
void interpret_stack_note(uint64_t stack); // the stack pointer is there
bool interpret_fault(greg_t *registers);   // a fault of interpret_peek; false: another one

// false: a register that is not known, or an operand that cannot be.
bool interpret_address(const struct interpret_state *state, const struct interpret_instruction *instruction,
                       const struct interpret_operand *operand, uint64_t *address_out);
bool interpret_get(const struct interpret_state *state, const struct interpret_instruction *instruction,
                   const struct interpret_operand *operand, uint64_t *value_out);
bool interpret_put(struct interpret_state *state, const struct interpret_instruction *instruction,
                   const struct interpret_operand *operand, uint64_t value);
bool interpret_condition(unsigned flags, unsigned condition); // its number in instructions
// The same; false: it depends on flags that are not known.
bool interpret_condition_known(const struct interpret_state *state, unsigned condition, bool *holds_out);
// All flags have these values.
void interpret_flags_put(struct interpret_state *state, unsigned flags);

// One instruction; `rip` is already that of the next one. false: not known.
bool interpret_integer(struct interpret_state *state, const struct interpret_instruction *instruction);
bool interpret_flow(struct interpret_state *state, const struct interpret_instruction *instruction);
bool interpret_vector(struct interpret_state *state, const struct interpret_instruction *instruction);
bool interpret_reals(struct interpret_state *state, const struct interpret_instruction *instruction);
// A number of double precision: of these bits; of an operand. false: it is not known.
double interpret_real(uint64_t bits);
bool interpret_real_get(const struct interpret_state *state, const struct interpret_instruction *instruction,
                        const struct interpret_operand *operand, double *value_out);

#pragma GCC visibility pop
