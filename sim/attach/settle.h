// Settling with the outside: messages between programs pass through the machine's kernel, which needs a moment. Part of
// internal.h, for the files of the room.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/kernel/sim.h"

struct attach_server;

struct attach_settling {
    uint64_t wakes;         // calls of attach_may_wake, and ends of processes
    uint64_t ends;          // of `wakes`, ends of processes and signals
    uint64_t settled_wakes; // `wakes` at the last time when the waiters had checked twice
    uint64_t settled_ends;
    sim_event_t event;  // update: at the end of an instant, before time goes on
    unsigned idle_asks; // checks at this time, while nothing but a deadline was due
    uint64_t idle_at_ps;
    uint64_t idle_since_ms; // real time; 0: some thread has work
    uint64_t looked_ms;     // real time of the last look for signals
    uint64_t acts;          // how often programs had the run token, or ended: nothing else makes a descriptor ready
    uint64_t polled_acts;   // `acts` when it was last polled which are ready
};

// --- settle.c -------------------------------------------------------------------------------------------------------

// Lets the threads that wait for the outside check again.
void attach_outside_wake(struct attach_server *server, bool ends); // ends: a process has ended, or had a signal
bool attach_all_blocked_outside(const struct attach_server *server); // do all threads wait for the outside?
void attach_settle_init(struct attach_server *server);
// Call now and then while the simulation is busy: ends a program that waits if a signal from outside the run asks
// for it.
void attach_signals_check(struct attach_server *server);
// A program has sent a signal, or a process has ended, for which the kernel may send some. Signals that are pending now
// do not come from outside. In the thread that has sent it, before simulated time goes on.
void attach_signals_sent(struct attach_server *server);
// The same at the time of the signal: waits in real time for the ends of processes that were killed. From now on they
// have ended for all others, however long the kernel takes.
void attach_killed_await(struct attach_server *server);
// Nothing in the simulation is left to do. Waits for the real world; true: a thread may go on.
bool attach_idle(struct attach_server *server);
