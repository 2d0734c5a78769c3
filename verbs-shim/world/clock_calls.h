// The functions by which programs read clocks (clock_calls.c). A program's reading is described by struct attach_clock
// (verbs-shim/attach/ahead.h).
#pragma once

#include <stdint.h>

// What a function writes, at its first or second argument: seconds and nanoseconds, or microseconds; seconds, which are also
// its result.
enum world_clock_form { WORLD_CLOCK_TIMESPEC = 1, WORLD_CLOCK_TIMEVAL, WORLD_CLOCK_SECONDS };

// Of readings one after another, without anything that takes time between them, so many and one are not polls.
enum { WORLD_CLOCK_READS = 8 };

struct world_clock_entry {
    uintptr_t address;
    enum world_clock_form form;
};
enum { WORLD_CLOCK_ENTRIES = 6 };
extern const struct world_clock_entry world_clock_entries[WORLD_CLOCK_ENTRIES];

// In the place of the vdso's functions (vdso(7)).
void world_vdso_clock_gettime(void);
void world_vdso_gettimeofday(void);
void world_vdso_time(void);
