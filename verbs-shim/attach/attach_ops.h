// The parts of the backend of an attached process. Private to the room.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/backend/backend.h"

extern const struct backend_gpu_ops attach_gpu_ops;
extern const struct backend_thread_ops attach_thread_ops;
void attach_threads_forked(void); // in the child

// Is the range in pinned memory of the process?
bool attach_pinned_find(const volatile void *address, size_t bytes, uint64_t *bus_address_out);
// Words in the order of their addresses: sets bus_address of those that are pinned.
void attach_pinned_words(struct attach_loop_word *words, unsigned count);
extern const struct backend_journal_ops attach_journal_ops;
void attach_journal_polled(void *ctx, const volatile void *word, bool found);
void attach_journal_left(void *ctx, const volatile void *word);
