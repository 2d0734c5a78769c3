// The simulations of a calibration: each scenario at each point is a process of its own.
#pragma once

#include "sim/calibrate/search.h"
#include "sim/cli/paths.h"
#include "sim/cli/progress.h"
#include "sim/scenario/scenario.h"

struct calibrate_measure {
    const struct calibration *calibration;
    const struct cli_paths *paths;
    uint32_t jobs;            // at once
    const char *fidelity;     // of everything in the scenarios
    size_t row_count;         // of all scenarios together
    const size_t *first_rows; // of each scenario
    struct cli_progress *progress;
};

// Loads a scenario of the calibration at a point. point: NULL: as it is. NULL: printed why.
struct scn_scenario *calibrate_load(const struct calibrate_measure *measure, size_t scenario,
                                    const struct search_point *point);

// Simulates the points. values_out: of point i and row k: values_out[i * row_count + k]; NAN: it failed, after its
// reason was printed. false: no memory, or no scratch file; printed.
bool calibrate_measure(const struct calibrate_measure *measure, const struct search_point *points, size_t count,
                       double *values_out);
