// Memory that the process shares with others, as the kernel has it mapped. Private to the room.
//
// The simulator's own and pinned memory is left out: the simulator writes it itself, and knows when.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WORLD_MAPPINGS_MAX = 128 };

struct world_mapping {
    uintptr_t begin, end;
    int protection;
};

// Neighbours of the same rights are one mapping: a window (shared.c) cuts one into pieces, and the kernel does not join
// those of System V segments.
struct world_mappings {
    struct world_mapping list[WORLD_MAPPINGS_MAX];
    unsigned count, pieces; // pieces: as the kernel has them
    bool writable;          // one of them
    uint64_t bytes;
};

// Asks the kernel, because some libraries map memory without the C library (UCX). false: it does not say, there are
// none, or more than a window can open in a reasonable time.
bool world_mappings_find(struct world_mappings *mappings);
// All of them from a text of the kernel, which takes long: where it does not answer questions (before Linux 6.11).
bool world_mappings_read(struct world_mappings *mappings);
bool world_mapping_rights_set(const struct world_mapping *mapping, int protection);
// Gives all of them their rights again. A part may be unmapped.
void world_mappings_rights_restore(const struct world_mappings *mappings);
