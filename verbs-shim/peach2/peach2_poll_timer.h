// How long a loop that polls by PIO goes on. Private to the room.
//
// The clock is looked at every 64th turn, as a look costs time, and counts from the first look: a loop ends up to 128
// turns late, and one of fewer than 64 turns pays nothing.
#pragma once

#include "verbs-shim/backend/backend.h"

struct peach2_poll_timer {
    uint64_t timeout_ns; // 0: for ever
    uint64_t turns, start_ps;
    uint64_t waited_ns; // at the last look at the clock
};

// After each turn that found nothing: is it enough?
bool peach2_poll_timer_ends(const struct backend *backend, struct peach2_poll_timer *timer);
