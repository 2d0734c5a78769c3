// Two processes of a node, without programs: a test makes the requests of their threads, as if programs had sent them.
//
// The processes' memory is that of two processes that sleep; a device may write anything there. What the programs' side
// does (slots, the run token, lists of stores) is left out: tests/attach has hostile programs for it.
#pragma once

#include "sim/attach/internal.h"

enum { ASKERS = 2, ASKER_THREADS = 2 };

// Of the sleepers, and of nothing else in this process.
#define ASKERS_MEMORY       UINT64_C(0x200000000000) // above the memory that AddressSanitizer keeps for itself
#define ASKERS_MEMORY_BYTES UINT64_C(0x10000)

struct askers {
    struct scn_scenario *scenario;
    struct attach_run_options options;
    struct attach_run_result result;
    struct attach_server server;
    struct attach_process *processes[ASKERS]; // NULL: it has ended
    int programs[ASKERS];                     // their ends of the sockets
    uint64_t first_pinned;                    // where the first allocation of node 0 is
};

// Threads of both processes on node 0 of the scenario of that path. They run body; it ends with askers_leave.
// Starts the processes that sleep, unless they still do.
void askers_init(struct askers *askers, const char *scenario, void (*body)(void *attach_thread));
// Runs until all threads have ended. Processes whose threads wait for what never comes are ended, and with them their
// waits. Checks that everything was given back: pinned memory, packets, objects. false: a text says what was not.
bool askers_run(struct askers *askers, char *why, size_t why_bytes);
void askers_fini(struct askers *askers);

// Makes a request; descriptors that come with its reply are closed.
int64_t askers_request(struct attach_thread *thread, const struct attach_request *request);
// The thread's last call. The last thread of a process ends the process.
void askers_leave(struct attach_thread *thread);
