// A calibration: keys of scenarios with the ranges that their sources give, and the published rows that the simulated
// values are to meet. Read from YAML:
//
//   title: "The start-up of a DMA"
//   scenarios: [../figures/hanawa2013-fig7-8-pingpong.yaml]   # relative to this file
//   keys:
//     - {key: nodes.*.board.dmac_start_cycles, from: 150, to: 250, step: 5, source: "GTC 2014, page 17"}
//   rows: [H09]      # optional: the rows that decide
//
// A key takes the values from, from + step, ... up to `to`; several paths in a list take the same value.
// Leaves out: whether the paths exist, which only the scenarios know, and the meaning of the rows.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/kernel/status.h"
#include "sim/scenario/scenario.h"

#define CALIBRATION_KEYS_MAX      8
#define CALIBRATION_PATHS_MAX     8
#define CALIBRATION_SCENARIOS_MAX 16
#define CALIBRATION_VALUES_MAX    10000 // of a key
#define CALIBRATION_VALUE_MAX     32    // characters of a value

enum calibration_unit {
    CALIBRATION_NUMBER,
    CALIBRATION_TIME,
    CALIBRATION_SIZE,
    CALIBRATION_FREQUENCY,
    CALIBRATION_RATE
};

struct calibration_key {
    const char *name;                         // the first path; without its node, unless another key has that name
    const char *paths[CALIBRATION_PATHS_MAX]; // as --set takes them
    size_t path_count;
    enum calibration_unit unit;
    uint64_t from, step;  // in the base unit: ps, bytes, MHz, bytes per us
    uint32_t value_count; // at least 2
    const char *source;
};

typedef struct calibration calibration_t;
struct calibration {
    const char *title;
    const char *scenarios[CALIBRATION_SCENARIOS_MAX]; // paths, from the working directory
    size_t scenario_count;
    struct calibration_key keys[CALIBRATION_KEYS_MAX];
    size_t key_count;
    const char *rows[SCN_CHECKS_MAX]; // ids
    size_t row_count;                 // 0: every row with the use `calibrate`
};

// SIM_OK: to be freed with calibration_free. Otherwise messages has every mistake, and is to be freed.
enum sim_status calibration_load(const char *path, calibration_t **calibration_out, struct scn_messages *messages);
void calibration_free(calibration_t *calibration); // NULL is allowed

// A value of the key in its base unit, and as YAML writes it.
uint64_t calibration_value(const struct calibration_key *key, uint32_t index);
void calibration_value_format(const struct calibration_key *key, uint32_t index, char text[CALIBRATION_VALUE_MAX]);

// The value of the key that is nearest to a text with its unit; the middle one if the text is none.
uint32_t calibration_value_nearest(const struct calibration_key *key, const char *text);
