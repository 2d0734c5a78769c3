// The source of each resolved value, stored outside the scenario so that equal scenarios have equal structs.
// A value is identified by the offset of its field in struct scn_scenario. An object or a list in a file is identified
// by the offset at which it starts (a list by that of its length), and is distinct from a value at the same offset.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/scenario/mistakes.h"

struct scn_source {
    size_t offset;
    bool structure; // an object or list, not a value
    bool bad;       // a mistake was reported; the field needs no further checks
    struct scn_location location;
    const char *note; // source or assumption in words; NULL: the location is the source
};

struct scn_sources {
    struct scn_source *items; // sorted by offset, values before structures
    size_t count, capacity;
};

// Replaces an existing source of the same field.
void scn_sources_put(struct scn_sources *sources, const struct scn_source *source);

// NULL: nothing has set it.
const struct scn_source *scn_sources_find(const struct scn_sources *sources, size_t offset, bool structure);

// Removes all sources in [offset, offset + size).
void scn_sources_forget(struct scn_sources *sources, size_t offset, size_t size);

void scn_sources_fini(struct scn_sources *sources);
