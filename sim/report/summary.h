// A line for each series of a run of several scenarios: what was injected, what that led to, and what held.
#pragma once

#include "sim/report/expect.h"

// Adds a row for each series that ran and for each that failed, as CSV. outcomes NULL: nothing was judged.
void report_summary_write(const report_t *report, const struct report_outcomes *outcomes, FILE *rows);

// Prints the rows of all scenarios as one table, if faults were injected in one of them, or if `always`.
void report_summary_print(FILE *rows, bool always, FILE *out);
