// Plays a loop of polls: each poll by itself, or with the look ahead.
#pragma once

#include "random_loop.h"

// What a device does at a time: writes 4 bytes, lets the next poll find something, or nothing but end a wait.
enum play_kind { PLAY_WRITES, PLAY_FINDS, PLAY_WAKES };
struct play_event {
    uint64_t at_ps;
    enum play_kind kind;
    unsigned half; // of the device's words
    uint32_t value;
};
enum { PLAY_EVENTS = 8, PLAY_POLLS = 1 << 16 };

// The thread at a poll.
struct play_poll {
    uint64_t key, at_ps;
    uint64_t hash; // of memory, and of the registers that functions preserve
};

struct play {
    bool ahead; // look ahead
    bool alone; // no other thread or process sees what the loop writes
    struct play_event events[PLAY_EVENTS];
    unsigned event_count;
    // What came of it. polls: of those that were carried out, at their numbers; the others have at_ps 0.
    struct play_poll *polls; // PLAY_POLLS
    unsigned count;
    unsigned carried_out, lost; // lost: a thread that did not come to where it left a loop
    struct loop_memory memory;
};

struct loop_calls play_calls(void);
void play_loop(struct play *play, random_loop_t loop);
