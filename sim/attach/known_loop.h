// A loop of empty polls that is known: the program's shim has computed that the thread repeats these polls until something
// changes that it reads (verbs-shim/attach/ahead.h): the words that it polls, and others. When something changes, the
// thread goes on at the end of the poll that is carried out then, as if it had made all polls before.
//
// Iterations begin at start_ps. Computing costs nothing: what the thread reads after a poll, it reads at the poll's end.
// The description comes from the program: its numbers are bounded, and nothing that is wrong in it harms another thread.
//
// Pure, as poll_policy.h. Times are simulated time in picoseconds. Source: docs/decisions/0017-waiting.md.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/attach/protocol.h"

struct poll_write;

struct known_loop {
    bool on, started;
    bool outside; // another program may end it
    uint64_t iteration_ps;
    uint64_t start_ps; // the end of its first poll
    struct attach_iteration_poll polls[ATTACH_AHEAD_POLLS + 1];
    unsigned poll_count;
    struct attach_loop_word words[ATTACH_LOOP_WORDS];
    unsigned word_count;
    uint64_t pages[2]; // a bit for each page of the words and polls: in the program, on the bus
    struct attach_loop_changes changes;
    bool sees;        // something came, perhaps before start_ps: seen_ps is the first poll after it
    uint64_t seen_ps; // the end of the poll at which the thread goes on
    unsigned hit;     // the number of this poll in its iteration
    bool early;       // it goes on before the end of this poll
    bool own;         // a device has written the word of this very poll while it was carried out
};

void known_loop_take(struct known_loop *loop, const struct attach_args_poll *args, const struct attach_slot *slot);
// The thread has paid for its first poll. It makes at most so many iterations; 0: these polls, once.
void known_loop_start(struct known_loop *loop, uint64_t now_ps, uint64_t iterations);
// Something comes that the loop may see: the thread goes on at its next poll.
void known_loop_sees(struct known_loop *loop, uint64_t now_ps);
// Does the loop change one of these bytes at some of its polls?
bool known_loop_changes(const struct known_loop *loop, uint64_t address, uint64_t bytes);
// Another program has done something by which a call may find something. true: the loop polls by calls.
bool known_loop_woken(struct known_loop *loop, uint64_t now_ps);
// A device writes. true: the loop reads it.
bool known_loop_written(struct known_loop *loop, const struct poll_write *write, uint64_t now_ps);
// Others see what the thread did before now_ps: it goes on at its last poll that ended before; or, if something has come
// since, at once to the poll that sees it (`early`). false: it is no further than others see.
bool known_loop_catch_up(struct known_loop *loop, uint64_t now_ps);
// How many iterations were made before that of `hit`.
uint64_t known_loop_iterations(const struct known_loop *loop);
