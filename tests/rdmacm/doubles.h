// Test doubles of the functions of librdmacm, libibverbs and the simulator that the units under test call.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "verbs-shim/rdmacm/internal.h"

enum { DOUBLE_NODES = 3, DOUBLE_OWN_NODE = 1, DOUBLE_MOVES = 16, DOUBLE_SOCKET = 7 };
#define DOUBLE_ADDRESS_BASE 0x7f010001u // of node 0: 127.1.0.1
#define DOUBLE_INTERRUPT_PS 3000000u

// One call of rsend, rrecv, rsendto or rrecvfrom: its arguments, and the result that it must return.
struct double_move {
    size_t bytes;
    int flags;
    ssize_t result; // negative: an errno value
};

extern struct doubles {
    bool datagrams; // the socket is a datagram socket
    struct double_move moves[DOUBLE_MOVES];
    unsigned move_count;
    uint8_t wire[4096]; // bytes that were sent, or that are received
    size_t wire_bytes, taken;
    // events of the connection manager
    enum rdma_cm_event_type event;
    int event_status;
    unsigned events;
    uint64_t deadline_ns;
    unsigned watched;
} doubles;

// Begins a run in a temporary folder, with all ports free.
void doubles_begin(void);
void doubles_end(void);

// An identifier of that port space without a port or socket.
struct cm_id doubles_id(enum rdma_port_space ps);
