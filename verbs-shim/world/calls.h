// The system calls that are carried out in simulated time (calls.def), for the files that implement them.
#pragma once

#define FUNCTION(name, version, policy, number)
#define CALL(name, function, trap, policy) long function(const long *arguments);
#include "verbs-shim/world/calls.def"
#undef CALL
#undef FUNCTION

// Returns the result as functions of the C library do, with errno.
long world_result(long result);

// The same of a CALL, which is a cancellation point (pthread_cancel), as the C library's functions that wait are.
long world_carry_out(long (*call)(const long *arguments), const long *arguments);

// Used by interposed functions: WORLD_CALL(world_call_read, fd, buffer, bytes).
#define WORLD_CALL(call, ...)                                                                                          \
    world_carry_out(call, (const long[6]){WORLD_ARGUMENTS(__VA_ARGS__, 0, 0, 0, 0, 0)})
#define WORLD_ARGUMENTS(a, b, c, d, e, f, ...) (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)
