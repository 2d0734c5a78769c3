// Test doubles of what the drop-in libraries are built with: the attach library, libibverbs, and an MPI. Each notes how
// it was called.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/ibverbs/device.h"

struct doubles {
    enum attach_mode mode;
    uint64_t spent_ps;
    unsigned entered, left;                 // of the library
    unsigned interrupts;                    // signals that end a wait
    unsigned waits, wait_flags;             // the last one's
    unsigned woken;                         // calls of attach_may_wake
    void (*waiting)(void);                  // called by each wait; NULL: it returns
    const struct attach_progress *progress; // as attach_progress_set was told
    uint64_t due_ps;                        // of ibverbs_events_due_ps
    const char *devices[4];                 // in the order in which they were added
    unsigned device_count;
    const struct ibverbs_outside *outside; // of environment.c
    // --- MPI
    bool mpi_runs;
    int rank, ranks;
    unsigned asked; // calls of MPI_Comm_rank and _size
    unsigned sent, received;
};
extern struct doubles doubles;

void doubles_reset(void);
