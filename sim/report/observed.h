// What an expectation examines: the numbers that it selects, or a whole output. Private to the room.
#pragma once

#include "sim/report/results.h"

struct observed_number {
    double value;
    double wanted;      // the other sum of counters, which it must equal; NaN: the bounds are in the scenario
    char *where;        // "line 3: latency 1.2 us"; NULL if it is clear
    const char *series; // of the results, or NULL; not owned
};

struct observed {
    struct observed_number *numbers;
    size_t count;
    char *message, *detail; // why there are no numbers, or why an output differs; may be NULL
};

// Returns either numbers or a message; neither if a whole output is as expected.
void observed_take(const report_t *report, const struct scn_check *expect, struct observed *observed_out);
void observed_free(struct observed *observed);

// observed_counters.c: sums of counters, one for each series.
void observed_counters_take(const report_t *report, const struct scn_check *expect, struct observed *observed);

// For both files.
__attribute__((format(printf, 2, 3))) void observed_message_set(struct observed *observed, const char *format, ...);
FILE *observed_detail_open(struct observed *observed, size_t *size);                // the message owns the text
void observed_number_add(struct observed *observed, struct observed_number number); // which owns its text
