// What an expectation looks at: the numbers it asks for, or a whole output. Private to the room.
#pragma once

#include "sim/report/results.h"

struct observed_number {
    double value;
    char *where; // "line 3: latency 1.2 us"; NULL where that is clear
};

struct observed {
    struct observed_number *numbers;
    size_t count;
    char *message, *detail; // why there are none, or why an output differs; NULL
};

// Exactly one of numbers and message is there; of a whole output neither where it is as expected.
void observed_take(const report_t *report, const struct scn_check *expect, struct observed *observed_out);
void observed_free(struct observed *observed);
