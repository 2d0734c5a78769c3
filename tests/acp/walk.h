// Random programs of ranks against a reference in plain memory: every rank uses areas of its own in all ranks' memory,
// with copies in every direction, atomics and orders. Operations without an order do not conflict. Also for programs
// outside the simulator (tests/programs/acp).
#pragma once

#include <stdint.h>

#ifdef TCASIM_ATTACHED
#include <acp.h>
#else
#include "verbs-shim/acp/acp.h"
#endif

#define WALK_RANKS_MAX  8
#define WALK_AREA_BYTES 1024
#define WALK_BYTES      (WALK_RANKS_MAX * WALK_AREA_BYTES) // of a rank's memory

// Writes the initial memory of a rank.
void walk_fill(uint8_t *memory, uint32_t rank, uint32_t ranks);
// Runs the rank's program on the memory of all ranks, to its completion. Returns the number of refused commands.
unsigned walk_run(uint64_t seed, uint32_t rank, uint32_t ranks, const acp_ga_t *memories);
// Called when all have run: returns the number of wrong areas in the rank's memory.
unsigned walk_check(uint64_t seed, const uint8_t *memory, uint32_t rank, uint32_t ranks);
