// Where each resolved value came from, kept beside the scenario so that equal scenarios have equal structs.
// A value is known by the offset of its field in struct scn_scenario; an object or a list that a file gives is known by
// the offset where it starts (a list by that of its length), apart from the value that may start there as well.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/scenario/mistakes.h"

struct scn_source {
    size_t offset;
    bool structure; // of an object or list, not of a value
    bool bad;       // a mistake was reported; the field holds nothing worth checking
    struct scn_location location;
    const char *note; // source or assumption in words; NULL: the location is the source
};

struct scn_sources {
    struct scn_source *items; // sorted by offset, values before structures
    size_t count, capacity;
};

// Replaces what was there.
void scn_sources_put(struct scn_sources *sources, const struct scn_source *source);

// NULL: nothing has set it.
const struct scn_source *scn_sources_find(const struct scn_sources *sources, size_t offset, bool structure);

// Forgets everything in [offset, offset + size).
void scn_sources_forget(struct scn_sources *sources, size_t offset, size_t size);

void scn_sources_fini(struct scn_sources *sources);
