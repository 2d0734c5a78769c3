// What the files of the look ahead share. Private to them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/world/interpret.h"
#include "verbs-shim/world/interpret_vary.h"

// Calls within the library, without its table of symbols.
#pragma GCC visibility push(hidden)

enum {
    LOOKAHEAD_COUNTERS = 8,
    LOOKAHEAD_RANGES = 8,
    LOOKAHEAD_INSTRUCTIONS = 20000,
    LOOKAHEAD_INSTRUCTIONS_LONG = 200000
};

// A register or a word that changes by a constant in each iteration.
struct lookahead_counter {
    uint64_t address; // 0: the register `number`
    uint8_t number, half, bytes;
    // A time that moves as the thread's own does. The program does the same wherever that is: `first` is the distance to it.
    bool clock;
    uint64_t step;  // in an iteration
    uint64_t first; // its value when the loop was found
    // The program does the same for so many steps from there on, and for so many before it; and if the modulus is not 0, also
    // if the value is away by a multiple of it.
    uint64_t counted, back;
    uint32_t modulus;
    uint64_t other; // a value with which it may do the same
};

// What varies in a loop.
struct lookahead_varies {
    struct lookahead_counter counters[LOOKAHEAD_COUNTERS];
    // Registers and words that it only compares: they stay as they are, and with other values it does the same. step 1.
    struct lookahead_counter ranges[LOOKAHEAD_RANGES];
    unsigned counter_count, range_count;
    bool apart; // nothing depends on two counters: each may be anywhere
};

// For how long a loop is known.
struct lookahead_bounds {
    bool asked; // it asks the kernel, and is known until somebody may have changed an answer
    bool timed; // it reads clocks: it is known until that time
    uint64_t until_ps;
    // Of the last iteration that was interpreted with its counters; 0: not all its polls found nothing.
    uint64_t passed_ps;
};

// A loop of polls.
struct attach_known {
    struct attach_caller caller;
    struct attach_ahead ahead; // count 0: no loop
    struct attach_loop_word words[ATTACH_LOOP_WORDS];
    uint64_t steady[ATTACH_LOOP_WORDS]; // bits of the words that are as they were: no counter, range or state of a poll
    struct lookahead_varies varies;
    struct lookahead_bounds bounds;
    unsigned place; // of its poll
    bool alone;     // found while no other thread could see what it writes
    uint64_t given; // iterations, to the thread that entered it last
};

// --- lookahead_known.c ------------------------------------------------------------------------------------------------------

// Of each of so many polls, by its place.
enum { LOOKAHEAD_SITES = 32 };
// The loop that is known here, for *iterations_out; NULL: none is.
struct attach_known *lookahead_known_find(unsigned place, const struct attach_caller *caller,
                                          const struct attach_borders *borders, uint64_t *iterations_out);
// One that is known no longer: the one that was not met for longest; or, if threads are in all of them, one that will not be
// found again. NULL: there is none.
struct attach_known *lookahead_known_free(unsigned place);
// It was found, and its counters are there. false: it reads too many words.
bool lookahead_known_keep(struct attach_known *loop, const struct attach_caller *caller,
                          const struct attach_ahead *ahead, const struct attach_borders *borders);
// The loop that is most like this one (lookahead_wider). NULL: there is none.
struct attach_known *lookahead_known_near(const struct attach_known *loop, struct lookahead_varies *wider_out);
// More is known of it, and the other loop is of no use any more.
void lookahead_known_widened(struct attach_known *loop, struct attach_known *other);
bool lookahead_known_is_used(unsigned place); // is a thread in one?
void lookahead_known_forget(unsigned place);  // none is
// A thread is in it, for so many iterations.
void lookahead_known_enter(struct attach_known *loop, uint64_t iterations, struct attach_ahead *ahead_out);
void lookahead_known_leave(const struct attach_known *loop);
bool lookahead_words_differ(const struct attach_loop_word *words, unsigned count); // `differ` of attach_look_ahead_ops
// How many steps the value is away from `first`; INT64_MIN: it is not known what the program does there.
int64_t lookahead_counter_moved(const struct lookahead_counter *counter, uint64_t value);
const struct lookahead_counter *lookahead_counter_at(const struct attach_known *loop, uint64_t address); // NULL: none
uint64_t lookahead_counter_value(const struct lookahead_counter *counter, uint64_t word); // in that word of 8 bytes
uint64_t lookahead_counter_mask(const struct lookahead_counter *counter);                 // its bits there

