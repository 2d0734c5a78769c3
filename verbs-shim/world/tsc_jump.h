// Places where a program reads the time stamp counter again and again: the instruction becomes a jump to a stub that
// asks without a fault (0.2 us in place of 2.5). Private to the folder.
//
// rdtsc is two bytes and the jump five, so that the instruction behind it moves into the stub. It is moved only where
// it has three bytes or more and does not depend on where it stands. The jump's third byte is a breakpoint: who comes
// to the moved instruction by another way traps, and goes on in the stub.
//
// Leaves out: rdtscp, code that the program may write to (text.h), and places behind which stands anything else; those
// fault each time.
#pragma once

#include <stdint.h>

// After a fault at an rdtsc: where the program goes on.
uintptr_t world_tsc_jump_note(uintptr_t at);
// A breakpoint at this address: where the program goes on; 0: it is none of these.
uintptr_t world_tsc_jump_behind(uintptr_t at);
// What the counter shows.
__attribute__((visibility("hidden"))) uint64_t world_tsc_now(uintptr_t at);
