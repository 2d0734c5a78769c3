// Which loops of looks in vain a thread is in. Private to verbs-shim/attach.
//
// A look in vain costs what it costs and returns: what the program does next is its own affair. Only where it does the
// same again and again - the same looks, in the same order, with nothing that can be noticed in between - it is led
// over several turns at once (docs/decisions/0017-waiting.md). A loop is known by the places from which it looks; what
// became of its earlier rows is remembered by the thread.
//
// A row is what a thread looks in vain without doing anything else. It ends well where the thread finds something, or
// does something after something was written; else the program has given up.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOOP_LOOKS_MAX 8u
#define LOOP_RECORDS   8u

struct loop_look {
    uint64_t key;    // from where, at what
    uint64_t own_ps; // what the thread spent since the look before, with this one
    uint64_t place;  // bus address of the word in pinned memory; 0: it names none
};

struct loop_record {
    struct loop_look looks[LOOP_LOOKS_MAX]; // a turn
    unsigned period;                        // 0: none
    unsigned used;                          // when, of all
    unsigned found;                         // rows that ended well
    uint64_t found_max, vain_max;           // turns: of the longest row that did, and that did not
};

struct loop {
    struct loop_look looks[2 * LOOP_LOOKS_MAX]; // the last ones of the row, the newest at (count - 1) modulo
    unsigned count;                             // of them all
    unsigned period;                            // 0: not known yet
    uint64_t turns;                             // of this row, also those that were skipped
    uint64_t skipped;                           // by the last skip
    unsigned pause;                             // looks until the loop has had the time to see what was written
    unsigned uses;
    struct loop_record records[LOOP_RECORDS];
};

// The row is over. Nothing where there is none.
void loop_end(struct loop *loop, bool well);
// Another look in vain. Returns how many turns may follow at once, 0: none; then the turn's looks begin with this one.
uint64_t loop_look(struct loop *loop, const struct loop_look *look, struct loop_look turn_out[LOOP_LOOKS_MAX],
                   unsigned *period_out);
// So many of them have passed. told: something was written, which the loop has to see by itself.
void loop_skipped(struct loop *loop, uint64_t turns, bool told);
