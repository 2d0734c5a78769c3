// What an expectation examines: the numbers that it selects, or a whole output. Private to the room.
#pragma once

#include "sim/report/results.h"

struct observed_number {
    double value;
    char *where; // "line 3: latency 1.2 us"; NULL if it is clear
};

struct observed {
    struct observed_number *numbers;
    size_t count;
    char *message, *detail; // why there are no numbers, or why an output differs; may be NULL
};

// Returns either numbers or a message; neither if a whole output is as expected.
void observed_take(const report_t *report, const struct scn_check *expect, struct observed *observed_out);
void observed_free(struct observed *observed);
