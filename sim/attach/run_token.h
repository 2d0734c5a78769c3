// The run token: which thread of the programs, or the simulator, may run. Part of internal.h, for the files of the
// room.
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct attach_bells;
struct attach_server;
struct attach_thread;

// The processors of the simulator and the programs.
struct attach_processors {
    cpu_set_t before, others; // the simulator's: at first, and while apart from the programs
    int of_programs;          // -1: none chosen
    uint32_t polls;           // before a side sleeps; 0: there is one processor
    bool apart;
    unsigned given, late; // tokens of this window, or since simulator and programs are together
    unsigned together;    // for how many tokens they stay together
    unsigned good;        // consecutive windows without many late tokens
};

struct attach_tokens {
    struct attach_processors processors;
    struct attach_bells *bells;
    int bells_fd;
    uint32_t bells_given;
};

// The run token of a thread.
struct attach_token {
    uint32_t bell;
    uint64_t given_ps; // simulated time
    uint64_t awake_ms; // real time at which the thread was last known to run; 0: not checked yet
    bool rung;         // when the token was given, no thread was busy-waiting
    bool free;         // functional: its program runs
};

// --- run_token.c ----------------------------------------------------------------------------------------------------

bool attach_tokens_init(struct attach_server *server);
void attach_tokens_fini(struct attach_server *server);
// Moves the caller, and what it forks, to the processors of programs.
void attach_processors_of_programs(const struct attach_server *server);
void attach_token_give(struct attach_thread *thread);
bool attach_token_await(struct attach_thread *thread); // false: the program has ended
// For ever: the thread ends and makes no further call. Call `gone` when it has ended.
void attach_token_release(struct attach_thread *thread);
void attach_token_gone(const struct attach_thread *thread);
bool attach_token_is_program(const struct attach_thread *thread);
