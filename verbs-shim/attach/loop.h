// Which loops of empty polls a thread is in. Private to verbs-shim/attach.
//
// An empty poll costs what it costs and returns: what the program does next is its own affair. Only where it does the
// same again and again - the same polls, in the same order, with nothing that can be noticed in between - it is
// fast-forwarded over several iterations at once (docs/decisions/0017-waiting.md). A loop is known by the places from
// which it polls; what became of its earlier streaks is remembered by the thread.
//
// A streak is empty polls with nothing else between them. It ends well where the thread finds something, or
// does something after something was written; else the program has given up.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOOP_POLLS_MAX 8u
#define LOOP_RECORDS   8u
#define LOOP_PAGES_MAX 32u

struct loop_poll {
    uint64_t key;    // from where, at what
    uint64_t own_ps; // what the thread spent since the poll before, with this one
    uint64_t bus_address; // bus address of the word in pinned memory; 0: it names none
    bool clock;      // it reads a clock, and may wait for a time
};

// Pages of shared memory that a thread reads between its polls.
struct loop_pages {
    uint64_t list[LOOP_PAGES_MAX], polls[LOOP_PAGES_MAX]; // the key of the poll behind which it is read
    unsigned count;
    bool incomplete; // there are more
};

struct loop_record {
    struct loop_poll polls[LOOP_POLLS_MAX]; // an iteration
    unsigned period;                        // 0: none
    unsigned used;                          // when, of all
    unsigned found;                         // streaks that ended well
    uint64_t found_max, given_up_max;       // iterations: of the longest streak that did, and that did not
    struct loop_pages pages;                // as they were learned last
    unsigned pages_valid, pages_backoff;    // streaks for which they are taken as known; and after learning them again
};

struct loop {
    struct loop_poll polls[2 * LOOP_POLLS_MAX]; // the last ones of the streak, the newest at (count - 1) modulo
    unsigned count;                             // of them all
    unsigned period;                            // 0: not known yet
    uint64_t iterations;                        // of this streak, also those that were skipped
    uint64_t skipped;                           // by the last skip
    unsigned pause;                             // polls until the loop has had the time to see what was written
    bool shares;                                // memory with others: one wants to know what it reads between its polls
    bool pages_known;                           // of this streak
    unsigned learning;                          // polls until they are
    const struct loop_record *pages_of;         // whose pages were the last that were known
    unsigned skips;                             // of this streak, after which nothing was written
    unsigned uses;
    struct loop_record records[LOOP_RECORDS];
};

// The streak is over. Nothing where there is none.
void loop_end(struct loop *loop, bool well);
// Another empty poll. Returns how many iterations may follow at once, 0: none; then the iteration's polls begin with
// this one.
uint64_t loop_poll_note(struct loop *loop, const struct loop_poll *poll, struct loop_poll iteration_out[LOOP_POLLS_MAX],
                        unsigned *period_out);
// So many of them have passed. told: something was written, which the loop has to see by itself.
void loop_skipped(struct loop *loop, uint64_t iterations, bool written);
// Another process has written to shared memory that the loop reads: the streak is over, well. What the thread finds
// there and does about it are no calls, so that nothing else says so.
void loop_stored(struct loop *loop);
// The thread did something that no poll of the streak has told it to: it may read elsewhere from now on.
void loop_pages_doubt(struct loop *loop);
// Are the reads behind this poll to be learned? Where they have been, the pages are handed over before the next poll.
bool loop_learns(const struct loop *loop);
void loop_pages_learned(struct loop *loop, const struct loop_pages *pages);
const struct loop_pages *loop_pages(struct loop *loop); // NULL: they are not known
