// The poll policy: which write an empty poll of a loop sees, at which of its polls, and how far the thread may be
// fast-forwarded over iterations of the loop.
//
// A loop is made of iterations of one poll or several, each at its offset in the iteration; or, where a program reads
// memory without calls, of the words that it reads. A write is seen by the first poll after it that reads what was
// written. What else the loop may read between its polls is not known: any write to memory that devices write counts
// as seen, but for quiet memory, and but for regions of which many writes in a row led to nothing (unrelated writes).
//
// Pure: it knows no simulator, process or thread. Its caller says what happens and when. Times are simulated time in
// picoseconds. Sources: docs/decisions/0017-waiting.md.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "verbs-shim/attach/protocol.h"

// A region of memory, as its caller names it.
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
    bool any_pinned; // all of pinned memory is read
    // Since the thread was scheduled:
    bool seen;       // a write that the loop sees
    bool others;     // another thread was scheduled, and may have written
    unsigned stored; // of `others`: a bit for each poll behind which a page is read that has changed
    unsigned hit;    // the poll that sees the write; ATTACH_POLLS_MAX: not known
    // Since the poll streak began:
    bool poll_seen;        // a write to a word that a poll names
    uint64_t began_ps;     // the streak
    uint64_t others_ps;    // when another thread was last taken into account
    unsigned region_polls; // polls until it is known that nothing came of the last write to `region`; 0: none was
    struct poll_region region;
    uint64_t skipped; // iterations over which the thread was fast-forwarded by the last poll
};

struct poll_write {
    bool pinned;  // address: of the bus; else of the program
    bool quiet;   // the program has said that writes there are no news
    uint64_t address;
    uint32_t bytes;
    const struct poll_region *region; // in which it lies; NULL: none
    int unrelated;                    // what poll_region_note made of the region so far
};

// The loop that a request describes. own_ps: what the thread spent since its last call; least_ps: the cost of a poll.
struct poll_loop poll_loop_of(const struct attach_args_poll *args, uint64_t own_ps, uint64_t least_ps);
// The next poll, after `before`. goes_on: of the same streak. news: what the thread has not read may have changed.
void poll_loop_continue(struct poll_loop *loop, const struct poll_loop *before, bool goes_on, bool news,
                        uint64_t now_ps);

// A device writes: does the loop see it? Notes which poll does.
bool poll_loop_sees(struct poll_loop *loop, const struct poll_write *write);
// Another thread was scheduled: shall the loop poll? polled_empty: that thread polled and found nothing, and may have
// done nothing else.
bool poll_loop_others(struct poll_loop *loop, bool polled_empty, uint64_t now_ps);

// What came of the last write to a region: to be given to poll_region_note for loop->region.
enum poll_outcome { POLL_OUTCOME_NONE, POLL_OUTCOME_UNRELATED, POLL_OUTCOME_USED };
// goes_on: the streak goes on with this poll; else the thread has done something.
enum poll_outcome poll_loop_outcome(struct poll_loop *loop, bool goes_on);
int poll_region_note(int unrelated, enum poll_outcome outcome);

// Until when a thread that begins to poll at start_ps may be fast-forwarded when nothing comes.
uint64_t poll_loop_end_ps(const struct poll_loop *loop, uint64_t start_ps, uint64_t iterations);
// The thread has polled from start_ps to now_ps. told: it goes on because of a write or of others. Sets `skipped`;
// returns when the iteration begins whose poll sees what came: behind now_ps, or before it by less than an iteration.
uint64_t poll_loop_leave(struct poll_loop *loop, uint64_t start_ps, uint64_t now_ps, bool notified);
