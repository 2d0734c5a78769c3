// Messages between the ranks of a workload: outside the fabric, at no cost. Each exchange is also a barrier. Private to
// the room.
#pragma once

#include "sim/kernel/thread.h"

#define PLAT_MAILBOX_BYTES     256
#define PLAT_MAILBOX_RANKS_MAX 1024

struct plat_mailbox {
    sim_t *sim;
    unsigned ranks;
    uint64_t *turns; // exchanges that each rank has reached
    // Of each rank, for even and odd turns, because no rank is more than one turn ahead.
    unsigned char (*letters)[2][PLAT_MAILBOX_BYTES];
    unsigned present[2]; // ranks that have reached the even or odd turn
    uint64_t complete;   // turns that all ranks have reached
    unsigned missing;    // the lowest rank that has not reached the next one
    sim_condition_t arrived;
};

// False: no memory.
bool plat_mailbox_init(struct plat_mailbox *mailbox, sim_t *sim, unsigned ranks);
void plat_mailbox_fini(struct plat_mailbox *mailbox);

// Call from the thread of `rank`: sends `mine` to all ranks and waits for theirs.
void plat_mailbox_post(struct plat_mailbox *mailbox, unsigned rank, const void *mine, size_t bytes);
// What rank `from` sent in the last exchange of `rank`; valid until the next one of `rank`.
const void *plat_mailbox_letter(const struct plat_mailbox *mailbox, unsigned rank, unsigned from);
// plat_mailbox_post, and all letters: sends `mine` to all ranks and waits for theirs, which `all` receives in rank order.
void plat_mailbox_gather(struct plat_mailbox *mailbox, unsigned rank, const void *mine, void *all, size_t bytes);
