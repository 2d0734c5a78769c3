// Test doubles of what streams use: the connection manager, verbs, datagrams, and the simulator. Those that no test
// reaches fail it.
#pragma once

#include <stdint.h>

#include "verbs-shim/rdmacm/internal.h"
#include "verbs-shim/rdmacm/rsocket.h"

enum { DOUBLE_RECEIVES = 4 };

extern struct doubles {
    unsigned polls, comes_at; // the completion of a message comes with this poll of the queue; 0: never
    uint32_t bytes;           // of the message
} doubles;

// A stream that is connected; its receive buffer begins with these bytes. The caller closes it with doubles_close.
struct rs *doubles_connected(const char *received);
void doubles_close(struct rs *rs);
