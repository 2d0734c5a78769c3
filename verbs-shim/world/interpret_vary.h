// Which values change from one iteration of a loop to the next, and for how many iterations the loop takes the same way:
// beside the interpreter (interpret.h), for one iteration.
//
// The caller says which registers and words change by a constant in each iteration, counters, and in how much time an
// iteration passes. From there on each value is either the same in all iterations (steady), or changes by a constant
// (linear), or does not fall, at most at some rate (rising: what is computed from a clock). A branch that depends on such a
// value bounds the number of iterations for which it goes the same way. Where nothing of this can be shown - an address or
// a branch that depends on anything else - the interpreter stops.
//
// Another time the loop may begin with other values: counters have moved on, and a word that it only compares has another
// value. So what varies has a source, and what bounds the iterations bounds how far the source may be, to both sides.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Calls within the library, without its table of symbols.
#pragma GCC visibility push(hidden)

struct interpret_state;
struct interpret_instruction;

enum interpret_vary_kind {
    INTERPRET_STEADY,
    INTERPRET_LINEAR, // by `step`, modulo the width of the value
    INTERPRET_RISING, // a whole number, by at most `rate`, and by rounding; `step`: this, in parts of INTERPRET_ROUNDING
    // Parts of a counter of 64 bits that rises by at most `rate`: edx, eax of rdtsc, and the first at its place.
    INTERPRET_COUNTER_HIGH,
    INTERPRET_COUNTER_LOW,
    INTERPRET_COUNTER_SHIFTED,
    INTERPRET_REAL, // a number of double precision that rises or falls, at most by `rate` (interpret_vary_real.c)
    INTERPRET_ANY
};

struct interpret_vary {
    uint8_t kind;
    uint8_t bytes;  // of a value in memory: 4 or 8
    uint8_t source; // with what it moves
    // Of LINEAR: in all iterations the value may be another one, less than 2^30, away by any multiple of this; 0: it is not.
    uint32_t modulus;
    uint64_t step;
    double rate; // by which it moves in an iteration, at most
};

// Of a word of memory: of its lower half or all of it (bytes 8), and of its upper half.
struct interpret_halves {
    struct interpret_vary half[2];
};

#define INTERPRET_ITERATIONS_MAX (UINT64_C(1) << 40)

// All values are steady, until interpret_vary_end. A quotient that stays as it is for fewer iterations than `quotients` is
// taken to rise, else it is steady and bounds them: INTERPRET_QUOTIENTS_FEW, for whoever does not ask for long waits.
#define INTERPRET_QUOTIENTS_FEW 16
void interpret_vary_begin(double quotients);
void interpret_vary_end(void);
bool interpret_vary_moved_quotients(double iterations); // has one risen that would have stayed for so many?
// An address may depend on what varies: what is read there is ANY, and nothing is known to be written.
void interpret_vary_loose(void);
void interpret_vary_register(unsigned number, struct interpret_vary vary);
// bytes of `vary`: 8, or 4 of one half.
void interpret_vary_word(uint64_t address, unsigned half, struct interpret_vary vary);
struct interpret_vary interpret_vary_of_register(unsigned number);
struct interpret_vary interpret_vary_of_word(uint64_t address, unsigned half);
bool interpret_vary_is_steady(uint64_t address, uint64_t bytes); // also if nothing varies at all
// Something stays as it is for so many iterations.
void interpret_vary_bound(double iterations);
#define INTERPRET_ROUNDING 1048576
// A whole number that in i iterations rises by at most rate * i + rounding.
struct interpret_vary interpret_rising(double rate, double rounding);
// A value that changes by `step` in each iteration.
struct interpret_vary interpret_linear(uint64_t step, unsigned bytes);
// Sources: clocks, counters that move together, and whatever moves for itself.
enum { INTERPRET_CLOCKS, INTERPRET_COUNTERS, INTERPRET_OTHERS, INTERPRET_SOURCES = INTERPRET_OTHERS + 16 };
#define INTERPRET_MODULAR_MAX (UINT64_C(1) << 30)
// For so many steps of the source the way is the same, and for so many if it moves the other way.
uint64_t interpret_vary_steps(unsigned source);
uint64_t interpret_vary_back(unsigned source);

// For the interpreter. Before an instruction is carried out; false: what it does in other iterations is not known.
bool interpret_vary_step(const struct interpret_state *state, const struct interpret_instruction *instruction);
bool interpret_vary_is_on(void);
struct interpret_halves *interpret_memory_halves(uint64_t address); // of the word there, of 8 bytes

#pragma GCC visibility pop
