// The numbers in a directory of results, each with its identity: data.csv and counters.csv as `tcasim run` and `tcasim
// exec --out` write them, the numbers of exec.yaml, its hash and what it says about the machine, and the keys of
// resolved.yaml.
//
// Private to the room and its tests.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/report/table.h"
#include "sim/scenario/tree.h"

struct measured_number {
    const char *series, *component, *name; // component: of a counter; "" of a row's column
    uint64_t bytes, descriptors, ranks;    // of a row
    size_t copy;                           // 0; further rows with the same identity have 1, 2, ...
    const char *text;                      // as in the file
    long double value;                     // wide enough for every counter
    size_t order;                          // in the file
};

struct measured_numbers {
    struct measured_number *items;
    size_t count;
};

// A key of the scenario: "nodes.0.host.poll" and its value.
struct measured_key {
    const char *path, *value;
};

struct measured_keys {
    struct measured_key *items;
    size_t count;
};

struct measured {
    struct table data_table, counter_table;
    struct measured_numbers data, counters; // counters: first those of exec.yaml, whose components are their paths
    struct measured_keys keys;
    const char *hash; // of exec.yaml; NULL: it has none
    struct measured_keys machine; // what exec.yaml says about the machine
    bool resolved; // there is a resolved.yaml
    struct scn_arena arena;
};

// Anything invalid is an error with file and line. To be freed after SIM_OK.
enum sim_status measured_read(const char *directory, struct measured *measured_out, char *error, size_t error_size);
void measured_free(struct measured *measured);

// Compares all identifying fields.
int measured_compare(const struct measured_number *a, const struct measured_number *b);
