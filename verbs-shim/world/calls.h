// The system calls in which a program waits for somebody, or lets somebody go on, one row each: its number, the function
// that carries it out in simulated time, and of which arguments that is true (CALL_* of trap.c). Wrappers of the C
// library's functions call these functions too, as that is cheaper than a trap.
//
// A function takes the six arguments as the kernel does, and returns what the kernel would: -errno where it fails.
#pragma once

#define WORLD_CALLS(C) C(futex, world_call_futex, CALL_ALWAYS)

#define DECLARE(name, function, when) long function(const long *arguments);
WORLD_CALLS(DECLARE)
#undef DECLARE
