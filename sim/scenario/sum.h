// A sum of counters in an expectation: "COMPONENT.COUNTER + 256 * COMPONENT.COUNTER - 3". Operators have spaces around
// them, because names of components contain '-'.
#pragma once

#include <stdbool.h>

#include "sim/scenario/limits.h"

// Not a counter of a component, but the simulated time of the series, as in the manifest.
#define SCN_TERM_TIME "simulation.simulated_ps"

struct scn_term {
    bool minus;              // it is subtracted
    bool is_number;          // otherwise it is a counter
    char name[SCN_TEXT_MAX]; // COMPONENT.COUNTER; `*` in it means all that match
    double number;           // the term, or the factor of the counter
};

// Takes the next term and moves the cursor after it; false: there is none.
bool scn_sum_next(const char **cursor, struct scn_term *term);

// Whether each term is a number or could be the name of a counter.
bool scn_sum_is_valid(const char *text);

// Whether the name of a counter, COMPONENT.COUNTER, is one of those that a term names.
// Does the text fit the pattern, in which a star stands for any text and everything else for itself?
bool scn_pattern_fits(const char *pattern, const char *text);
bool scn_term_matches(const struct scn_term *term, const char *name);
