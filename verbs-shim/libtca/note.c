#include "verbs-shim/libtca/note.h"

#include <stdio.h>

static const struct backend_journal_ops *journal_of(const struct tca_context *context, bool all)
{
    const struct backend_journal_ops *journal = context != NULL ? context->backend.ops->journal : NULL;
    return journal != NULL && (!all || journal->all(context->backend.ctx)) ? journal : NULL;
}

uint64_t tca_note_begin(const struct tca_context *context)
{
    const struct backend_journal_ops *journal = journal_of(context, true);
    return journal != NULL ? journal->now_ps(context->backend.ctx) : 0;
}

void tca_note_dma(const struct tca_context *context, uint64_t began_ps, enum journal_call call,
                  const struct journal_dma *dma)
{
    const struct backend_journal_ops *journal = journal_of(context, true);
    if (journal != NULL) {
        const struct journal_record record = {.call = (uint16_t)call, .began_ps = began_ps, .dma = *dma};
        journal->note(context->backend.ctx, &record);
    }
}

void tca_note_refusal(const struct tca_context *context)
{
    const struct backend_journal_ops *journal = journal_of(context, false);
    if (journal != NULL && !context->notes_suppressed) {
        struct journal_record record = {.call = JOURNAL_TCA_REFUSED};
        (void)snprintf(record.refusal.sentence, sizeof record.refusal.sentence, "%.*s", JOURNAL_SENTENCE_BYTES - 1,
                       context->message);
        journal->note(context->backend.ctx, &record);
    }
}

void tca_note_suppress(bool suppress)
{
    struct tca_context *context = tca_context_current();
    if (context != NULL) {
        context->notes_suppressed = suppress;
    }
}
