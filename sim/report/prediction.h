// A prediction: results with their intervals and all they were made from, in one file that can be published before somebody
// measures, and its comparison with what was measured.
//
// The file is text: a line with the SHA-256 of all that follows, then data.csv, compare.csv, interval.csv, resolved.yaml and
// manifest.yaml of a directory of results, each below a line with its name. So nobody can change a prediction without
// changing its hash, which is what has to be published.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/kernel/status.h"

#define PREDICTION_HEAD "# A prediction by tcasim"

// Writes the prediction of a directory of results with intervals. hash: what the file has.
enum sim_status prediction_write(const char *directory, const char *path, char *hash, size_t hash_size, char *error,
                                 size_t error_size);

// Is this such a file? Its contents are not checked.
bool prediction_is(const char *path);

struct prediction_count {
    size_t measured, inside;
};

// Prints each measured value beside what was predicted. measured: a CSV file whose columns are some of data.csv:
// latency_us or bandwidth_GBps, and what tells its rows apart (series, bytes, swept keys, ...). SIM_ERR_INVALID, with the
// reason in error: the prediction is not what its hash was made of, or a row is none or several of its rows.
enum sim_status prediction_compare(const char *path, const char *measured, FILE *out,
                                   struct prediction_count *count_out, char *error, size_t error_size);
