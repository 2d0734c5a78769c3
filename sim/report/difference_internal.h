// The data of a difference. Private to the room.
#pragma once

#include "sim/report/difference.h"
#include "sim/report/measured.h"

enum difference_state {
    DIFFERENCE_EQUAL,
    DIFFERENCE_WITHIN, // not equal, but within the tolerance
    DIFFERENCE_BEYOND,
    DIFFERENCE_FIRST, // only the first directory has it
    DIFFERENCE_SECOND
};

struct difference_item {
    const struct measured_number *first, *second; // one may be NULL
    long double change;                           // second - first
    double percent;                               // of first; infinite if first is 0, NaN if there is no change
    enum difference_state state;
};

struct difference_items {
    struct difference_item *items; // in the order of the first file; then those that only the second has
    size_t count;
};

struct difference_key {
    const char *path, *first, *second; // one may be NULL
};

struct difference {
    const char *names[2];
    double within_percent;
    struct measured sides[2];
    struct difference_items data, counters;
    struct difference_key *keys; // only those that differ
    size_t key_count;
};

// first if it is not NULL, otherwise second.
const struct measured_number *difference_number(const struct difference_item *item);
// "equal", "within", "beyond", "only in the first", "only in the second".
const char *difference_state_name(enum difference_state state);
bool difference_counts(const struct difference_item *item);

// difference_plot.c. False: there is nothing to plot.
bool difference_plot_write(const difference_t *difference, FILE *out);
