// The system calls that are carried out in simulated time (calls.def), for the files that carry them out.
#pragma once

#define FUNCTION(name, version, policy, number)
#define CALL(name, function, trap, policy) long function(const long *arguments);
#include "verbs-shim/world/calls.def"
#undef CALL
#undef FUNCTION

// As the C library's functions return it, with errno.
long world_result(long result);

// What a wrapper by name hands on: WORLD_CALL(world_call_read, fd, buffer, bytes).
#define WORLD_CALL(function, ...)                                                                                      \
    (attach_window_close(), world_result(function((const long[6]){WORLD_ARGUMENTS(__VA_ARGS__, 0, 0, 0, 0, 0)})))
#define WORLD_ARGUMENTS(a, b, c, d, e, f, ...) (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)
