// The results of a calibration: which values meet the published rows best, and how every row follows every key.
//
// Leaves out: the search (sim/calibrate) and the simulations (sim/cli).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/calibrate/search.h"
#include "sim/report/reference.h"

// A comparison of a scenario.
struct calibration_row {
    const struct report_reference *reference;
    const char *what;
    bool decides; // it counts for the cost
};

// Borrows everything. Values are in the unit of the row's publication; NAN: the simulation had none.
struct calibration_results {
    const struct calibration *calibration;
    const search_t *search;
    const struct calibration_row *rows;
    size_t row_count;
    const double *values;       // of point i and row k: values[i * row_count + k]
    const char *fidelity;       // of the search: "flow"
    const char *check_fidelity; // NULL: nothing was checked
    const double *checked[2];   // there, of the start and of the best point: one for each row
};

// (simulated - published) / published in per cent; NAN: there is none. What a deciding row adds to the cost is its
// square.
double calibration_error(const struct calibration_row *row, double simulated);

// The change of a row over the range of a key, the others at the start, in per cent of its value at the start.
double calibration_sensitivity(const struct calibration_results *results, size_t row, size_t key);

// Prints the best values as settings, the rows before and after, the sensitivities, and what the rows cannot decide.
void calibration_print(const struct calibration_results *results, FILE *out);

// Writes points.csv (every point with its rows), rows.csv, sensitivity.csv, plot.gp and plot.svg (by gnuplot).
enum sim_status calibration_write(const struct calibration_results *results, const char *directory, char *error,
                                  size_t error_size);

// The figure: a panel for each key with the error of every row over its range. Private to the room.
void calibration_plot_write(const struct calibration_results *results, FILE *out);