// --- lookahead_leave.c: `left` and `made` of attach_look_ahead_ops ----------------------------------------------------------

enum attach_left_how lookahead_leave(struct attach_known *loop, struct attach_caller *caller,
                                     const struct attach_borders *borders, const struct attach_left_at *at,
                                     struct attach_resume *resume_out, enum attach_left_by *by_out,
                                     struct attach_left_makes *makes_out);
void lookahead_words_give_back(void);

// --- lookahead_poll.c: the program comes to a poll, a clock, or the kernel ------------------------------------------------

enum lookahead_stop {
    LOOKAHEAD_POLL,    // at a poll
    LOOKAHEAD_UNKNOWN, // whatever is not known, `ahead->reason`
    LOOKAHEAD_CALL     // a system call that does something
};

// One interpretation.
struct lookahead_run {
    struct interpret_state state;
    const struct attach_borders *borders;
    unsigned left;      // instructions
    uint64_t period_ps; // of an iteration, at most, if values vary
    bool asked;         // what the program does depends on answers of the kernel
    bool replays;       // the kernel was asked before: nothing was there
    bool clocks;        // it has read a clock
    unsigned readings;  // of clocks, one after another
    uint64_t read_ps;   // when the last one ended
    const char *reason;
};

// From the return of the poll at which the thread is, which it has paid for; interpret_begin was called. period_ps: of an
// iteration, if values vary.
struct lookahead_run lookahead_begin(const struct attach_caller *caller, const struct attach_borders *borders,
                                     uint64_t now_ps, uint64_t period_ps, unsigned instructions);
uint64_t lookahead_register(const struct attach_caller *caller, unsigned number);
// By their numbers: the registers that functions preserve, but for the stack pointer.
static const uint8_t lookahead_preserved[] = {INTERPRET_RBX, INTERPRET_RBP, INTERPRET_R12,
                                              INTERPRET_R13, INTERPRET_R14, INTERPRET_R15};
void lookahead_registers(const struct attach_caller *caller, uint64_t registers_out[INTERPRET_REGISTERS]);
unsigned lookahead_effort(void); // polls that were interpreted so far
enum lookahead_stop lookahead_run(struct lookahead_run *run);
bool lookahead_reads_clocks(const struct lookahead_run *run); // it has, so far
// The run is at a poll: what it is. IDLE: the next call of lookahead_pass carries it out.
enum attach_idle lookahead_describe(const struct lookahead_run *run, struct attach_ahead_poll *poll_out);
void lookahead_pass(struct lookahead_run *run, uint64_t own_ps); // it finds nothing
// A poll that was described: would it find nothing now as well? Its word may be another one by now.
bool lookahead_still_idle(const struct attach_caller *caller, const struct attach_borders *borders,
                          struct attach_ahead_poll *poll);
enum attach_left_by lookahead_at(const struct lookahead_run *run); // what the poll is
void lookahead_return(struct lookahead_run *run);                  // the function that was reached returns
void lookahead_return_with(struct lookahead_run *run, uint64_t result);
// How many iterations end until then, and before one of the loop's polls does something.
uint64_t lookahead_iterations(const struct attach_ahead *ahead, uint64_t now_ps, uint64_t until_ps,
                              uint64_t iteration_ps);
bool lookahead_time_is_known(const struct attach_borders *borders); // the thread's: it has no stores in its list
bool lookahead_is_own(const struct attach_borders *borders, uint64_t address); // a variable of the shim
uint64_t lookahead_mask(uint8_t bytes);

bool lookahead_register_is_steady(const struct interpret_state *state, unsigned number); // and known

// --- lookahead_clock.c ------------------------------------------------------------------------------------------------------

