// Instructions of programs. Of loops that poll memory: what each reads, and which registers it changes. Known are those that only
// read memory, compute in general registers, compare and jump. Unknown are all others, and those with a segment override
// or 32-bit addresses. The decoder is Zydis.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

struct world_instruction {
    unsigned bytes;    // that it reads of memory; 0: none
    uintptr_t address; // of those, with the registers given
    // A bit for each register, by its number in instructions.
    unsigned address_registers, written_registers;
};

extern const unsigned char world_register_places[16]; // in a greg_t array, by a register's number in instructions

// registers: before it. false: unknown.
bool world_instruction_decode(const unsigned char *code, const greg_t *registers,
                              struct world_instruction *instruction_out);

unsigned world_instruction_bytes(const unsigned char *code); // its length; 0: there is no instruction
// How long the instruction is where it does the same anywhere else: it moves, computes or compares, and names nothing
// by its distance. 0: any other.
unsigned world_instruction_movable_bytes(const unsigned char *code);
