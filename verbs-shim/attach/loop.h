// Recognises the loops of empty polls of a thread. Private to verbs-shim/attach.
//
// An empty poll costs its time and returns; what the program does next is not known. Only if it repeats the same - the
// same polls, in the same order, with nothing noticeable in between - it is fast-forwarded over several iterations at
// once (docs/decisions/0017-waiting.md). A loop is identified by the call sites of its polls; the thread remembers the
// outcome of the loop's earlier streaks.
//
// A poll streak is a sequence of empty polls with nothing else between them. It ends well if the thread finds something,
// or does something after something was written; otherwise the program has given up.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOOP_POLLS_MAX 8u
#define LOOP_RECORDS   8u
#define LOOP_PAGES_MAX 32u

struct loop_poll {
    uint64_t key;         // call site, and what is polled
    uint64_t own_ps;      // time that the thread spent since the previous poll, including this one
    uint64_t bus_address; // of the word in pinned memory; 0: no single word
    bool clock;           // it reads a clock, and may wait for a time
};

// Pages of shared memory that a thread reads between its polls.
struct loop_pages {
    uint64_t list[LOOP_PAGES_MAX], polls[LOOP_PAGES_MAX]; // polls: the key of the poll after which the page is read
    unsigned count;
    bool incomplete; // there are more
};

struct loop_record {
    struct loop_poll polls[LOOP_POLLS_MAX]; // an iteration
    unsigned period;                        // 0: none
    unsigned used;                          // time of the last use, counted in uses
    unsigned found;                         // streaks that ended well
    uint64_t found_max, given_up_max;       // iterations: of the longest streak that ended well, and that was given up
    struct loop_pages pages;                // as they were last learned
    unsigned pages_valid, pages_backoff;    // streaks for which they count as known; the next such number
};

struct loop {
    struct loop_poll polls[2 * LOOP_POLLS_MAX]; // the streak's last polls; the newest is at (count - 1) modulo
    unsigned count;                             // of all polls of the streak
    unsigned period;                            // 0: not known yet
    uint64_t iterations;                        // of this streak, with the skipped ones
    uint64_t skipped;                           // by the last skip
    unsigned pause;                             // polls until the loop has had time to see what was written
    bool shares;                                // the process shares memory: the reads between polls must be known
    bool pages_known;                           // of this streak
    unsigned learning;                          // polls until the pages are known
    const struct loop_record *pages_of;         // the record whose pages were last learned
    unsigned skips;                             // skips of this streak after which nothing was written
    unsigned uses;
    struct loop_record records[LOOP_RECORDS];
};

// Ends the streak, if there is one.
void loop_end(struct loop *loop, bool well);
// Notes another empty poll. Returns how many iterations may be skipped; 0: none. If *period_out is not 0, iteration_out
// gets the polls of the iteration, beginning with this one.
uint64_t loop_poll_note(struct loop *loop, const struct loop_poll *poll, struct loop_poll iteration_out[LOOP_POLLS_MAX],
                        unsigned *period_out);
// So many iterations were skipped. written: something was written, which the loop must see by itself.
void loop_skipped(struct loop *loop, uint64_t iterations, bool written);
// Another process has written to shared memory that the loop reads: the streak ends well. Without this function nothing
// would show it, because the thread makes no call when it finds and uses what was written.
void loop_stored(struct loop *loop);
// The thread did something that no poll of the streak can have caused: it may read other pages from now on.
void loop_pages_doubt(struct loop *loop);
// Must the reads after this poll be learned? If they were, pass the pages to loop_pages_learned before the next poll.
bool loop_learns(const struct loop *loop);
void loop_pages_learned(struct loop *loop, const struct loop_pages *pages);
const struct loop_pages *loop_pages(struct loop *loop); // NULL: not known
