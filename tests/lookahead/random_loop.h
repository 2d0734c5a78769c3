// Loops of polls, as machine code: random ones, and those of a few instructions.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOOP_CODE_BYTES = 4096, LOOP_DEVICE_WORDS = 4, LOOP_RESULTS = 3 };

// What a loop reads and writes. random_code.h: its steps use the scratch words.
struct loop_memory {
    uint64_t counters[2], scratch[6];
    uint64_t device[LOOP_DEVICE_WORDS]; // that devices write
    uint64_t registers[5];              // from and to the registers that functions preserve
    uint64_t flag;
    uint64_t clock[2];                            // that its readings of a clock write
    uint64_t since;                               // one of these
    double ns, since_s, limit_s;                  // the same in seconds; how long they are compared with
    uint64_t turns[LOOP_DEVICE_WORDS];            // that are written in turn
    uint64_t deadline_ps, served;                 // of the library: when it has work to do, how often it did
    uint64_t found_count;                         // polls that found something; the loop ends after so many
    uint64_t tail_ps, now_ps, found, entry_count; // of the thread (attach_borders)
};

// What a loop calls: poll(key, word) returns whether it found something, as function(key, word), which is a library's;
// poll_call(flags, key) polls as well, clock(which, to)
// writes the time.
struct loop_calls {
    uintptr_t poll, function, poll_call, clock;
};

typedef void (*random_loop_t)(struct loop_memory *memory);
// Writes the function there. The same seed gives the same instructions.
random_loop_t random_loop(unsigned char code[LOOP_CODE_BYTES], uint64_t seed, const struct loop_calls *calls);
// One with a poll behind these instructions, for which the memory is at rbx.
random_loop_t loop_of(unsigned char code[LOOP_CODE_BYTES], const unsigned char *body, size_t bytes,
                      const struct loop_calls *calls);
