#include "sim/platform/mailbox.h"

#include <stdlib.h>
#include <string.h>

bool plat_mailbox_init(struct plat_mailbox *mailbox, sim_t *sim, unsigned ranks)
{
    *mailbox = (struct plat_mailbox){.sim = sim, .ranks = ranks};
    mailbox->turns = calloc(ranks, sizeof *mailbox->turns);
    mailbox->letters = calloc(ranks, sizeof *mailbox->letters);
    sim_condition_init(&mailbox->arrived);
    return mailbox->turns != NULL && mailbox->letters != NULL;
}

void plat_mailbox_fini(struct plat_mailbox *mailbox)
{
    free(mailbox->turns);
    free(mailbox->letters);
}

// The lowest rank that has not reached the turn, which is the first that is not complete.
static unsigned missing(struct plat_mailbox *mailbox, uint64_t turn)
{
    while (mailbox->missing + 1 < mailbox->ranks && mailbox->turns[mailbox->missing] > turn) {
        mailbox->missing++;
    }
    return mailbox->missing;
}

void plat_mailbox_post(struct plat_mailbox *mailbox, unsigned rank, const void *mine, size_t bytes)
{
    if (bytes > PLAT_MAILBOX_BYTES) {
        sim_panic("platform", "an exchange of %zu bytes", bytes);
    }
    uint64_t turn = mailbox->turns[rank]++;
    if (bytes > 0) {
        memcpy(mailbox->letters[rank][turn % 2], mine, bytes);
    }
    if (++mailbox->present[turn % 2] == mailbox->ranks) {
        mailbox->present[turn % 2] = 0;
        mailbox->missing = 0;
        mailbox->complete = turn + 1;
        sim_condition_signal(mailbox->sim, &mailbox->arrived);
    }
    while (mailbox->complete <= turn) {
        const struct sim_wait_reason reason = {"another rank", "exchange %llu with rank %llu", turn,
                                               missing(mailbox, turn)};
        (void)sim_condition_wait(mailbox->sim, &mailbox->arrived, SIM_NEVER_PS, &reason);
    }
}

const void *plat_mailbox_letter(const struct plat_mailbox *mailbox, unsigned rank, unsigned from)
{
    return mailbox->letters[from][(mailbox->turns[rank] - 1) % 2];
}

void plat_mailbox_gather(struct plat_mailbox *mailbox, unsigned rank, const void *mine, void *all, size_t bytes)
{
    plat_mailbox_post(mailbox, rank, mine, bytes);
    for (unsigned i = 0; i < mailbox->ranks; i++) {
        memcpy((unsigned char *)all + i * bytes, plat_mailbox_letter(mailbox, rank, i), bytes);
    }
}
