// Numbers that were right, in a YAML file beside the scenario: a list of {scenario, expect, numbers}, sorted by the
// first two. One file may serve several scenarios.
//
// Leaves out: comments, which a writing loses. Private to the room.
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "sim/kernel/status.h"

#define BASELINE_NUMBERS_MAX 1000 // of one entry

struct baseline_entry {
    char *scenario, *expect;
    double *numbers;
    size_t count;
};

struct baseline {
    struct baseline_entry *entries;
    size_t count;
};

// SIM_ERR_NOT_FOUND: there is no such file. SIM_ERR_INVALID, SIM_ERR_IO: the reason is in error, with line and column
// where there are some. To be freed after SIM_OK.
enum sim_status baseline_read(const char *path, struct baseline *baseline_out, char *error, size_t error_size);
void baseline_free(struct baseline *baseline);

// NULL: it has none of that name.
const struct baseline_entry *baseline_find(const struct baseline *baseline, const char *scenario, const char *expect);

// Puts entries of one scenario into the file, which may be new, and leaves all others as they are; says to log what
// changed. Two processes that do so at once wait for each other.
enum sim_status baseline_update(const char *path, const struct baseline_entry *entries, size_t count, FILE *log,
                                char *error, size_t error_size);
