// Finds the name that a misspelled one probably means.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// strcmp for names that are looked for in a table: most differ in their first letter.
static inline bool scn_name_is(const char *name, const char *wanted)
{
    return name[0] == wanted[0] && strcmp(name, wanted) == 0;
}

// Takes candidates one by one and keeps the nearest.
struct scn_nearest {
    const char *wanted;
    const char *name; // NULL: nothing close enough, or several equally close
    size_t distance;
};

void scn_nearest_init(struct scn_nearest *nearest, const char *wanted);
void scn_nearest_offer(struct scn_nearest *nearest, const char *candidate);

// The number of characters to insert, delete or replace.
size_t scn_names_distance(const char *a, const char *b);

// Whether it is a file or node name: letters, digits, '-' and '_', and '.' if dots is set, but not as the first one.
bool scn_name_is_plain(const char *name, bool dots);
