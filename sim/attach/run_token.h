// The run token: who of the programs' threads and the simulator runs. Part of internal.h, for the files of the room.
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct attach_bells;
struct attach_server;
struct attach_thread;

// Where the simulator and the programs run.
struct attach_processors {
    cpu_set_t before, others; // the simulator's: at first, and while apart
    int of_programs;          // -1: nothing is chosen
    uint32_t polls;           // that a side makes before it sleeps; 0: there is one processor
    bool apart;
    unsigned given, late; // tokens of this window, or since they are together
    unsigned together;    // for so many tokens
    unsigned good;        // windows in a row
};

struct attach_tokens {
    struct attach_processors processors;
    struct attach_bells *bells;
    int bells_fd;
    uint32_t bells_given;
};

// Of a thread.
struct attach_token {
    uint32_t bell;
    uint64_t given_ps; // simulated time
    uint64_t awake_ms; // real time, when it was last seen to run since; 0: nobody has looked
    bool rung;         // when it was given, nobody looked
    bool free;         // functional: its program runs
};

// --- run_token.c ----------------------------------------------------------------------------------------------------

bool attach_tokens_init(struct attach_server *server);
void attach_tokens_fini(struct attach_server *server);
void attach_processors_of_programs(const struct attach_server *server); // of the caller from now on, and what it forks
// On which they may be, as far as they can tell: those that the simulator had itself.
void attach_processors_get(const struct attach_server *server, unsigned char set_out[128]);
void attach_token_give(struct attach_thread *thread);
bool attach_token_await(struct attach_thread *thread); // false: the program has ended
bool attach_token_is_program(const struct attach_thread *thread);
