// An all-reduce between all ranks of several sub-clusters: sums of 64-bit numbers. Within a sub-cluster a message goes
// by PIO, to another one over InfiniBand. Private to the room.
//
// A message is numbers and behind them a word with the number of the all-reduce, at which the receiver polls. Memory is
// there twice, for odd and for even all-reduces: no rank ends one before all have begun it, so what is overwritten was
// read in the one before.
//
// The addition costs what memcpy of the received numbers costs.
#pragma once

#include "scenarios/workloads/far.h"

struct reduction {
    struct workload *workload;
    const struct backend *backend;
    const char *program;
    struct far far; // if there are several sub-clusters
    bool has_far;
    struct backend_buffer near; // slots that the ranks of the sub-cluster write
    uint64_t near_addresses[WORKLOAD_NEAR_MAX];
    uint64_t *message;              // of a near one
    uint32_t near_slots, far_slots; // for one all-reduce
    size_t stride;                  // of near slots
    uint64_t sequence;
};

// Collective; for at most `count` numbers. Returns 0, or a negative errno after fail().
int reduction_open(struct reduction *reduction, struct workload *workload, const char *program, uint64_t count);
void reduction_close(struct reduction *reduction);
// Before all-reduces of another number of numbers: clears the memory. No rank may be in one until all have called it.
void reduction_clear(struct reduction *reduction);
// Replaces the numbers by their sums over all ranks, by the workload's algorithm.
int reduction_run(struct reduction *reduction, uint64_t *numbers, uint64_t count);
