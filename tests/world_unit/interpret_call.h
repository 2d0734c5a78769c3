#pragma once

#include "verbs-shim/world/interpret.h"

// Interprets a call of the function, to its return; interpret_begin was called. Known are its arguments rdi and rsi, and what a
// callee saves. The state in the end has its result.
enum interpret_stop interpret_call(uintptr_t function, uint64_t rdi, uint64_t rsi, struct interpret_state *state_out);
