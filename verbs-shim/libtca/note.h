// What libtca reports about the program's calls (verbs-shim/backend/journal.h). Private to the folder. Without a
// journal each function is only a branch.
#pragma once

#include "verbs-shim/libtca/internal.h"

// The caller's own time; 0: not all calls are reported. context: NULL: the library is not initialised.
uint64_t tca_note_begin(const struct tca_context *context);
void tca_note_dma(const struct tca_context *context, uint64_t began_ps, enum journal_call call,
                  const struct journal_dma *dma);
// Reports the message of the context.
void tca_note_refusal(const struct tca_context *context);
