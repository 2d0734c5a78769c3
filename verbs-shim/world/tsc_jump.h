// Instructions that read the time stamp counter again and again: each becomes a jump to a stub, which gets the time
// without a fault (0.2 us instead of 2.5). Private to the folder.
//
// rdtsc has two bytes and the jump five, so the next instruction moves into the stub. It is moved only if it has three
// bytes or more and does not depend on its own address. The third byte of the jump is a breakpoint: a thread that
// reaches the moved instruction by another path traps, and goes on in the stub.
//
// Leaves out: rdtscp, code that the program may write to (text.h), and reads that any other instruction follows; these
// fault each time.
#pragma once

#include <stdint.h>

// After a fault at an rdtsc: the address at which the program goes on.
uintptr_t world_tsc_jump_note(uintptr_t at);
// For a breakpoint at this address: the address at which the program goes on; 0: not one of these.
uintptr_t world_tsc_jump_behind(uintptr_t at);
// The value of the counter.
__attribute__((visibility("hidden"))) uint64_t world_tsc_now(uintptr_t at);
// What the jump's code calls: it does what rdtsc does, and changes no other register.
extern void world_tsc_entry(void) __attribute__((visibility("hidden")));
