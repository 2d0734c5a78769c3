// The one number that a check of the scenario selects from the rows. Private to the room.
#pragma once

#include "sim/report/results.h"

struct report_value {
    bool found;
    double value; // in the unit of the column; with first_ or last_reaching bytes; else with over a ratio
    const struct report_point *row; // its row; NULL for a mean of several and if not found
    // A selected row that has no value, because no operation was measured. Then nothing is found.
    const struct report_point *unmeasured;
};

struct report_value report_value_take(const report_t *report, const struct scn_check *check);

// Does the check select a size?
bool report_value_is_bytes(const struct scn_check *check);

// The factor that converts report_value_take's number to a unit of the published table. Returns false if the unit does
// not fit the check.
bool report_value_scale(const struct scn_check *check, const char *unit, double *scale_out);
