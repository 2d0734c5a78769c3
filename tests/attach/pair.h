// The same program for both ways: attached from outside, and as a thread of the simulation. Two sides, one on each
// node, exchange PIO writes through the window; each looks at every kind of access on the way.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "verbs-shim/backend/backend.h"

#define PAIR_STAMPS_MAX 4096

struct pair {
    uint64_t stamps[PAIR_STAMPS_MAX]; // times as the program reads them
    unsigned count;
    int error; // a negative errno value, or the line where something was wrong
};

// Called when the side's memory is there; NULL: the other's is by then as well, as both begin at the same time.
extern void (*pair_ready)(void);

// side: the node's index, 0 or 1. Fills *pair.
void pair_run(struct backend_process *process, unsigned side, unsigned rounds, struct pair *pair);