unsigned lookahead_clock_form(uint64_t address); // of the function there (clock_calls.h); 0: it reads no clock
// The run is at such a function.
struct attach_clock lookahead_clock_of(const struct lookahead_run *run);
bool lookahead_clock_is_known(const struct lookahead_run *run); // what it reads, and where it writes that
bool lookahead_clock_polls(struct lookahead_run *run);          // is it a poll?
void lookahead_clock_call(struct lookahead_run *run);           // carries it out, at its cost
// Writes what the clock shows now. Returns the function's result.
uint64_t lookahead_clock_put(struct lookahead_run *run, const struct attach_clock *clock);
// The run is at a reading of the time stamp counter: carries it out. false: it is not.
bool lookahead_tsc(struct lookahead_run *run);

// --- lookahead_library.c ----------------------------------------------------------------------------------------------------

enum { LOOKAHEAD_LIBRARY_FUNCTIONS = 12 };
void lookahead_library_start(void);
const uintptr_t *lookahead_library_entries(void); // of all functions; 0: it does not exist
// true: the state is at one of them. known: it was carried out, but for its return.
bool lookahead_library_at(const struct interpret_state *state, bool *known_out, uint64_t *result_out);

// --- lookahead_kernel.c -----------------------------------------------------------------------------------------------------

// The run is at a system call, which would find nothing now: it returns. false: it does more, or this is not known.
bool lookahead_ask(struct lookahead_run *run);
bool lookahead_call_may_poll(uint64_t number); // one that was not asked: what it would find is not known

// --- lookahead_cycle.c: what the program does until it repeats itself -------------------------------------------------------

// So many polls after which only counters differ.
struct lookahead_candidate {
    unsigned polls;     // 0: none
    uint64_t period_ps; // of all these polls
    struct lookahead_varies varies;
};
struct lookahead_wanted {
    uint64_t polls;  // it is of use to know so many
    uint64_t enough; // a cycle that tells of so many ends the search
};
// known: gets the counters, if it REPEATS. candidate_out: the cycle with counters that tells of most polls. true: a loop begins
// after ahead->count polls.
bool lookahead_cycle(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                     const struct lookahead_wanted *wanted, struct attach_ahead *ahead, struct attach_known *known,
                     struct lookahead_candidate *candidate_out);
// Does it repeat with what varied an earlier time? false: ahead means nothing.
bool lookahead_cycle_again(const struct attach_caller *caller, const struct attach_borders *borders,
                           struct lookahead_candidate *candidate, struct attach_ahead *ahead,
                           struct attach_known *known);
uint64_t lookahead_told(const struct attach_ahead *ahead); // of how many polls it tells, if it REPEATS

// --- lookahead_vary.c -------------------------------------------------------------------------------------------------------

// What has changed since that point, as counters. Returns their number; more than LOOKAHEAD_COUNTERS: it is not the same
// place of the program, or too much.
unsigned lookahead_differs(const struct lookahead_run *run, const struct interpret_state *before,
                           enum interpret_point point, struct lookahead_counter counters_out[LOOKAHEAD_COUNTERS]);
// At a poll: notes what is not as it was in the beginning. steady: nothing of that is for others, counters left out.
void lookahead_changes_note(struct attach_ahead *ahead, const struct attach_borders *borders, uint64_t stack);
// `polls` polls from the beginning on, if known->varies does. true: they repeat, for ahead->iterations.
bool lookahead_vary(const struct attach_caller *caller, const struct attach_borders *borders, unsigned polls,
                    uint64_t period_ps, struct attach_ahead *ahead, struct attach_known *known);
// Does what the loop does depend on the word, as it was in the beginning?
bool lookahead_is_input(const struct interpret_word *word, enum interpret_point point, uint64_t stack);

// --- lookahead_wider.c: a loop that is met again with other values ----------------------------------------------------------

// What would have to vary in `loop`, which was kept just now, for the other one to be the same loop. false: they are not alike.
bool lookahead_wider(const struct attach_known *loop, const struct attach_known *other,
                     struct lookahead_varies *wider_out);
bool lookahead_has_register(const struct lookahead_varies *varies, uint8_t number); // a counter or range
bool lookahead_is_wide(const struct lookahead_varies *varies);              // more than counters that move together
void lookahead_narrow(struct lookahead_varies *varies);                     // not any more
bool lookahead_is_known_with_others(const struct lookahead_varies *varies); // with all their values `other`

#pragma GCC visibility pop
