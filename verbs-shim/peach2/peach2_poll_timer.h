// The timeout of a loop that polls by PIO. Private to the room.
//
// The timer reads the clock in every 64th iteration, as reading it costs time, and counts from the first reading: a
// loop ends up to 128 iterations late, and a loop of fewer than 64 iterations pays nothing.
#pragma once

#include "verbs-shim/backend/backend.h"

struct peach2_poll_timer {
    uint64_t timeout_ns; // 0: forever
    uint64_t polls, start_ps;
    uint64_t waited_ns; // at the last reading of the clock
};

// Called after each iteration that found nothing. true: the timeout has passed.
bool peach2_poll_timer_ends(const struct backend *backend, struct peach2_poll_timer *timer);
