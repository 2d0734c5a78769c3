// How the ranks of a workload tell each other things: outside the fabric, at no cost. Each exchange is a barrier as
// well. Private to the room.
#pragma once

#include "sim/kernel/thread.h"

#define PLAT_MAILBOX_BYTES     256
#define PLAT_MAILBOX_RANKS_MAX 256

struct plat_mailbox {
    sim_t *sim;
    unsigned ranks;
    uint64_t turns[PLAT_MAILBOX_RANKS_MAX]; // exchanges that each rank has come to
    // Of each rank, for even and odd turns: nobody is more than one turn ahead.
    unsigned char letters[PLAT_MAILBOX_RANKS_MAX][2][PLAT_MAILBOX_BYTES];
    sim_condition_t arrived;
};

void plat_mailbox_init(struct plat_mailbox *mailbox, sim_t *sim, unsigned ranks);

// From the thread of `rank`: gives `mine` to the others and waits for everyone's, which `all` receives in rank order.
void plat_mailbox_gather(struct plat_mailbox *mailbox, unsigned rank, const void *mine, void *all, size_t bytes);
