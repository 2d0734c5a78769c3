// A process that follows a test's orders, as an attached program would do while it has the run token; and the
// simulator's state of it.
#pragma once

#include <sys/types.h>

#include "sim/attach/internal.h"

struct neighbour {
    struct attach_server *server;
    struct attach_process process;
    int orders, answers;
};

// Starts with the memory that the test has. server: its options and list of processes must be set.
bool neighbour_start(struct neighbour *neighbour, struct attach_server *server);
void neighbour_end(struct neighbour *neighbour);
unsigned char neighbour_get(struct neighbour *neighbour, const void *at);
void neighbour_set(struct neighbour *neighbour, void *at, unsigned char value);
void neighbour_protect(struct neighbour *neighbour, void *at, size_t bytes, int protection); // -1: unmaps
void neighbour_replace(struct neighbour *neighbour, void *at, size_t bytes, int fd);         // by that file, shared
// Does the process have these bytes there?
bool neighbour_holds(struct neighbour *neighbour, const void *at, const void *data, size_t bytes);

// Accesses of a device, within a page.
bool neighbour_write(struct neighbour *neighbour, void *at, const void *data, uint32_t bytes);
bool neighbour_read(struct neighbour *neighbour, const void *at, void *data, uint32_t bytes);
