// One line of the comparison with the published values. Private to the room.
#pragma once

#include "sim/report/value.h"

struct report_comparison {
    const char *what;
    const struct report_reference *reference;
    struct report_value taken; // in the column's unit
    double simulated;          // in the published unit
    double scale;              // simulated / taken.value
    bool has_error;
    double error_percent;
};

// Returns false if the id is not in the table; report_check_scenario refuses such a scenario before the run.
bool report_comparison_make(const report_t *report, const struct scn_check *check,
                            struct report_comparison *comparison_out);

// The same of a comparison that is a point of a figure: one number of one row. False also for any other.
bool report_comparison_point(const report_t *report, const struct scn_check *check,
                             struct report_comparison *comparison_out);

#define REPORT_OK_PERCENT   5.0
#define REPORT_NEAR_PERCENT 15.0
// The agreement in a word: "ok" or "near" within these limits, "off" beyond, "" if there is no error to judge, or the
// published value is disputed.
const char *report_comparison_mark(const struct report_comparison *comparison);
