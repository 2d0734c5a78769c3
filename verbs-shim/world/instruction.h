// The instructions that loops which poll memory are made of: what each reads, and what it changes. Knows those that do
// nothing but read memory, compute in general registers, compare and jump; all others, and what stands behind a segment
// or address-size prefix, are unknown (Intel 64 SDM volume 2, chapter 2 and appendix A).
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

// registers: before it. false: unknown.
bool world_instruction_decode(const unsigned char *code, const greg_t *registers,
                              struct world_instruction *instruction_out);
