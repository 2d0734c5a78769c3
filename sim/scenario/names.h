// Finding the name that was meant.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Looks through candidates one by one and remembers the nearest.
struct scn_nearest {
    const char *wanted;
    const char *name; // NULL: nothing close enough, or several equally close
    size_t distance;
};

void scn_nearest_init(struct scn_nearest *nearest, const char *wanted);
void scn_nearest_offer(struct scn_nearest *nearest, const char *candidate);

// Number of characters to insert, delete or replace.
size_t scn_names_distance(const char *a, const char *b);

// A file or node name: letters, digits, '-' and '_', and '.' where dots is set; never starting with a dot.
bool scn_name_is_plain(const char *name, bool dots);
