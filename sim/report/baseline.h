// Reference numbers in a YAML file beside the scenario: a list of {scenario, expect, numbers}, sorted by the first two.
// One file may serve several scenarios.
//
// Leaves out: comments, which are lost when the file is written. Private to the room.
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

// SIM_ERR_NOT_FOUND: the file does not exist. SIM_ERR_INVALID, SIM_ERR_IO: the reason is in error, with line and column
// if they are known. To be freed after SIM_OK.
enum sim_status baseline_read(const char *path, struct baseline *baseline_out, char *error, size_t error_size);
void baseline_free(struct baseline *baseline);

// NULL: there is no entry of that name.
const struct baseline_entry *baseline_find(const struct baseline *baseline, const char *scenario, const char *expect);

// Puts entries of one scenario into the file, which may be new, and keeps all others. Writes to log what changed. The
// directory is locked, so two processes do not overwrite each other's entries.
enum sim_status baseline_update(const char *path, const struct baseline_entry *entries, size_t count, FILE *log,
                                char *error, size_t error_size);
