// An interpreter of a program's instructions on a copy of its state: what the program would do next, without doing it.
//
// Registers are copied, and memory is read where it is; what the program would write goes to the copy. So the caller
// learns which words the program reads (the words of its state on which what it does next depends), and what they
// would be afterwards. The program itself, its memory and its devices are untouched.
//
// Leaves out: floating point but scalar numbers of double precision, AVX, system calls, anything with a segment but thread-local memory (fs).
// At those it stops and says so; what it has interpreted until then is right. The decoder is Zydis. Intel 64 SDM volume 2.
//
// No allocation and no call of the C library: it runs within calls of the program. State of one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Calls within the library, without its table of symbols.
#pragma GCC visibility push(hidden)

// Registers by their numbers in instructions.
enum interpret_register {
    INTERPRET_RAX,
    INTERPRET_RCX,
    INTERPRET_RDX,
    INTERPRET_RBX,
    INTERPRET_RSP,
    INTERPRET_RBP,
    INTERPRET_RSI,
    INTERPRET_RDI,
    INTERPRET_R8,
    INTERPRET_R9,
    INTERPRET_R10,
    INTERPRET_R11,
    INTERPRET_R12,
    INTERPRET_R13,
    INTERPRET_R14,
    INTERPRET_R15,
    INTERPRET_REGISTERS
};

#define INTERPRET_WORDS_MAX 4096u // of memory, of 8 bytes, that are read or written
#define INTERPRET_BYTES_ALL 0xffu

// What happened to a word of memory since some point. Masks have a bit for each byte.
struct interpret_since {
    uint64_t value; // there
    uint8_t read;   // bytes that were read before they were written: what the program does depends on them
    uint8_t written;
};

// A word of memory, as it would be now, and since two points: the beginning, where it is as the program has it, and the
// base.
enum interpret_point { INTERPRET_BEGINNING, INTERPRET_BASE, INTERPRET_POINTS };
struct interpret_word {
    uint64_t address; // a multiple of 8
    uint64_t now;
    bool whole; // all of it was read at once
    struct interpret_since since[INTERPRET_POINTS];
};

enum interpret_flags {
    INTERPRET_CF = 1,
    INTERPRET_PF = 4,
    INTERPRET_ZF = 0x40,
    INTERPRET_SF = 0x80,
    INTERPRET_OF = 0x800,
    INTERPRET_FLAGS = INTERPRET_CF | INTERPRET_PF | INTERPRET_ZF | INTERPRET_SF | INTERPRET_OF
};

struct interpret_vector {
    uint64_t low, high;
};

struct interpret_state {
    uint64_t registers[INTERPRET_REGISTERS];
    uint64_t rip;
    uint16_t flags;       // CF, PF, ZF, SF, OF at their places in the flags register (enum interpret_flags)
    uint16_t known;       // registers with a value; reading another one stops
    uint16_t flags_known; // those that have a value: the processor's manual leaves some undefined
    uint16_t vectors_known;
    struct interpret_vector vectors[16];
};

enum interpret_stop {
    INTERPRET_AT,      // reached one of the addresses where the caller wants to stop
    INTERPRET_UNKNOWN, // an instruction, register or address that is not known; `reason` of interpret_reason
    INTERPRET_LIMIT    // too many instructions or words
};

// One interpretation may be left for another one, and gone on with: each has its copy of memory.
#define INTERPRET_COPIES 2u
void interpret_select(unsigned copy);
// Begins with no words of memory.
void interpret_begin(void);
// The base is here.
void interpret_rebase(void);
// Before anything else: the program has this value there, in these bits.
void interpret_preset(uint64_t address, uint64_t value, uint64_t mask);
// Interprets until the instruction pointer is one of the addresses, which is not carried out.
enum interpret_stop interpret_run(struct interpret_state *state, const uintptr_t *addresses, unsigned count,
                                  unsigned *instructions_left);
// The word of the program, aligned or not. false: there is none.
bool interpret_peek(uint64_t address, uint64_t *value_out) __attribute__((visibility("hidden")));
// Writes to the program's memory. false: it cannot be written.
bool interpret_poke(uint64_t address, uint64_t value) __attribute__((visibility("hidden")));
// Memory of the copy; read counts as a read of the program. bytes: 1, 2, 4 or 8 that do not cross a page.
uint64_t interpret_load(uint64_t address, unsigned bytes);
void interpret_store(uint64_t address, unsigned bytes, uint64_t value);
// Somebody else writes there: reads of it still count as reads of the program's state. Of one word.
void interpret_change(uint64_t address, uint64_t value);
uint64_t interpret_now(uint64_t address);  // of one word, which does not count as a read
bool interpret_was_read(uint64_t address); // a word that the program has
uint64_t interpret_lowest_stack(void);     // how far down the stack went
// The words so far, in the order of their first access.
const struct interpret_word *interpret_words(unsigned *count_out);
const char *interpret_reason(void); // of the last stop: a mnemonic, or what was not known

#pragma GCC visibility pop
