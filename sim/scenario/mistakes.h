// The mistakes in a scenario: collected while loading, exported sorted by location and without repetitions.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/scenario/arena.h"
#include "sim/scenario/scenario.h"

#define SCN_MISTAKES_SHOWN_MAX 100

// The origin of a text: a YAML file, or one --set of the command line.
struct scn_file {
    const char *name;
    unsigned rank;    // order in which mistakes are shown: scenario, presets in the order of use, --set
    bool is_argument; // an option of the command line: it has no lines
};

// line 0: the file as a whole.
struct scn_location {
    const struct scn_file *file;
    unsigned line, column;
};

struct scn_mistake;
struct scn_mistakes {
    struct scn_arena *arena;
    struct scn_mistake *newest;
    size_t count;    // of mistakes
    size_t warnings; // reported, but not as mistakes
};

__attribute__((format(printf, 3, 4))) void scn_mistakes_add(struct scn_mistakes *mistakes, struct scn_location location,
                                                            const char *format, ...);

__attribute__((format(printf, 3, 4))) void scn_mistakes_warn(struct scn_mistakes *mistakes,
                                                             struct scn_location location, const char *format, ...);

// "file:line:column", or "file".
char *scn_location_text(struct scn_arena *arena, struct scn_location location);

// The caller owns the lines (scn_messages_free).
void scn_mistakes_export(const struct scn_mistakes *mistakes, struct scn_messages *messages);
