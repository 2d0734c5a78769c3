// Work on what a program says about itself (debug information, symbols), in a process of its own with limits of time and
// memory: such input may be made to end or to stop whoever reads it. Calls that may last, in a thread. Part of
// internal.h, for the files of the room.
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef void (*attach_aside_fn)(void *ctx, char *text, size_t room);

// Calls work in a child of the simulator and returns what it has written to `text`, which ends with NUL. The child sees
// the simulator's memory as it is, and changes none of it. Returns in ten seconds of real time at the latest, which
// decides nothing but the text. false: the work did not end well; text is empty.
bool attach_aside(attach_aside_fn work, void *ctx, char *text, size_t room);

// Starts a thread of the simulator's, which takes no signals and may read the counter (timestamps.c), and returns when
// it runs: no child of the simulator begins while a thread's start holds a lock of the memory allocator. false: none.
bool attach_aside_thread(pthread_t *thread, void *(*run)(void *arg), void *arg);
