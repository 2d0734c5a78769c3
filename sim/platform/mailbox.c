#include "sim/platform/mailbox.h"

#include <string.h>

void plat_mailbox_init(struct plat_mailbox *mailbox, sim_t *sim, unsigned ranks)
{
    *mailbox = (struct plat_mailbox){.sim = sim, .ranks = ranks};
    sim_condition_init(&mailbox->arrived);
}

// The lowest rank that has not reached the turn; ranks: all have.
static unsigned missing(const struct plat_mailbox *mailbox, uint64_t turn)
{
    unsigned rank = 0;
    while (rank < mailbox->ranks && mailbox->turns[rank] > turn) {
        rank++;
    }
    return rank;
}

void plat_mailbox_gather(struct plat_mailbox *mailbox, unsigned rank, const void *mine, void *all, size_t bytes)
{
    if (bytes > PLAT_MAILBOX_BYTES) {
        sim_panic("platform", "an exchange of %zu bytes", bytes);
    }
    uint64_t turn = mailbox->turns[rank];
    memcpy(mailbox->letters[rank][turn % 2], mine, bytes);
    mailbox->turns[rank]++;
    if (missing(mailbox, turn) == mailbox->ranks) {
        sim_condition_signal(mailbox->sim, &mailbox->arrived);
    }
    while (missing(mailbox, turn) < mailbox->ranks) {
        const struct sim_wait_reason reason = {"another rank", "exchange %llu with rank %llu", turn,
                                               missing(mailbox, turn)};
        (void)sim_condition_wait(mailbox->sim, &mailbox->arrived, SIM_NEVER_PS, &reason);
    }
    for (unsigned i = 0; i < mailbox->ranks; i++) {
        memcpy((unsigned char *)all + i * bytes, mailbox->letters[i][turn % 2], bytes);
    }
}
