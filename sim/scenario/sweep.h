// The points of a sweep, and the names of their series. Included by scenario.h.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/scenario/limits.h"

struct scn_scenario;

// `sweep:` repeats the runs for each of its points. A point is a list of settings that override the scenario as --set
// does. `expect:` and `compare:` name a series as "SERIES, CURVE"; "SERIES" alone means each of its points.
struct scn_sweep_point {
    const char *label; // "125 MHz"
    const char *curve; // the label without the value of a parameter "bytes", which is a column of the results: points
                       // that differ only in bytes are one series, "SERIES, CURVE"
    const char *axis, *others; // its value on the axis of plots over the sweep, and the rest of its curve
    const char *const *sets;
    size_t set_count;
};

struct scn_sweep {
    const char *title; // the swept keys of the labels without their paths
    const char *axis_title, *others_title;
    // The axis of plots over the sweep is the first key, or those under zip:, with several values, but a parameter
    // "bytes": so many of them, each for so many points in turn.
    uint32_t axis_count, axis_stride;
    const struct scn_sweep_point *points;
    uint32_t point_count;
};

// Makes "SERIES, CURVE" of a series and a point (number from 0); without a sweep "SERIES".
void scn_sweep_series_make(const struct scn_scenario *scenario, const char *bare, uint32_t point, char *series,
                           size_t size);

// Removes from the merged name of a series the part that a point (number from 1) added.
void scn_sweep_series_cut(const struct scn_sweep *sweep, uint32_t number, char series[SCN_NAME_MAX]);
// Has only the values that are not on the axis instead: the name of a curve over it.
void scn_sweep_series_group(const struct scn_sweep *sweep, uint32_t number, char series[SCN_NAME_MAX]);

// Does a setting "PATH=VALUE" give a key of that name: is it the last step of the path?
bool scn_set_gives(const char *set, const char *key);
// Is it among the swept keys? sweep NULL: there are none.
bool scn_sweep_gives(const struct scn_sweep *sweep, const char *key);
