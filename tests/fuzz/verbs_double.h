// A libibverbs of one device, whose completions come from a fuzz target's input, and a process of a run without a
// simulator: what librdmacm needs.
#pragma once

#include "fuzz.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

enum { DOUBLE_NODES = 4 };
#define DOUBLE_ADDRESS_BASE 0x0a000001u // 10.0.0.1

// Forgets what was posted. The queue pairs of the case before must be destroyed.
void verbs_double_begin(void);
// The next completion of some queue pair: of what was posted, with a status, an immediate value and bytes from the
// input.
void verbs_double_complete(struct fuzz_input *input);
// From now on all that was posted completes in error at once, so that nobody waits.
void verbs_double_flush(void);
