#pragma once

#include <stdbool.h>
#include <stdint.h>

// Returns which way it goes; the counter has 4 or 8 bytes. exact: what the interpreter tells of it comes close to what
// there is.
struct vary_subject {
    const char *name;
    uint64_t (*function)(const void *counter);
    unsigned bytes;
    bool exact;
};
extern const struct vary_subject vary_subjects[];        // ends with a row of NULL, as does
extern const struct vary_subject vary_subjects_of_two[]; // of counter[0] and counter[1]
