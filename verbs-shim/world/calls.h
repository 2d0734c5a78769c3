// The system calls that are carried out in simulated time (calls.def), for the files that implement them.
#pragma once

#define FUNCTION(name, version, policy, number)
#define CALL(name, function, trap, policy) long function(const long *arguments);
#include "verbs-shim/world/calls.def"
#undef CALL
#undef FUNCTION

// Returns the result as functions of the C library do, with errno.
long world_result(long result);

// Used by interposed functions: WORLD_CALL(world_call_read, fd, buffer, bytes).
#define WORLD_CALL(function, ...)                                                                                      \
    (attach_window_close(), world_result(function((const long[6]){WORLD_ARGUMENTS(__VA_ARGS__, 0, 0, 0, 0, 0)})))
#define WORLD_ARGUMENTS(a, b, c, d, e, f, ...) (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)
