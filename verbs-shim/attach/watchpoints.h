// Breakpoints on data, for checks. Private to the room.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Functions of backend_journal_ops. Breakpoints count while the thread is in no library.
int attach_watch(void *ctx, const void *memory, size_t bytes);
bool attach_unwatch(void *ctx, int watch, uint64_t *instruction_out);
void attach_watches_enable(bool on); // those of the calling thread
void attach_watches_forget(void);    // in the child of a fork: they belong to the parent
