// The poll policy: which write an empty poll of a loop sees, at which of its polls, and how far the thread may be
// fast-forwarded over iterations of the loop.
//
// A loop consists of iterations. An iteration has one or several polls, each at its offset. If a program reads memory
// without calls, the loop consists of the words that it reads. A write is seen by the first poll after it that reads
// what was written. What else the loop reads between its polls is not known: any write to memory that devices write
// counts as seen, except writes to ignored memory, and to regions in which many consecutive writes led to nothing
// (unrelated writes).
//
// Pure: it knows no simulator, process or thread. The caller reports what happens and when. Times are simulated time in
// picoseconds. Source: docs/decisions/0017-waiting.md.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/attach/protocol.h"

// A region of memory, identified by numbers of the caller.
struct poll_region {
    unsigned kind;
    uint64_t number;
};

struct poll_loop {
    uint64_t iteration_ps;
    unsigned flags; // enum attach_wait_flags
    struct attach_iteration_poll polls[ATTACH_POLLS_MAX];
    unsigned poll_count;
    struct attach_word words[ATTACH_RANGES_MAX];
    unsigned word_count;
    bool any_pinned; // the loop reads all pinned memory
    // Since the thread was scheduled:
    bool seen;       // there was a write that the loop sees
    bool others;     // another thread was scheduled, and may have written
    unsigned stored; // if `others`: a bit for each poll after which a changed page is read
    bool own;        // the word of the first poll was written; if it has none: what is work for its library
    unsigned hit;    // the poll that sees the write; ATTACH_POLLS_MAX: unknown
    // Since the poll streak began:
    bool poll_seen;        // a poll names a word that was written
    uint64_t began_ps;     // start of the streak
    uint64_t others_ps;    // when another thread was last taken into account
    unsigned region_polls; // polls until the last write to `region` counts as unrelated; 0: no write
    struct poll_region region;
    uint64_t skipped; // iterations over which the last poll fast-forwarded the thread
};

struct poll_write {
    bool pinned; // address: on the bus; else in the program
    bool ignored; // the program has declared that writes there are to be ignored
    bool work;    // its library has declared that they are work for it
    bool event;   // that, or an event queue of the process
    uint64_t address;
    uint32_t bytes;
    const struct poll_region *region; // the region of the address; NULL: none
    int unrelated;                    // the count of poll_region_note for the region so far
};

// The loop that a request describes. own_ps: time spent by the thread since its last call; least_ps: the cost of a
// poll.
struct poll_loop poll_loop_of(const struct attach_args_poll *args, uint64_t own_ps, uint64_t least_ps);
// Continues from `before` with the next poll. goes_on: of the same streak. new_memory: memory that the thread has not
// read may have changed.
void poll_loop_continue(struct poll_loop *loop, const struct poll_loop *before, bool goes_on, bool new_memory,
                        uint64_t now_ps);

// A device writes: does the loop see it? Notes which poll sees it.
bool poll_loop_sees(struct poll_loop *loop, const struct poll_write *write);
// Another thread was scheduled: must the loop poll? polled_empty: that thread polled and found nothing, and may have
// done nothing else.
bool poll_loop_others(struct poll_loop *loop, bool polled_empty, uint64_t now_ps);

// The outcome of the last write to a region; pass it to poll_region_note for loop->region.
enum poll_outcome { POLL_OUTCOME_NONE, POLL_OUTCOME_UNRELATED, POLL_OUTCOME_USED };
// goes_on: the streak continues with this poll; else the thread has done something.
enum poll_outcome poll_loop_outcome(struct poll_loop *loop, bool goes_on);
int poll_region_note(int unrelated, enum poll_outcome outcome);

// Until when a thread that begins to poll at start_ps may be fast-forwarded if nothing comes.
uint64_t poll_loop_end_ps(const struct poll_loop *loop, uint64_t start_ps, uint64_t iterations);
// The thread has polled from start_ps to now_ps. notified: it continues because of a write or of other threads. Sets
// `skipped`. Returns the start of the iteration whose poll sees what came: after now_ps, or before it by less than an
// iteration.
uint64_t poll_loop_leave(struct poll_loop *loop, uint64_t start_ps, uint64_t now_ps, bool notified);
