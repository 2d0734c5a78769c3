#include "sim/platform/mailbox.h"

#include <string.h>

void plat_mailbox_init(struct plat_mailbox *mailbox, sim_t *sim)
{
    *mailbox = (struct plat_mailbox){.sim = sim};
    sim_condition_init(&mailbox->arrived);
}

void plat_mailbox_exchange(struct plat_mailbox *mailbox, unsigned rank, const void *mine, void *theirs, size_t bytes)
{
    if (bytes > PLAT_MAILBOX_BYTES) {
        sim_panic("platform", "an exchange of %zu bytes", bytes);
    }
    unsigned other = 1 - rank;
    uint64_t turn = mailbox->turns[rank];
    memcpy(mailbox->letters[rank][turn % 2], mine, bytes);
    mailbox->turns[rank]++;
    sim_condition_signal(mailbox->sim, &mailbox->arrived);
    const struct sim_wait_reason reason = {"the other rank", "exchange %llu with rank %llu", turn, other};
    while (mailbox->turns[other] <= turn) {
        (void)sim_condition_wait(mailbox->sim, &mailbox->arrived, SIM_NEVER_PS, &reason);
    }
    memcpy(theirs, mailbox->letters[other][turn % 2], bytes);
}
