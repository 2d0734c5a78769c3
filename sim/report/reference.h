// The published values: the project's copy of the table of papers, with its `value` column parsed.
//
// Leaves out: which simulated number belongs to an id (the scenario's `compare:`).
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/kernel/status.h"

enum report_published_kind {
    REPORT_PUBLISHED_TEXT,   // "order": not a number
    REPORT_PUBLISHED_NUMBER, // "3.3"
    REPORT_PUBLISHED_RANGE,  // "1.30-1.40"
    REPORT_PUBLISHED_BELOW,  // "<5.0", "<=5.0"
    REPORT_PUBLISHED_ABOVE   // ">0.9", ">=0.9"
};

// A number has low == high; an open end is infinite.
struct report_published {
    enum report_published_kind kind;
    double low, high;
};

struct report_reference {
    const char *id, *paper, *where, *what, *config, *value, *unit;
    const char *use;   // calibrate, predict, or disputed: shown, but no measure of anything
    const char *doubt; // what speaks against the published value; empty: nothing
    struct report_published published;
};

struct report_references {
    char *text; // the fields point into it
    struct report_reference *rows;
    size_t count;
};

// SIM_ERR_IO: not readable. SIM_ERR_INVALID: not this table.
enum sim_status report_references_read(struct report_references *references, const char *path);
void report_references_free(struct report_references *references);
const struct report_reference *report_references_find(const struct report_references *references, const char *id);

struct report_published report_published_parse(const char *text);
double report_rounding_of(const char *number); // half a unit of the last digit: "2.4" stands for what rounds to it

// (simulated - published) / published in percent. For a range or a bound: 0 inside, and outside of it relative to the
// nearest end. Returns false, with *percent_out unchanged, if the divisor would be 0 or there is no number.
bool report_published_error(const struct report_published *published, double simulated, double *percent_out);
