// What the files of interpret_vary.h share. Private to them.
#pragma once

#include "verbs-shim/world/interpret_internal.h"
#include "verbs-shim/world/interpret_vary.h"

// Calls within the library, without its table of symbols.
#pragma GCC visibility push(hidden)

typedef struct interpret_state state_t;
typedef struct interpret_instruction instruction_t;
typedef struct interpret_operand operand_t;
typedef struct interpret_vary vary_t;

static const vary_t steady = {.kind = INTERPRET_STEADY, .bytes = 8}, any = {.kind = INTERPRET_ANY, .bytes = 8};

// Half of a condition's number in instructions; odd numbers are the opposites.
enum {
    VARY_OVERFLOW,
    VARY_BELOW,
    VARY_EQUAL,
    VARY_BELOW_OR_EQUAL,
    VARY_SIGN,
    VARY_PARITY,
    VARY_LESS,
    VARY_LESS_OR_EQUAL
};

// The flags are those of comparing a with b (of flags.bytes), of which only one varies.
struct vary_flags {
    vary_t of;                 // of a, or if `swapped` of b
    bool swapped, only_result; // only_result: carry and overflow are not those of a comparison
    bool carry_varies; // the carry is not steady: it is older than the other flags, or of what the result has lost
    bool overflow_varies;
    uint64_t a, b;
    unsigned bytes;
};

struct vary_now {
    bool on, failed, loose;
    double quotients, moved; // of interpret_vary_begin; the longest for which a quotient that rises stays as it is
    double steps[INTERPRET_SOURCES], back[INTERPRET_SOURCES]; // of each source, for which the way is the same
    vary_t registers[INTERPRET_REGISTERS];
    vary_t vectors[INTERPRET_REGISTERS]; // the lower half; STEADY or REAL
    uint32_t varying;                    // a bit for each of both that is not STEADY: registers below
    uint64_t words; // a bit of each word's address (interpret_bit_of) that was not STEADY at some time
    struct vary_flags flags;
};
extern struct vary_now vary_now; // one thread of the process runs at a time

// --- bounds: something stays as it is until ... -----------------------------------------------------------------------

void vary_bound(vary_t vary, double steps);                         // of its source
void vary_bound_room(vary_t vary, double down, double up);          // the value has moved so far
void vary_bound_back(vary_t vary);                                  // it is not known what it was before
void vary_bound_width(vary_t vary, uint64_t value, unsigned bytes); // it wraps, as an unsigned number
void vary_bound_sign(vary_t vary, uint64_t value, unsigned bytes);  // it passes the middle of its range
void vary_condition_bound(unsigned condition);                      // the condition holds, or not, no longer

// --- values -----------------------------------------------------------------------------------------------------------

bool vary_falls(vary_t vary);
vary_t vary_linear(uint64_t step, unsigned bytes, vary_t from); // of its source
vary_t vary_rising(double rate, double rounding, vary_t from);
vary_t vary_is_numeric(vary_t vary);           // parts of a counter are not
double vary_rounding(vary_t vary);             // of RISING; 0: LINEAR
vary_t vary_sum(vary_t a, vary_t b, int sign); // a + sign * b
vary_t vary_plus(vary_t vary, uint64_t value); // plus a steady value
vary_t vary_times(vary_t vary, uint64_t by);
vary_t vary_divided(vary_t vary, uint64_t value, unsigned bytes, double by);
// A quotient stays the same until its dividend has moved by more than `distance`. If that is soon, it is as `otherwise`
// says.
vary_t vary_quotient(double distance, vary_t dividend, vary_t otherwise);
vary_t vary_masked(vary_t vary, uint64_t value, uint64_t mask); // the bits of the mask
vary_t vary_narrowed(vary_t vary, unsigned bytes);              // as a value of 4 bytes it may move the other way
void vary_flags_of(vary_t a_vary, uint64_t a, vary_t b_vary, uint64_t b, unsigned bytes, bool only_result);

// --- operands, memory and addresses -----------------------------------------------------------------------------------

vary_t vary_of(const state_t *state, const instruction_t *instruction, const operand_t *operand);
// value: that is put there, of the operand's width.
void vary_put(const state_t *state, const instruction_t *instruction, const operand_t *operand, vary_t vary,
              uint64_t value);
uint64_t vary_value_of(const state_t *state, const instruction_t *instruction, const operand_t *operand);
vary_t vary_of_address(const operand_t *operand);
// false: it varies, or is not known.
bool vary_address_of(const state_t *state, const instruction_t *instruction, const operand_t *operand,
                     uint64_t *address_out);
vary_t vary_loaded(uint64_t address, unsigned bytes);
void vary_stored(uint64_t address, unsigned bytes, vary_t vary);
// An instruction on numbers of double precision, or one that moves 8 bytes and more. false: it is another one.
bool vary_reals(const state_t *state, const instruction_t *instruction, bool *known_out);

#pragma GCC visibility pop
