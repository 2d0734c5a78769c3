// Reads of the time stamp counter on a machine whose processor does not let them fault. PR_SET_TSC sets a flag of the
// processor, and some hypervisors accept it without effect: programs would read the machine's counter, and real time
// would be in their results. There the instructions are overwritten by one that always faults (hlt), in each mapped
// file that is executable, before any code of it runs. The handler does what it does for a read that faults by itself.
//
// An instruction is known by decoding: rdtsc has two bytes, which may also be a part of another instruction.
//
// Leaves out: code that a program generates.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

// Overwrites what is mapped now, and has the dynamic linker report what it maps later. From now on all functions below
// have work.
void world_tsc_rewrite_start(void);
// The length of the instruction that stood here; 0: nothing was overwritten.
unsigned world_tsc_rewritten_bytes(uintptr_t at);
// The thread has faulted where the linker reports that it has mapped something: overwrites that, and lets the linker go
// on. false: it has faulted elsewhere.
bool world_tsc_rewrite_mapped(greg_t *registers);

// Is there a read of the counter at `at`, in code that begins at `begin`? Returns its length; 0: it is something else, or
// the end of something else.
unsigned world_tsc_read_bytes(const unsigned char *begin, const unsigned char *end, const unsigned char *at);
