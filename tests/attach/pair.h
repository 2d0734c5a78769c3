// The same program for two ways to run it: attached from outside, and as a thread of the simulation. Its two sides, one
// on each node, exchange PIO writes through the window, and each side tries every kind of access.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "verbs-shim/backend/backend.h"

#define PAIR_STAMPS_MAX 4096

struct pair {
    uint64_t stamps[PAIR_STAMPS_MAX]; // times as the program reads them
    unsigned count;
    int error; // a negative errno value, or the line of the error
};

// Called when the side's memory is ready; may be NULL. The other side's memory is then ready as well, as both begin at
// the same time.
extern void (*pair_ready)(void);

// side: the node's index, 0 or 1. Fills *pair.
void pair_run(struct backend_process *process, unsigned side, unsigned rounds, struct pair *pair);
