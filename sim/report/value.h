// The one number a check of the scenario asks for, taken from the rows. Private to the room.
#pragma once

#include "sim/report/results.h"

struct report_value {
    bool found;
    double value;                   // in the unit of the column; with first_ or last_reaching bytes; else with over a ratio
    const struct report_point *row; // where it was taken; NULL for a mean and when not found
    // A row that it asks for and that has no value there, as no operation was measured. Then nothing is found.
    const struct report_point *unmeasured;
};

struct report_value report_value_take(const report_t *report, const struct scn_check *check);

// Whether it asks for a size.
bool report_value_is_bytes(const struct scn_check *check);

// The factor that brings report_value_take's number into a unit of the published table. Returns false when the unit
// does not fit what the check asks for.
bool report_value_scale(const struct scn_check *check, const char *unit, double *scale_out);
