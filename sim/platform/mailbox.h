// How the two ranks of a workload tell each other addresses before they measure: outside the fabric, at no cost. Each
// exchange is a barrier as well. Private to the room.
#pragma once

#include "sim/kernel/thread.h"

#define PLAT_MAILBOX_BYTES 256

struct plat_mailbox {
    sim_t *sim;
    uint64_t turns[2]; // exchanges that each rank has come to
    unsigned char letters[2][2]
                         [PLAT_MAILBOX_BYTES]; // of each rank, for even and odd turns: it is one turn ahead at most
    sim_condition_t arrived;
};

void plat_mailbox_init(struct plat_mailbox *mailbox, sim_t *sim);

// From the thread of `rank`, 0 or 1: gives `mine` to the other one and waits for `theirs`.
void plat_mailbox_exchange(struct plat_mailbox *mailbox, unsigned rank, const void *mine, void *theirs, size_t bytes);
